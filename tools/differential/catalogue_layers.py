"""Calls of tf.layers, recurrent nets, initializers, and of images, strings and linear algebra that
the other catalogues leave out.
"""

from __future__ import annotations

import numpy as np

from tools.differential.cases import FLOATS, NUMBERS, Arguments, Source, Value, dtype, op, py
from tools.differential.catalogue_flow import call, fn, listed


def _initializer(s: Source) -> Value:
    return s.one(
        py(None),
        call("ones_initializer"),
        call("constant_initializer", py(0.5)),
        call("random_normal_initializer", seed=py(3)),
        call("glorot_uniform_initializer", seed=py(3)),
        call("random_uniform_initializer", py(-1), py(1), seed=py(3)),
        call("orthogonal_initializer", seed=py(3)),
        call("truncated_normal_initializer", stddev=py(0.1), seed=py(3)),
        call("variance_scaling_initializer", seed=py(3)),
    )


def _options(s: Source) -> Arguments:
    chosen: Arguments = [
        ("*activation", s.one(py(None), fn("relu"), fn("tanh"))),
        ("*use_bias", py(s.chance(0.5))),
        ("*kernel_initializer", _initializer(s)),
        ("*bias_initializer", s.one(call("ones_initializer"), call("zeros_initializer"))),
        ("*kernel_regularizer", fn("l2")),
        ("*trainable", py(s.chance(0.5))),
        ("*name", py("layer")),
    ]
    return [o for o in chosen if s.chance(0.25)]


@op("layers.dense", seeded=True, grad=True)
def dense(s: Source) -> Arguments:
    inputs = s.value(s.of(["float32", "float32", "float64", "float16"]), s.dims(1, 3))
    return [("inputs", inputs), ("units", py(s.int(1, 4))), *_options(s)]


def _geometry(s: Source) -> Arguments:
    chosen: Arguments = [
        ("*strides", py(s.int(1, 2))),
        ("*padding", py(s.one("same", "valid", "SAME"))),
        ("*dilation_rate", py(s.int(1, 2))),
        ("*data_format", py(s.one("channels_last", "channels_last", "channels_first"))),
    ]
    return [o for o in chosen if s.chance(0.3)]


@op("layers.conv1d", "layers.conv2d", "layers.conv3d", seeded=True, grad=True, loose=4)
def conv(s: Source) -> Arguments:
    rank = s.one(1, 2, 2, 3)
    shape = [1, *[s.int(2, 5) for _ in range(rank)], s.int(1, 3)]
    return [
        ("inputs", s.value("float32", shape)),
        ("filters", py(s.int(1, 3))),
        ("kernel_size", py(s.one(1, 2, [2] * rank))),
        *_geometry(s),
        *_options(s),
    ]


@op("layers.conv2d_transpose", "layers.separable_conv2d", seeded=True, grad=True, loose=4)
def other_conv(s: Source) -> Arguments:
    return [
        ("inputs", s.value("float32", [1, s.int(2, 4), s.int(2, 4), 2])),
        ("filters", py(s.int(1, 3))),
        ("kernel_size", py(s.one(1, 2, [2, 3]))),
        *[o for o in _geometry(s) if o[0] != "*dilation_rate"],
    ]


@op(
    "layers.max_pooling1d",
    "layers.max_pooling2d",
    "layers.max_pooling3d",
    "layers.average_pooling1d",
    "layers.average_pooling2d",
    "layers.average_pooling3d",
    grad=True,
)
def pooling(s: Source) -> Arguments:
    rank = s.one(1, 2, 2, 3)
    shape = [1, *[s.int(2, 5) for _ in range(rank)], s.int(1, 2)]
    return [
        ("inputs", s.value(s.one("float32", "float32", "float64"), shape)),
        ("pool_size", py(s.one(1, 2, [2] * rank))),
        ("strides", py(s.int(1, 2))),
        ("padding", py(s.one("valid", "same"))),
        *([("*data_format", py("channels_first"))] if s.chance(0.15) else []),
    ]


