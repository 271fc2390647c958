"""Samples of tf.nn.

Activations, cross entropies, convolutions, pooling, normalisation, candidate sampling, CTC.
"""

import itertools

import numpy as np

from .base import Sample, f32, f64, i32, i64

SAMPLES = []
NCHW = "TensorFlow's CPU kernels are NHWC only"
DILATED = "TensorFlow's CPU kernel has no dilation"


def add(op, inputs, attrs=None, id=None, **kw):
    SAMPLES.append(Sample(op, inputs, attrs, id=op if id is None else "%s-%s" % (op, id), **kw))


def half(*shape, **kw):
    return f32(*shape, **kw).astype(np.float16)


def away(*shape, **kw):
    """Numbers that are not near 0 or 6, where slopes jump."""
    x = f64(*shape, low=-4.0, high=9.0, **kw)
    x = np.where(np.abs(x) < 0.2, x + 0.5, x)
    return np.where(np.abs(x - 6) < 0.2, x + 0.5, x).astype(np.float32)


def distinct(*shape, **kw):
    """Different numbers, so that a maximum does not change hands within a small step."""
    n = int(np.prod(shape))
    order = np.argsort(f64(n, salt=kw.get("salt", 0)))
    return ((order - n / 2.0) / n).reshape(shape).astype(np.float32)


# activations --------------------------------------------------------------------------------------

for _name in ("Relu", "Relu6", "Elu", "Selu", "Softplus", "Softsign", "LeakyRelu"):
    add(_name, dict(features=away(3, 5)), grad=["features"])
    add(_name, dict(features=np.float32(-0.75)), id="scalar", grad=["features"])
    add(_name, dict(features=f32(0, 3)), id="empty")
    add(_name, dict(features=away(4, 3).astype(np.float16)), id="half")
    add(_name, dict(features=f64(2, 3, low=-3, high=3)), id="double")
for _name in ("Relu", "Relu6"):
    add(_name, dict(features=i32(2, 5, low=-9, high=10)), id="int32")
    add(_name, dict(features=i32(2, 5, low=0, high=10).astype(np.uint8)), id="uint8")
    add(
        _name + "Grad",
        dict(gradients=i32(2, 5), features=i32(2, 5, low=-9, high=10, salt=1)),
        id="int32",
    )
add("LeakyRelu", dict(features=away(3, 4)), dict(alpha=0.5), id="alpha", grad=["features"])
add("Softplus", dict(features=np.array([-100, -20, 0, 20, 100], np.float32)), id="wide")
for _name in ("Relu", "Relu6", "LeakyRelu", "Softplus", "Softsign"):
    add(
        _name + "Grad",
        dict(gradients=f32(3, 4), features=away(3, 4)),
        grad=["gradients", "features"],
    )
    add(
        _name + "Grad",
        dict(gradients=half(3, 4), features=away(3, 4).astype(np.float16)),
        id="half",
    )
for _name in ("Elu", "Selu"):
    add(
        _name + "Grad",
        dict(gradients=f32(3, 4), outputs=away(3, 4, salt=2) / 4),
        grad=["gradients", "outputs"],
    )
add(
    "LeakyReluGrad",
    dict(gradients=f32(3, 4), features=away(3, 4)),
    dict(alpha=0.5),
    id="alpha",
    grad=["gradients", "features"],
)
for _name in ("Softmax", "LogSoftmax"):
    add(_name, dict(logits=f32(3, 5)), grad=["logits"])
    add(_name, dict(logits=f32(2, 3, 4)), id="rank3", grad=["logits"])
    add(_name, dict(logits=f32(4)), id="vector", grad=["logits"])
    add(_name, dict(logits=f32(3, 4, low=-500, high=500)), id="wide")
    add(_name, dict(logits=half(3, 4)), id="half")
    add(_name, dict(logits=f64(3, 4)), id="double")
    add(_name, dict(logits=f32(0, 4)), id="empty")

# cross entropies ----------------------------------------------------------------------------------

