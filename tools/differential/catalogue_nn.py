"""Calls of tf.nn, tf.losses, tf.layers, tf.image, tf.linalg and tf.signal."""

from __future__ import annotations

import numpy as np

from tools.differential.cases import (
    FLOATS,
    INTS,
    REALS,
    Arguments,
    Source,
    Value,
    dtype,
    op,
    py,
)

NN = ["float32", "float32", "float32", "float64", "float16", "bfloat16"]
MATRIX = ["float32", "float32", "float64", "float64", "complex64", "complex128"]


def _padding(s: Source) -> Value:
    return py(s.one("SAME", "VALID"))


def _image(s: Source, name: str, channels: int) -> Value:
    return s.value(name, [s.int(1, 2), s.int(2, 5), s.int(2, 5), channels], -2, 2)


@op("nn.conv2d", grad=True)
def conv2d(s: Source) -> Arguments:
    name, c = s.of(NN), s.int(1, 3)
    out: Arguments = [
        ("input", _image(s, name, c)),
        ("filter", s.value(name, [s.int(1, 3), s.int(1, 3), c, s.int(1, 2)], -2, 2)),
    ]
    out += [
        ("strides", py(s.one([1, 1, 1, 1], [1, 2, 2, 1], [1, 2, 1, 1], 2, [2, 1]))),
        ("padding", _padding(s)),
    ]
    if s.chance(0.2):
        out.append(("*dilations", py(s.one([1, 2, 2, 1], [1, 1, 2, 1]))))
    return out


@op("nn.depthwise_conv2d", grad=True)
def depthwise(s: Source) -> Arguments:
    name, c = s.of(NN), s.int(1, 3)
    return [
        ("input", _image(s, name, c)),
        ("filter", s.value(name, [2, 2, c, s.int(1, 2)], -2, 2)),
        ("strides", py([1, 1, 1, 1])),
        ("padding", _padding(s)),
    ]


@op("nn.separable_conv2d", grad=True)
def separable(s: Source) -> Arguments:
    name, c = s.of(NN), s.int(1, 2)
    return [
        ("input", _image(s, name, c)),
        ("depthwise_filter", s.value(name, [2, 2, c, 1])),
        ("pointwise_filter", s.value(name, [1, 1, c, 3])),
        ("strides", py([1, 1, 1, 1])),
        ("padding", _padding(s)),
    ]


@op("nn.conv2d_transpose", grad=True)
def conv2d_transpose(s: Source) -> Arguments:
    name, k = s.of(NN), s.int(1, 2)
    padding = s.one("SAME", "VALID")
    n = 3 * k if padding == "SAME" else 3 * k + max(2 - k, 0)
    return [
        ("value", s.value(name, [1, 3, 3, 2])),
        ("filter", s.value(name, [2, 2, 1, 2])),
        ("output_shape", s.ints([1, n, n, 1])),
        ("strides", py([1, k, k, 1])),
        ("padding", py(padding)),
    ]


@op("nn.conv1d", grad=True)
def conv1d(s: Source) -> Arguments:
    name = s.of(NN)
    return [
        ("value", s.value(name, [2, s.int(2, 5), 2])),
        ("filters", s.value(name, [2, 2, 3])),
        ("stride", py(s.int(1, 2))),
        ("padding", _padding(s)),
    ]


@op("nn.conv3d", grad=True)
def conv3d(s: Source) -> Arguments:
    name = s.of(NN)
    return [
        ("input", s.value(name, [1, 3, 3, 3, 2])),
        ("filter", s.value(name, [2, 1, 2, 2, 1])),
        ("strides", py([1, 1, s.int(1, 2), 1, 1])),
        ("padding", _padding(s)),
    ]


@op("nn.convolution", grad=True)
def convolution(s: Source) -> Arguments:
    name = s.of(NN)
    return [
        ("input", s.value(name, [1, 4, 4, 2])),
        ("filter", s.value(name, [2, 2, 2, 3])),
        ("padding", _padding(s)),
        ("*strides", py(s.one(None, [1, 2]))),
        ("*dilation_rate", py(None)),
    ]