@op("layers.batch_normalization", seeded=True, grad=True, runs=2, loose=10)
def batch_normalization(s: Source) -> Arguments:
    shape = s.one([4, 3], [2, 3, 3, 2], [2, 3, 2])
    chosen: Arguments = [
        ("*axis", py(s.one(-1, 1, len(shape) - 1, [1]))),
        ("*momentum", py(0.5)),
        ("*center", py(s.chance(0.5))),
        ("*scale", py(s.chance(0.5))),
        ("*training", s.one(py(True), py(False), s.value("bool", []))),
        ("*fused", py(s.chance(0.5))),
        ("*renorm", py(s.chance(0.3))),
        ("*epsilon", py(s.one(1e-3, 1e-5))),
    ]
    return [("inputs", s.value("float32", shape)), *[o for o in chosen if s.chance(0.4)]]


@op("layers.dropout", seeded=True)
def dropout(s: Source) -> Arguments:
    return [
        ("inputs", s.value(s.of(["float32", "float64"]), s.dims(1, 3))),
        ("rate", py(s.one(0.5, 0.0, 1.0, 0.2))),
        ("*seed", py(s.one(None, 3))),
        ("*training", s.one(py(True), py(False), s.value("bool", []))),
        *([("*noise_shape", py([None, 1]))] if s.chance(0.2) else []),
    ]


# recurrent nets -----------------------------------------------------------------------------------


def _cell(s: Source) -> Value:
    units = py(s.int(1, 3))
    return s.one(
        call("nn.rnn_cell.BasicRNNCell", units),
        call("nn.rnn_cell.GRUCell", units),
        call("nn.rnn_cell.BasicLSTMCell", units, forget_bias=py(s.one(1.0, 0.0))),
        call("nn.rnn_cell.BasicLSTMCell", units, state_is_tuple=py(False)),
        call("nn.rnn_cell.LSTMCell", units, use_peepholes=py(s.chance(0.5))),
        call("nn.rnn_cell.LSTMCell", units, num_proj=py(2), cell_clip=py(1.0)),
        call("nn.rnn_cell.MultiRNNCell", listed(call("nn.rnn_cell.GRUCell", units))),
        call("nn.rnn_cell.DropoutWrapper", call("nn.rnn_cell.GRUCell", units)),
        call("nn.rnn_cell.ResidualWrapper", call("nn.rnn_cell.GRUCell", py(2))),
    )


@op("nn.dynamic_rnn", seeded=True, grad=True, positional=2)
def dynamic_rnn(s: Source) -> Arguments:
    name = s.one("float32", "float32", "float32", "float64")
    batch, steps = s.int(1, 3), s.int(1, 3)
    out: Arguments = [("", _cell(s)), ("", s.value(name, [batch, steps, 2]))]
    if s.chance(0.4):
        out.append(("*sequence_length", s.indices([batch], steps + 1)))
    if s.chance(0.9):
        out.append(("*dtype", dtype(name)))
    return [*out, ("*time_major", py(s.chance(0.5)))] if s.chance(0.3) else out


@op("nn.static_rnn", seeded=True, grad=True, positional=2)
def static_rnn(s: Source) -> Arguments:
    inputs = [s.value("float32", [2, 2]) for _ in range(s.int(1, 2))]
    return [("", _cell(s)), ("", listed(*inputs)), ("*dtype", dtype("float32"))]


@op("method:__call__", seeded=True, positional=2)
def initial_value(s: Source) -> Arguments:
    made = _initializer(s)
    while made["k"] == "py":
        made = _initializer(s)
    return [("", made), ("", py(s.dims(1, 3))), ("*dtype", dtype(s.of(["float32", "float64"])))]


@op("get_variable", seeded=True)
def get_variable(s: Source) -> Arguments:
    chosen: Arguments = [
        ("*dtype", dtype(s.of(NUMBERS))),
        ("*initializer", s.one(_initializer(s), s.value("float32", [2]))),
        ("*regularizer", fn("l2")),
        ("*trainable", py(s.chance(0.5))),
        ("*use_resource", py(s.chance(0.5))),
        ("*validate_shape", py(s.chance(0.8))),
    ]
    shape = s.one(py(s.dims(0, 2)), py(s.dims(0, 2)), py(None), py([None, 2]))
    return [("name", py("v")), ("shape", shape), *[o for o in chosen if s.chance(0.35)]]


