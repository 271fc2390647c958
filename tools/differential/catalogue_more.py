"""Calls of functions that the other catalogues leave out: transposed convolutions, samplers, signal
processing, sets, ragged tensors, quantisation, metrics at thresholds, decays.
"""

from __future__ import annotations

import numpy as np

from tools.differential.cases import (
    COMPLEX,
    EVERY,
    FLOATS,
    INTS,
    NUMBERS,
    REALS,
    Arguments,
    Source,
    Value,
    dtype,
    op,
    py,
)
from tools.differential.catalogue_other import sparse

WIDE = ["float32", "float32", "float64"]


def call(name: str, *args: Value, **kwargs: Value) -> Value:
    return {"k": "call", "fn": name, "args": list(args), "kwargs": kwargs}


def listed(*values: Value) -> Value:
    return {"k": "list", "v": list(values)}


# checks and conversions ---------------------------------------------------------------------------


@op("assert_greater", "assert_less_equal", "assert_near")
def compared(s: Source) -> Arguments:
    name, shape = s.of(REALS), s.dims(0, 2)
    low, high = s.value(name, shape, 0, 1), s.value(name, s.broadcastable(shape), 2, 3)
    return [("x", s.one(high, low)), ("y", low)]


@op("assert_integer", "assert_scalar")
def checked_type(s: Source) -> Arguments:
    return [("", s.value(s.of(EVERY), s.one([], [], [2])))]


@op("assert_rank_in")
def rank_in(s: Source) -> Arguments:
    return [("x", s.value("float32", s.dims(0, 3))), ("ranks", py(s.one([0, 1], [1, 2, 3], [2])))]


@op("assert_same_float_dtype")
def same_float(s: Source) -> Arguments:
    name = s.of(FLOATS)
    return [("tensors", listed(s.value(name, [2]), s.value(s.one(name, "float32"), [])))]


@op("verify_tensor_all_finite")
def all_finite(s: Source) -> Arguments:
    return [("t", s.value(s.of(FLOATS), s.dims(0, 3))), ("msg", py("not finite"))]


@op("scalar_mul", grad=True)
def scalar_mul(s: Source) -> Arguments:
    name = s.of(NUMBERS)
    return [("scalar", s.value(name, [])), ("x", s.value(name, s.dims(0, 3)))]


@op("guarantee_const", "to_complex128", "math.bessel_i0", "math.bessel_i0e", "math.bessel_i1")
def of_one(s: Source) -> Arguments:
    return [("", s.value(s.of(WIDE), s.dims(0, 3)))]


@op("math.reciprocal_no_nan", grad=True)
def reciprocal_no_nan(s: Source) -> Arguments:
    return [("x", s.value(s.of(FLOATS + COMPLEX), s.dims(0, 3), -1, 1))]


@op("math.nextafter")
def nextafter(s: Source) -> Arguments:
    name, shape = s.of(WIDE), s.dims(0, 2)
    return [("x1", s.value(name, shape)), ("x2", s.value(name, s.broadcastable(shape)))]


@op("hessians")
def hessians(s: Source) -> Arguments:
    v = s.variable(s.one("float32", "float64"), s.dims(1, 2))
    inner = call(s.one("sin", "square", "nn.softmax", "exp", "identity", "nn.l2_normalize"), v)
    if inner["fn"] == "nn.l2_normalize":
        inner["args"].append(py(0))
    return [("ys", call("reduce_sum", call("square", inner))), ("xs", s.one(v, listed(v)))]


@op("histogram_fixed_width_bins")
def bins(s: Source) -> Arguments:
    name = s.one("float32", "float64", "int32", "int64")
    return [
        ("values", s.value(name, s.dims(0, 3))),
        ("value_range", s.carried(np.array(s.one([-3, 3], [0, 4], [1, 1])).astype(name), name)),
        ("nbins", s.ints(s.int(1, 6))),
    ]


@op("batch_to_space", grad=True)
def batch_to_space(s: Source) -> Arguments:
    b = s.int(1, 2)
    shape = [b * b * s.int(1, 2), s.int(1, 3), s.int(1, 3), s.int(1, 2)]
    crops = [[s.int(0, 1), s.int(0, 1)], [0, s.int(0, 1)]]
    return [
        ("input", s.value(s.of(NUMBERS), shape)),
        ("crops", s.ints(crops)),
        ("block_size", py(b)),
    ]