_XENT = "SoftmaxCrossEntropyWithLogits"
_P = np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25], [0, 1, 0], [1, 0, 0]], np.float32)
add(_XENT, dict(features=f32(4, 3), labels=_P), grad=["features"])
add(_XENT, dict(features=f32(4, 3), labels=_P / 2), id="labels", grad=["labels"])
add(_XENT, dict(features=f32(4, 3, low=-300, high=300), labels=_P), id="wide")
add(_XENT, dict(features=f32(1, 3), labels=_P), id="broadcast-logits")
add(_XENT, dict(features=f32(4, 3), labels=_P[:1]), id="broadcast-labels")
add(_XENT, dict(features=half(4, 3), labels=_P.astype(np.float16)), id="half")
add(_XENT, dict(features=f64(4, 3), labels=_P.astype(np.float64)), id="double")
add("Sparse" + _XENT, dict(features=f32(4, 3), labels=i64(4, high=3)), grad=["features"])
add("Sparse" + _XENT, dict(features=f32(4, 3), labels=i32(4, high=3)), id="int32")
add("Sparse" + _XENT, dict(features=half(4, 3), labels=i32(4, high=3)), id="half")
add("Sparse" + _XENT, dict(features=f64(4, 3), labels=i64(4, high=3)), id="double")
add("BiasAdd", dict(value=f32(3, 4), bias=f32(4)), grad=["value", "bias"])
add("BiasAdd", dict(value=f32(2, 2, 3, 4), bias=f32(4)), id="rank4", grad=["value", "bias"])
add(
    "BiasAdd",
    dict(value=f32(2, 4, 2, 3), bias=f32(4)),
    dict(data_format="NCHW"),
    id="nchw",
    grad=["value", "bias"],
)
add("BiasAdd", dict(value=i32(3, 4), bias=i32(4)), id="int32")
add("BiasAdd", dict(value=half(3, 4), bias=half(4)), id="half")
add("BiasAddV1", dict(value=f32(3, 4), bias=f32(4)), grad=["value", "bias"])
add("BiasAddGrad", dict(out_backprop=f32(3, 4)), grad=["out_backprop"])
add(
    "BiasAddGrad",
    dict(out_backprop=f32(2, 4, 2, 3)),
    dict(data_format="NCHW"),
    id="nchw",
    grad=["out_backprop"],
)
add("BiasAddGrad", dict(out_backprop=half(3, 4)), id="half")
add("BiasAddGrad", dict(out_backprop=i32(3, 4)), id="int32")

# convolutions -------------------------------------------------------------------------------------


def conv(x, w, strides, pads, dilations=None):
    """The definition, with channels last and the padding given."""
    nd = w.ndim - 2
    dilations = dilations or [1] * nd
    x = np.pad(x, [(0, 0)] + list(pads) + [(0, 0)], "constant")
    sizes = [
        (n - (k - 1) * d - 1) // s + 1
        for n, k, s, d in zip(x.shape[1:], w.shape, strides, dilations)
    ]
    out = 0.0
    for at in itertools.product(*[range(k) for k in w.shape[:nd]]):
        part = [
            slice(a * d, a * d + (n - 1) * s + 1, s)
            for a, d, n, s in zip(at, dilations, sizes, strides)
        ]
        out = out + np.tensordot(x[tuple([slice(None)] + part)], w[at], 1)
    return out.astype(x.dtype)


def first(x):
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))