@op("nn.max_pool", "nn.avg_pool", grad=True)
def pool(s: Source) -> Arguments:
    name = s.of([*NN, "int32"])
    out: Arguments = [
        ("value", _image(s, name, 2)),
        ("ksize", py(s.one([1, 2, 2, 1], [1, 3, 1, 1], 2, [1, 1, 1, 2]))),
        ("strides", py(s.one([1, 1, 1, 1], [1, 2, 2, 1], 2))),
    ]
    return [*out, ("padding", _padding(s))]


@op("nn.max_pool_with_argmax")
def pool_argmax(s: Source) -> Arguments:
    return [
        ("input", _image(s, s.of(NN), 2)),
        ("ksize", py([1, 2, 2, 1])),
        ("strides", py([1, 1, 2, 1])),
        ("padding", _padding(s)),
    ]


@op("nn.max_pool3d", "nn.avg_pool3d", grad=True)
def pool3d(s: Source) -> Arguments:
    return [
        ("input", s.value(s.of(NN), [1, 3, 3, 3, 2])),
        ("ksize", py([1, 2, 2, 2, 1])),
        ("strides", py([1, 1, 2, 1, 1])),
        ("padding", _padding(s)),
    ]


@op("nn.max_pool1d", "nn.avg_pool1d", grad=True)
def pool1d(s: Source) -> Arguments:
    return [
        ("input", s.value(s.of(NN), [2, s.int(2, 5), 2])),
        ("ksize", py(2)),
        ("strides", py(s.int(1, 2))),
        ("padding", _padding(s)),
    ]


@op("nn.dilation2d", "nn.erosion2d", grad=True)
def dilation(s: Source) -> Arguments:
    name = s.of(REALS)
    return [
        ("input", _image(s, name, 2)),
        ("filter", s.value(name, [2, 2, 2])),
        ("strides", py([1, 1, 1, 1])),
        ("rates", py([1, 1, 1, 1])),
        ("padding", _padding(s)),
    ]


@op("nn.bias_add", grad=True)
def bias_add(s: Source) -> Arguments:
    name, shape = s.of([*NN, "int32"]), s.dims(2, 4)
    return [("value", s.value(name, shape)), ("bias", s.value(name, shape[-1:]))]


@op("nn.softmax", "nn.log_softmax", grad=True)
def softmax(s: Source) -> Arguments:
    shape = s.dims(1)
    out: Arguments = [("logits", s.value(s.of(NN), shape))]
    return out if s.chance(0.5) else [*out, ("axis", py(s.axis(len(shape))))]


@op("nn.leaky_relu", grad=True)
def leaky(s: Source) -> Arguments:
    return [("features", s.value(s.of(REALS), s.dims())), ("alpha", py(s.one(0.2, 0.0, 1.5)))]


@op("nn.crelu", "nn.l2_loss", grad=True)
def crelu(s: Source) -> Arguments:
    return [("", s.value(s.of(FLOATS), s.dims(1)))]


@op("nn.l2_normalize", grad=True)
def l2_normalize(s: Source) -> Arguments:
    shape = s.dims(1)
    return [
        ("x", s.value(s.of(FLOATS), shape)),
        ("axis", py(s.axis(len(shape)))),
        ("epsilon", py(1e-6)),
    ]


@op("nn.lrn", grad=True)
def lrn(s: Source) -> Arguments:
    return [
        ("input", _image(s, s.of(NN), 5)),
        ("depth_radius", py(s.int(1, 2))),
        ("bias", py(1.0)),
        ("alpha", py(0.5)),
        ("beta", py(0.5)),
    ]


@op("nn.batch_normalization", grad=True)
def batch_normalization(s: Source) -> Arguments:
    name, c = s.of(FLOATS), s.int(1, 3)
    return [
        ("x", s.value(name, [2, c])),
        ("mean", s.value(name, [c])),
        ("variance", s.value(name, [c], 0.5, 2)),
        ("offset", s.one(py(None), s.value(name, [c]))),
        ("scale", s.one(py(None), s.value(name, [c]))),
        ("variance_epsilon", py(1e-3)),
    ]


