"""Rules about arithmetic.

The exact ones keep every bit, NaN, infinities, signs of zero and wrapping integers included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf
from tests.rewrite.rewriting import check, ops_of, program_of, same

ODD = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-45, 3e38], np.float32)
INTEGERS = np.array([0, 1, -1, 7, 2**31 - 1, -(2**31)], np.int32)

NEUTRAL: dict[str, Callable[[Any], Any]] = {
    "times one": lambda x: x * 1.0,
    "one times": lambda x: 1.0 * x,
    "ones": lambda x: x * tf.ones([9]),
    "over one": lambda x: x / 1.0,
    "minus zero": lambda x: x - 0.0,
    "plus negative zero": lambda x: x + tf.constant(-0.0),
    "power one": lambda x: x**1.0,
}


@pytest.mark.parametrize("kind", NEUTRAL)
def test_neutral_elements_of_floats(kind: str) -> None:
    x = tf.placeholder(tf.float32, [9])
    check("neutral element", NEUTRAL[kind](tf.sign(x)), {x: ODD}, ["Sign"])


@pytest.mark.parametrize("kind", ["times one", "one times", "minus zero"])
def test_neutral_elements_of_integers(kind: str) -> None:
    n = tf.placeholder(tf.int32, [None])
    made = {
        "times one": lambda n: n * 1,
        "one times": lambda n: 1 * n,
        "minus zero": lambda n: n - 0,
    }
    check("neutral element", made[kind](-n), {n: INTEGERS}, ["Neg"])
    check("neutral element", -n + 0, {n: INTEGERS}, ["Neg"])


def test_zero_minus_x_and_one_over_x_are_something() -> None:
    x = tf.placeholder(tf.float32, [9])
    assert ops_of(0.0 - x, [x]) == ["Sub"]
    assert ops_of(1.0 / x, [x]) == ["RealDiv"]
    same([0.0 - x, 1.0 / x, x * -1.0], {x: ODD})


def test_zero_added_is_not_exact() -> None:
    x = tf.placeholder(tf.float32, [None])
    check("zero added", tf.sign(x) + 0.0, {x: ODD[2:]}, ["Sign"])
    zero = {x: np.full(9, -0.0, np.float32)}
    with tf.Session(exact=True) as session:
        assert not np.signbit(session.run(x + 0.0, zero)).any()


def test_a_neutral_element_may_stretch_the_result() -> None:
    x = tf.placeholder(tf.float32, [None])
    for y in (x * tf.ones([3]), x * tf.ones([2, 1]), x + tf.zeros([3])):
        assert len(ops_of(y, [x])) == 1
        same(y, {x: [2.0]})
    unknown = tf.placeholder(tf.float32, None)
    assert ops_of(unknown * tf.ones([1]), [unknown]) == ["Mul"]
    assert ops_of(tf.exp(unknown) * 1.0, [unknown]) == ["Exp"]
    same(unknown * tf.ones([1]), {unknown: 2.0})


def test_zero_factor_of_integers_only() -> None:
    n = tf.placeholder(tf.int32, [None])
    check("zero factor", n * 0, {n: INTEGERS}, ["ZerosLike"])
    x = tf.placeholder(tf.float32, [9])
    assert ops_of(x * 0.0, [x]) == ["Mul"]
    same(x * 0.0, {x: ODD})


@pytest.mark.parametrize(("power", "name"), [(2.0, "Square"), (0.5, "Sqrt"), (-1.0, "Reciprocal")])
def test_special_powers(power: float, name: str) -> None:
    x = tf.placeholder(tf.float32, [9])
    check("special power", x**power, {x: ODD}, [name])


def test_other_powers_stay() -> None:
    x = tf.placeholder(tf.float32, [9])
    n = tf.placeholder(tf.int32, [None])
    assert ops_of(x**1.5, [x]) == ["Pow"] and ops_of(n**2, [n]) == ["Pow"]
    assert ops_of(x ** tf.constant([2.0] * 9), [x]) == ["Pow"]
    same([x**1.5, n**2], {x: ODD, n: INTEGERS})


def test_double_inverses() -> None:
    x, flag = tf.placeholder(tf.float32, [9]), tf.placeholder(tf.bool, [2])
    check("double inverse", tf.negative(-tf.sign(x)), {x: ODD}, ["Sign"])
    y = tf.logical_not(tf.logical_not(tf.logical_and(flag, True)))
    check("double inverse", y, {flag: [True, False]}, ["LogicalAnd"])


def test_negations() -> None:
    x, y = tf.placeholder(tf.float32, [9]), tf.placeholder(tf.float32, [9])
    feed = {x: ODD, y: ODD[::-1].copy()}
    check("negation", x + (-y), feed, ["Sub"])
    check("negation", (-x) + y, feed, ["Sub"])
    check("negation", x - (-y), feed, ["AddV2"])
    check("negation", (-x) * (-y), feed, ["Mul"])
    check("negation", (-x) / (-y), feed, ["RealDiv"])
    assert ops_of(-(x - y), list(feed)) == ["Sub", "Neg"]
    assert ops_of((-x) - y, list(feed)) == ["Neg", "Sub"]
    n = tf.placeholder(tf.int32, [None])
    check(
        "negation",
        n + (-n * 3 + 1 - (-n)),
        {n: INTEGERS},
        ["Neg", "Mul", "AddV2", "AddV2", "AddV2"],
    )


def test_sum_of_two() -> None:
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    check("sum of two", tf.add_n([x, tf.exp(x)]), {x: ODD}, ["Exp", "AddV2"])
    assert ops_of(tf.add_n([x, y]), [x, y]) == ["AddN"]
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(tf.add_n([x, y]), {x: [1.0], y: [1.0, 2.0]})


@pytest.mark.parametrize("divisor", [4.0, 0.125, -2.0, 2.0**40])
def test_division_by_a_power_of_two(divisor: float) -> None:
    x = tf.placeholder(tf.float32, [9])
    assert ops_of(x / divisor, [x], exact=True) == ["Mul"]
    assert ops_of(x / divisor, [x], exact=True, without="division by a power of two") == ["RealDiv"]
    same(x / divisor, {x: ODD})


def test_division_by_a_constant() -> None:
    x = tf.placeholder(tf.float32, [9])
    check("division by a constant", x / 3.0, {x: ODD}, ["Mul"], 1e-6)
    for divisor in (0.0, 1e-40, np.inf, 3e38):
        y = x / np.float32(divisor)
        assert ops_of(y, [x]) == ["RealDiv"]
        same(y, {x: ODD})


def test_reciprocal_root() -> None:
    x = tf.placeholder(tf.float32, [9])
    check("reciprocal root", 1.0 / tf.sqrt(x), {x: ODD}, ["Rsqrt"])
    check("reciprocal root", tf.reciprocal(tf.sqrt(x)), {x: ODD}, ["Rsqrt"])
    root = tf.sqrt(x)
    assert "Rsqrt" not in ops_of([1.0 / root, root], [x])


def test_constants_together() -> None:
    x = tf.placeholder(tf.float32, [None])
    check("constants together", (x * 3.0) * 0.1, {x: ODD[:7]}, ["Mul"], 1e-6)
    check("constants together", 0.1 + (3.0 + x), {x: ODD[:7]}, ["AddV2"], 1e-6)
    n = tf.placeholder(tf.int32, [None])
    check("constants together", (n * 3) * 5, {n: INTEGERS}, ["Mul"])
    between = x * 3.0
    assert ops_of([between, between * 2.0], [x]) == ["Mul", "Mul"]
    assert "used elsewhere" in program_of([between, between * 2.0], [x]).near_misses[0].why_not


def test_constants_that_would_overflow_stay_apart() -> None:
    x = tf.placeholder(tf.float32, [9])
    for y in ((x * 1e30) * 1e30, (x * 1e-30) * 1e-30):
        assert ops_of(y, [x]) == ["Mul", "Mul"]
        same(y, {x: ODD})
