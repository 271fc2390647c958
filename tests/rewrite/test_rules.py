"""Each rewrite rule: the structure it makes and the numbers it keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.kernels.numpy import gemm
from headrace.program.nodes import walk
from headrace.program.snapshot import snapshot
from headrace.rewrite.engine import rewrite
from headrace.rewrite.rule_table import RULES


def rewritten(
    fetch: Any, feeds: list[Any], without: str | None = None
) -> tuple[list[str], dict[str, int]]:
    """The op types that are left, and how often each rule fired."""
    rules = [r for r in RULES if r.name != without]
    program = rewrite(snapshot([fetch], feeds), rules)
    return [n.opdef.name for n in walk(program.body)], program.notes


def same_on_both(fetch: Any, feed: dict[Any, Any], tolerance: float = 0.0) -> None:
    with tf.Session() as fast, tf.Session(executor="reference") as slow:
        for session in (fast, slow):
            session.run(tf.global_variables_initializer())
        a, b = fast.run(fetch, feed), slow.run(fetch, feed)
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_pass_through() -> None:
    x = tf.placeholder(tf.float32, [3])
    y = tf.square(tf.stop_gradient(tf.placeholder_with_default(x, [3])))
    ops, notes = rewritten(y, [x])
    assert ops == ["Square"] and notes["pass-through"] == 2
    assert "StopGradient" in rewritten(y, [x], without="pass-through")[0]
    same_on_both(y, {x: [1, 2, 3]})


def test_known_shape() -> None:
    x = tf.placeholder(tf.float32, [3, 4])
    size = tf.raw_ops.Size(input=tf.exp(x))
    ops, notes = rewritten(size, [x])
    assert ops == [] and notes["known shape"] == 1
    assert "Size" in rewritten(size, [x], without="known shape")[0]
    same_on_both(size, {x: np.ones((3, 4))})


def test_size_as_float() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    size = tf.cast(tf.size(x), tf.float32)
    ops, notes = rewritten(size, [x])
    assert ops == ["Size"] and notes["size as float"] == 1
    assert "Cast" in rewritten(size, [x], without="size as float")[0]
    same_on_both(size, {x: np.ones((3, 4))})


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_inverse_size(dtype: Any, rows: int) -> None:
    """Fetched it is a number; and what it is kept as between runs must not change."""
    x = tf.placeholder(dtype, [None, 4])
    inverse = 1.0 / tf.cast(tf.size(x), dtype)
    ops, notes = rewritten(inverse, [x])
    assert ops == ["_InverseSize"] and notes["inverse size"] == 1
    assert rewritten(2.0 / tf.cast(tf.size(x), dtype), [x])[0] == ["Size", "RealDiv"]
    given = {x: np.ones((rows, 4))}
    for fetch in (inverse, inverse * x, tf.square(inverse) * 2.0 + inverse):
        same_on_both(fetch, given)
    session = tf.Session()
    for _ in range(2):
        number = session.run(inverse, given)
        assert type(number) is dtype.as_numpy_dtype
        with np.errstate(divide="ignore"):
            assert number == dtype.as_numpy_dtype(1) / dtype.as_numpy_dtype(4 * rows)
        number += 1


def test_constant_folding() -> None:
    x = tf.placeholder(tf.float32, [2])
    y = x * (tf.constant([1.0, 2.0]) + tf.exp(tf.constant([0.0, 1.0])))
    ops, notes = rewritten(y, [x])
    assert ops == ["Mul"] and notes["constant folding"] == 2
    assert "Exp" in rewritten(y, [x], without="constant folding")[0]
    same_on_both(y, {x: [3, 4]})


def test_folding_does_not_blow_up_small_descriptions() -> None:
    y = tf.fill([1000, 1000], 1.0)
    assert rewritten(y, [])[0] == ["Fill"]


def test_common_subexpression() -> None:
    x = tf.placeholder(tf.float32, [2])
    y = tf.exp(x) + tf.exp(x)
    ops, notes = rewritten(y, [x])
    assert ops.count("Exp") == 1 and notes["common subexpression"] == 1
    assert rewritten(y, [x], without="common subexpression")[0].count("Exp") == 2
    same_on_both(y, {x: [3, 4]})


def test_random_ops_are_never_shared() -> None:
    y = tf.random_uniform([4]) - tf.random_uniform([4])
    assert rewritten(y, [])[0].count("RandomUniform") == 2


@pytest.mark.parametrize("sparse", [True, False])
def test_even_loss_gradient(sparse: bool) -> None:
    logits = tf.placeholder(tf.float32, [None, 3])
    if sparse:
        labels = tf.placeholder(tf.int32, [None])
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        given: Any = [0, 2]
    else:
        labels = tf.placeholder(tf.float32, [None, 3])
        losses = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
        given = [[1, 0, 0], [0, 0, 1]]
    grad = tf.gradients(tf.reduce_mean(losses), logits)[0]
    ops, notes = rewritten(grad, [logits, labels])
    if sparse:
        assert notes["even loss gradient"] == 1 and "BroadcastTo" not in ops
        assert "BroadcastTo" in rewritten(grad, [logits, labels], without="even loss gradient")[0]
    same_on_both(grad, {logits: np.arange(6.0).reshape(2, 3), labels: given}, 1e-6)


@pytest.mark.parametrize("transpose", [False, True])
def test_matmul_and_bias(transpose: bool) -> None:
    x = tf.placeholder(tf.float32, [None, 5])
    w = tf.Variable(tf.random_normal([3, 5] if transpose else [5, 3], seed=1))
    b = tf.Variable([1.0, 2.0, 3.0])
    for y in (
        tf.matmul(x, w, transpose_b=transpose) + b,
        b + tf.matmul(x, w, transpose_b=transpose),
        tf.nn.bias_add(tf.matmul(x, w, transpose_b=transpose), b),
    ):
        ops, notes = rewritten(y, [x])
        assert ops == ["_FusedMatMul"] and notes["matmul and bias"] == 1
        assert "MatMul" in rewritten(y, [x], without="matmul and bias")[0]
        same_on_both(y, {x: np.ones((4, 5))}, 1e-6)


def test_matmul_that_others_use_is_left_alone() -> None:
    x = tf.placeholder(tf.float32, [None, 5])
    product = tf.matmul(x, tf.ones([5, 3]))
    y = tf.reduce_sum(product) + tf.reduce_sum(product + [1.0, 2.0, 3.0])
    assert "_FusedMatMul" not in rewritten(y, [x])[0]
    matrix = tf.matmul(x, tf.ones([5, 3])) + tf.ones([1, 3])
    assert "_FusedMatMul" not in rewritten(matrix, [x])[0]


def test_matmul_and_bias_names_the_product_when_shapes_do_not_fit() -> None:
    x = tf.placeholder(tf.float32, [None, None], name="x")
    w = tf.placeholder(tf.float32, [None, 3], name="w")
    y = tf.add(tf.matmul(x, w, name="product"), tf.constant([1.0, 2.0, 3.0]))
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="Matrix size-incompatible") as e,
    ):
        session.run(y, {x: np.ones((2, 4)), w: np.ones((5, 3))})
    assert "product" in str(e.value)


def test_large_product_with_bias() -> None:
    rng = np.random.RandomState(0)
    a, b = rng.randn(300, 200).astype(np.float32), rng.randn(200, 150).astype(np.float32)
    bias = rng.randn(150).astype(np.float32)
    assert a.size * b.shape[1] >= gemm.SPLIT_FROM
    wanted = a.astype(np.float64) @ b.astype(np.float64) + bias
    np.testing.assert_allclose(gemm.matmul_bias(a, b, bias), wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        gemm.matmul_bias(a.astype(np.float64), b.astype(np.float64), bias), wanted, rtol=1e-12
    )
