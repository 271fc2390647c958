"""Layer norm, gelu, softmax and attention, recognised from the spellings of public programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.kernels.numpy import attention_kernels as arrays
from headrace.kernels.numpy import blocks
from headrace.program.nodes import walk
from tests.rewrite.rewriting import check, ops_of, program_of, same

RNG = np.random.RandomState(0)
X = RNG.randn(2, 5, 8).astype(np.float32)


def variable(*shape: int) -> Any:
    return tf.Variable(RNG.randn(*shape).astype(np.float32) * 0.5)


# gelu -------------------------------------------------------------------------------------------

ROOT = np.sqrt(2 / np.pi)
GELU: dict[str, Callable[[Any], Any]] = {
    "half first": lambda x: 0.5 * x * (1 + tf.tanh(ROOT * (x + 0.044715 * tf.pow(x, 3)))),
    "cdf": lambda x: x * (0.5 * (1.0 + tf.tanh(ROOT * (x + 0.044715 * tf.pow(x, 3))))),
    "products": lambda x: x * 0.5 * (1 + tf.tanh(x * 0.7978845608 * (1 + 0.044715 * x * x))),
    "x*x*x": lambda x: 0.5 * x * (tf.tanh((x * x * x * 0.044715 + x) * ROOT) + 1.0),
    "square": lambda x: 0.5 * x * (1 + tf.tanh(ROOT * (x + 0.044715 * x * tf.square(x)))),
    "erf": lambda x: x * 0.5 * (1.0 + tf.erf(x / tf.sqrt(2.0))),
    "erf times": lambda x: 0.5 * (1.0 + tf.erf(x * 0.7071067811865476)) * x,
}


@pytest.mark.parametrize("spelling", GELU)
def test_gelu(spelling: str) -> None:
    x = tf.placeholder(tf.float32, [None, 5, 8])
    check("gelu", GELU[spelling](tf.identity(x)), {x: X * 3}, ["_Gelu"], 1e-6)


@pytest.mark.parametrize(
    "other",
    [
        lambda x: 0.5 * x * (1 + tf.tanh(ROOT * (x + 0.05 * tf.pow(x, 3)))),
        lambda x: 0.5 * x * (1 + tf.tanh(0.8 * (x + 0.044715 * tf.pow(x, 3)))),
        lambda x: 0.4 * x * (1 + tf.tanh(ROOT * (x + 0.044715 * tf.pow(x, 3)))),
        lambda x: 0.5 * x * (2 + tf.tanh(ROOT * (x + 0.044715 * tf.pow(x, 3)))),
        lambda x: 0.5 * (x + 1) * (1 + tf.tanh(ROOT * (x + 0.044715 * tf.pow(x, 3)))),
        lambda x: x * 0.5 * (1.0 + tf.erf(x / 2.0)),
    ],
)
def test_what_is_not_gelu(other: Callable[[Any], Any]) -> None:
    x = tf.placeholder(tf.float32, [None, 5, 8])
    assert "_Gelu" not in ops_of(other(x), [x])
    same(other(x), {x: X}, 1e-6)


def test_gelu_that_is_needed_inside_stays() -> None:
    x = tf.placeholder(tf.float32, [None, 5, 8])
    sigma = 1.0 + tf.erf(x / np.sqrt(2.0).astype(np.float32))
    half = 0.5 * x
    fetches = [half * sigma, sigma]
    program = program_of(fetches, [x])
    assert "gelu" not in program.notes
    assert any(m.rule == "gelu" and "used elsewhere" in m.why_not for m in program.near_misses)
    same(fetches, {x: X}, 1e-5)


# layer norm -------------------------------------------------------------------------------------


def _gpt2(x: Any, g: Any, b: Any) -> Any:
    u = tf.reduce_mean(x, axis=-1, keepdims=True)
    s = tf.reduce_mean(tf.square(x - u), axis=-1, keepdims=True)
    return (x - u) * tf.rsqrt(s + 1e-5) * g + b


def _tensor2tensor(x: Any, g: Any, b: Any) -> Any:
    mean = tf.reduce_mean(x, axis=[-1], keepdims=True)
    variance = tf.reduce_mean(tf.squared_difference(x, mean), axis=[-1], keepdims=True)
    return (x - mean) * tf.rsqrt(variance + 1e-6) * g + b


def _divided(x: Any, g: Any, b: Any) -> Any:
    mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
    return g * ((x - mean) / ((variance + 1e-8) ** 0.5)) + b


def _contrib(x: Any, g: Any, b: Any) -> Any:
    mean, variance = tf.nn.moments(x, [2], keep_dims=True)
    return tf.nn.batch_normalization(x, mean, variance, offset=b, scale=g, variance_epsilon=1e-12)


NORMS = {"gpt2": _gpt2, "tensor2tensor": _tensor2tensor, "divided": _divided, "contrib": _contrib}


@pytest.mark.parametrize("spelling", NORMS)
def test_layer_norm(spelling: str) -> None:
    x = tf.placeholder(tf.float32, [None, 5, 8])
    y = NORMS[spelling](x, variable(8), variable(8))
    check("layer norm", y, {x: X}, ["_LayerNorm"], 1e-5)


def test_other_normalisations_stay() -> None:
    x = tf.placeholder(tf.float32, [None, 5, 8])
    g, b = variable(8), variable(8)
    u = tf.reduce_mean(x, axis=1, keepdims=True)
    s = tf.reduce_mean(tf.square(x - u), axis=1, keepdims=True)
    for y in (
        (x - u) * tf.rsqrt(s + 1e-5) * g + b,  # another axis
        _gpt2(x, variable(5, 8), b),  # a scale for each row
        (x - tf.reduce_mean(x, -1, keepdims=True)) * tf.rsqrt(s + 1e-5) * g + b,
    ):
        assert "_LayerNorm" not in ops_of(y, [x])
        same(y, {x: X}, 1e-5)


def test_layer_norm_that_is_needed_inside_stays() -> None:
    x = tf.placeholder(tf.float32, [None, 5, 8])
    u = tf.reduce_mean(x, axis=-1, keepdims=True)
    s = tf.reduce_mean(tf.square(x - u), axis=-1, keepdims=True)
    y = (x - u) * tf.rsqrt(s + 1e-5) * variable(8) + variable(8)
    program = program_of([y, s], [x])
    assert any(
        m.rule == "layer norm" and "used elsewhere" in m.why_not for m in program.near_misses
    )
    same([y, s], {x: X}, 1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3, 7), (1, 1), (70, 1000), (2, 300, 100)])
def test_layer_norm_function(dtype: Any, shape: tuple[int, ...]) -> None:
    x = RNG.randn(*shape).astype(dtype)
    g, b = RNG.randn(shape[-1]).astype(dtype), RNG.randn(shape[-1]).astype(dtype)
    wide = x.astype(np.float64)
    away = wide - wide.mean(-1, keepdims=True)
    want = away / np.sqrt((away**2).mean(-1, keepdims=True) + 1e-5) * g + b
    got = arrays.layer_norm(x, g, b, 1e-5)
    assert got.dtype == dtype and got.shape == shape
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 if dtype == np.float32 else 1e-10)


# softmax and attention --------------------------------------------------------------------------


def spelled_out(x: Any) -> Any:
    x = x - tf.reduce_max(x, axis=-1, keepdims=True)
    e = tf.exp(x)
    return e / tf.reduce_sum(e, axis=-1, keepdims=True)


def test_softmax_spelled_out() -> None:
    x = tf.placeholder(tf.float32, [None, 5, 8])
    check("softmax", spelled_out(tf.exp(x)), {x: X}, ["Exp", "Softmax"], 1e-6)
    plain = tf.exp(x) / tf.reduce_sum(tf.exp(x), -1, keepdims=True)
    program = program_of(plain, [x])
    assert "softmax" not in program.notes
    assert any("overflow" in m.why_not for m in program.near_misses)
    assert np.isnan(tf.Session().run(plain, {x: X * 0 + 200})).all()


def _heads(x: Any) -> Any:
    return tf.transpose(tf.reshape(x, [tf.shape(x)[0], -1, 2, 4]), [0, 2, 1, 3])


def _bert(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = tf.multiply(tf.matmul(q, k, transpose_b=True), 1.0 / np.sqrt(4.0))
    adder = (1.0 - tf.cast(mask, tf.float32)) * -10000.0
    return tf.matmul(tf.nn.softmax(scores + adder), v)


def _gpt2_attention(q: Any, k: Any, v: Any, mask: Any) -> Any:
    w = tf.matmul(q, k, transpose_b=True) * tf.rsqrt(tf.cast(4, tf.float32))
    w = w * mask - tf.cast(1e10, w.dtype) * (1 - mask)
    return tf.matmul(spelled_out(w), v)


def _t2t_attention(q: Any, k: Any, v: Any, mask: Any) -> Any:
    logits = tf.matmul(q * 4**-0.5, k, transpose_b=True)
    logits += (1 - mask) * -1e9
    return tf.matmul(tf.nn.softmax(logits), v)


def _transposed(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = tf.matmul(q, tf.transpose(k, [0, 1, 3, 2])) / 2.0 + mask
    return tf.matmul(tf.nn.softmax(scores), v)


ATTENTION = {
    "bert": _bert,
    "gpt2": _gpt2_attention,
    "tensor2tensor": _t2t_attention,
    "transposed": _transposed,
}


@pytest.mark.parametrize("length", [5, 100])
@pytest.mark.parametrize("spelling", ATTENTION)
def test_attention(spelling: str, length: int) -> None:
    x = tf.placeholder(tf.float32, [None, None, 8])
    mask = tf.placeholder(tf.float32, [None, 1, None, None])
    y = ATTENTION[spelling](_heads(x), _heads(x * 0.5), _heads(x * 2.0), mask)
    feed = {
        x: RNG.randn(3, length, 8).astype(np.float32),
        mask: (RNG.rand(3, 1, length, length) > 0.3).astype(np.float32),
    }
    program = program_of(y, list(feed))
    assert program.notes["attention"] == 1, (program.notes, program.near_misses)
    left = [n.opdef.name for n in walk(program.body)]
    assert "_Attention" in left and "Softmax" not in left and "BatchMatMulV2" not in left
    assert "BatchMatMulV2" in ops_of(y, list(feed), without="attention")
    assert "_Attention" not in ops_of(y, list(feed), exact=True)
    same(y, feed, 1e-5)


def test_attention_whose_weights_are_used_stays() -> None:
    q = tf.placeholder(tf.float32, [None, 2, None, 4])
    weights = tf.nn.softmax(tf.matmul(q, q, transpose_b=True))
    fetches = [tf.matmul(weights, q), weights]
    program = program_of(fetches, [q])
    assert "attention" not in program.notes
    assert any(m.rule == "attention" and "softmax" in m.why_not for m in program.near_misses)
    same(fetches, {q: RNG.randn(2, 2, 3, 4)}, 1e-5)


def test_attention_with_keys_that_are_shared_by_all_heads() -> None:
    q = tf.placeholder(tf.float32, [3, 2, 50, 4])
    k = tf.placeholder(tf.float32, [3, 1, 60, 4])
    y = tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), k)
    same(y, {q: RNG.randn(3, 2, 50, 4), k: RNG.randn(3, 1, 60, 4)}, 1e-5)


def test_attention_names_the_product_when_shapes_do_not_fit() -> None:
    q = tf.placeholder(tf.float32, [None, None, None])
    k = tf.placeholder(tf.float32, [None, None, None])
    scores = tf.matmul(q, k, transpose_b=True, name="scores")
    y = tf.matmul(tf.nn.softmax(scores), k)
    assert "_Attention" in ops_of(y, [q, k])
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="size-incompatible") as e,
    ):
        session.run(y, {q: np.ones((1, 2, 3)), k: np.ones((1, 2, 4))})
    assert "scores" in str(e.value)


@pytest.mark.parametrize(
    "shape", [(1, 1, 1, 4), (2, 3, 9, 4), (1, 3, 300, 8), (8, 12, 110, 4), (1, 2, 0, 4)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_attention_function(shape: tuple[int, ...], dtype: Any) -> None:
    q, k, v = (RNG.randn(*shape).astype(dtype) for _ in range(3))
    mask = np.where(RNG.rand(shape[0], 1, 1, shape[2]) > 0.2, 0, -1e4).astype(dtype)
    got = arrays.attention(q, k, v, [("*", dtype(0.5)), ("-", -mask)])
    scores = q.astype(np.float64) @ k.swapaxes(-1, -2) * 0.5 + mask
    e = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    want = e / e.sum(-1, keepdims=True) @ v
    assert got.shape == shape and got.dtype == dtype
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 if dtype is np.float32 else 1e-12)


def test_attention_does_not_depend_on_threads() -> None:
    q, k = RNG.randn(2, 3, 200, 16), RNG.randn(2, 3, 150, 16)
    mask = RNG.randn(1, 1, 1, 150)
    before = blocks.thread_count()
    results = []
    try:
        for n in (1, 2, 5):
            blocks.set_threads(n)
            results.append(arrays.attention(q, k, k, [("*", 0.25), ("+", mask)]))
    finally:
        blocks.set_threads(before)
    scores = q @ k.swapaxes(-1, -2) * 0.25 + mask
    e = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(results[0], e / e.sum(-1, keepdims=True) @ k, rtol=1e-12, atol=1e-12)
    assert all(np.array_equal(results[0], r) for r in results[1:])