_SAME = dict(strides=[1, 1, 1, 1], padding="SAME")
_X, _W = f32(2, 5, 6, 3), f32(3, 2, 3, 4)
add("Conv2D", dict(input=_X, filter=_W), _SAME, grad=["input", "filter"])
add(
    "Conv2D",
    dict(input=_X, filter=_W),
    dict(strides=[1, 2, 3, 1], padding="SAME"),
    id="strides",
    grad=["input", "filter"],
)
add(
    "Conv2D",
    dict(input=_X, filter=_W),
    dict(strides=[1, 2, 1, 1], padding="VALID"),
    id="valid",
    grad=["input", "filter"],
)
add(
    "Conv2D",
    dict(input=_X, filter=_W),
    dict(strides=[1, 1, 1, 1], padding="SAME", dilations=[1, 2, 2, 1]),
    id="dilated",
    grad=["input", "filter"],
)
add(
    "Conv2D",
    dict(input=_X, filter=_W),
    dict(strides=[1, 2, 2, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 2, 3, 0, 0, 0]),
    id="explicit",
    grad=["input", "filter"],
)
add("Conv2D", dict(input=_X, filter=f32(1, 1, 3, 4)), _SAME, id="1x1", grad=["input", "filter"])
add(
    "Conv2D",
    dict(input=_X, filter=f32(1, 1, 3, 4)),
    dict(strides=[1, 2, 2, 1], padding="VALID"),
    id="1x1-strides",
    grad=["input", "filter"],
)
add(
    "Conv2D",
    dict(input=f32(1, 4, 3, 9), filter=f32(2, 2, 9, 2)),
    _SAME,
    id="deep",
    grad=["input", "filter"],
)
add(
    "Conv2D",
    dict(input=f32(1, 2, 9, 1), filter=f32(2, 3, 1, 5)),
    _SAME,
    id="shallow",
    grad=["input", "filter"],
)
add("Conv2D", dict(input=f32(0, 5, 6, 3), filter=_W), _SAME, id="empty")
add("Conv2D", dict(input=half(1, 4, 4, 2), filter=half(2, 2, 2, 3)), _SAME, id="half")
add("Conv2D", dict(input=f64(1, 4, 4, 2), filter=f64(2, 2, 2, 3)), _SAME, id="double")
add(
    "Conv2D",
    dict(input=first(_X), filter=_W),
    dict(_SAME, data_format="NCHW"),
    id="nchw",
    golden=False,
    why=NCHW,
    expect=first(conv(_X, _W, (1, 1), [(1, 1), (0, 1)])),
    grad=["input", "filter"],
)

_G = f32(2, 5, 6, 4, salt=3)
_SIZES = np.array([2, 5, 6, 3], np.int32)
add(
    "Conv2DBackpropInput",
    dict(input_sizes=_SIZES, filter=_W, out_backprop=_G),
    _SAME,
    const=["input_sizes"],
    grad=["filter", "out_backprop"],
)
add(
    "Conv2DBackpropInput",
    dict(input_sizes=_SIZES, filter=_W, out_backprop=f32(2, 3, 2, 4)),
    dict(strides=[1, 2, 3, 1], padding="SAME"),
    id="strides",
    grad=["filter", "out_backprop"],
)
add(
    "Conv2DBackpropInput",
    dict(input_sizes=_SIZES, filter=f32(3, 2, 3, 9), out_backprop=f32(2, 3, 5, 9)),
    dict(strides=[1, 1, 1, 1], padding="VALID"),
    id="wide",
    const=["input_sizes"],
    grad=["filter", "out_backprop"],
)
add(
    "Conv2DBackpropInput",
    dict(input_sizes=_SIZES, filter=f32(1, 1, 3, 4), out_backprop=_G),
    _SAME,
    id="1x1",
    grad=["filter", "out_backprop"],
)
add(
    "Conv2DBackpropFilter",
    dict(input=_X, filter_sizes=np.array([3, 2, 3, 4], np.int32), out_backprop=_G),
    _SAME,
    const=["filter_sizes"],
    grad=["input", "out_backprop"],
)
add(
    "Conv2DBackpropFilter",
    dict(input=_X, filter_sizes=np.array([3, 2, 3, 4], np.int32), out_backprop=f32(2, 2, 5, 4)),
    dict(strides=[1, 2, 1, 1], padding="VALID"),
    id="strides",
    grad=["input", "out_backprop"],
)

_WD = f32(3, 3, 3, 2)
add("DepthwiseConv2dNative", dict(input=_X, filter=_WD), _SAME, grad=["input", "filter"])
add(
    "DepthwiseConv2dNative",
    dict(input=_X, filter=_WD),
    dict(strides=[1, 2, 2, 1], padding="VALID"),
    id="strides",
    grad=["input", "filter"],
)
add(
    "DepthwiseConv2dNative",
    dict(input=_X, filter=f32(2, 2, 3, 1)),
    _SAME,
    id="single",
    grad=["input", "filter"],
)
_BLOCKS = np.zeros(
    (3, 3, 3, 6), np.float32
)  # a depthwise convolution is a convolution with a block-diagonal filter
for _c in range(3):
    _BLOCKS[:, :, _c, 2 * _c : 2 * _c + 2] = _WD[:, :, _c]
