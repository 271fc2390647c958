"""Nothing is lost in silence: each kind of refusal is provoked, and read in ``sess.explain``."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.kernels import accel
from headrace.kernels.native import llvm_library
from headrace.lower import binding, native_groups

needs_library = pytest.mark.skipif(accel.library() is None, reason=accel.status())


def weights(rows: int, columns: int) -> tf.Variable:
    return tf.Variable(np.full((rows, columns), 0.01, np.float32))


def explained(fetches: Any, feed: Any, runs: int = 1, **session: Any) -> Any:
    """What explain says after some runs; the text has every reason that the data has."""
    with tf.Session(**session) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(runs):
            sess.run(fetches, feed)
        return sess.explain(fetches, feed)


def text_of(found: Any) -> str:
    """The text without its line breaks."""
    return " ".join(str(found).split())


def test_a_rule_that_did_not_fire() -> None:
    x = tf.placeholder(tf.float32, [None, 8])
    product = tf.matmul(x, weights(8, 4))
    y = tf.add(product, np.ones(4, np.float32), name="y")
    found = explained([y, product], {x: np.ones((2, 8))})
    (_, _, why) = next(m for m in found.near_misses if m[:2] == ("matmul and bias", "y"))
    assert "used elsewhere" in why and f"matmul and bias at y: {why}" in text_of(found)


def test_a_plan_that_is_not_bound() -> None:
    x = tf.placeholder(tf.float32, [None, 256])
    found = explained(tf.as_string(tf.matmul(x, weights(256, 256))), {x: np.ones((2, 256))})
    assert "runs on the host only" in found.unbound and f"bound no: {found.unbound}" in text_of(
        found
    )


@needs_library
def test_shapes_that_did_not_come_often_enough() -> None:
    x = tf.placeholder(tf.float32, [None, 256])
    hidden = tf.nn.relu(tf.matmul(x, weights(256, 256)))
    loss = tf.reduce_mean(tf.square(tf.matmul(hidden, weights(256, 16))))
    step = tf.train.AdamOptimizer(1e-3).minimize(loss)
    feed = {x: np.ones((64, 256))}
    found = explained(step, feed, runs=2)
    assert found.refused == [([(64, 256)], "it has come 2 of 3 times")]
    assert "not for [64,256]: it has come 2 of 3 times" in text_of(found)
    found = explained(step, feed, runs=3)
    assert found.refused == [] and len(found.bound) == 1


@needs_library
def test_shapes_that_were_not_bound() -> None:
    x = tf.placeholder(tf.float32, [None, 256])
    n = tf.placeholder(tf.int32, [])
    y = tf.reshape(tf.matmul(x, weights(256, 256)), tf.stack([n, -1]))
    found = explained(y, {x: np.ones((2, 256)), n: 4})
    assert [why for _, why in found.refused] == [f"{y.op.name}: a shape that is not known"]
    assert f"not for [2,256] []: {y.op.name}: a shape that is not known" in text_of(found)


@needs_library
def test_binding_that_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> Any:
        raise RuntimeError("the machine is on fire\nat once")

    monkeypatch.setattr(binding, "bind_plan", fail)
    x = tf.placeholder(tf.float32, [None, 256])
    y = tf.matmul(x, weights(256, 256))
    found = explained(y, {x: np.ones((2, 256))})
    assert "binding failed: RuntimeError: the machine is on fire" in text_of(found)


@needs_library
def test_a_bound_run_that_failed() -> None:
    x = tf.placeholder(tf.float32, [None, 256])
    y = tf.matmul(tf.nn.relu(tf.matmul(x, weights(256, 256)) + weights(1, 256)[0]), weights(256, 9))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(y, {x: np.ones((2, 256))})
        session.run(y, {x: np.full((2, 256), np.nan)})
        found = session.explain(y, [x])
    assert len(found.bound) == 1 and "a run was generic: NotBound: " in found.refused[0][1]
    assert found.refused[0][1] in text_of(found)


@needs_library
def test_a_primitive_that_was_not_taken() -> None:
    x = tf.placeholder(tf.float32, [None, 256])
    y = tf.reduce_sum(tf.matmul(x, weights(256, 256)), 1) / tf.cumsum(x)[0, 0]
    found = explained(y, {x: np.ones((2, 256))})
    (listing,) = found.bound_listings
    reasons = ("it is not over the first axis", "the kernel library has nothing for this op")
    for why in reasons:
        assert why in listing and why in text_of(found), why


def test_a_step_that_is_not_native(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, [1000, 100])
    y = tf.sin(x) * 2 + tf.exp(x)
    monkeypatch.setenv("HEADRACE_NATIVE", "0")
    found = explained(tf.cumsum(y), {x: np.ones((1000, 100))})
    reasons = {s.op_type: s.why_not_native for s in found.steps}
    assert "Cumsum has no native code" in reasons["Cumsum"]
    assert all("HEADRACE_NATIVE" in why for kind, why in reasons.items() if kind != "Cumsum")
    for why in reasons.values():
        assert why in text_of(found)


def test_plans_that_are_not_made_again() -> None:
    x = tf.placeholder(tf.float32, [3])
    found = explained(x + 1, {x: np.ones(3)})
    assert found.planned_again == ["no: the shapes of its feeds are declared"]
    assert found.planned_again[0] in text_of(found)


def test_an_executor_that_cannot() -> None:
    pytest.importorskip("jax")
    x = tf.placeholder(tf.float32, [2])
    found = explained(tf.as_string(x), {x: np.ones(2)}, executor="xla")
    assert found.executor == "numpy" and found.not_asked_for
    assert f"not the session's: {found.not_asked_for}" in text_of(found)


def test_all_near_misses_are_counted_and_the_first_are_shown() -> None:
    x = tf.placeholder(tf.float32, [None, 8])
    products = [tf.matmul(x, weights(8, 4)) for _ in range(15)]
    sums = [p + np.float32(np.arange(4)) for p in products]
    found = explained([*products, *sums], {x: np.ones((2, 8))})
    assert len(found.near_misses) >= 15
    assert f"near misses {len(found.near_misses)}, the first 10" in str(found)


def test_the_text_is_readable_at_100_columns() -> None:
    """Lines of steps and instructions are not broken: what is too long is cut."""
    with tf.name_scope("a_long_name_of_a_scope_that_goes_on_and_on_and_on_and_on_and_on_and_on"):
        x = tf.placeholder(tf.float32, [None, 8])
        y = tf.nn.relu(tf.layers.dense(x, 4, name="layer_with_a_name"))
        loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=y + 1.0)
        step = tf.train.AdamOptimizer().minimize(tf.reduce_mean(loss))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.explain([step, y], {x: np.ones((2, 8))}, times=True, runs=2)
    text = str(found)
    assert max(map(len, text.splitlines())) <= 100
    listing = (found.bound_listings or [found.listing])[-1]
    assert textwrap.indent(listing, "  ") in text
    timed = [line for line in listing.splitlines() if " %  " in line]
    assert len(timed) >= 5 and all(" us " in line or " ms " in line for line in timed)


def large() -> tf.Tensor:
    return tf.placeholder(tf.float32, [256, 256])


GROUPS = {
    "it gives a number, not an array": lambda: tf.add(tf.placeholder(tf.float32, []), 1.0),
    "its rank is open": lambda: tf.add(tf.placeholder(tf.float32), 1.0),
    "it has fewer than 16,384 elements": lambda: tf.add(tf.placeholder(tf.float32, [3]), 1.0),
    "no element-wise operation of its shape makes its inputs or reads it": lambda: tf.add(
        large(), 1.0
    ),
    "the group that makes an input is of another shape": lambda: tf.add(
        large(), tf.abs(tf.placeholder(tf.float32, [128, 1, 256]))
    ),
    "its axes, or the rank of its input, are not known": lambda: tf.reduce_sum(
        large() * 2.0, tf.placeholder(tf.int32, [1])
    ),
    "it is over other axes than the last": lambda: tf.reduce_sum(large() * 2.0, 0),
    "it is over all axes, and neither a sum nor a mean": lambda: tf.reduce_max(large() * 2.0),
    "what it reduces is not made by a group": lambda: tf.reduce_sum(large(), 1),
}


@pytest.mark.parametrize("why", GROUPS)
def test_operations_in_no_group(why: str) -> None:
    y = GROUPS[why]()
    with tf.Session() as session:
        feeds = [op.outputs[0] for op in session.graph.get_operations() if "Placeholder" in op.type]
        found = session.explain(y, feeds)
    assert why in [s.apart for s in found.steps]
    assert f"group: {why}]" in text_of(found)


def test_a_group_that_is_read_elsewhere() -> None:
    x = large()
    y = tf.exp(x * 2.0 + 1.0)
    with tf.Session() as session:
        found = session.explain([tf.reduce_sum(y, 1), tf.cumsum(y)], [x])
    why = "the group that makes an input is read by other steps, too"
    assert f"[not in a group: {why}]" in text_of(found)


def test_an_operation_that_reads_a_written_variable() -> None:
    v = tf.Variable(np.ones((256, 256), np.float32), use_resource=False)
    with tf.control_dependencies([v.assign_add(np.ones((256, 256), np.float32))]):
        y = tf.exp(v + 1.0)
    found = explained(y, {})
    assert "[not in a group: it reads a variable that this run writes]" in text_of(found)


UPDATES = {
    "fewer than 6 updates with the same rule and rates come one after the other": (
        tf.train.GradientDescentOptimizer(0.1),
        lambda x: tf.reduce_sum(tf.tanh(weights(3, 4)) * tf.reduce_sum(x)),
    ),
    "its gradient is no product": (
        tf.train.AdamOptimizer(),
        lambda x: tf.reduce_sum(tf.tanh(weights(256, 256)) * tf.reduce_sum(x)),
    ),
    "its gradient is a product of another type than float32": (
        tf.train.AdamOptimizer(),
        lambda x: tf.reduce_sum(
            tf.matmul(tf.cast(x, tf.float64), tf.Variable(np.ones((256, 256)))) ** 2
        ),
    ),
    "its gradient is no product of a transposed batch": (
        tf.train.AdamOptimizer(),
        lambda x: tf.reduce_sum(tf.matmul(weights(256, 256), x, transpose_b=True) ** 2),
    ),
}


@pytest.mark.parametrize("why", UPDATES)
def test_updates_in_no_group(why: str) -> None:
    if why.startswith("its gradient") and not native_groups.native_expected():
        pytest.skip("updates take products in compiled code only")
    optimizer, loss = UPDATES[why]
    x = tf.placeholder(tf.float32, [8, 256])
    found = explained(optimizer.minimize(loss(x)), {x: np.ones((8, 256))})
    assert why in [s.apart for s in found.steps]
    assert f"group: {why}]" in text_of(found)


@needs_library
@pytest.mark.parametrize("setting", ["always", "1"])
def test_steps_of_bound_runs_that_became_native(
    setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bound run counts for itself: explain asks it, not what the session counted before."""
    if llvm_library.available() is None:
        pytest.skip(llvm_library.status())
    monkeypatch.setenv("HEADRACE_NATIVE", setting)
    monkeypatch.setattr(native_groups, "HOT_WORK", 1 << 20)
    x = tf.placeholder(tf.float32, [None, 256])
    hidden = tf.nn.softplus(tf.matmul(x, weights(256, 256)))
    loss = tf.reduce_mean(tf.square(tf.matmul(hidden, weights(256, 256))), 1)
    step = tf.train.GradientDescentOptimizer(1e-3).minimize(loss)
    feed = {x: np.ones((128, 256))}
    few, many = (explained([step, loss], feed, runs) for runs in (4, 60))
    kinds = [s.op_type for s in many.steps if s.kind == "fused"]
    assert len(many.bound) == 1 and "Softplus" in kinds
    assert all(s.by == "native" for s in many.steps if s.kind == "fused"), str(many)
    is_native = [s.by == "native" for s in few.steps if s.kind == "fused"]
    assert all(is_native) if setting == "always" else not any(is_native)
