"""Rules about shapes and constants: what is known before the run is not computed in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from tests.rewrite.rewriting import check, ops_of, program_of, same

X = np.arange(12.0, dtype=np.float32).reshape(3, 4)


def test_known_part_of_a_shape() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    check("known part of a shape", tf.shape(x)[1] * 2, {x: X}, [])
    check("known part of a shape", tf.shape(x)[1:], {x: X}, [])
    check("known part of a shape", tf.shape(x)[-1:][0], {x: X}, [])
    check("known part of a shape", tf.reduce_prod(tf.shape(x)[1:]), {x: X}, [])
    check("known part of a shape", tf.gather(tf.shape(x), [1]), {x: X}, [])
    check("known part of a shape", tf.slice(tf.shape(x), [1], [1]), {x: X}, [])
    check("known part of a shape", tf.cast(tf.shape(x)[1], tf.int64), {x: X}, [])
    check("known part of a shape", tf.stack([tf.shape(x)[1], 7]), {x: X}, [])
    check("known part of a shape", tf.concat([tf.shape(x)[1:], [7]], 0), {x: X}, [])


def test_a_part_that_is_not_known_stays() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    assert ops_of(tf.shape(x)[0], [x]) == ["Shape", "StridedSlice"]
    assert ops_of(tf.stack([tf.shape(x)[0], 7]), [x]) == ["Shape", "StridedSlice", "Pack"]
    assert ops_of(tf.reduce_prod(tf.shape(x)), [x])[0] == "Shape"
    same([tf.shape(x)[0], tf.shape(x)[::-1], tf.shape(x)[5:]], {x: X})


def test_float_slices_are_not_shapes() -> None:
    x = tf.placeholder(tf.float32, [4])
    assert ops_of(x[1], [x]) == ["StridedSlice"]
    n = tf.placeholder(tf.int32, [4])
    assert ops_of(tf.stack([n[1], n[2]]), [n]) == ["StridedSlice", "StridedSlice", "Pack"]


def test_length_at_its_source() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.tanh(tf.matmul(tf.exp(x), tf.ones([4, 3])))
    check("length at its source", tf.shape(y)[0], {x: X}, ["Shape", "StridedSlice"])
    transposed = tf.transpose(tf.exp(x))
    check("length at its source", tf.shape(transposed)[1], {x: X}, ["Shape", "StridedSlice"])


def test_equal_constants() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.shape(x)[0] * tf.shape(x)[0]
    check("equal constants", y, {x: X}, ["Shape", "StridedSlice", "Mul"])


def test_large_results_are_not_folded() -> None:
    big = tf.ones([10000, 10000])
    program = program_of(big[0, 0])
    assert sum(c.nbytes for c in program.constants.values()) < 1000
    assert ("constant folding", "the result would be large") in {
        (m.rule, m.why_not) for m in program.near_misses
    }
    tiled = tf.tile(tf.constant([1.0]), [50000])
    assert ops_of(tiled) == ["Tile"]
    zeros = tf.zeros([100, 1000]) + 1.0
    assert ops_of(zeros)[-1] == "AddV2"


def test_an_error_in_a_constant_belongs_to_the_run() -> None:
    bad = tf.gather(tf.constant([1.0, 2.0]), tf.constant([5]))
    x = tf.placeholder(tf.float32, [])
    y = x + bad
    assert program_of(y, [x]).near_misses[0].why_not == "computing it fails: InvalidArgumentError"
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(y, {x: 1.0})


def test_integer_division_by_zero_is_not_folded_away() -> None:
    y = tf.constant([1, 2]) // tf.constant([0, 1])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(y)


@pytest.mark.parametrize("shape", [[-1, 4], [3, 4], None])
def test_reshape_to_what_it_is(shape: Any) -> None:
    x = tf.placeholder(tf.float32, [None if shape != [3, 4] else 3, 4])
    y = tf.reshape(tf.exp(x), tf.shape(x) if shape is None else shape)
    check("nothing to do", y, {x: X}, ["Exp"])


def test_reshape_by_the_length_of_another_value() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.exp(x)
    check("nothing to do", tf.reshape(y, [tf.shape(x)[0], 4]), {x: X}, ["Exp"])
    other = tf.placeholder(tf.float32, [None])
    z = tf.reshape(y, [tf.shape(other)[0], 4])
    assert "Reshape" in ops_of(z, [x, other])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(z, {x: X, other: [1.0]})


def test_broadcasting_is_not_taken_for_equality() -> None:
    """A length that may be 1 does not name the result's."""
    a, b = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 2])
    y = a + b
    assert "Reshape" in ops_of(tf.reshape(y, [tf.shape(a)[0], 2]), [a, b])
    total = tf.shape(y)[0]
    same(total, {a: np.ones((1, 2)), b: np.ones((5, 2))})
    same(total, {a: np.ones((5, 2)), b: np.ones((1, 2))})