add(
    "DepthwiseConv2dNative",
    dict(input=first(_X), filter=_WD),
    dict(_SAME, data_format="NCHW"),
    id="nchw",
    golden=False,
    why=NCHW,
    expect=first(conv(_X, _BLOCKS, (1, 1), [(1, 1), (1, 1)])),
    grad=["input", "filter"],
)
add(
    "DepthwiseConv2dNative",
    dict(input=_X, filter=_WD),
    dict(_SAME, dilations=[1, 2, 2, 1]),
    id="dilated",
    golden=False,
    why="TensorFlow's CPU kernel ignores the dilation",
    expect=conv(_X, _BLOCKS, (1, 1), [(2, 2), (2, 2)], [2, 2]),
    grad=["input", "filter"],
)
_GD = f32(2, 5, 6, 6, salt=3)
add(
    "DepthwiseConv2dNativeBackpropInput",
    dict(input_sizes=_SIZES, filter=_WD, out_backprop=_GD),
    _SAME,
    const=["input_sizes"],
    grad=["filter", "out_backprop"],
)
add(
    "DepthwiseConv2dNativeBackpropInput",
    dict(input_sizes=_SIZES, filter=_WD, out_backprop=f32(2, 3, 3, 6)),
    dict(strides=[1, 2, 2, 1], padding="SAME"),
    id="strides",
    grad=["filter", "out_backprop"],
)
add(
    "DepthwiseConv2dNativeBackpropFilter",
    dict(input=_X, filter_sizes=np.array([3, 3, 3, 2], np.int32), out_backprop=_GD),
    _SAME,
    const=["filter_sizes"],
    grad=["input", "out_backprop"],
)

_X3, _W3 = f32(1, 3, 4, 4, 2), f32(2, 2, 3, 2, 3)
_SAME3 = dict(strides=[1] * 5, padding="SAME")
add("Conv3D", dict(input=_X3, filter=_W3), _SAME3, grad=["input", "filter"])
add(
    "Conv3D",
    dict(input=_X3, filter=_W3),
    dict(strides=[1, 2, 1, 2, 1], padding="VALID"),
    id="strides",
    grad=["input", "filter"],
)
add(
    "Conv3D",
    dict(input=_X3, filter=_W3),
    dict(_SAME3, dilations=[1, 1, 2, 1, 1]),
    id="dilated",
    golden=False,
    why=DILATED,
    expect=conv(_X3, _W3, (1, 1, 1), [(0, 1), (1, 1), (1, 1)], [1, 2, 1]),
    grad=["input", "filter"],
)
add(
    "Conv3D",
    dict(input=first(_X3), filter=_W3),
    dict(_SAME3, data_format="NCDHW"),
    id="ncdhw",
    golden=False,
    why=NCHW,
    expect=first(conv(_X3, _W3, (1, 1, 1), [(0, 1), (0, 1), (1, 1)])),
    grad=["input", "filter"],
)
_G3, _S3 = f32(1, 3, 4, 4, 3, salt=3), np.array([1, 3, 4, 4, 2], np.int32)
add(
    "Conv3DBackpropInputV2",
    dict(input_sizes=_S3, filter=_W3, out_backprop=_G3),
    _SAME3,
    const=["input_sizes"],
    grad=["filter", "out_backprop"],
)
add(
    "Conv3DBackpropInputV2",
    dict(input_sizes=_S3.astype(np.int64), filter=_W3, out_backprop=f32(1, 2, 2, 2, 3)),
    dict(strides=[1, 2, 2, 2, 1], padding="SAME"),
    id="strides",
    grad=["filter", "out_backprop"],
)
add(
    "Conv3DBackpropFilterV2",
    dict(input=_X3, filter_sizes=np.array(_W3.shape, np.int32), out_backprop=_G3),
    _SAME3,
    const=["filter_sizes"],
    grad=["input", "out_backprop"],
)