@op("space_to_batch", grad=True)
def space_to_batch(s: Source) -> Arguments:
    b = s.int(1, 2)
    shape = [s.int(1, 2), 2 * s.int(1, 2), 2 * s.int(1, 2), s.int(1, 2)]
    pads = s.one([[0, 0], [0, 0]], [[1, 1], [0, 2]])
    return [
        ("input", s.value(s.of(NUMBERS), shape)),
        ("paddings", s.ints(pads)),
        ("block_size", py(b)),
    ]


@op("required_space_to_batch_paddings")
def required_paddings(s: Source) -> Arguments:
    return [
        ("input_shape", s.ints([s.int(1, 7), s.int(1, 7)])),
        ("block_shape", s.ints([s.int(1, 3), s.int(1, 3)])),
        ("base_paddings", s.one(py(None), py([[0, 1], [1, 0]]))),
    ]


@op("parse_tensor")
def parse_tensor(s: Source) -> Arguments:
    name = s.of(EVERY)
    held = call("serialize_tensor", s.value(name, s.dims(0, 2)))
    return [("serialized", held), ("out_type", dtype(s.one(name, name, s.of(EVERY))))]


@op("sparse_mask")
def sparse_mask(s: Source) -> Arguments:
    slices = {
        "k": "slices",
        "values": s.value(s.of(NUMBERS), [3, 2]),
        "indices": py([4, 1, 2]),
    }
    return [("a", slices), ("mask_indices", s.indices([2], 5))]


@op("sparse_retain")
def sparse_retain(s: Source) -> Arguments:
    sp = sparse(s, s.of(REALS), [3, 4])
    n = sp["values"].get("shape", [1])[0] if "shape" in sp["values"] else 1
    return [("sp_input", sp), ("to_retain", s.value("bool", [n]))]


@op("sparse_reset_shape")
def sparse_reset_shape(s: Source) -> Arguments:
    out: Arguments = [("sp_input", sparse(s, s.of(REALS), [3, 4]))]
    return [*out, ("new_shape", py(s.one([3, 4], [5, 6], [2, 2])))] if s.chance(0.7) else out


@op("sparse_to_indicator")
def sparse_to_indicator(s: Source) -> Arguments:
    indices, values = [[0, 0], [0, 1], [1, 0]], [s.int(0, 4) for _ in range(3)]
    sp = {
        "k": "sparse",
        "indices": s.carried(np.array(indices, "int64"), "int64"),
        "values": s.ints(values, s.one("int64", "int32")),
        "shape": py([2, 2]),
    }
    return [("sp_input", sp), ("vocab_size", py(s.int(4, 6)))]


@op("sparse.expand_dims")
def sparse_expand_dims(s: Source) -> Arguments:
    return [
        ("sp_input", sparse(s, s.of(REALS), [3, 4])),
        ("axis", s.one(py(None), py(s.int(-3, 2)))),
    ]


@op("sparse.eye")
def sparse_eye(s: Source) -> Arguments:
    return [
        ("num_rows", py(s.int(0, 3))),
        ("num_columns", s.one(py(None), py(s.int(0, 3)))),
        ("dtype", dtype(s.of(FLOATS))),
    ]


@op("sets.size", "sets.set_size")
def set_size(s: Source) -> Arguments:
    return [("a", sparse(s, s.one("int32", "int64", "string"), [3, 4]))]


@op("sets.intersection", "sets.difference", "sets.union")
def set_operation(s: Source) -> Arguments:
    name = s.one("int32", "int64", "int8", "string")
    first = s.one(s.value(name, [2, 3], 0, 4), sparse(s, name, [2, 3]))
    second = s.value(name, [2, 4], 0, 4) if first["k"] != "sparse" else sparse(s, name, [2, 4])
    return [("a", first), ("b", second)]


# quantisation -------------------------------------------------------------------------------------