# nn -----------------------------------------------------------------------------------------------


@op("nn.atrous_conv2d", grad=True)
def atrous(s: Source) -> Arguments:
    return [
        ("value", s.value("float32", [1, 4, 4, 2])),
        ("filters", s.value("float32", [2, 2, 2, 1])),
        ("rate", py(s.int(1, 2))),
        ("padding", py(s.one("SAME", "VALID"))),
    ]


@op("nn.pool", grad=True)
def pool(s: Source) -> Arguments:
    return [
        ("input", s.value("float32", [1, 4, 4, 2])),
        ("window_shape", py([2, 2])),
        ("pooling_type", py(s.one("MAX", "AVG"))),
        ("padding", py(s.one("SAME", "VALID"))),
        *([("*strides", py([2, 2]))] if s.chance(0.5) else []),
    ]


@op("nn.normalize_moments")
def normalize_moments(s: Source) -> Arguments:
    return [
        ("counts", py(4.0)),
        ("mean_ss", s.value("float32", [2])),
        ("variance_ss", s.value("float32", [2])),
        ("shift", s.one(py(None), s.value("float32", [2]))),
    ]


@op("nn.sufficient_statistics")
def sufficient_statistics(s: Source) -> Arguments:
    shape = s.dims(1, 3)
    return [
        ("x", s.value(s.one("float32", "float64"), shape)),
        ("axes", py([s.axis(len(shape))])),
        *([("*shift", py(1.0)), ("*keep_dims", py(True))] if s.chance(0.4) else []),
    ]


@op("nn.conv2d_backprop_input", "nn.conv2d_backprop_filter")
def backprop(s: Source) -> Arguments:
    return [
        ("", py([1, 3, 3, 2])),
        ("", s.value("float32", [2, 2, 2, 1])),
        ("out_backprop", s.value("float32", [1, 3, 3, 1])),
        ("strides", py([1, 1, 1, 1])),
        ("padding", py(s.one("SAME", "SAME", "VALID"))),
    ]


@op("nn.ctc_loss", grad=True, loose=10)
def ctc_loss(s: Source) -> Arguments:
    steps = s.int(2, 4)
    labels = {
        "k": "sparse",
        "indices": s.carried(np.array([[0, 0], [1, 0]], "int64"), "int64", ["const"]),
        "values": s.indices([2], 2, "int32"),
        "shape": py([2, 2]),
    }
    return [
        ("labels", labels),
        ("inputs", s.value("float32", [steps, 2, 3])),
        ("sequence_length", s.indices([2], steps + 1, "int32")),
    ]


@op("math.lbeta", "math.polyval", grad=True)
def vectors(s: Source) -> Arguments:
    return [("", s.value(s.of(FLOATS), s.dims(1, 2), 0.5, 2))]


@op("reduce_sum", "reduce_max", "reduce_mean")
def old_names(s: Source) -> Arguments:
    shape = s.dims(1, 3)
    old = s.one("*reduction_indices", "*axis")
    return [
        ("input_tensor", s.value(s.of(NUMBERS), shape)),
        (old, py(s.axis(len(shape)))),
        (s.one("*keep_dims", "*keepdims"), py(s.chance(0.5))),
    ]


@op("linalg.lstsq", "linalg.tridiagonal_solve", "cholesky_solve", "matrix_solve_ls", loose=20)
def solves(s: Source) -> Arguments:
    name, n = s.one("float32", "float64"), s.int(1, 3)
    return [("", s.value(name, [n, n], 0.5, 2)), ("", s.value(name, [n, s.int(1, 2)]))]


@op("linalg.lu", "linalg.sqrtm", "linalg.tensor_diag", "linalg.logm", loose=20)
def matrices(s: Source) -> Arguments:
    n = s.int(1, 3)
    return [("", s.value(s.one("float32", "float64", "complex64"), [n, n], 0.5, 2))]


# images and strings -------------------------------------------------------------------------------


@op("image.rgb_to_yiq", "image.yiq_to_rgb", "image.yuv_to_rgb", grad=True)
def colours(s: Source) -> Arguments:
    return [("images", s.value(s.of(FLOATS), [*s.dims(0, 2), 3], 0, 1))]