# pooling ------------------------------------------------------------------------------------------

_P22 = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
_P32 = dict(ksize=[1, 3, 2, 1], strides=[1, 2, 1, 1], padding="VALID")
_P33 = dict(ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME")
_D = distinct(2, 5, 6, 3)


def pooled(x, window):
    """Maxima by the definition, with channels last."""
    ksize, strides = window["ksize"][1:-1], window["strides"][1:-1]
    sizes, starts = [], []
    for n, k, s in zip(x.shape[1:], ksize, strides):
        out = -(-n // s) if window["padding"] == "SAME" else (n - k) // s + 1
        sizes.append(out)
        starts.append(max((out - 1) * s + k - n, 0) // 2 if window["padding"] == "SAME" else 0)
    y = np.empty((x.shape[0],) + tuple(sizes) + (x.shape[-1],), x.dtype)
    for at in itertools.product(*[range(n) for n in sizes]):
        part = [
            slice(max(0, a * s - b), a * s - b + k)
            for a, s, b, k in zip(at, strides, starts, ksize)
        ]
        window_part = x[tuple([slice(None)] + part)]
        y[(slice(None),) + at] = window_part.max(axis=tuple(range(1, x.ndim - 1)))
    return y


for _id, _window in ((None, _P22), ("valid", _P32), ("overlap", _P33)):
    _y = pooled(_D, _window)
    add("MaxPool", dict(input=_D), _window, id=_id, grad=["input"])
    add("AvgPool", dict(value=_X), _window, id=_id, grad=["value"])
    add(
        "MaxPoolGrad",
        dict(orig_input=_D, orig_output=_y, grad=f32(*_y.shape)),
        _window,
        id=_id,
        grad=["grad"],
    )
    add(
        "MaxPoolGradGrad",
        dict(orig_input=_D, orig_output=_y, grad=f32(*_D.shape)),
        _window,
        id=_id,
        grad=["grad"],
    )
    add(
        "AvgPoolGrad",
        dict(orig_input_shape=_SIZES, grad=f32(*_y.shape)),
        _window,
        id=_id,
        grad=["grad"],
        const=["orig_input_shape"],
    )
    add("MaxPoolWithArgmax", dict(input=_D), _window, id=_id, grad=["input"])
_TIES = i32(1, 4, 6, 2, high=3).astype(np.float32)
add(
    "MaxPoolGrad",
    dict(orig_input=_TIES, orig_output=pooled(_TIES, _P33), grad=f32(1, 2, 3, 2)),
    _P33,
    id="ties",
)
add("MaxPoolWithArgmax", dict(input=_TIES), dict(_P33, include_batch_in_index=True), id="ties")
add(
    "MaxPool",
    dict(input=_D),
    dict(ksize=[1, 1, 1, 3], strides=[1, 1, 1, 3], padding="VALID"),
    id="depth",
)
add("MaxPool", dict(input=i32(1, 4, 4, 2, low=-9)), _P22, id="int32")
add("MaxPool", dict(input=half(1, 4, 4, 2)), _P33, id="half")
add("MaxPool", dict(input=f64(1, 4, 4, 2)), _P33, id="double")
add(
    "MaxPool",
    dict(input=first(_D)),
    dict(ksize=[1, 1, 3, 3], strides=[1, 1, 2, 2], padding="SAME", data_format="NCHW"),
    id="nchw",
    golden=False,
    why=NCHW,
    expect=first(pooled(_D, _P33)),
    grad=["input"],
)
add("AvgPool", dict(value=half(1, 4, 4, 2)), _P33, id="half")
add("AvgPool", dict(value=f64(1, 4, 4, 2)), _P33, id="double")
_K, _S = np.array(_P33["ksize"], np.int32), np.array(_P33["strides"], np.int32)
_V2 = dict(padding="SAME")
_KS = ["ksize", "strides"]
_y = pooled(_D, _P33)
add("MaxPoolV2", dict(input=_D, ksize=_K, strides=_S), _V2, grad=["input"], const=_KS)
add("MaxPoolV2", dict(input=_D, ksize=_K, strides=_S), _V2, id="fed", grad=["input"])
add(
    "MaxPoolGradV2",
    dict(orig_input=_D, orig_output=_y, grad=f32(*_y.shape), ksize=_K, strides=_S),
    _V2,
    grad=["grad"],
    const=_KS,
)
add(
    "MaxPoolGradGradV2",
    dict(orig_input=_D, orig_output=_y, grad=f32(*_D.shape), ksize=_K, strides=_S),
    _V2,
    grad=["grad"],
    const=_KS,
)
_AT = np.arange(30, dtype=np.int64)[::5].reshape(1, 2, 3, 1)  # of an image of 30 elements
_PA = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
add(
    "MaxPoolGradWithArgmax",
    dict(input=f32(1, 4, 6, 1), grad=f32(1, 2, 3, 1), argmax=_AT % 24),
    _PA,
    grad=["grad"],
)
add(
    "MaxPoolGradGradWithArgmax",
    dict(input=f32(1, 4, 6, 1), grad=f32(1, 4, 6, 1), argmax=_AT % 24),
    _PA,
    grad=["grad"],
    golden=False,
    why="TensorFlow has no CPU kernel",
    expect=f32(1, 4, 6, 1).reshape(-1)[_AT % 24],
)
_P3 = dict(ksize=[1, 2, 2, 3, 1], strides=[1, 2, 2, 2, 1], padding="SAME")
_D3 = distinct(1, 3, 4, 4, 2)
_y3 = pooled(_D3, _P3)
add("MaxPool3D", dict(input=_D3), _P3, grad=["input"])
add("MaxPool3D", dict(input=_D3), dict(_P3, padding="VALID"), id="valid", grad=["input"])
add(
    "MaxPool3DGrad", dict(orig_input=_D3, orig_output=_y3, grad=f32(*_y3.shape)), _P3, grad=["grad"]
)
add(
    "MaxPool3DGradGrad",
    dict(orig_input=_D3, orig_output=_y3, grad=f32(*_D3.shape)),
    _P3,
    grad=["grad"],
)
add("AvgPool3D", dict(input=_X3), _P3, grad=["input"])
add("AvgPool3D", dict(input=_X3), dict(_P3, padding="VALID"), id="valid", grad=["input"])
add(
    "AvgPool3DGrad",
    dict(orig_input_shape=_S3, grad=f32(*_y3.shape)),
    _P3,
    grad=["grad"],
    const=["orig_input_shape"],
)

# normalisation ------------------------------------------------------------------------------------

_NONE, _SCALE, _OFF = f32(0), f32(3, low=0.5, high=1.5), f32(3)
_MEAN, _VAR = f32(3, salt=4), f32(3, low=0.5, high=1.5, salt=5)
_TRAIN = dict(x=_X, scale=_SCALE, offset=_OFF, mean=_NONE, variance=_NONE)
_INFER = dict(x=_X, scale=_SCALE, offset=_OFF, mean=_MEAN, variance=_VAR)


def normalised(x, mean, var, scale, offset, epsilon):
    return ((x - mean) / np.sqrt(var + epsilon) * scale + offset).astype(x.dtype)


def only_y(got, want):
    """In inference the other outputs are the given statistics, which TensorFlow does not
    promise.
    """
    np.testing.assert_allclose(got[0], want[0], 1e-5, 1e-5)


for _v in ("", "V2", "V3"):
    add("FusedBatchNorm" + _v, _TRAIN, dict(epsilon=0.25))
    add(
        "FusedBatchNorm" + _v,
        _INFER,
        dict(epsilon=0.25, is_training=False),
        id="inference",
        check=only_y,
    )
    _back = dict(
        y_backprop=f32(2, 5, 6, 3, salt=6),
        x=_X,
        scale=_SCALE,
        reserve_space_1=_MEAN,
        reserve_space_2=_VAR,
    )
    if _v == "V3":
        _back["reserve_space_3"] = np.float32(0)
    _g = [] if _v else ["y_backprop", "x", "scale"]
    add("FusedBatchNormGrad" + _v, _back, dict(epsilon=0.25))
    add(
        "FusedBatchNormGrad" + _v,
        _back,
        dict(epsilon=0.25, is_training=False),
        id="inference",
        grad=_g,
    )


def _half_norm(got, want):
    """Normalized values in half precision, mean and variance in single."""
    np.testing.assert_allclose(got[0].astype("f"), want[0].astype("f"), 2e-3, 2e-3)
    for g, w in zip(got[1:3], want[1:3]):
        np.testing.assert_allclose(g, w, 1e-3, 1e-4)


for _v in ("V2", "V3"):
    add(
        "FusedBatchNorm" + _v,
        dict(_TRAIN, x=_X.astype(np.float16)),
        dict(epsilon=0.25),
        id="half",
        check=_half_norm,
    )
_CX, _CM, _CV = first(_X), _X.mean((0, 1, 2)), _X.var((0, 1, 2))
add(
    "FusedBatchNormV3",
    dict(_TRAIN, x=_CX),
    dict(epsilon=0.25, data_format="NCHW"),
    id="nchw",
    golden=False,
    why=NCHW,
    expect=[
        first(normalised(_X, _CM, _CV, _SCALE, _OFF, 0.25)),
        _CM,
        _CV * np.float32(60 / 59.0),
        _CM,
        _CV,
        np.float32(0),
    ],
)
add(
    "LRN",
    dict(input=f32(1, 2, 2, 7)),
    dict(depth_radius=2, bias=1.5, alpha=0.5, beta=0.75),
    grad=["input"],
)
add("LRN", dict(input=f32(1, 2, 2, 4)), id="defaults", grad=["input"])
add("LRN", dict(input=half(1, 2, 2, 4)), dict(depth_radius=1), id="half")
_lx = f32(1, 2, 2, 7)
add(
    "LRNGrad",
    dict(
        input_grads=f32(1, 2, 2, 7, salt=1), input_image=_lx, output_image=f32(1, 2, 2, 7, salt=2)
    ),
    dict(depth_radius=2, bias=1.5, alpha=0.5, beta=0.75),
)
_GT = f32(1, 2, 2, 3)
_GLOBAL = dict(t=_GT, m=_MEAN, v=_VAR, beta=_OFF, gamma=_SCALE)
_GB = dict(t=_GT, m=_MEAN, v=_VAR, gamma=_SCALE, backprop=f32(1, 2, 2, 3, salt=7))
for _scaled in (True, False):
    _attrs = dict(variance_epsilon=0.25, scale_after_normalization=_scaled)
    _id = None if _scaled else "unscaled"
    add(
        "BatchNormWithGlobalNormalization",
        _GLOBAL,
        _attrs,
        id=_id,
        grad=["t", "m", "v", "beta"] + (["gamma"] if _scaled else []),
    )
    add("BatchNormWithGlobalNormalizationGrad", _GB, _attrs, id=_id)

# candidate sampling -------------------------------------------------------------------------------

_TRUE = np.array([[1, 2], [3, 0], [4, 4]], np.int64)
for _kind in ("LogUniform", "Uniform", "LearnedUnigram", "ThreadUnsafeUnigram", "FixedUnigram"):
    for _unique in (False, True):
        _attrs = dict(
            num_true=2, num_sampled=6, unique=_unique, range_max=11, seed=87654321, seed2=42
        )
        if _kind == "FixedUnigram":
            _attrs.update(unigrams=[float(i % 4 + 1) for i in range(11)], distortion=0.75)
        add(
            _kind + "CandidateSampler",
            dict(true_classes=_TRUE),
            _attrs,
            id="unique" if _unique else None,
        )
add(
    "FixedUnigramCandidateSampler",
    dict(true_classes=_TRUE),
    dict(
        num_true=2,
        num_sampled=4,
        unique=False,
        range_max=9,
        seed=1,
        seed2=2,
        num_reserved_ids=3,
        unigrams=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    ),
    id="reserved",
)
add(
    "UniformCandidateSampler",
    dict(true_classes=_TRUE),
    dict(num_true=2, num_sampled=20, unique=False, range_max=16, seed=3, seed2=4),
    id="power-of-2",
)
add(
    "LogUniformCandidateSampler",
    dict(true_classes=_TRUE),
    dict(num_true=2, num_sampled=50, unique=True, range_max=100000, seed=3, seed2=4),
    id="many",
)
add("AllCandidateSampler", dict(true_classes=_TRUE), dict(num_true=2, num_sampled=5, unique=True))
add(
    "ComputeAccidentalHits",
    dict(true_classes=_TRUE, sampled_candidates=np.array([3, 1, 1, 7, 4], np.int64)),
    dict(num_true=2),
)
add(
    "ComputeAccidentalHits",
    dict(true_classes=_TRUE, sampled_candidates=np.array([8, 9], np.int64)),
    dict(num_true=2),
    id="none",
)

# CTC ----------------------------------------------------------------------------------------------

_CTC = dict(
    inputs=f32(6, 3, 4, low=-2, high=2),
    labels_indices=np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]], np.int64),
    labels_values=np.array([1, 1, 0, 2, 2], np.int32),
    sequence_length=np.array([6, 4, 3], np.int32),
)
_F64 = "computed in float64, TensorFlow in float32"
add("CTCLoss", _CTC, tol=1e-5, why=_F64)
add("CTCLoss", _CTC, dict(ctc_merge_repeated=False), id="unmerged", tol=1e-5, why=_F64)
add("CTCLoss", _CTC, dict(preprocess_collapse_repeated=True), id="collapsed", tol=1e-5, why=_F64)
add(
    "CTCLoss",
    dict(_CTC, sequence_length=np.array([1, 4, 0], np.int32)),
    dict(ignore_longer_outputs_than_inputs=True),
    id="too-long",
    tol=1e-5,
    why=_F64,
)
add(
    "CTCLoss",
    dict(_CTC, sequence_length=np.array([2, 4, 3], np.int32)),
    id="impossible",
    tol=1e-5,
    why=_F64,
)
_READ = dict(inputs=_CTC["inputs"], sequence_length=_CTC["sequence_length"])
for _merge in (False, True):
    _id = "merged" if _merge else None
    add("CTCGreedyDecoder", _READ, dict(merge_repeated=_merge), id=_id)
    add(
        "CTCBeamSearchDecoder",
        _READ,
        dict(beam_width=8, top_paths=3, merge_repeated=_merge),
        id=_id,
        tol=1e-5,
        why=_F64,
    )