@op("fake_quant_with_min_max_args", grad=True)
def fake_quant_args(s: Source) -> Arguments:
    return [
        ("inputs", s.value("float32", s.dims(0, 3))),
        ("min", py(s.one(-3.0, -0.1, 0.0))),
        ("max", py(s.one(3.0, 0.7))),
        ("num_bits", py(s.one(8, 2, 16))),
        ("*narrow_range", py(s.chance(0.5))),
    ]


@op("fake_quant_with_min_max_vars", grad=True)
def fake_quant_vars(s: Source) -> Arguments:
    return [
        ("inputs", s.value("float32", s.dims(0, 3))),
        ("min", s.value("float32", [], -3, -1)),
        ("max", s.value("float32", [], 1, 3)),
        ("num_bits", py(s.one(8, 2, 16))),
        ("*narrow_range", py(s.chance(0.5))),
    ]


@op("fake_quant_with_min_max_vars_per_channel", grad=True)
def fake_quant_channels(s: Source) -> Arguments:
    shape = s.dims(1, 3)
    return [
        ("inputs", s.value("float32", shape)),
        ("min", s.value("float32", shape[-1:], -3, -1)),
        ("max", s.value("float32", shape[-1:], 1, 3)),
    ]


@op("quantization.quantize_and_dequantize", grad=True)
def quantize_and_dequantize(s: Source) -> Arguments:
    return [
        ("input", s.value(s.of(WIDE), s.dims(0, 3))),
        ("input_min", s.value("float32", [], -3, -1)),
        ("input_max", s.value("float32", [], 1, 3)),
        ("*signed_input", py(s.chance(0.6))),
        ("*num_bits", py(s.one(8, 4))),
        ("*range_given", py(s.chance(0.5))),
    ]


# neural networks ----------------------------------------------------------------------------------


@op("nn.conv3d_transpose", grad=True, loose=4)
def conv3d_transpose(s: Source) -> Arguments:
    k, st, c, d = s.int(1, 2), s.int(1, 2), s.int(1, 2), s.int(1, 2)
    name, n, side = s.of(WIDE), s.int(1, 2), s.int(1, 3)
    return [
        ("value", s.value(name, [n, side, side, side, c])),
        ("filter", s.value(name, [k, k, k, d, c])),
        ("output_shape", s.ints([n, side * st, side * st, side * st, d])),
        ("strides", py([1, st, st, st, 1])),
        ("padding", py("SAME")),
    ]


@op("nn.conv1d_transpose", grad=True, loose=4)
def conv1d_transpose(s: Source) -> Arguments:
    k, st, c, d = s.int(1, 3), s.int(1, 2), s.int(1, 2), s.int(1, 2)
    name, n, side = s.of(WIDE), s.int(1, 2), s.int(1, 4)
    return [
        ("input", s.value(name, [n, side, c])),
        ("filters", s.value(name, [k, d, c])),
        ("output_shape", s.ints([n, side * st, d])),
        ("strides", py(st)),
        ("padding", py("SAME")),
    ]


@op("nn.atrous_conv2d_transpose", grad=True, loose=4)
def atrous_transpose(s: Source) -> Arguments:
    k, rate, c, d = s.int(1, 3), s.int(1, 2), s.int(1, 2), s.int(1, 2)
    n, side = s.int(1, 2), s.int(3, 5)
    return [
        ("value", s.value("float32", [n, side, side, c])),
        ("filters", s.value("float32", [k, k, d, c])),
        ("output_shape", s.ints([n, side, side, d])),
        ("rate", py(rate)),
        ("padding", py("SAME")),
    ]


@op("nn.depthwise_conv2d_native", grad=True, loose=4)
def depthwise_native(s: Source) -> Arguments:
    name, c, k = s.of(WIDE), s.int(1, 3), s.int(1, 3)
    return [
        ("input", s.value(name, [s.int(1, 2), s.int(3, 5), s.int(3, 5), c])),
        ("filter", s.value(name, [k, k, c, s.int(1, 2)])),
        ("strides", py(s.one([1, 1, 1, 1], [1, 2, 2, 1]))),
        ("padding", py(s.one("SAME", "VALID"))),
    ]