@op("nn.fused_batch_norm", grad=True, loose=10)
def fused_batch_norm(s: Source) -> Arguments:
    c = s.int(1, 3)
    training = s.chance(0.6)
    out: Arguments = [
        ("x", _image(s, s.of(["float32", "float32", "float16"]), c)),
        ("scale", s.value("float32", [c])),
        ("offset", s.value("float32", [c])),
    ]
    if not training:
        out += [("mean", s.value("float32", [c])), ("variance", s.value("float32", [c], 0.5, 2))]
    return [*out, ("*is_training", py(training))]


@op("nn.dropout", seeded=True)
def dropout(s: Source) -> Arguments:
    return [
        ("x", s.value(s.of(FLOATS), s.dims())),
        ("*rate", py(s.one(0.0, 0.5, 0.9))),
        ("*seed", py(3)),
    ]


@op("nn.sparse_softmax_cross_entropy_with_logits", grad=True)
def sparse_xent(s: Source) -> Arguments:
    shape = s.dims(2, 3)
    return [("*labels", s.indices(shape[:-1], shape[-1])), ("*logits", s.value(s.of(NN), shape))]


@op(
    "nn.softmax_cross_entropy_with_logits_v2",
    "nn.softmax_cross_entropy_with_logits",
    "nn.sigmoid_cross_entropy_with_logits",
    grad=True,
)
def xent(s: Source) -> Arguments:
    shape, name = s.dims(1, 3), s.of(NN)
    return [("*labels", s.value(name, shape, 0, 1)), ("*logits", s.value(name, shape))]


@op("nn.weighted_cross_entropy_with_logits", grad=True)
def weighted_xent(s: Source) -> Arguments:
    shape, name = s.dims(1, 3), s.of(NN)
    return [
        ("labels", s.value(name, shape, 0, 1)),
        ("logits", s.value(name, shape)),
        ("pos_weight", py(2.0)),
    ]


@op("nn.log_poisson_loss", grad=True)
def poisson(s: Source) -> Arguments:
    shape, name = s.dims(1, 3), s.of(NN)
    return [
        ("targets", s.value(name, shape, 0, 3)),
        ("log_input", s.value(name, shape)),
        ("compute_full_loss", py(s.chance(0.5))),
    ]


@op(
    "losses.mean_squared_error",
    "losses.absolute_difference",
    "losses.log_loss",
    "losses.huber_loss",
    "losses.mean_pairwise_squared_error",
    grad=True,
    loose=4,
)
def loss(s: Source) -> Arguments:
    shape = s.dims(1, 2)
    out: Arguments = [
        ("labels", s.value(s.of(["float32", "float64", "int32"]), shape, 0, 1)),
        ("predictions", s.value(s.of(["float32", "float64"]), shape, 0.1, 0.9)),
    ]
    if s.chance(0.5):
        out.append(
            (
                "weights",
                s.one(
                    py(0.5),
                    s.value("float32", shape, 0, 1),
                    s.value("float32", [shape[0]] + [1] * (len(shape) - 1), 0, 1),
                ),
            )
        )
    return out


@op(
    "losses.hinge_loss",
    "losses.sigmoid_cross_entropy",
    "losses.softmax_cross_entropy",
    grad=True,
    positional=2,
)
def logits_loss(s: Source) -> Arguments:
    shape = s.dims(2, 2)
    out: Arguments = [("", s.value("float32", shape, 0, 1)), ("", s.value("float32", shape))]
    return (
        out
        if s.chance(0.6)
        else [*out, ("weights", s.one(py(2.0), s.value("float32", shape[:1], 0, 1)))]
    )


@op("losses.sparse_softmax_cross_entropy", grad=True)
def sparse_loss(s: Source) -> Arguments:
    shape = s.dims(2, 2)
    return [
        ("labels", s.indices(shape[:1], shape[1])),
        ("logits", s.value("float32", shape)),
        ("weights", s.one(py(1.0), s.value("float32", shape[:1], 0, 1))),
    ]


