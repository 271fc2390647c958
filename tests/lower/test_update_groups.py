"""Updates of small variables done together: same bits, same meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(0.01),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.5),
    "centered": lambda: tf.train.RMSPropOptimizer(0.01, centered=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.1),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "proximal": lambda: tf.train.ProximalGradientDescentOptimizer(0.1),
}
SHAPES: list[tuple[int, ...]] = [(3,), (4, 2), (1,), (2, 3, 2), (5,), (7,), (2, 2), (6,)]


def network(optimizer: Any, use_resource: bool) -> tuple[list[Any], Any, Any]:
    variables = [
        tf.get_variable(
            f"v{i}",
            initializer=np.linspace(-1, 1, int(np.prod(s)), dtype=np.float32).reshape(s),
            use_resource=use_resource,
        )
        for i, s in enumerate(SHAPES)
    ]
    x = tf.placeholder(tf.float32, [])
    loss = tf.add_n([tf.reduce_sum(tf.sin(v * x) * (i + 1)) for i, v in enumerate(variables)])
    return variables, x, optimizer.minimize(loss)


def trained(make: Callable[[], Any], executor: str, use_resource: bool, steps: int = 5) -> Any:
    with tf.Graph().as_default():
        _, x, step = network(make(), use_resource)
        with tf.Session(executor=executor) as session:
            session.run(tf.global_variables_initializer())
            for i in range(steps):
                session.run(step, {x: 0.5 + i})
            grouped = [] if executor == "reference" else session.explain(step, [x]).steps
            slots = [v for v in tf.global_variables()]
            return session.run(slots), [s for s in grouped if s.kind == "grouped"]


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_same_bits_as_one_by_one(name: str, use_resource: bool) -> None:
    together, steps = trained(OPTIMIZERS[name], "numpy", use_resource)
    alone, _ = trained(OPTIMIZERS[name], "reference", use_resource)
    assert len(steps) == 1 and steps[0].op_type.endswith(f"x {len(SHAPES)}")
    for a, b in zip(together, alone):
        np.testing.assert_array_equal(a, b)


def test_rates_of_a_group_are_looked_at() -> None:
    """Refused as one by one, and nothing is written."""
    with tf.Graph().as_default():
        rate = tf.placeholder(tf.float32, [])
        variables, x, step = network(tf.train.FtrlOptimizer(rate), False)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(step, {x: 0.5, rate: 0.1})
            kinds = [s.kind for s in session.explain(step, [x, rate]).steps]
            before = session.run(variables)
            with pytest.raises(tf.errors.InvalidArgumentError, match="lr is not a positive"):
                session.run(step, {x: 0.5, rate: -0.1})
            after = session.run(variables)
    assert "grouped" in kinds
    for a, b in zip(before, after):
        np.testing.assert_array_equal(a, b)


def test_a_variable_assigned_in_between_is_seen() -> None:
    with tf.Graph().as_default():
        variables, x, step = network(tf.train.AdamOptimizer(0.01), False)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(step, {x: 1.0})
            others = session.run(variables[1:])
            session.run(variables[0].assign([10.0, 20.0, 30.0]))
            session.run(step, {x: 0.0})
            np.testing.assert_allclose(session.run(variables[0]), [10, 20, 30], atol=0.1)
            assert all(a.shape == b.shape for a, b in zip(others, session.run(variables[1:])))


def test_values_handed_out_do_not_change() -> None:
    with tf.Graph().as_default():
        variables, x, step = network(tf.train.AdamOptimizer(0.01), False)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(step, {x: 1.0})
            held = session.run(variables)
            copies = [h.copy() for h in held]
            session.run(step, {x: 1.0})
            for a, b in zip(held, copies):
                np.testing.assert_array_equal(a, b)
                a += 1  # the user's own
            after = session.run(variables[0])
            assert not np.array_equal(after, held[0])


def test_what_reads_a_new_value_in_between_comes_after_its_own_update() -> None:
    """Updates of which one waits for another's result are not moved past each other."""
    results = []
    for executor in ("numpy", "reference"):
        with tf.Graph().as_default():
            a, b, c = (tf.Variable([float(i), 2.0 * i]) for i in range(1, 4))
            rate = tf.constant(0.5)
            new_a = tf.raw_ops.ApplyMomentum(
                var=a._ref(),
                accum=tf.Variable([0.0, 0.0], name="ma")._ref(),
                lr=rate,
                grad=[1.0, 1.0],
                momentum=0.9,
            )
            new_b = tf.raw_ops.ApplyMomentum(
                var=b._ref(),
                accum=tf.Variable([0.0, 0.0], name="mb")._ref(),
                lr=rate,
                grad=tf.identity(new_a) * 2.0,
                momentum=0.9,
            )
            new_c = tf.raw_ops.ApplyMomentum(
                var=c._ref(),
                accum=tf.Variable([0.0, 0.0], name="mc")._ref(),
                lr=rate,
                grad=tf.identity(new_b) * 2.0,
                momentum=0.9,
            )
            with tf.Session(executor=executor) as session:
                session.run(tf.global_variables_initializer())
                session.run(new_c)
                results.append(session.run([a, b, c]))
    for x, y in zip(*results):
        np.testing.assert_array_equal(x, y)


def test_uninitialized_is_said() -> None:
    with tf.Graph().as_default():
        variables, x, step = network(tf.train.AdamOptimizer(0.01), False)
        with tf.Session() as session:
            slots = [v for v in tf.global_variables() if v is not variables[3]]
            session.run(tf.variables_initializer(slots))
            with pytest.raises(tf.errors.FailedPreconditionError, match="v3"):
                session.run(step, {x: 1.0})
            session.run(variables[3].initializer)
            session.run(step, {x: 1.0})