add(
    "CTCBeamSearchDecoder",
    dict(inputs=f32(9, 2, 6, low=-3, high=3), sequence_length=np.array([9, 7], np.int32)),
    dict(beam_width=3, top_paths=2, merge_repeated=False),
    id="narrow",
    tol=1e-5,
    why=_F64,
)

_X = f32(4, 3, low=-8, high=8)
_RANGE = dict(min=np.float32(-2.5), max=np.float32(3.1))
_RANGES = dict(min=np.array([-1, -0.5, 0], np.float32), max=np.array([1, 4, 6], np.float32))
add("FakeQuantWithMinMaxArgs", dict(inputs=_X), dict(min=-1.3, max=2.2, num_bits=4))
add(
    "FakeQuantWithMinMaxArgsGradient",
    dict(gradients=f32(4, 3), inputs=_X),
    dict(min=-1.3, max=2.2, narrow_range=True),
)
add("FakeQuantWithMinMaxVars", dict(_RANGE, inputs=_X), dict(num_bits=5))
add("FakeQuantWithMinMaxVarsGradient", dict(_RANGE, gradients=f32(4, 3), inputs=_X))
add("FakeQuantWithMinMaxVarsPerChannel", dict(_RANGES, inputs=_X), dict(narrow_range=True))
add("FakeQuantWithMinMaxVarsPerChannelGradient", dict(_RANGES, gradients=f32(4, 3), inputs=_X))
for _given in (False, True):
    add(
        "QuantizeAndDequantizeV2",
        dict(input=_X, input_min=np.float32(-1), input_max=np.float32(2)),
        dict(range_given=_given, num_bits=6),
        id="given" if _given else None,
    )