@op("losses.cosine_distance", grad=True)
def cosine(s: Source) -> Arguments:
    shape = s.dims(2, 2)
    return [
        ("labels", s.value("float32", shape)),
        ("predictions", s.value("float32", shape)),
        ("*axis", py(1)),
    ]


@op("nn.embedding_lookup", grad=True)
def embedding(s: Source) -> Arguments:
    rows = s.int(1, 5)
    params = s.one(s.value(s.of(FLOATS), [rows, 2]), s.variable("float32", [rows, 2]))
    return [("params", params), ("ids", s.indices(s.dims(0, 2), rows))]


@op("nn.xw_plus_b", "nn.relu_layer", grad=True)
def xw_plus_b(s: Source) -> Arguments:
    name, (n, k, m) = s.of(NN), (s.int(0, 3), s.int(1, 3), s.int(1, 3))
    return [
        ("x", s.value(name, [n, k])),
        ("weights", s.value(name, [k, m])),
        ("biases", s.value(name, [m])),
    ]


@op("nn.fractional_max_pool", seeded=True)
def fractional(s: Source) -> Arguments:
    return [
        ("value", s.value(s.of(["float32", "float64", "int32"]), [1, 5, 5, 1])),
        ("pooling_ratio", py([1.0, 1.4, 1.3, 1.0])),
        ("*pseudo_random", py(True)),
        ("*seed", py(2)),
        ("*seed2", py(3)),
        ("*deterministic", py(True)),
    ]


# linear algebra -----------------------------------------------------------------------------------


@op("matmul", "linalg.matmul", grad=True)
def matmul(s: Source) -> Arguments:
    name = s.of([*NN, "int32", "int64", "complex64", "complex128"])
    batch, (n, k, m) = s.one([], [], [2], [2, 3]), (s.size(), s.int(1, 4), s.int(1, 4))
    ta, tb = s.chance(0.2), s.chance(0.2)
    out: Arguments = [
        ("a", s.value(name, [*batch, k, n] if ta else [*batch, n, k])),
        ("b", s.value(name, [*batch, m, k] if tb else [*batch, k, m])),
    ]
    if ta or tb:
        out += [("transpose_a", py(ta)), ("transpose_b", py(tb))]
    elif s.chance(0.15):
        out.append((s.one("*adjoint_a", "*adjoint_b", "*a_is_sparse"), py(True)))
    return out


@op("linalg.matvec", grad=True)
def matvec(s: Source) -> Arguments:
    name, (n, k) = s.of([*NN, "int32", "complex64"]), (s.int(1, 3), s.int(1, 3))
    return [("a", s.value(name, [n, k])), ("b", s.value(name, [k]))]


@op("tensordot", grad=True)
def tensordot(s: Source) -> Arguments:
    name, a, b = s.of(NN), s.dims(1, 3), s.dims(0, 2)
    n = s.int(0, min(2, len(a)))
    axes = s.one(py(n), py([list(range(len(a) - n, len(a))), list(range(n))]))
    return [("a", s.value(name, a)), ("b", s.value(name, [*a[len(a) - n :], *b])), ("axes", axes)]


@op("einsum", grad=True, positional=3)
def einsum(s: Source) -> Arguments:
    name = s.of(NN)
    text, a, b = s.of(
        [
            ("ij,jk->ik", [2, 3], [3, 4]),
            ("bij,bjk->bik", [2, 2, 3], [2, 3, 2]),
            ("ij,ij->", [2, 3], [2, 3]),
            ("i,j->ij", [2], [3]),
            ("ij,jk", [2, 3], [3, 2]),
            ("ij,kj->ik", [2, 3], [4, 3]),
        ]
    )
    return [("", py(text)), ("", s.value(name, a)), ("", s.value(name, b))]


def _square(s: Source, name: str) -> np.ndarray:  # type: ignore[type-arg]
    n, batch = s.int(1, 3), s.one([], [], [2])
    return np.asarray(s.array(name, [*batch, n, n], -2, 2))


