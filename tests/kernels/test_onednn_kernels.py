"""The oneDNN kernels give what the NumPy kernels give.

Shapes, layouts, odd values, threads, fall-backs, bounded caches.
"""

from __future__ import annotations

import gc
import math
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.core.opdef import KernelNode, bind_kernel, lookup
from headrace.kernels import accel
from headrace.kernels.numpy import blocks, gemm, numpy_xp
from tests.kernels.test_narrow_weights import error_bound
from tests.tolerances import assert_close

Rng = np.random.RandomState


@pytest.fixture
def onednn() -> Any:
    found = accel.library()
    if found is None:
        pytest.skip(f"no kernel library: {accel.status()}")
    return found


@pytest.fixture
def no_library() -> Iterator[Callable[..., Any]]:
    """Calls a function as it runs where there is no kernel library."""

    def call(function: Callable[..., Any], *args: Any) -> Any:
        outside, accel.here.in_block = accel.here.in_block, True
        try:
            with np.errstate(all="ignore"):
                return function(*args)
        finally:
            accel.here.in_block = outside

    yield call


def _random(*shape: int, salt: int = 0, scale: float = 1.0) -> Any:
    return (Rng(salt).uniform(-1, 1, shape) * scale).astype(np.float32)


def _kernel(op: str, **attrs: Any) -> Callable[..., Any]:
    return bind_kernel(lookup(op), KernelNode("x", op, attrs), numpy_xp)  # type: ignore[no-any-return]


