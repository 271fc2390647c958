"""Compiled updates are their formulas to the last bit, and change over at a counted run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.kernels.native.llvm_library import status, why_not
from headrace.kernels.numpy import numpy_xp
from headrace.ops.training import native_updates
from headrace.ops.training.sparse_apply import _update_rows
from headrace.ops.training.update_rules import RULES

pytestmark = pytest.mark.skipif(bool(why_not()), reason=status())
RNG = np.random.default_rng(0)
NUMBERS = {
    "lr": 0.01,
    "alpha": 0.01,
    "l1": 0.1,
    "l2": 0.1,
    "lr_power": -0.5,
    "l2_shrinkage": 0.1,
    "rho": 0.9,
    "momentum": 0.9,
    "epsilon": 1e-3,
    "beta1": 0.9,
    "beta2": 0.99,
    "beta1_power": 0.81,
    "beta2_power": 0.98,
    "sign_decay": 0.9,
    "beta": 0.9,
    "logbase": 0.5,
}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e38, -1e-30, 2.0]
COMPILED = [name for name in RULES if name != "PowerSign"]


def attributes(name: str) -> list[dict[str, Any]]:
    text = RULES[name].attrs.split(":")[0]
    return [{text: value} for value in (False, True)] if text else [{}]


CASES = [(name, attrs) for name in COMPILED for attrs in attributes(name)]


def numbers(name: str, dtype: Any) -> dict[str, Any]:
    return {
        n: np.int64(3) if n == "global_step" else dtype(NUMBERS[n])
        for n in RULES[name].rest
        if n != RULES[name].gradient
    }


def values(shape: tuple[int, ...], dtype: Any, special: bool) -> Any:
    made = RNG.normal(size=shape).astype(dtype)
    if special:
        made.reshape(-1)[::7] = RNG.choice(SPECIAL, made.reshape(-1)[::7].shape)
    return made


def rest_of(name: str, gradient: Any, dtype: Any) -> list[Any]:
    given = numbers(name, dtype)
    return [given.get(n, gradient) for n in RULES[name].rest]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_NATIVE", "always")


@pytest.mark.usefixtures("always")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "attrs"), CASES)
def test_dense(name: str, attrs: dict[str, Any], dtype: Any, special: bool, in_place: bool) -> None:
    rule = RULES[name]
    shape = (37, 53)
    before = [np.abs(values(shape, dtype, special)) for _ in rule.variables]
    rest = rest_of(name, values(shape, dtype, special), dtype)
    found = rule.update(numpy_xp, *before, *rest, **attrs)
    wanted = found if isinstance(found, tuple) else (found,)
    kept = [v.copy() for v in before]
    made = before if in_place else [np.full_like(v, 7.0) for v in before]
    assert native_updates.DenseUpdate(rule)(1, made, *before, *rest, **attrs)
    for a, b in zip(made, wanted):
        np.testing.assert_array_equal(a, b)
        same_sign = np.signbit(a) == np.signbit(b)
        assert np.all(same_sign | np.isnan(a))
    if not in_place:
        np.testing.assert_array_equal(before, kept)  # others may be reading these


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize(("name", "attrs"), [c for c in CASES if "sparse" in RULES[c[0]].forms])
def test_sparse_rows_one_after_the_other(
    name: str, attrs: dict[str, Any], index: Any, in_place: bool
) -> None:
    rule = RULES[name]
    before = [np.abs(values((20, 3, 11), np.float32, False)) for _ in rule.variables]
    indices = RNG.integers(0, 20, 30).astype(index)
    gradient = values((30, 3, 11), np.float32, False)
    rest = rest_of(name, gradient, np.float32)
    wanted = [v.copy() for v in before]
    others = [v for n, v in zip(rule.rest, rest) if n != rule.gradient]
    _update_rows(rule, wanted, others, gradient, indices, attrs)
    at = rule.rest.index(rule.gradient) + 1
    sparse = native_updates.SparseUpdate(rule, lambda indices, rows: None)
    kept = [v.copy() for v in before]
    made = before if in_place else [np.full_like(v, 7.0) for v in before]
    assert sparse(1, made, *before, *rest[:at], indices, *rest[at:], **attrs)
    for a, b in zip(made, wanted):
        np.testing.assert_array_equal(a, b)
    if not in_place:
        np.testing.assert_array_equal(before, kept)


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(0.01),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, centered=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.1),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "proximal": lambda: tf.train.ProximalAdagradOptimizer(0.1),
}


def train(make: Callable[[], Any], steps: int, sparse: bool = False) -> Any:
    rng = np.random.RandomState(0)
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(rng.normal(size=(200, 100)).astype(np.float32))
        if sparse:
            rows = tf.nn.embedding_lookup(variable, [3, 5, 3, 199, 0])
            loss = tf.reduce_sum(tf.square(rows - 1.0))
        else:
            loss = tf.reduce_sum(tf.square(variable - 1.0))
        step = make().minimize(loss)
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            session.run(step)
        return session.run(variable)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_is_the_same_with_and_without(
    name: str, sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for setting in ("0", "always"):
        monkeypatch.setenv("HEADRACE_NATIVE", setting)
        found.append(train(OPTIMIZERS[name], 5, sparse))
    np.testing.assert_allclose(*found, rtol=2e-5, atol=1e-6)


def test_two_trainings_in_one_process_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each session changes over at the same run of its own, not when some total is reached."""
    monkeypatch.setenv("HEADRACE_NATIVE", "1")
    monkeypatch.setattr(native_updates, "HOT_ELEMENTS", 4 * 200 * 100)
    first, second = (train(OPTIMIZERS["adam"], 8) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.usefixtures("always")
def test_an_index_outside_is_refused_and_nothing_is_written() -> None:
    rule = RULES["Momentum"]
    var, accum = np.ones((4, 3), np.float32), np.ones((4, 3), np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        v, a = (
            tf.Variable(np.ones((9000, 3), np.float32)),
            tf.Variable(np.ones((9000, 3), np.float32)),
        )
        bad = tf.raw_ops.SparseApplyMomentum(
            var=v,
            accum=a,
            lr=0.1,
            grad=np.ones((2, 3), np.float32),
            indices=[0, 9000],
            momentum=0.9,
        )
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="Index 9000 at offset 1"):
            session.run(bad)
        np.testing.assert_array_equal(session.run(v), 1)
    assert not native_updates.DenseUpdate(rule)(
        1, var, accum, np.float32(1), np.ones(3, np.float32), np.float32(1), use_nesterov=False
    )


def test_explain_says_native_or_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_NATIVE", "1")
    monkeypatch.setattr(native_updates, "HOT_ELEMENTS", 2 * 200 * 100)
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(np.ones((200, 100), np.float32))
        noise = tf.random_normal([200, 100])
        step = tf.train.AdamOptimizer().minimize(tf.reduce_sum(tf.square(variable - noise)))
        session.run(tf.global_variables_initializer())

        def steps() -> dict[str, Any]:
            return {s.op_type: s for s in session.explain(step).steps}

        assert "compiled when it has written 40,000 elements" in steps()["ApplyAdam"].why_not_native
        for _ in range(3):
            session.run(step)
        assert steps()["ApplyAdam"].by == "native" and not steps()["ApplyAdam"].why_not_native
        drawn = steps()["RandomStandardNormal"]
        assert drawn.by == "native" or "elements have been computed" in drawn.why_not_native
        assert "[native]" in str(session.explain(step))