@op("matrix_inverse", "matrix_determinant", "linalg.slogdet", grad=True, loose=20)
def inverse(s: Source) -> Arguments:
    name = s.of(MATRIX)
    a = _square(s, name)
    return [("", s.carried(a + 4 * np.eye(a.shape[-1], dtype=a.dtype), name))]


@op("cholesky", "linalg.logdet", "self_adjoint_eigvals", "linalg.expm", grad=True, loose=20)
def positive(s: Source) -> Arguments:
    name = s.of(["float32", "float64"])
    a = _square(s, name)
    return [("", s.carried(a @ np.swapaxes(a, -1, -2) + np.eye(a.shape[-1], dtype=a.dtype), name))]


@op("matrix_solve", grad=True, loose=20)
def solve(s: Source) -> Arguments:
    name = s.of(MATRIX)
    a = _square(s, name)
    return [
        ("matrix", s.carried(a + 4 * np.eye(a.shape[-1], dtype=a.dtype), name)),
        ("rhs", s.value(name, [*a.shape[:-1], 2])),
        ("adjoint", py(s.chance(0.3))),
    ]


@op("matrix_triangular_solve", grad=True, loose=20)
def triangular(s: Source) -> Arguments:
    name = s.of(["float32", "float64"])
    a = _square(s, name)
    return [
        ("matrix", s.carried(a + 4 * np.eye(a.shape[-1], dtype=a.dtype), name)),
        ("rhs", s.value(name, [*a.shape[:-1], 2])),
        ("lower", py(s.chance(0.5))),
    ]


@op("cross", grad=True)
def cross(s: Source) -> Arguments:
    name, shape = s.of(REALS), [*s.dims(0, 2), 3]
    return [("", s.value(name, shape)), ("", s.value(name, shape))]


@op("svd", compare=False)
def svd(s: Source) -> Arguments:
    return [("tensor", s.value(s.of(MATRIX), s.dims(2, 3))), ("*compute_uv", py(s.chance(0.5)))]


@op("qr", compare=False)
def qr(s: Source) -> Arguments:
    return [("", s.value(s.of(MATRIX), s.dims(2, 3)))]


@op("fft", "ifft", "fft2d", "ifft2d", grad=True, loose=10)
def fft(s: Source) -> Arguments:
    return [("input", s.value(s.one("complex64", "complex128"), s.dims(2, 3)))]


@op("signal.rfft", "signal.irfft", loose=10)
def rfft(s: Source) -> Arguments:
    return [("", s.value(s.one("float32", "complex64"), s.dims(1, 3)))]


@op("signal.frame", "signal.hann_window")
def frame(s: Source) -> Arguments:
    return (
        [
            ("", s.one(s.value("float32", [s.int(1, 9)]), py(5))),
            ("*frame_length", py(3)),
            ("*frame_step", py(2)),
        ]
        if s.chance(0.7)
        else [("", py(4))]
    )


# images -------------------------------------------------------------------------------------------


@op(
    "image.resize_bilinear",
    "image.resize_nearest_neighbor",
    "image.resize_bicubic",
    "image.resize_area",
    "image.resize_images",
    grad=True,
)
def resize(s: Source) -> Arguments:
    name = s.of(["float32", "float32", "uint8", "int32", "float16", "float64"])
    out: Arguments = [
        ("images", s.value(name, [1, s.int(1, 4), s.int(1, 4), 2], 0, 200)),
        ("size", s.ints([s.int(1, 5), s.int(1, 5)])),
    ]
    return out if s.chance(0.6) else [*out, ("*align_corners", py(s.chance(0.5)))]