@op("nn.max_pool_v2", "nn.avg_pool_v2", grad=True)
def pool_v2(s: Source) -> Arguments:
    rank = s.int(1, 3)
    shape = [s.int(1, 2), *[s.int(3, 5) for _ in range(rank)], s.int(1, 2)]
    return [
        ("input", s.carried(s.array("float32", shape), "float32", ["const", "np"])),
        ("ksize", py(s.one(2, [2] * rank))),
        ("strides", py(s.one(1, 2))),
        ("padding", py(s.one("SAME", "VALID"))),
    ]


@op("nn.fractional_avg_pool", seeded=True)
def fractional_avg(s: Source) -> Arguments:
    return [
        ("value", s.value(s.one("float32", "float64", "int32"), [1, s.int(4, 7), 6, 2])),
        ("pooling_ratio", py([1.0, s.one(1.4, 1.7), 1.5, 1.0])),
        ("pseudo_random", py(s.chance(0.5))),
        ("overlapping", py(s.chance(0.5))),
        ("deterministic", py(True)),
        ("seed", py(5)),
        ("seed2", py(7)),
    ]


@op("nn.ctc_greedy_decoder")
def ctc_greedy(s: Source) -> Arguments:
    t, b = s.int(2, 5), s.int(1, 2)
    return [
        ("inputs", s.value("float32", [t, b, s.int(2, 4)])),
        ("sequence_length", s.ints([s.int(1, t) for _ in range(b)])),
        ("merge_repeated", py(s.chance(0.5))),
    ]


@op("nn.ctc_beam_search_decoder", loose=4)
def ctc_beam(s: Source) -> Arguments:
    t, b = s.int(2, 4), s.int(1, 2)
    return [
        ("inputs", s.value("float32", [t, b, s.int(3, 4)])),
        ("sequence_length", s.ints([s.int(1, t) for _ in range(b)])),
        ("beam_width", py(s.one(3, 10))),
        ("top_paths", py(1)),
        ("merge_repeated", py(s.chance(0.5))),
    ]


@op("nn.nce_loss", "nn.sampled_softmax_loss", seeded=True, grad=True, loose=4)
def sampled_loss(s: Source) -> Arguments:
    n, d, b = s.int(5, 8), s.int(1, 3), s.int(1, 3)
    return [
        ("weights", s.value("float32", [n, d])),
        ("biases", s.value("float32", [n])),
        ("labels", s.indices([b, 1], n, "int64")),
        ("inputs", s.value("float32", [b, d])),
        ("num_sampled", py(s.int(1, 4))),
        ("num_classes", py(n)),
        ("*remove_accidental_hits", py(s.chance(0.5))),
    ]


@op("nn.safe_embedding_lookup_sparse", grad=True)
def safe_embedding(s: Source) -> Arguments:
    ids = {
        "k": "sparse",
        "indices": s.carried(np.array([[0, s.int(0, 2)]], "int64"), "int64"),
        "values": s.ints([s.int(0, 3)], "int64"),
        "shape": py([2, 3]),
    }
    return [
        ("embedding_weights", s.variable("float32", [4, 2])),
        ("sparse_ids", ids),
        ("*combiner", py(s.one("mean", "sum", "sqrtn"))),
        ("*default_id", py(s.one(None, 1))),
    ]


@op("layers.conv3d_transpose", "layers.separable_conv1d", seeded=True, loose=4)
def other_layers(s: Source) -> Arguments:
    return [
        ("inputs", s.value("float32", [1, 3, 3, 3, 2] if s.chance(0.5) else [1, 4, 2])),
        ("filters", py(s.int(1, 3))),
        ("kernel_size", py(s.int(1, 2))),
        ("strides", py(s.int(1, 2))),
        ("padding", py(s.one("same", "valid"))),
    ]


# linear algebra, signals --------------------------------------------------------------------------


@op("linalg.matrix_rank")
def matrix_rank(s: Source) -> Arguments:
    return [("a", s.value(s.of(WIDE), [*s.dims(0, 1), s.int(1, 4), s.int(1, 4)]))]


@op("linalg.pinv", loose=10)
def pinv(s: Source) -> Arguments:
    return [("a", s.value("float64", [*s.dims(0, 1), s.int(1, 4), s.int(1, 4)]))]