def _counted(onednn: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each call of a function of the library was taken."""
    taken: list[bool] = []
    function = getattr(onednn, name)

    def counting(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        taken.append(result is not None)
        return result

    monkeypatch.setattr(onednn, name, counting)
    return taken


# products ---------------------------------------------------------------------------------------

BATCHES = [
    ((12, 64, 32), (12, 32, 48)),
    ((2, 3, 17, 19), (2, 3, 19, 5)),
    ((2, 3, 17, 19), (1, 3, 19, 5)),
    ((4, 1, 30, 20), (1, 5, 20, 10)),
    ((33, 20), (6, 20, 11)),
    ((6, 33, 20), (20, 11)),
    ((100, 8, 8), (100, 8, 8)),
    ((3, 1, 40), (3, 40, 1)),
]


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("shapes", BATCHES, ids=str)
def test_batches_of_products(
    onednn: Any, shapes: tuple[tuple[int, ...], tuple[int, ...]], transposed: tuple[bool, bool]
) -> None:
    sides = []
    for shape, turned, salt in zip(shapes, transposed, (1, 2)):
        swapped = (*shape[:-2], shape[-1], shape[-2]) if turned else shape
        x = _random(*swapped, salt=salt)
        sides.append(np.swapaxes(x, -1, -2) if turned else x)
    a, b = sides
    wanted = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    assert_close(onednn.batch_matmul(a, b), wanted, rtol=1e-5)
    out = np.empty(wanted.shape, np.float32)
    assert onednn.batch_matmul(a, b, out) is out
    assert_close(out, wanted, rtol=1e-5)


def test_batches_that_it_does_not_take(onednn: Any) -> None:
    a, b = _random(4, 8, 16), _random(4, 16, 8)
    assert onednn.batch_matmul(a.astype(np.float64), b) is None
    assert onednn.batch_matmul(a[:, ::2, ::2], b[:, ::2]) is None, "no axis is contiguous"
    assert onednn.batch_matmul(np.broadcast_to(a[:1], a.shape), b) is None, "a stride of 0"
    assert onednn.batch_matmul(a[:3], b[:2]) is None, "batches that do not broadcast"
    assert onednn.batch_matmul(a[:0], b[:0]) is None
    assert onednn.batch_matmul(a, b, np.empty((4, 8, 8), np.float32).swapaxes(1, 2)) is None


def test_a_batch_into_strided_memory(onednn: Any) -> None:
    """Heads side by side: rows of one batch lie between those of another."""
    a, b = _random(4, 8, 16), _random(4, 16, 8)
    out = np.zeros((8, 4, 8), np.float32).swapaxes(0, 1)
    assert onednn.batch_matmul(a, b, out) is out
    assert_close(out, a @ b, rtol=1e-5)


def test_scores(onednn: Any) -> None:
    """Numbers and an array over all heads are taken with the product.

    An array that it has no code for is not.
    """
    q, k = _random(1, 4, 32, 16), _random(1, 4, 16, 32, salt=1)
    mask = _random(1, 1, 32, 32, salt=2)
    steps = [("*", np.float32(0.25)), ("*", mask), ("-", mask), ("+", np.float32(1))]
    want = (q @ k) * np.float32(0.25) * mask - mask + np.float32(1)
    assert_close(onednn.scores(q, k, steps), want, rtol=1e-4)
    assert onednn.scores(q, k, [("+", mask.astype(np.float64))]) is None
    assert onednn.scores(q, k, [("/", mask)]) is None


@pytest.mark.parametrize("op", ["BatchMatMul", "BatchMatMulV2"])
def test_large_batch_matmul_ops_use_it(
    onednn: Any, no_library: Any, monkeypatch: pytest.MonkeyPatch, op: str
) -> None:
    taken = _counted(onednn, "batch_matmul", monkeypatch)
    a, b = _random(8, 64, 96, salt=1), _random(8, 96, 64, salt=2)
    kernel = _kernel(op, adj_x=False, adj_y=False)
    assert_close(kernel(a, b), no_library(kernel, a, b), rtol=1e-5)
    turned = _kernel(op, adj_x=True, adj_y=True)
    left, right = np.swapaxes(a, -1, -2).copy(), np.swapaxes(b, -1, -2).copy()
    assert_close(turned(left, right), no_library(kernel, a, b), rtol=1e-5)
    assert taken == [True, True]


def test_a_shared_right_side_is_one_product(onednn: Any) -> None:
    a, b = _random(8, 64, 96, salt=1), _random(96, 64, salt=2)
    wanted = np.matmul(a, b)
    for right in (b, b[None], b[None, None][0]):
        assert_close(gemm.matmul(a, right), wanted, rtol=1e-5)
    out = np.empty(wanted.shape, np.float32)
    assert gemm.matmul(a, b, out) is out
    assert_close(out, wanted, rtol=1e-5)
    strided = np.empty((8, 64, 128), np.float32)[..., ::2]
    assert_close(gemm.matmul(a, b, strided), wanted, rtol=1e-5)
    with pytest.raises(ValueError):
        gemm.matmul(_random(8, 64, 96), _random(7, 96, 64))


def _activated(name: str | None, x: Any) -> Any:
    from scipy.special import erf

    functions: dict[str | None, Callable[[Any], Any]] = {
        None: lambda v: v,
        "relu": lambda v: np.maximum(v, 0),
        "tanh": np.tanh,
        "elu": lambda v: np.where(v > 0, v, np.expm1(v)),
        "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
        "swish": lambda v: v / (1 + np.exp(-v)),
        "gelu": lambda v: v / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))),
        "gelu_erf": lambda v: v / 2 * (1 + erf(v / math.sqrt(2))),
    }
    return functions[name](x)


@pytest.mark.parametrize(
    "activation", [None, "relu", "tanh", "elu", "sigmoid", "swish", "gelu", "gelu_erf"]
)
@pytest.mark.parametrize("shape", [(1, 30, 70), (20, 33, 17), (128, 200, 96)])
def test_packed_weights(onednn: Any, shape: tuple[int, int, int], activation: str | None) -> None:
    m, k, n = shape
    a, w, bias = _random(m, k, salt=1), _random(k, n, salt=2, scale=0.2), _random(n, salt=3)
    packed = onednn.pack(w, m, activation=activation)
    wanted = _activated(activation, a.astype(np.float64) @ w + bias).astype(np.float32)
    assert_close(onednn.product(a, packed, bias, activation), wanted, rtol=1e-5)
    more = np.concatenate([a, a, a[:1]])  # another number of rows than it was packed for
    again = onednn.product(more, packed, bias, activation)
    if again is not None:
        assert_close(again, np.concatenate([wanted, wanted, wanted[:1]]), rtol=1e-5)
    bare = onednn.product(a, packed, None, activation)
    assert_close(
        bare, _activated(activation, a.astype(np.float64) @ w).astype(np.float32), rtol=1e-5
    )
    strided = np.asfortranarray(a)
    assert_close(onednn.product(strided, packed, bias, activation), wanted, rtol=1e-5)


@pytest.mark.parametrize("kind", ["bfloat16", "int8", "int7"])
@pytest.mark.parametrize("shape", [(1, 64, 512), (3, 100, 33), (64, 128, 96)])
def test_narrow_weights(onednn: Any, shape: tuple[int, int, int], kind: str) -> None:
    """Within the bound, or refused where this CPU's instructions would not keep to it."""
    m, k, n = shape
    a, w, bias = _random(m, k, salt=1), _random(k, n, salt=2), _random(n, salt=3)
    w *= np.linspace(0.01, 5, n, dtype=np.float32)  # columns of very different sizes
    packed = onednn.pack(w, m, kind)
    way = onednn.weights_form("int8" if kind == "int7" else kind)
    if packed is None:
        assert way.kind != kind or (way.way.startswith("bfloat16 up to") and m > 4)
        return
    wanted = a.astype(np.float64) @ w + bias
    error = np.abs(onednn.product(a, packed, bias) - wanted)
    assert (error <= error_bound(a, w, kind) + np.abs(bias) * 1e-6).all()
    if n % 64 == 0:  # no padding
        assert packed.nbytes < w.nbytes * (0.6 if kind == "bfloat16" else 0.35)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_int8_does_not_take_what_is_not_finite(onednn: Any, odd: float) -> None:
    """One scale for all rows: such a value would spoil the others."""
    a, packed = _random(4, 32), onednn.pack(_random(32, 64, salt=2), 4, "int7")
    a[1, 1] = odd
    assert onednn.product(a, packed) is None


def test_weights_and_rows_that_do_not_fit(onednn: Any) -> None:
    packed = onednn.pack(_random(32, 64), 4)
    assert onednn.product(_random(4, 31), packed) is None
    assert onednn.product(_random(4, 32).astype(np.float64), packed) is None
    assert onednn.product(_random(0, 32), packed) is None
    assert onednn.product(_random(4, 32), packed, _random(63)) is None
    assert onednn.pack(_random(4, 4, 4), 4) is None
    assert onednn.pack(_random(4, 4).astype(np.float64), 4) is None


def test_packed_weights_are_freed_with_their_owner(onednn: Any) -> None:
    packed = onednn.pack(_random(64, 64), 8)
    onednn.product(_random(8, 64), packed)
    alive = weakref.ref(packed.data)
    gc.disable()
    try:
        del packed
        assert alive() is None
    finally:
        gc.enable()


# softmax ----------------------------------------------------------------------------------------

SOFTMAX_SHAPES = [(640, 1000), (128, 129), (2, 3, 40, 70), (16384, 1), (1, 20000), (20000,)]


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("shape", SOFTMAX_SHAPES, ids=str)
@pytest.mark.parametrize("scale", [0.1, 10.0, 80.0])
def test_softmax(
    onednn: Any,
    no_library: Any,
    monkeypatch: pytest.MonkeyPatch,
    op: str,
    shape: tuple[int, ...],
    scale: float,
) -> None:
    taken = _counted(onednn, "softmax" if op == "Softmax" else "log_softmax", monkeypatch)
    x = _random(*shape, scale=scale)
    assert_close(_kernel(op)(x), no_library(_kernel(op), x), rtol=4e-6)
    assert taken == [True]


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax_of_odd_values(onednn: Any, no_library: Any, op: str) -> None:
    x = _random(200, 100, scale=5)
    x[3, 7] = x[4, 0] = x[5, 99] = x[6] = np.nan
    x[10, 7] = x[11, 0] = x[12] = np.inf
    x[20, 7] = x[21, 0] = x[22, 1:] = x[23] = -np.inf
    x[30, 7], x[31, 0], x[32, :50], x[33, 50] = -1e9, -1e9, -1e9, 1e38
    assert_close(_kernel(op)(x), no_library(_kernel(op), x), rtol=4e-6)


@pytest.mark.parametrize("shape", [(300, 100), (5, 64, 64)], ids=str)
def test_gradients_of_softmax(onednn: Any, shape: tuple[int, ...]) -> None:
    dy = _random(*shape, salt=1)
    y = onednn.softmax(_random(*shape, scale=3))
    wide, g = y.astype(np.float64), dy.astype(np.float64)
    wanted = (g - (g * wide).sum(-1, keepdims=True)) * wide
    assert_close(onednn.softmax_grad(y, dy), wanted.astype(np.float32), rtol=1e-5)
    y = onednn.log_softmax(_random(*shape, scale=3))
    wanted = g - g.sum(-1, keepdims=True) * np.exp(y.astype(np.float64))
    assert_close(onednn.log_softmax_grad(y, dy), wanted.astype(np.float32), rtol=1e-5)


@pytest.mark.parametrize("labels", [np.int32, np.int64])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_sparse_cross_entropy(onednn: Any, no_library: Any, labels: Any, scale: float) -> None:
    """Of improbable labels too, whose probability is 0 in float32."""
    x = _random(70, 400, scale=scale)
    at = Rng(5).randint(0, 400, 70).astype(labels)
    kernel = _kernel("SparseSoftmaxCrossEntropyWithLogits")
    with np.errstate(all="ignore"):
        for found, wanted in zip(kernel(x, at), no_library(kernel, x, at)):
            assert_close(found, wanted, rtol=4e-6)
        x[3, 5] = np.nan
        for found, wanted in zip(kernel(x, at), no_library(kernel, x, at)):
            np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    at[0] = 400
    with pytest.raises(tf.errors.InvalidArgumentError, match="label value of 400"):
        kernel(x, at)


def test_dense_cross_entropy(onednn: Any, no_library: Any) -> None:
    x = _random(70, 400, scale=20)
    labels = np.random.RandomState(1).dirichlet(np.ones(400), 70).astype(np.float32)
    kernel = _kernel("SoftmaxCrossEntropyWithLogits")
    for found, wanted in zip(kernel(x, labels), no_library(kernel, x, labels)):
        assert_close(found, wanted, rtol=4e-6)
    # labels that broadcast are NumPy's
    for found, wanted in zip(kernel(x, labels[:1]), no_library(kernel, x, labels[:1])):
        np.testing.assert_array_equal(found, wanted)


# normalisation ----------------------------------------------------------------------------------

NORM_SHAPES = [(8, 16, 16, 32), (64, 7, 7, 20), (2, 30, 30, 19), (512, 1, 1, 64), (1, 200, 200, 1)]


@pytest.mark.parametrize("op", ["FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", NORM_SHAPES, ids=str)
def test_batch_norm(
    onednn: Any,
    no_library: Any,
    monkeypatch: pytest.MonkeyPatch,
    op: str,
    training: bool,
    shape: tuple[int, ...],
) -> None:
    taken = _counted(onednn, "batch_norm" if training else "batch_norm_inference", monkeypatch)
    taken_back = _counted(onednn, "batch_norm_grad", monkeypatch)
    c = shape[-1]
    x, scale, offset = _random(*shape) + 1, _random(c, salt=1), _random(c, salt=2)
    mean, variance = _random(c, salt=3), _random(c, salt=4) ** 2 + np.float32(0.1)
    attrs = {"epsilon": 1e-3, "data_format": "NHWC", "is_training": training}
    kernel = _kernel(op, **attrs)
    found = kernel(x, scale, offset, mean, variance)
    wanted = no_library(kernel, x, scale, offset, mean, variance)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        assert_close(a, b, rtol=2e-5)
    arrays = [a for a in found if np.ndim(a)]
    assert not any(
        np.shares_memory(a, b) for a in arrays for b in (*arrays, mean, variance) if a is not b
    )
    back = _kernel(
        {"FusedBatchNorm": "FusedBatchNormGrad"}.get(op, op.replace("Norm", "NormGrad")), **attrs
    )
    statistics = wanted[3:5] if training else (mean, variance)
    rest = [np.float32(0)] if op.endswith("V3") else []
    g = _random(*shape, salt=5)
    inputs = (g, x, scale, *statistics, *rest)
    scale_of_sums = math.sqrt(x.size / c)
    for a, b in zip(back(*inputs), no_library(back, *inputs)):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-6 * scale_of_sums)
    assert taken == [True]
    assert taken_back == [True]


def test_batch_norm_that_stays_with_numpy(
    onednn: Any, no_library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Channels first, half precision, small arrays, strided arrays, and statistics of a wrong
    size.
    """
    taken = _counted(onednn, "batch_norm", monkeypatch)
    vectors = [_random(32, salt=i) ** 2 for i in range(4)]
    attrs = {"epsilon": 1e-3, "is_training": True}
    last = _kernel("FusedBatchNormV2", data_format="NHWC", **attrs)
    first = _kernel("FusedBatchNormV2", data_format="NCHW", **attrs)
    x = _random(8, 16, 16, 32)
    for kernel, value in [
        (first, x.transpose(0, 3, 1, 2)),
        (last, x.astype(np.float16)),
        (last, x[:1]),
        (last, x[:, ::2]),
    ]:
        for a, b in zip(kernel(value, *vectors), no_library(kernel, value, *vectors)):
            np.testing.assert_array_equal(a, b)
    assert not any(taken)
    wrong = _kernel("FusedBatchNormV2", data_format="NHWC", epsilon=1e-3, is_training=False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="as many elements"):
        wrong(x, *vectors[:2], vectors[2][:5], vectors[3])


@pytest.mark.parametrize("shape", [(512, 768), (20, 200), (3, 7, 33), (5, 1)], ids=str)
def test_layer_norm(onednn: Any, shape: tuple[int, ...]) -> None:
    n = shape[-1]
    x, scale, offset = _random(*shape) + 2, _random(n, salt=1), _random(n, salt=2)
    wide = x.astype(np.float64)
    mean, variance = wide.mean(-1), wide.var(-1)
    s = 1 / np.sqrt(variance + 1e-5)[..., None]
    normal = (wide - mean[..., None]) * s
    y, own_mean, own_variance = onednn.layer_norm(x, scale, offset, 1e-5)
    assert_close(y, (normal * scale + offset).astype(np.float32), rtol=2e-5)
    assert_close(own_mean, mean.astype(np.float32), rtol=1e-5)
    assert_close(own_variance, variance.astype(np.float32), rtol=1e-5)
    dy = _random(*shape, salt=3)
    g = dy.astype(np.float64) * scale
    dx = (g - g.mean(-1, keepdims=True) - normal * (g * normal).mean(-1, keepdims=True)) * s
    axes = tuple(range(len(shape) - 1))
    wanted = (dx, (dy * normal).sum(axes), dy.astype(np.float64).sum(axes))
    found = onednn.layer_norm_grad(dy, x, scale, own_mean, own_variance, 1e-5)
    for a, b in zip(found, wanted):
        assert_close(a, b.astype(np.float32), rtol=1e-4)
    assert onednn.layer_norm(x, scale[:-1], offset, 1e-5) is None
    assert onednn.layer_norm(x.astype(np.float64), scale, offset, 1e-5) is None


# element-wise -----------------------------------------------------------------------------------

ODD = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 88.0, 89.0, -88.0, -104.0, 3e38, -3e38]


@pytest.mark.parametrize("op", ["Tanh", "Elu", "Sqrt", "Sigmoid"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_functions(onednn: Any, no_library: Any, op: str, scale: float) -> None:
    x = _random(5, 14_000, scale=scale)
    x[0, : len(ODD)] = ODD
    with np.errstate(all="ignore"):
        wanted = no_library(_kernel(op), x)
        assert_close(onednn.unary(op, x), wanted)
        again = x.copy()
        assert onednn.unary(op, again, again) is again
        assert_close(again, wanted)


@pytest.mark.parametrize("op", ["TanhGrad", "SigmoidGrad", "EluGrad", "ReluGrad"])
def test_gradients_of_functions(
    onednn: Any, no_library: Any, monkeypatch: pytest.MonkeyPatch, op: str
) -> None:
    taken = _counted(onednn, "relu_grad" if op == "ReluGrad" else "gradient", monkeypatch)
    y, g = _random(250, 300), _random(250, 300, salt=1)
    inputs = (y, g) if op in ("TanhGrad", "SigmoidGrad") else (g, y)
    assert_close(_kernel(op)(*inputs), no_library(_kernel(op), *inputs))
    assert taken == [True]


def test_arrays_that_functions_do_not_take(onednn: Any) -> None:
    x = _random(400, 200)
    assert onednn.unary("Tanh", x[:10]) is None, "small"
    assert onednn.unary("Tanh", x[:, ::2]) is None, "strided"
    assert onednn.unary("Tanh", x.astype(np.float64)) is None
    assert onednn.unary("Exp", x) is None, "oneDNN's exp loses NaN"
    assert onednn.unary("Tanh", x, np.empty((200, 400), np.float32)) is None
    assert onednn.gradient("TanhGrad", x, x[:1]) is None


@pytest.mark.parametrize("op", ["Tanh", "Sigmoid"])
def test_a_function_in_a_session(onednn: Any, monkeypatch: pytest.MonkeyPatch, op: str) -> None:
    taken = _counted(onednn, "unary", monkeypatch)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [250, 300])
        y = tf.tanh(x) if op == "Tanh" else tf.sigmoid(x)
        value = _random(250, 300, scale=4)
        kept = value.copy()
        assert_close(session.run(y, {x: value}), _kernel(op)(value))
        np.testing.assert_array_equal(value, kept)
    assert taken == [True]


# threads, repetition, limits --------------------------------------------------------------------


def _work(onednn: Any) -> list[Any]:
    x = _random(96, 512, scale=3)
    vectors = [_random(512, salt=i) ** 2 for i in range(4)]
    results = [
        onednn.softmax(x),
        onednn.unary("Sigmoid", x),
        *onednn.batch_norm(x.reshape(3, 32, 512), *vectors[:2], 1e-3),
        *onednn.batch_norm_grad(x, x, *vectors[:3], 1e-3, True),
        *onednn.layer_norm(x, *vectors[:2], 1e-3),
        onednn.batch_matmul(x.reshape(12, 8, 512), x.reshape(12, 512, 8)),
    ]
    packed = onednn.pack(x.T.copy(), 96)
    return [*results, onednn.product(x, packed)]


def test_results_are_the_same_bits_each_time(onednn: Any) -> None:
    first = _work(onednn)
    for _ in range(5):
        for a, b in zip(_work(onednn), first):
            np.testing.assert_array_equal(a, b)


def test_many_threads_at_once(onednn: Any) -> None:
    wanted = _work(onednn)
    failures: list[str] = []

    def run() -> None:
        for _ in range(5):
            for i, (a, b) in enumerate(zip(_work(onednn), wanted)):
                if not np.array_equal(a, b):
                    failures.append(f"result {i}")

    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_caches_are_bounded(onednn: Any) -> None:
    from headrace.kernels.onednn.softmax_primitives import MAX_KEPT, Softmaxes

    softmaxes = Softmaxes(onednn.api)
    for rows in range(1, MAX_KEPT + 20):
        softmaxes.softmax(np.ones((rows, 3), np.float32))
    assert len(softmaxes.forward) == MAX_KEPT
    assert (0x30000, 1, 3) not in softmaxes.forward.local.kept, "the oldest is gone"


def test_what_was_used_last_is_kept(onednn: Any) -> None:
    from headrace.kernels.onednn.primitive import Cache

    cache: Cache[int, int] = Cache(3)
    made = []

    def make(key: int) -> int:
        made.append(key)
        return key

    for key in (1, 2, 3, 1, 4, 1, 2):
        assert cache.get(key, make) == key
    assert made == [1, 2, 3, 4, 2]
    assert len(cache) == 3


def test_scratch_memory_is_shared_and_bounded(onednn: Any) -> None:
    from headrace.kernels.onednn import primitive

    small = primitive._scratch.get(1000)
    assert primitive._scratch.get(500) is small
    assert small.ctypes.data % 64 == 0
    large = primitive._scratch.get(primitive.SCRATCH_KEPT + 1)
    assert large.size == primitive.SCRATCH_KEPT + 1
    assert primitive._scratch.get(1000) is small


def test_blocks_do_not_call_the_library() -> None:
    """Each block has a thread already."""
    seen = []

    def look(x: Any) -> None:
        seen.append(accel.library())

    blocks.over_blocks(look, [np.zeros(300_000, np.float32)])
    assert len(seen) > 1
    assert set(seen) == {None}
    assert not accel.here.in_block


@pytest.mark.once
def test_without_it_numpy_serves(tmp_path: Any) -> None:
    code = """
import numpy as np, headrace as tf
from headrace.kernels import accel
x = tf.constant(np.linspace(-3, 3, 80_000, dtype=np.float32).reshape(200, 400))
y = [tf.nn.softmax(x), tf.tanh(x), tf.matmul(x[None], x[None], transpose_b=True)]
with tf.Session() as session:
    values = session.run(y)
assert accel.library() is None and accel.status() == "switched off by HEADRACE_ONEDNN"
assert np.allclose(values[0].sum(-1), 1) and values[2].shape == (1, 200, 200)
print("good")
"""
    env = {**os.environ, "HEADRACE_ONEDNN": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.strip() == "good", done.stderr


# sums -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(100, 4000), (2, 60, 5000), (300_000,)], ids=str)
def test_sums_of_long_rows(
    onednn: Any, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]
) -> None:
    taken = _counted(onednn, "row_sums", monkeypatch)
    x = _random(*shape) + 1
    wide = x.astype(np.float64)
    axes = np.array([-1], np.int32)
    for keep in (False, True):
        for op in ("Sum", "Mean"):
            function = np.sum if op == "Sum" else np.mean
            wanted = function(wide, axis=-1, keepdims=keep).astype(np.float32)
            assert_close(_kernel(op, keep_dims=keep)(x, axes), wanted, rtol=1e-5)
    assert taken == ([] if len(shape) == 1 else [True] * 4)
    assert onednn.row_sums(x[..., :1000]) is None
    assert onednn.row_sums(x[..., ::2]) is None
    assert onednn.row_sums(wide) is None


@pytest.mark.parametrize("rows", [1, 3, 8])
def test_few_rows_with_many_weights(onednn: Any, rows: int) -> None:
    a, b, bias = _random(rows, 768), _random(768, 700, salt=1, scale=0.1), _random(700, salt=2)
    wanted = a.astype(np.float64) @ b
    assert_close(gemm.matmul(a, b), wanted.astype(np.float32), rtol=1e-5)
    assert_close(gemm.matmul_bias(a, b, bias), (wanted + bias).astype(np.float32), rtol=1e-5)
    assert_close(gemm.matmul(a, b.T.copy().T), wanted.astype(np.float32), rtol=1e-5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_child_can_compute(onednn: Any) -> None:
    """OpenMP's threads do not survive a fork.

    The child uses NumPy instead of waiting for them forever.
    """
    code = """
import os, numpy as np, headrace as tf
from headrace.kernels import accel
x = tf.placeholder(tf.float32, [640, 1000])
y = [tf.nn.softmax(x), tf.matmul(x, x, transpose_b=True)]
value = np.linspace(0, 1, 640_000, dtype=np.float32).reshape(640, 1000)
wanted = tf.Session().run(y, {x: value})
child = os.fork()
values = tf.Session().run(y, {x: value})
same = all(np.allclose(a, b, rtol=1e-5) for a, b in zip(values, wanted))
if child == 0:
    os._exit(0 if same and "fork" in accel.status() else 1)
print(os.waitpid(child, 0)[1], same, "fork" in accel.status())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "0 True False", done.stderr