@op(
    "image.flip_left_right",
    "image.flip_up_down",
    "image.transpose_image",
    "image.rot90",
    "image.rgb_to_grayscale",
    "image.grayscale_to_rgb",
    "image.per_image_standardization",
    "image.rgb_to_hsv",
    "image.hsv_to_rgb",
    "image.rgb_to_yuv",
    "image.image_gradients",
    "image.total_variation",
    "image.sobel_edges",
)
def image_unary(s: Source) -> Arguments:
    name = s.of(["float32", "float32", "uint8", "float64", "float16", "int32"])
    return [("", s.value(name, [*s.one([], [2]), s.int(1, 4), s.int(1, 4), s.one(3, 3, 1)], 0, 1))]


@op(
    "image.adjust_brightness",
    "image.adjust_contrast",
    "image.adjust_saturation",
    "image.adjust_hue",
    "image.adjust_gamma",
)
def adjust(s: Source) -> Arguments:
    name = s.of(["float32", "float32", "uint8", "float64", "float16"])
    return [
        ("", s.value(name, [*s.one([], [2]), 3, 3, 3], 0, 200 if name == "uint8" else 1)),
        ("", py(s.one(0.5, 0.1, 1.0))),
    ]


@op("image.central_crop")
def central_crop(s: Source) -> Arguments:
    return [
        ("image", s.value("float32", [s.int(2, 6), s.int(2, 6), 1])),
        ("central_fraction", py(s.one(0.5, 1.0, 0.3))),
    ]


@op("image.crop_to_bounding_box", "image.pad_to_bounding_box")
def bounding_box(s: Source) -> Arguments:
    return [
        ("image", s.value(s.of(REALS), [4, 5, 2])),
        ("offset_height", py(s.int(0, 2))),
        ("offset_width", py(s.int(0, 2))),
        ("target_height", py(s.int(1, 7))),
        ("target_width", py(s.int(1, 7))),
    ]


@op("image.resize_image_with_crop_or_pad")
def crop_or_pad(s: Source) -> Arguments:
    return [
        ("image", s.value(s.of(REALS), [4, 5, 2])),
        ("target_height", py(s.int(1, 7))),
        ("target_width", py(s.int(1, 7))),
    ]


@op("image.crop_and_resize", grad=True)
def crop_and_resize(s: Source) -> Arguments:
    return [
        ("image", s.value(s.of(["float32", "uint8", "float64"]), [2, 4, 4, 1], 0, 9)),
        ("boxes", s.value("float32", [3, 4], 0, 1)),
        ("box_ind", s.indices([3], 2, "int32")),
        ("crop_size", s.ints([2, 3])),
    ]


@op("image.non_max_suppression")
def nms(s: Source) -> Arguments:
    n = s.int(0, 5)
    return [
        ("boxes", s.value("float32", [n, 4], 0, 1)),
        ("scores", s.value("float32", [n], 0, 1)),
        ("max_output_size", s.ints(3)),
        ("iou_threshold", py(0.5)),
    ]


@op("image.convert_image_dtype")
def convert_image(s: Source) -> Arguments:
    return [
        (
            "image",
            s.value(
                s.of(["float32", "uint8", "float64", "uint16", "int32", "int16"]), [2, 2, 1], 0, 1
            ),
        ),
        ("dtype", dtype(s.of(["float32", "uint8", "float16", "uint16", "int32"]))),
        ("saturate", py(s.chance(0.5))),
    ]


@op("image.psnr", "image.ssim")
def psnr(s: Source) -> Arguments:
    name, shape = s.of(["float32", "uint8"]), [1, 12, 12, 1]
    return [
        ("", s.value(name, shape, 0, 1)),
        ("", s.value(name, shape, 0, 1)),
        ("max_val", py(1.0)),
    ]


@op("layers.flatten")
def flatten(s: Source) -> Arguments:
    return [("inputs", s.value(s.of(FLOATS + INTS), s.dims(1)))]


@op("layers.dense", "layers.max_pooling2d", "layers.conv2d", compare=False)
def layer(s: Source) -> Arguments:
    return (
        [("", s.value("float32", s.one([2, 3], [2, 4, 4, 2], [1, 2, 2]))), ("", py(2)), ("", py(1))]
        if s.chance(0.5)
        else [("", s.value("float32", [2, 3])), ("", py(2))]
    )