@op("linalg.normalize", grad=True)
def normalize(s: Source) -> Arguments:
    shape = s.dims(1, 3)
    return [
        ("tensor", s.value(s.of(WIDE), shape)),
        ("ord", s.one(py("euclidean"), py(1), {"k": "float", "v": "inf"}, py(3))),
        ("axis", s.one(py(None), py(s.axis(len(shape))))),
    ]


@op("linalg.tridiagonal_matmul")
def tridiagonal_matmul(s: Source) -> Arguments:
    name, n = s.of([*WIDE, *COMPLEX]), s.int(1, 4)
    return [
        ("diagonals", s.value(name, [3, n])),
        ("rhs", s.value(name, [n, s.int(1, 3)])),
        ("diagonals_format", py("compact")),
    ]


@op("signal.dct", "signal.idct", grad=True, loose=4)
def dct(s: Source) -> Arguments:
    kind = s.one(1, 2, 2, 3)
    return [
        ("input", s.value("float32", [*s.dims(0, 2), s.int(2, 6)])),
        ("type", py(kind)),
        ("norm", py(s.one(None, "ortho") if kind != 1 else None)),
    ]


@op("signal.fftshift", "signal.ifftshift")
def shifted(s: Source) -> Arguments:
    shape = s.dims(1, 3)
    axes = s.one(py(None), py(s.axis(len(shape))), py([0]))
    return [("x", s.value(s.of(NUMBERS), shape)), ("axes", axes)]


@op("signal.hamming_window")
def hamming(s: Source) -> Arguments:
    return [("window_length", py(s.int(1, 9))), ("*periodic", py(s.chance(0.5)))]


@op("signal.stft", grad=True, loose=10)
def stft(s: Source) -> Arguments:
    return [
        ("signals", s.value("float32", [*s.dims(0, 1), s.int(8, 20)])),
        ("frame_length", s.ints(s.int(2, 6))),
        ("frame_step", s.ints(s.int(1, 4))),
        ("*fft_length", s.one(py(None), py(8))),
        ("*pad_end", py(s.chance(0.5))),
    ]


@op("signal.overlap_and_add", grad=True)
def overlap_and_add(s: Source) -> Arguments:
    return [
        ("signal", s.value(s.one("float32", "int32"), [*s.dims(0, 1), s.int(1, 4), s.int(1, 5)])),
        ("frame_step", s.ints(s.int(1, 5))),
    ]


@op("signal.rfft2d", "signal.rfft3d", loose=10)
def rfft(s: Source) -> Arguments:
    return [("input_tensor", s.value("float32", [s.int(1, 3), s.int(1, 4), s.int(1, 4)]))]


@op("signal.irfft2d", "signal.irfft3d", loose=10)
def irfft(s: Source) -> Arguments:
    shape = [s.int(1, 3), s.int(1, 4), s.int(2, 4)]
    return [("input_tensor", s.value("complex64", shape))]


@op("fft3d", "ifft3d", loose=10)
def fft3d(s: Source) -> Arguments:
    return [("input", s.value(s.of(COMPLEX), [s.int(1, 3), s.int(1, 4), s.int(1, 4)]))]


@op("signal.linear_to_mel_weight_matrix", loose=4)
def mel(s: Source) -> Arguments:
    return [
        ("*num_mel_bins", py(s.int(1, 6))),
        ("*num_spectrogram_bins", py(s.int(4, 12))),
        ("*sample_rate", py(s.one(8000, 16000))),
        ("*lower_edge_hertz", py(s.one(0.0, 125.0))),
        ("*upper_edge_hertz", py(s.one(3800.0, 2000.0))),
    ]


# images -------------------------------------------------------------------------------------------


@op("image.ssim_multiscale", loose=20)
def ssim_multiscale(s: Source) -> Arguments:
    shape = [s.int(1, 2), 12, 12, s.one(1, 3)]
    return [
        ("img1", s.value("float32", shape, 0, 1)),
        ("img2", s.value("float32", shape, 0, 1)),
        ("max_val", py(1.0)),
        ("*power_factors", py([0.4, 0.6])),
        ("*filter_size", py(s.int(2, 4))),
    ]