@op(
    "image.random_flip_left_right",
    "image.random_flip_up_down",
    seeded=True,
)
def random_flip(s: Source) -> Arguments:
    shape = [s.int(1, 3), s.int(1, 3), s.int(1, 3)]
    shape = [2, *shape] if s.chance(0.3) else shape
    return [("image", s.value(s.of(NUMBERS), shape)), ("seed", py(s.one(None, 3)))]


@op("image.random_brightness", "image.random_hue", seeded=True)
def random_shift(s: Source) -> Arguments:
    images = s.value(s.one("float32", "float32", "uint8"), [2, 2, 3], 0, 1)
    return [("image", images), ("max_delta", py(0.3)), ("seed", py(3))]


@op("image.random_contrast", "image.random_saturation", seeded=True)
def random_range(s: Source) -> Arguments:
    images = s.value(s.one("float32", "float32", "uint8"), [2, 2, 3], 0, 1)
    return [("image", images), ("lower", py(0.3)), ("upper", py(0.9)), ("seed", py(3))]


@op("image.resize_image_with_pad")
def resize_with_pad(s: Source) -> Arguments:
    return [
        ("image", s.value(s.one("float32", "uint8"), [s.int(1, 4), s.int(1, 4), 2], 0, 9)),
        ("target_height", py(s.int(1, 5))),
        ("target_width", py(s.int(1, 5))),
    ]


@op("image.extract_glimpse", seeded=True)
def glimpse(s: Source) -> Arguments:
    return [
        ("input", s.value("float32", [1, 4, 5, 1])),
        ("size", s.ints([2, 3])),
        ("offsets", s.value("float32", [1, 2], -0.5, 0.5)),
        *([("*centered", py(False)), ("*normalized", py(False))] if s.chance(0.3) else []),
    ]


@op("image.draw_bounding_boxes")
def draw(s: Source) -> Arguments:
    return [
        ("images", s.value(s.one("float32", "float16"), [1, 5, 5, s.one(1, 3, 4)], 0, 1)),
        ("boxes", s.value("float32", [1, 2, 4], 0, 1)),
    ]


@op("io.decode_csv")
def decode_csv(s: Source) -> Arguments:
    rows = [s.one(b"1,2.5,a", b'2,,"b ""q"""', b"x,1,y", b"1,2", b"") for _ in range(s.int(0, 2))]
    defaults = listed(py([s.one(0, 1)]), py([s.one(0.5, 1.0)]), py([s.one("", "d")]))
    return [
        ("records", s.carried(np.array(rows, object), "string")),
        ("record_defaults", defaults),
        *([("*field_delim", py(s.one(";", ",", "")))] if s.chance(0.3) else []),
        *([("*select_cols", py(s.one([0, 1, 2], [0, 2])))] if s.chance(0.2) else []),
    ]


@op("strings.unicode_transcode")
def transcode(s: Source) -> Arguments:
    return [
        ("input", s.value("string", s.dims(0, 2))),
        ("input_encoding", py(s.one("UTF-8", "UTF-16-BE", "ISO-8859-1", "US-ASCII"))),
        ("output_encoding", py(s.one("UTF-8", "UTF-16-BE", "UTF-32-BE"))),
        *([("*errors", py(s.one("replace", "ignore", "strict")))] if s.chance(0.5) else []),
    ]


@op("strings.unicode_encode")
def unicode_encode(s: Source) -> Arguments:
    return [
        ("input", s.value("int32", s.dims(1, 2), 60, 2000)),
        ("output_encoding", py(s.one("UTF-8", "UTF-16-BE", "UTF-32-BE"))),
    ]


@op("string_to_hash_bucket_strong", "strings.to_hash_bucket_strong")
def strong(s: Source) -> Arguments:
    return [
        ("input", s.value("string", s.dims(0, 2))),
        ("num_buckets", py(s.int(1, 9))),
        ("key", py([s.int(0, 9), s.int(0, 9)])),
    ]


@op("strings.reduce_join", "strings.format")
def joined(s: Source) -> Arguments:
    return [("", s.value("string", s.dims(1, 2)))]