def test_shapes_inside_loops_follow_the_round() -> None:
    x = tf.placeholder(tf.float32, [None])

    def body(i: Any, a: Any) -> Any:
        return i + 1, tf.concat([a, tf.reshape(a, tf.shape(a))], 0)

    grown = tf.while_loop(
        lambda i, a: i < 3, body, [0, x], [tf.TensorShape([]), tf.TensorShape([None])]
    )[1]
    same([grown, tf.shape(grown)], {x: [1.0, 2.0]})


def test_known_broadcast() -> None:
    """Gradients of operations on one batch sum over nothing, though its length is not known."""
    x = tf.placeholder(tf.float32, [None, 4])
    w = tf.Variable(np.ones((4, 3), np.float32))
    h = tf.tanh(tf.matmul(x, w))
    centred = h - tf.reduce_mean(h, 1, keepdims=True)
    gradient = tf.gradients(tf.reduce_sum(centred * h * centred), w)[0]
    before = ops_of(gradient, [x], without="known broadcast")
    ops = ops_of(gradient, [x])
    assert "BroadcastGradientArgs" in before and "BroadcastGradientArgs" not in ops
    assert ops.count("Sum") < before.count("Sum")
    same(gradient, {x: np.random.default_rng(0).normal(size=(5, 4))}, 1e-5)
    same(gradient, {x: np.random.default_rng(0).normal(size=(1, 4))}, 1e-5)


def test_lengths_that_may_differ_are_looked_at_in_the_run() -> None:
    x, y = (tf.placeholder(tf.float32, [None, 4]) for _ in range(2))
    gradients = tf.gradients(tf.reduce_sum(x * y), [x, y])
    assert "BroadcastGradientArgs" in ops_of(gradients, [x, y])
    rng = np.random.default_rng(0)
    same(gradients, {x: rng.normal(size=(1, 4)), y: rng.normal(size=(5, 4))}, 1e-5)
    same(gradients, {x: rng.normal(size=(5, 4)), y: rng.normal(size=(5, 4))}, 1e-5)


@pytest.mark.parametrize(
    "drawn",
    [
        lambda s: tf.random_normal(s, seed=1),
        lambda s: tf.random_uniform(s, seed=1),
        lambda s: tf.truncated_normal(s, seed=1),
        lambda s: tf.random.stateless_normal(s, [1, 2]),
        lambda s: tf.fill(s, 2.0),
        lambda s: tf.broadcast_to(tf.constant(2.0), s),
    ],
)
def test_numbers_drawn_for_a_shape_have_it(drawn: Any) -> None:
    """The noise of a variational autoencoder, or a dropout's, broadcasts over nothing."""
    x = tf.placeholder(tf.float32, [None, 4])
    h = tf.tanh(x)
    gradient = tf.gradients(tf.reduce_sum(h + h * drawn(tf.shape(h))), x)[0]
    assert "BroadcastGradientArgs" not in ops_of(gradient, [x])
    for rows in (1, 5):
        same(gradient, {x: np.random.default_rng(0).normal(size=(rows, 4))}, 1e-5)
    other = tf.gradients(tf.reduce_sum(h * drawn([5, 4])), x)[0]
    assert "BroadcastGradientArgs" in ops_of(other, [x])
    same(other, {x: np.random.default_rng(0).normal(size=(1, 4))}, 1e-5)


def test_select_of_one_shape_is_elementwise() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.where(x > 5, tf.sqrt(x), tf.zeros_like(x)) * 2
    fired = [rule for rule, _ in tf.Session().explain(y, [x]).firings]
    assert "select of one shape" in fired
    for rows in (X, X[:1], X[:0]):
        same(y, {x: rows})
    z = tf.placeholder(tf.float32, [None, 4])
    apart = tf.where(x > 5, x, z)
    assert "Select" in ops_of(apart, [x, z])
    same(apart, {x: X, z: -X})
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(apart, {x: X, z: -X[:1]})
    rows = tf.where(tf.reduce_sum(x, 1) > 20, x, -x)  # a condition for each row
    assert "Select" in ops_of(rows, [x])
    same(rows, {x: X})