@op("image.non_max_suppression_padded", "image.non_max_suppression_with_scores")
def suppression(s: Source) -> Arguments:
    n = s.int(1, 5)
    return [
        ("boxes", s.value("float32", [n, 4], 0, 1)),
        ("scores", s.value("float32", [n], 0, 1)),
        ("max_output_size", s.ints(s.int(0, 4))),
        ("iou_threshold", py(s.one(0.5, 0.1, 1.0))),
        ("score_threshold", py(s.one(0.0, 0.4))),
    ]


@op("image.combined_non_max_suppression")
def combined_suppression(s: Source) -> Arguments:
    b, n, c = s.int(1, 2), s.int(1, 4), s.int(1, 2)
    return [
        ("boxes", s.value("float32", [b, n, s.one(1, c), 4], 0, 1)),
        ("scores", s.value("float32", [b, n, c], 0, 1)),
        ("max_output_size_per_class", s.ints(s.int(1, 3))),
        ("max_total_size", s.ints(s.int(1, 4))),
        ("*iou_threshold", py(s.one(0.5, 0.2))),
        ("*score_threshold", py(s.one(0.0, 0.4))),
        ("*pad_per_class", py(s.chance(0.3))),
        ("*clip_boxes", py(s.chance(0.5))),
    ]


@op("image.decode_png", "image.decode_image", "image.decode_jpeg")
def decoded_picture(s: Source) -> Arguments:
    shape = [s.int(1, 4), s.int(1, 4), s.one(1, 3)]
    held = call("image.encode_png", s.value("uint8", shape, 0, 255))
    return [("contents", held), ("channels", py(s.one(0, 1, 3, 4)))]


@op("image.encode_png")
def encode_png(s: Source) -> Arguments:
    shape = [s.int(1, 4), s.int(1, 4), s.one(1, 2, 3, 4)]
    return [("image", s.value(s.one("uint8", "uint16"), shape, 0, 255))]


# text ---------------------------------------------------------------------------------------------


@op("strings.unsorted_segment_join")
def segment_join(s: Source) -> Arguments:
    n = s.int(1, 4)
    return [
        ("inputs", s.value("string", [n])),
        ("segment_ids", s.indices([n], 3)),
        ("num_segments", s.ints(3)),
        ("separator", py(s.one("", "-"))),
    ]


@op("strings.to_hash_bucket")
def hash_bucket(s: Source) -> Arguments:
    return [("", s.value("string", s.dims(0, 2))), ("", py(s.int(1, 9)))]


@op("decode_compressed")
def decode_compressed(s: Source) -> Arguments:
    return [
        ("bytes", s.value("string", s.dims(0, 2))),
        ("compression_type", py(s.one("", "", "ZLIB", "GZIP", "other"))),
    ]


# ragged -------------------------------------------------------------------------------------------


@op("ragged.range")
def ragged_range(s: Source) -> Arguments:
    name = s.one("int32", "int64", "float32")
    shape = s.one([], [s.int(1, 3)])
    return [("starts", s.value(name, shape, 0, 3)), ("limits", s.value(name, shape, 2, 7))]


@op("ragged.row_splits_to_segment_ids")
def splits_to_ids(s: Source) -> Arguments:
    return [("splits", s.ints([0, *sorted(s.int(0, 5) for _ in range(s.int(1, 3)))], "int64"))]


@op("ragged.segment_ids_to_row_splits")
def ids_to_splits(s: Source) -> Arguments:
    ids = sorted(s.int(0, 4) for _ in range(s.int(0, 5)))
    return [
        ("segment_ids", s.ints(ids or [0], "int64")),
        ("num_segments", s.one(py(None), py(6))),
    ]


# losses, metrics, decays --------------------------------------------------------------------------


@op("losses.compute_weighted_loss", grad=True)
def weighted_loss(s: Source) -> Arguments:
    shape = s.dims(1, 3)
    return [
        ("losses", s.value(s.of(FLOATS), shape)),
        ("weights", s.one(py(1.0), s.value("float32", s.broadcastable(shape), 0, 2), py(0.0))),
    ]


@op(
    "metrics.false_positives",
    "metrics.true_negatives",
    "metrics.percentage_below",
    "metrics.mean_tensor",
    runs=2,
    pick=1,
    positional=1,
    loose=4,
)
def simple_metric(s: Source) -> Arguments:
    n = s.int(1, 4)
    first = s.value(s.one("bool", "float32"), [n], 0, 1)
    return [("", first), ("", s.one(s.value("float32", [n], 0, 1), py(0.5)))]


