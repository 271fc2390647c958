"""Rules about operations that only rearrange: what they remove, and what they must not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf
from tests.rewrite.rewriting import check, ops_of, same

X = np.random.RandomState(0).randn(3, 4).astype(np.float32)

NOTHING: dict[str, Callable[[Any], Any]] = {
    "cast": lambda x: tf.raw_ops.Cast(x=x, DstT=tf.float32),
    "transpose": lambda x: tf.transpose(x, [0, 1]),
    "reshape": lambda x: tf.reshape(x, [-1, 4]),
    "slice": lambda x: tf.slice(x, [0, 0], [-1, 4]),
    "strided slice": lambda x: x[:, :4],
    "strided slice of all": lambda x: x[:],
    "broadcast": lambda x: tf.broadcast_to(x, tf.shape(x)),
    "pad": lambda x: tf.pad(x, [[0, 0], [0, 0]]),
    "pad with": lambda x: tf.pad(x, [[0, 0], [0, 0]], constant_values=7),
    "tile": lambda x: tf.tile(x, [1, 1]),
    "ensure shape": lambda x: tf.ensure_shape(x, [None, 4]),
    "max": lambda x: tf.reduce_max(x, axis=[]),
}


@pytest.mark.parametrize("kind", NOTHING)
def test_nothing_to_do(kind: str) -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    check("nothing to do", NOTHING[kind](tf.exp(x)), {x: X}, ["Exp"])


SOMETHING: dict[str, Callable[[Any], Any]] = {
    "cast": lambda x: tf.cast(x, tf.float64),
    "transpose": lambda x: tf.transpose(x),
    "slice": lambda x: tf.slice(x, [0, 0], [2, 4]),
    "strided slice": lambda x: x[:, :3],
    "step": lambda x: x[::2],
    "reversed": lambda x: x[::-1],
    "unknown end": lambda x: x[:3],
    "pad": lambda x: tf.pad(x, [[0, 0], [0, 1]]),
    "tile": lambda x: tf.tile(x, [1, 2]),
    "reshape": lambda x: tf.reshape(x, [4, -1]),
    "squeeze": lambda x: tf.squeeze(x),
}


@pytest.mark.parametrize("kind", SOMETHING)
def test_something_to_do(kind: str) -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    y = SOMETHING[kind](tf.exp(x))
    assert len(ops_of(y, [x])) == 2
    same(y, {x: X})


def test_sum_of_nothing_keeps_the_value_and_is_not_exact() -> None:
    x = tf.placeholder(tf.float32, [None, 1])
    check("sum of nothing", tf.reduce_sum(-x, 1, keepdims=True), {x: [[1.0], [2.0]]}, ["Neg"])
    zero = np.float32([[-0.0]])
    with tf.Session(exact=True) as a, tf.Session(executor="reference") as b:
        y = tf.reduce_sum(x, 1, keepdims=True)
        assert np.signbit(a.run(y, {x: zero})) == np.signbit(b.run(y, {x: zero}))
    n = tf.placeholder(tf.int32, [None, 1])
    check("nothing to do", tf.reduce_sum(-n, 1, keepdims=True), {n: [[1], [2]]}, ["Neg"])


def test_one_part() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.exp(x)
    for made in (
        tf.split(y, 1, 1)[0],
        tf.split(y, [4], 1)[0],
        tf.raw_ops.AddN(inputs=[y]),
    ):
        check("one part", made, {x: X}, ["Exp"])


def test_a_wrong_size_for_one_part_is_still_found() -> None:
    x = tf.placeholder(tf.float32, [None, None])
    y = tf.split(x, [4], 1)[0]
    assert ops_of(y, [x]) == ["SplitV"]
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(y, {x: np.ones((2, 5))})


def test_casts() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    check("cast of a cast", tf.cast(tf.cast(-x, tf.float64), tf.float32), {x: X}, ["Neg"])
    n = tf.placeholder(tf.int32, [3])
    check(
        "cast of a cast",
        tf.cast(tf.cast(-n, tf.int64), tf.float32),
        {n: [1, 2, 1 << 30]},
        ["Neg", "Cast"],
    )
    lossy = tf.cast(tf.cast(-x, tf.int32), tf.float32)
    assert ops_of(lossy, [x]) == ["Neg", "Cast", "Cast"]
    same(lossy, {x: X * 3})


def test_transposes() -> None:
    x = tf.placeholder(tf.float32, [None, 3, 4])
    value = np.random.RandomState(0).randn(2, 3, 4).astype(np.float32)
    y = tf.transpose(tf.transpose(tf.exp(x), [1, 2, 0]), [2, 0, 1])
    check("transpose of a transpose", y, {x: value}, ["Exp"])
    y = tf.transpose(tf.transpose(tf.exp(x), [1, 2, 0]), [1, 0, 2])
    check("transpose of a transpose", y, {x: value}, ["Exp", "Transpose"])


def test_conjugate_transposes_of_complex_numbers() -> None:
    x = tf.placeholder(tf.complex64, [2, 3, 4])
    rng = np.random.RandomState(0)
    value = (rng.randn(2, 3, 4) + 1j * rng.randn(2, 3, 4)).astype(np.complex64)
    once = tf.transpose(x, [0, 2, 1], conjugate=True)
    check(
        "transpose of a transpose",
        tf.transpose(once, [0, 2, 1], conjugate=True) * 2,
        {x: value},
        ["Mul"],
    )
    same(
        tf.transpose(tf.transpose(x, [1, 2, 0], conjugate=True), [1, 0, 2], conjugate=True),
        {x: value},
    )
    assert "Transpose" in ops_of(tf.transpose(once, [0, 2, 1]), [x])
    same(tf.transpose(once, [0, 2, 1]), {x: value})


def test_reshapes() -> None:
    x = tf.placeholder(tf.float32, [None, 3, 4])
    value = np.random.RandomState(0).randn(2, 3, 4).astype(np.float32)
    y = tf.exp(x)
    check(
        "reshape of a reshape",
        tf.reshape(tf.reshape(y, [-1, 4]), [-1, 12]),
        {x: value},
        ["Exp", "Reshape"],
    )
    check("reshape of a reshape", tf.squeeze(tf.expand_dims(y, 1), 1), {x: value}, ["Exp"])
    check(
        "reshape of a reshape", tf.reshape(tf.expand_dims(y, 0), tf.shape(y)), {x: value}, ["Exp"]
    )


def test_an_inner_shape_that_may_be_wrong_stays() -> None:
    x = tf.placeholder(tf.float32, [None])
    y = tf.reshape(tf.reshape(x, [-1, 4]), [-1])
    assert ops_of(y, [x]) == ["Reshape", "Reshape"]
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(y, {x: np.ones(5)})
    same(y, {x: np.ones(8)})


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("flag", [False, True])
def test_transposed_factors(left: bool, flag: bool) -> None:
    a, b = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 3])
    rng = np.random.RandomState(0)
    feed = {a: rng.randn(3, 3), b: rng.randn(3, 3)}
    x, y = (tf.transpose(a), b) if left else (a, tf.transpose(b))
    product = tf.matmul(x, y, transpose_a=flag and left, transpose_b=flag and not left)
    program = check("transposed factor", product, feed, ["MatMul"], 1e-6)
    node = program.body[0]
    assert node.attrs["transpose_a" if left else "transpose_b"] is (not flag)  # type: ignore[union-attr]


def test_transposed_factors_of_batches() -> None:
    a, b = tf.placeholder(tf.float32, [2, 3, 4]), tf.placeholder(tf.float32, [2, 5, 4])
    rng = np.random.RandomState(0)
    feed = {a: rng.randn(2, 3, 4), b: rng.randn(2, 5, 4)}
    y = tf.matmul(a, tf.transpose(b, [0, 2, 1]))
    check("transposed factor", y, feed, ["BatchMatMulV2"], 1e-6)
    turned = tf.matmul(tf.transpose(a, [0, 2, 1]), a)
    check("transposed factor", turned, {a: feed[a]}, ["BatchMatMulV2"], 1e-6)
    swapped = tf.transpose(b, [1, 0, 2])
    assert "Transpose" in ops_of(tf.matmul(swapped, swapped, transpose_b=True), [b])


def test_a_transpose_is_no_adjoint_of_complex_numbers() -> None:
    a = tf.placeholder(tf.complex64, [2, 3, 3])
    rng = np.random.RandomState(0)
    value = (rng.randn(2, 3, 3) + 1j * rng.randn(2, 3, 3)).astype(np.complex64)
    y = tf.matmul(a, tf.transpose(a, [0, 2, 1]))
    assert "Transpose" in ops_of(y, [a])
    same(y, {a: value}, 1e-5)
    adjoint = tf.matmul(a, tf.transpose(a, [0, 2, 1], conjugate=True))
    check("transposed factor", adjoint, {a: value}, ["BatchMatMulV2"], 1e-5)
    m = tf.placeholder(tf.complex64, [3, 3])
    check("transposed factor", tf.matmul(m, tf.transpose(m)), {m: value[0]}, ["MatMul"], 1e-5)


def test_check_numerics_stays() -> None:
    x = tf.placeholder(tf.float32, [2])
    y = tf.check_numerics(tf.identity(x), "not a number")
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(y + 1.0, {x: [1.0, np.nan]})


def test_a_variable_that_is_written_is_copied_where_the_user_said() -> None:
    v = tf.Variable([1.0, 2.0], use_resource=True)
    before = tf.identity(v.read_value())
    with tf.control_dependencies([before]):
        write = v.assign_add([10.0, 10.0])
    with tf.control_dependencies([write.op]):
        after = tf.reshape(v.read_value(), [2]) * 1.0
    with tf.Session() as session:
        session.run(v.initializer)
        a, b = session.run([before, after])
    np.testing.assert_array_equal(a, [1, 2])
    np.testing.assert_array_equal(b, [11, 12])