@op(
    "metrics.false_negatives_at_thresholds",
    "metrics.false_positives_at_thresholds",
    "metrics.precision_at_thresholds",
    "metrics.recall_at_thresholds",
    "metrics.true_negatives_at_thresholds",
    "metrics.true_positives_at_thresholds",
    runs=2,
    pick=1,
    loose=4,
)
def at_thresholds(s: Source) -> Arguments:
    n = s.int(1, 4)
    return [
        ("labels", s.value("bool", [n])),
        ("predictions", s.value("float32", [n], 0, 1)),
        ("thresholds", py(s.one([0.5], [0.2, 0.8]))),
    ]


@op(
    "metrics.sensitivity_at_specificity",
    "metrics.specificity_at_sensitivity",
    runs=2,
    pick=1,
    loose=4,
)
def at_rate(s: Source) -> Arguments:
    n = s.int(2, 5)
    return [
        ("labels", s.value("bool", [n])),
        ("predictions", s.value("float32", [n], 0, 1)),
        ("", py(s.one(0.5, 0.8))),
    ]


@op("metrics.mean_relative_error", "metrics.mean_cosine_distance", runs=2, pick=1, loose=4)
def error_metric(s: Source) -> Arguments:
    shape = [2, 3]
    third: Value = s.one(s.value("float32", shape, 1, 2), py(s.one(0, 1)))
    return [
        ("labels", s.value("float32", shape)),
        ("predictions", s.value("float32", shape)),
        ("", third),
    ]


@op("metrics.average_precision_at_k", runs=2, pick=1)
def average_precision(s: Source) -> Arguments:
    return [
        ("labels", s.indices([2, s.int(1, 2)], 4, "int64")),
        ("predictions", s.value("float32", [2, 4])),
        ("k", py(s.int(1, 3))),
    ]


@op(
    "train.cosine_decay",
    "train.cosine_decay_restarts",
    "train.linear_cosine_decay",
)
def cosine_decay(s: Source) -> Arguments:
    return [
        ("", s.one(py(0.1), s.value("float32", []))),
        ("", s.one(py(s.int(0, 12)), s.indices([], 12))),
        ("", py(s.int(1, 10))),
    ]


@op("train.natural_exp_decay")
def natural_exp(s: Source) -> Arguments:
    return [
        ("learning_rate", py(0.1)),
        ("global_step", s.one(py(s.int(0, 12)), s.indices([], 12))),
        ("decay_steps", py(s.int(1, 10))),
        ("decay_rate", py(0.5)),
        ("staircase", py(s.chance(0.5))),
    ]


@op("train.piecewise_constant")
def piecewise(s: Source) -> Arguments:
    name = s.one("int32", "int64", "float32")
    return [
        ("x", s.value(name, [], 0, 9)),
        ("boundaries", py(s.one([3, 6], [2], [2.5, 4.5]))),
        ("values", py(s.one([1.0, 0.5, 0.1], [1.0, 2.0], [1, 2, 3]))),
    ]


@op("random.categorical", seeded=True)
def categorical(s: Source) -> Arguments:
    return [
        ("logits", s.value(s.of(WIDE), [s.int(1, 3), s.int(1, 4)])),
        ("num_samples", s.ints(s.int(0, 4))),
        ("*seed", py(5)),
    ]


@op("bitwise.bitwise_and", "bitwise.right_shift")
def more_bits(s: Source) -> Arguments:
    name, shape = s.of(INTS), s.dims(0, 3)
    return [("x", s.value(name, shape, 0, 60)), ("y", s.value(name, s.broadcastable(shape), 0, 6))]


@op("contrib.layers.bow_encoder", seeded=True)
def bow_encoder(s: Source) -> Arguments:
    return [
        ("ids", s.indices([s.int(1, 2), s.int(1, 3)], 5, "int64")),
        ("vocab_size", py(5)),
        ("embed_dim", py(s.int(1, 3))),
    ]


@op("contrib.framework.with_shape")
def with_shape(s: Source) -> Arguments:
    shape = s.dims(1, 2)
    return [("", s.ints(shape)), ("", s.value("float32", shape))]
