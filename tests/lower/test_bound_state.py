"""Bound runs (lower/bound_runs.py).

Results are the caller's own, nothing is stale, errors are the same, memory goes.
"""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.lower import binding as binding_module
from headrace.lower import bound_runs
from headrace.lower import stage_split as kept
from tests.lower.bound_networks import (
    RNG,
    TOLERANCE,
    array,
    assert_settled,
    bindings,
    block,
    check,
    dense,
    layer_norm,
    like,
    needs_library,
    placeholder,
    same,
    small_sizes,  # noqa: F401  (an autouse fixture)
    started,
)

pytestmark = needs_library


# results are the caller's own -------------------------------------------------------------------


@pytest.mark.parametrize("rows", [2, 200])
def test_results_are_the_callers_own(rows: int) -> None:
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 12)
        w = tf.Variable(array(12, 12))
        h = tf.matmul(x, w)
        y = dense(h, 12)
        c = tf.constant(array(3, 4))
        again = tf.reshape(y, [-1, 3, 4])
        fetches = [
            y,
            y,
            h,
            again,
            x,
            w,
            c,
            tf.transpose(w),
            tf.shape(y),
            h[:, :4],
            tf.reshape(x, [-1]),
        ]
    session = started(graph)
    reference = like(session, graph)
    feed = {x: array(rows, 12)}
    before = feed[x].copy()
    want = reference.run(fetches, feed)
    for only in (fetches, [y], [again], [h, y]):
        for _ in range(3):
            got = session.run(only, feed)
            expected = want if only is fetches else reference.run(only, feed)
            same(got, expected)
            for r in got:
                r[...] = 7
        np.testing.assert_array_equal(feed[x], before)
        same(session.run(w), reference.run(w))
    assert_settled(session)


def test_results_stay_what_they_were() -> None:
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 12)
        y = dense(x, 200, tf.nn.relu)
        fetches = [y, tf.reduce_sum(y), tf.nn.softmax(y)]
    session = started(graph)
    reference = like(session, graph)
    feeds = [{x: array(20, 12)} for _ in range(4)]
    got = [session.run(fetches, f) for f in feeds]
    for g, f in zip(got, feeds):
        same(g, reference.run(fetches, f))


# feeds ------------------------------------------------------------------------------------------


def test_feeds_of_all_kinds() -> None:
    with tf.Graph().as_default() as graph:
        x, scale = placeholder(None, 12), tf.placeholder(tf.float32, [])
        counts, flags = tf.placeholder(tf.int32, [None, 1]), tf.placeholder(tf.bool, [None])
        y = dense(x, 8) * scale + tf.cast(counts, tf.float32)
        y = tf.where(flags, y, tf.zeros_like(y))
    session = started(graph)
    reference = like(session, graph)
    large = array(10, 24)
    frozen = array(5, 12)
    frozen.flags.writeable = False
    for value in (
        large[::2, ::2],
        np.asfortranarray(large[:5, :12]),
        frozen,
        array(5, 12).astype(np.float64),
        array(5, 12).tolist(),
        np.broadcast_to(array(12), (5, 12)),
        large[4::-1, :12],
        RNG.integers(0, 5, (5, 12)),
    ):
        feed = {
            x: value,
            scale: 2,
            counts: np.arange(5)[:, None],
            flags: [True, False] * 2 + [True],
        }
        for s in (np.float32(2), 2.0, np.array(2.0)):
            feed[scale] = s
            same(session.run(y, feed), reference.run(y, feed))
    assert len(bindings(session)) == 1


def test_large_feeds_of_all_kinds() -> None:
    """Large feeds may be read where they lie."""
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 256)
        y = dense(x, 8)
        fetches = [y, x, tf.reduce_sum(x, 1), tf.transpose(x)]
    session = started(graph)
    reference = like(session, graph)
    large = array(600, 512)
    frozen = array(600, 256)
    frozen.flags.writeable = False
    values = (
        frozen,
        large[:, ::2],
        np.asfortranarray(large[:, :256]),
        large[::-1, :256],
        array(600, 256),
    )
    for value in (*values, np.broadcast_to(array(256), (600, 256)), *values):
        for only in (y, fetches):
            same(session.run(only, {x: value}), reference.run(only, {x: value}))
        got = session.run(fetches, {x: value})
        for r in got:
            r[...] = 0
        assert np.any(value)


def test_no_rows() -> None:
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 12)
        y = dense(dense(x, 8, tf.nn.relu), 4)
    session = started(graph)
    reference = like(session, graph)
    for rows in (0, 3, 0, 1, 0):
        feed = {x: array(rows, 12)}
        same(session.run(y, feed), reference.run(y, feed))


def test_wrong_feeds_are_said_and_spoil_nothing() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, None])
        y = tf.matmul(x, tf.Variable(array(12, 8)), name="layer")
    session = started(graph)
    good = {x: array(3, 12)}
    want = session.run(y, good)
    for _ in range(10):
        with pytest.raises(tf.errors.InvalidArgumentError, match="size-incompatible") as caught:
            session.run(y, {x: array(3, 7)})
        assert caught.value.op.name == "layer"
        with pytest.raises(ValueError, match="Cannot feed value of shape"):
            session.run(y, {x: array(3)})
        np.testing.assert_array_equal(session.run(y, good), want)
    assert_settled(session)


def test_a_kernel_that_refuses_values() -> None:
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 12)
        y = dense(tf.check_numerics(dense(x, 8), "no number", name="look"), 4)
    session = started(graph)
    good, bad = {x: array(3, 12)}, {x: array(3, 12) * np.float32(np.nan)}
    want = None
    for _ in range(10):
        with pytest.raises(tf.errors.InvalidArgumentError, match="no number") as caught:
            session.run(y, bad)
        assert caught.value.op.name == "look"
        want = session.run(y, good) if want is None else want
        np.testing.assert_array_equal(session.run(y, good), want)


def test_images_with_another_number_of_channels() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 6, 6, None])
        y = tf.nn.conv2d(x, tf.Variable(array(3, 3, 8, 8)), [1, 1, 1, 1], "SAME")
    session = started(graph)
    session.run(y, {x: array(1, 6, 6, 8)})
    with pytest.raises(tf.errors.InvalidArgumentError, match="input depth"):
        session.run(y, {x: array(1, 6, 6, 4)})


# what is not finite -----------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 20])
def test_nan_goes_through_dense_layers(rows: int) -> None:
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 12)
        y = dense(dense(dense(x, 40, tf.nn.relu), 40, tf.nn.relu), 5)
        fetches = [y, tf.nn.softmax(y)]
    session = started(graph)
    value = array(rows, 12)
    session.run(fetches, {x: value})
    value[rows // 2, 3] = np.nan
    for got in session.run(fetches, {x: value}):
        wrong = np.isnan(got).all(1)
        assert wrong[rows // 2] and wrong.sum() == 1 and np.isfinite(got[~wrong]).all()
    with graph.as_default():
        w = tf.global_variables()[2]
    weights = session.run(w)
    weights[7, 9] = np.nan
    w.load(weights, session)
    assert np.isnan(session.run(y, {x: array(rows, 12)})).all()


def test_infinity_in_feeds() -> None:
    """A last relu is exact.

    Inside, minus infinity is NaN to the next product, where relu makes it 0 (fused_products.py).
    """
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 4)
        h = tf.nn.relu(tf.matmul(x, tf.constant(np.eye(4, dtype=np.float32) * 2)))
        y = tf.matmul(h, tf.constant(np.ones((4, 3), np.float32)))
    session = started(graph)
    value = array(5, 4)
    value[1, 1], value[2, 2] = np.inf, -np.inf
    got, last = session.run(y, {x: value}), session.run(h, {x: value})
    clean = [0, 3, 4]
    np.testing.assert_allclose(
        got[clean], np.maximum(value[clean] * 2, 0).sum(1, keepdims=True).repeat(3, 1), rtol=1e-5
    )
    assert not np.isfinite(got[1]).any() and not np.isnan(last[clean]).any()


def test_convolutions_with_relu_keep_nan() -> None:
    """oneDNN's relu would give 0 for NaN."""
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 6, 6, 8)
        plain = tf.nn.conv2d(x, tf.Variable(array(3, 3, 8, 8)), [1, 1, 1, 1], "SAME")
        separate = tf.nn.relu(plain)
        biased = tf.nn.bias_add(plain, tf.Variable(array(8)))
        y = tf.nn.relu(biased)
    session = started(graph)
    value = array(2, 6, 6, 8)
    value[1, 3, 3, 0] = np.nan
    for fetch in (plain, separate, biased, y):
        got = session.run(fetch, {x: value})
        assert np.isnan(got[1, 2:5, 2:5]).all() and np.isfinite(got[0]).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.0])
@pytest.mark.parametrize("at", [(0, 0), (3, 4), (7, 7)])
def test_what_is_not_finite_in_residual_networks(value: float, at: tuple[int, int]) -> None:
    """Convolutions behind each other do not look for NaN one by one: the last product tells."""
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 8, 8, 8)
        y = tf.nn.relu(tf.nn.conv2d(x, tf.Variable(abs(array(3, 3, 8, 8))), 1, "SAME"))
        for width, stride in ((8, 1), (16, 2)):
            into = y.shape[-1]
            w = [abs(array(*s, width)) for s in ((3, 3, into), (3, 3, width), (1, 1, into))]
            h = tf.nn.relu(tf.nn.conv2d(y, tf.Variable(w[0]), stride, "SAME"))
            h = tf.nn.conv2d(h, tf.Variable(w[1]), 1, "SAME")
            short = y if stride == 1 else tf.nn.conv2d(y, tf.Variable(w[2]), stride, "SAME")
            y = tf.nn.relu(h + short)
        means = dense(tf.reduce_mean(y, [1, 2]), 5)
        pooled = tf.nn.avg_pool(y, [1, 4, 4, 1], [1, 4, 4, 1], "VALID")
        again = tf.nn.conv2d(pooled, tf.Variable(array(1, 1, 16, 4)), 1, "SAME")
        largest = tf.reduce_sum(tf.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"), [1, 2, 3])
    session = started(graph)
    reference = like(session, graph)
    clean, spoilt = array(2, 8, 8, 8), array(2, 8, 8, 8)
    spoilt[(1, *at, 3)] = value
    for fetches in (means, again, largest, [means, again, y]):
        for fed in (clean, spoilt, clean):
            same(session.run(fetches, {x: fed}), reference.run(fetches, {x: fed}))
    assert len(bindings(session)) == 4


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_softmax_and_attention_of_what_is_not_finite(value: float) -> None:
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 4, 8)
        scores = tf.matmul(x, x, transpose_b=True)
        y = tf.matmul(tf.nn.softmax(scores), x)
        z = tf.nn.softmax(tf.reshape(tf.matmul(tf.reshape(x, [-1, 8]), tf.eye(8)), [-1, 4, 8]))
    session = started(graph)
    reference = like(session, graph)
    fed = array(3, 4, 8)
    session.run([y, z], {x: fed})
    fed[1, 2] = value
    for got, want in zip(session.run([y, z], {x: fed}), reference.run([y, z], {x: fed})):
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_allclose(got, want, **TOLERANCE)


# writes are seen --------------------------------------------------------------------------------


def network() -> tuple[Any, ...]:
    """A layer whose weights are large enough to be overwritten where they lie."""
    x = placeholder(None, 300)
    w = tf.Variable(array(300, 200), name="w")
    b = tf.Variable(array(200), name="b")
    y = tf.nn.tanh(tf.matmul(x, w) + b)
    return x, w, b, y


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "assign": lambda w, b: tf.assign(w, w * 0.5),
    "assign_add": lambda w, b: tf.assign_add(w, tf.ones_like(w) * 0.01),
    "bias": lambda w, b: tf.assign(b, b + 1),
    "both": lambda w, b: tf.group(tf.assign(w, w * 0.5), tf.assign(b, b + 1)),
    "scatter": lambda w, b: tf.scatter_update(w, [3, 5], np.ones((2, 200), np.float32)),
    "initializer": lambda w, b: tf.variables_initializer([w, b]),
    "sgd": lambda w, b: tf.train.GradientDescentOptimizer(0.1).minimize(
        tf.reduce_sum(w * w) + tf.reduce_sum(b)
    ),
    "adam": lambda w, b: tf.train.AdamOptimizer(0.1).minimize(
        tf.reduce_sum(w * w) + tf.reduce_sum(b)
    ),
}


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("kind", list(WRITES))
def test_writes_are_seen(kind: str, resource: bool) -> None:
    with tf.Graph().as_default() as graph:
        with tf.variable_scope("all", use_resource=resource):
            x, w, b, y = network()
            write = WRITES[kind](w, b)
    session = started(graph)
    feeds = [{x: array(rows, 300)} for rows in (4, 20)]
    for _ in range(3):
        for feed in feeds:
            same(session.run(y, feed), like(session, graph).run(y, feed))
            session.run(write)
            same(session.run(y, feed), like(session, graph).run(y, feed))
    assert len(bindings(session)) >= 2


def test_writes_of_what_is_folded_into_weights_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Filters and biases in which a normalisation was folded belong to what is kept, not to the
    plan that is bound.
    """
    monkeypatch.setattr(kept, "MIN_ELEMENTS", 1)
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 8, 8, 8)
        y = dense(tf.reduce_mean(block(x, 8), [1, 2]), 4)
        variables = tf.global_variables()
        changes = [tf.assign(v, v * 1.25 + 0.1) for v in variables]
    session = started(graph)
    feed = {x: array(2, 8, 8, 8)}
    before = session.run(y, feed)
    for change in changes:
        session.run(change)
        now = session.run(y, feed)
        same(now, like(session, graph).run(y, feed), rtol=1e-3, atol=1e-4)
        assert (now != before).any()
        before = now
    assert len(bindings(session)) == 1


def test_load_is_seen() -> None:
    with tf.Graph().as_default() as graph:
        x, w, b, y = network()
    session = started(graph)
    feed = {x: array(4, 300)}
    for _ in range(4):
        w.load(array(300, 200), session)
        same(session.run(y, feed), like(session, graph).run(y, feed))
        b.load(array(200), session)
        same(session.run(y, feed), like(session, graph).run(y, feed))


def test_variables_are_still_overwritten_where_they_lie() -> None:
    with tf.Graph().as_default() as graph:
        x, w, _, y = network()
        turned = tf.reduce_sum(tf.transpose(w) * tf.reduce_mean(x), 1) + y[0]
        step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(w * w), var_list=[w])
    session = started(graph)
    feed = {x: array(4, 300)}
    session.run(step)
    place = id(session._state.values["w"]), session._state.values["w"].ctypes.data
    for _ in range(4):
        for fetch in (y, turned):
            same(session.run(fetch, feed), like(session, graph).run(fetch, feed), rtol=1e-3)
        del fetch
        stamp = session._state.versions["w"]
        session.run(step)
        assert (id(session._state.values["w"]), session._state.values["w"].ctypes.data) == place
        assert session._state.versions["w"] == stamp + 1
    assert len(bindings(session)) == 2


def test_another_shape_of_a_variable() -> None:
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 6)
        y = dense(x, 8)
        shift = tf.Variable(array(1, 8), validate_shape=False)
        z = y + shift
        assign = tf.assign(
            shift, tf.placeholder_with_default(array(3, 8), None), validate_shape=False
        )
        back = tf.assign(
            shift, tf.placeholder_with_default(array(1, 8), None), validate_shape=False
        )
    session = started(graph)
    feed = {x: array(3, 6)}
    for _ in range(3):
        for change in (back, assign):
            session.run(change)
            got = session.run([z, y, shift], feed)
            np.testing.assert_allclose(got[0], got[1] + got[2], **TOLERANCE)


def test_uninitialised_variables_are_said() -> None:
    with tf.Graph().as_default() as graph:
        x, w, b, y = network()
        init_w, init_b = w.initializer, b.initializer
    feed = {x: array(4, 300)}
    with tf.Session(graph=graph) as session:
        for init, missing in ((None, "w"), (init_w, "b")):
            if init is not None:
                session.run(init)
            for _ in range(10):
                with pytest.raises(
                    tf.errors.FailedPreconditionError, match=f"uninitialized value {missing}"
                ):
                    session.run(y, feed)
        session.run(init_b)
        same(session.run(y, feed), like(session, graph).run(y, feed))
        assert len(bindings(session)) == 1


def test_steady_views_of_variables() -> None:
    """Variables that are turned, cut and reshaped, each view used again."""
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 6)
        y = dense(x, 6)
        w = tf.Variable(array(6, 6))
        turned = tf.transpose(w)
        cut = turned[1:3]
        flat = tf.reshape(cut, [12])
        top, low = tf.split(w, 2, 0)
        fetches = [
            y * cut[0],
            tf.reduce_max(y) * flat,
            y + turned[0],
            tf.reduce_max(y) * cut,
            tf.concat([y, turned], 0),
            tf.concat([y, top], 0),
            tf.concat([low, y], 0),
            turned,
            flat,
            w,
        ]
        change = tf.assign(w, w * 2)
    session = started(graph)
    feed = {x: array(3, 6)}
    for _ in range(3):
        reference = like(session, graph)
        same(session.run(fetches, feed), reference.run(fetches, feed))
        for fetch in fetches:
            same(session.run(fetch, feed), reference.run(fetch, feed))
        session.run(change)
    assert_settled(session)


def test_plans_of_views_alone_and_of_nothing_for_the_library() -> None:
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 6)
        w = tf.Variable(array(6, 6))
        fetches = [tf.reshape(tf.transpose(x), [-1]), tf.transpose(w), x[:, :2]]
    session = started(graph)
    for _ in range(3):
        feed = {x: array(3, 6)}
        same(session.run(fetches, feed), like(session, graph).run(fetches, feed))
    assert not bindings(session)


# how many, and how long -------------------------------------------------------------------------


def test_more_signatures_than_are_settled() -> None:
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 12)
        y = dense(dense(x, 8, tf.nn.relu), 4)
    session = started(graph)
    reference = like(session, graph)
    for _ in range(2 * bound_runs.MIN_RUNS):
        for rows in range(1, 10):
            feed = {x: array(rows, 12)}
            same(session.run(y, feed), reference.run(y, feed))
        assert len(bindings(session)) <= bound_runs.MAX_BINDINGS
    for _ in range(8 * bound_runs.MIN_RUNS):
        session.run(y, {x: array(20, 12)})
    assert 20 in {shape[0] for t in session._state.bindings.values() for (*_, shape) in t}


def test_memory_goes_with_session_graph_and_plan() -> None:
    def made() -> tuple[Any, Any, Any, Any]:
        with tf.Graph().as_default() as graph:
            x = placeholder(None, 12)
            y = dense(dense(x, 8, tf.nn.relu), 4)
        session = started(graph)
        session.run(y, {x: array(3, 12)})
        (found,) = bindings(session)
        return graph, session, weakref.ref(found.binding.renewal.binder), (x, y)

    gc.collect()
    gc.disable()  # nothing needs to wait for the collector of cycles
    try:
        graph, session, binding, _ = made()
        session.close()
        assert binding() is None
        graph, session, binding, _ = made()
        del session
        assert binding() is None
        graph, session, binding, _ = made()
        graph._plans.forget()
        assert binding() is None
        graph, session, binding, (x, y) = made()
        session._state.clear()
        assert binding() is None
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(y, {x: array(3, 12)})
    finally:
        gc.enable()


def test_what_cannot_be_bound_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that refuses zeros, which is what a place holds before the first run.

    Once tried, not again.
    """
    with tf.Graph().as_default() as graph:
        x = placeholder(4, 4)
        z = tf.matrix_inverse(dense(x, 4) + 10 * tf.eye(4))
    session = started(graph)
    tried = []
    real = binding_module.bind_plan
    monkeypatch.setattr(binding_module, "bind_plan", lambda *args: tried.append(1) or real(*args))
    feed = {x: array(4, 4)}
    for _ in range(6):
        same(session.run(z, feed), like(session, graph).run(z, feed))
    assert len(tried) == 1 and not bindings(session)


# sessions of other kinds ------------------------------------------------------------------------


def test_one_thread() -> None:
    config = tf.ConfigProto(intra_op_parallelism_threads=1)

    def build() -> tuple[Any, Any]:
        x = placeholder(None, 8, 8, 8)
        return [x], dense(tf.reshape(block(x, 8), [-1, 512]), 3)

    check(build, [[(2, 8, 8, 8)], [(1, 8, 8, 8)]], config=config)


def test_exact_sessions() -> None:
    def build() -> tuple[Any, Any]:
        x = placeholder(None, 12)
        return [x], tf.nn.softmax(dense(dense(x, 8, tf.nn.relu), 4))

    check(build, [[(2, 12)], [(1, 12)]], exact=True)


def test_weights_in_int8() -> None:
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 64)
        y = layer_norm(dense(dense(x, 64, tf.nn.relu), 32))
    session = started(graph, weights="int8")
    reference = like(session, graph)
    for rows in (3, 1, 3, 1):
        feed = {x: array(rows, 64)}
        want = reference.run(y, feed)
        got = session.run(y, feed)
        assert np.abs(got - want).max() <= 0.2 * np.abs(want).max()


def test_make_callable_and_partial_runs() -> None:
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 12)
        y = dense(x, 8)
        z = dense(y, 4)
    session = started(graph)
    reference = like(session, graph)
    call = session.make_callable(z, [x])
    for rows in (2, 3, 2):
        value = array(rows, 12)
        same(call(value), reference.run(z, {x: value}))
        handle = session.partial_run_setup([y, z], [x])
        same(session.partial_run(handle, y, {x: value}), reference.run(y, {x: value}))
        same(session.partial_run(handle, z), reference.run(z, {x: value}))
    assert_settled(session)


def test_functions() -> None:
    """Functions of TF 2 run the same plans, over variables that are written between calls."""
    from headrace.api.v1.context import disable_v2_behavior, enable_v2_behavior
    from headrace.compat import v2
    from headrace.eager.eager_context import STATE

    enable_v2_behavior()
    try:
        w, b = v2.Variable(array(12, 8)), v2.Variable(array(8))

        @v2.function(input_signature=[v2.TensorSpec([None, 12], v2.float32)])
        def layer(x: Any) -> Any:
            return v2.nn.relu(v2.matmul(x, w) + b)

        for step in range(6):
            x = array(1 + step % 3, 12)
            want = np.maximum(x @ w.numpy() + b.numpy(), 0)
            for _ in range(2):
                np.testing.assert_allclose(layer(v2.constant(x)).numpy(), want, **TOLERANCE)
            if step % 2:
                w.assign(w * 1.5)
            with v2.GradientTape() as tape:
                loss = v2.reduce_sum(layer(v2.constant(x)))
            (slope,) = tape.gradient(loss, [b])
            assert slope.shape == (8,)
        tables = [
            t
            for t in STATE.bindings.values()
            for f in t.values()
            if isinstance(f, bound_runs._Bound)
        ]
        assert tables
    finally:
        disable_v2_behavior()


# threads and processes --------------------------------------------------------------------------


def _product(x: Any, w: Any) -> Any:
    return tf.matmul(x, w)


def _layer(x: Any, w: Any) -> Any:
    return tf.nn.relu(tf.matmul(x, w, transpose_b=True) + w[0])


def _biased(x: Any, w: Any) -> Any:
    return tf.nn.bias_add(tf.matmul(x, tf.eye(300) * 1.0), w[1])


def _convolution(x: Any, w: Any) -> Any:
    return tf.nn.conv2d(tf.reshape(x, [-1, 10, 10, 3]), tf.reshape(w, [5, 5, 3, 1200]), 1, "VALID")


@pytest.mark.parametrize("build", [_product, _layer, _biased, _convolution])
@pytest.mark.parametrize("sizes", [(1, 2, 3, 1, 2, 17), (17, 17)])
def test_threads_with_writers(build: Callable[..., Any], sizes: tuple[int, ...]) -> None:
    """Every run sees one version of the weights.

    All of them are equal to k, so a mixture would show; so would memory that a write has freed.
    """
    wide = 300
    with tf.Graph().as_default() as graph:
        x = placeholder(None, wide)
        w = tf.Variable(np.ones((wide, wide), np.float32))
        y = build(x, w)
        grow = tf.assign_add(w, np.ones((wide, wide), np.float32))
    session = started(graph)
    ones = np.ones((1, wide), np.float32)
    base = float(session.run(y, {x: ones}).max())
    session.run(grow)
    unit = float(session.run(y, {x: ones}).max()) - base
    assert unit > 0
    stop, failures = threading.Event(), []

    def read(rows: int) -> None:
        feed = {x: np.ones((rows, wide), np.float32)}
        last = 0.0
        try:
            while not stop.is_set():
                got = session.run(y, feed)
                value = float(got.flat[0])
                assert (got == value).all() and (value - base) % unit == 0 and value >= last, got
                last = value
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=read, args=(rows,)) for rows in sizes]
    for r in readers:
        r.start()
    for _ in range(200):
        session.run(grow)
    stop.set()
    for r in readers:
        r.join()
    assert not failures
    assert (session.run(y, {x: ones}) == base + 201 * unit).all()


def test_many_short_threads() -> None:
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 12)
        y = dense(dense(x, 8, tf.nn.relu), 4)
    session = started(graph)
    reference = like(session, graph)
    wrong: list[Any] = []

    def work(rows: int) -> None:
        for _ in range(12):
            feed = {x: array(rows, 12)}
            try:
                same(session.run(y, feed), reference.run(y, feed))
            except BaseException as error:
                wrong.append(error)

    for _ in range(5):
        threads = [threading.Thread(target=work, args=(1 + n % 3,)) for n in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong
    assert (
        len(bindings(session)) < bound_runs.MAX_BINDINGS + 6
    )  # threads that came at the same moment


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_computes() -> None:
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 12)
        y = dense(dense(x, 8, tf.nn.relu), 4)
    session = started(graph)
    feed = {x: array(3, 12)}
    want = session.run(y, feed)
    child = os.fork()
    if child == 0:
        done = 1
        try:
            done = 0 if np.allclose(session.run(y, feed), want, atol=1e-5) else 2
        finally:
            os._exit(done)
    np.testing.assert_array_equal(session.run(y, feed), want)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(session.run(y, feed), want)


# training steps ---------------------------------------------------------------------------------


def test_results_of_training_steps_are_the_callers_own() -> None:
    """What is computed before the first write may lie in settled memory.

    What the caller gets does not.
    """
    with tf.Graph().as_default() as graph:
        x, target = placeholder(None, 64), placeholder(None, 8)
        h = dense(x, 96, tf.nn.relu)
        y = dense(h, 8)
        loss = tf.reduce_mean(tf.square(y - target))
        weights = tf.global_variables()[0]
        slope = tf.gradients(loss, [weights])[0]
        last = tf.Variable(tf.zeros([64, 96]))
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, var_list=[weights])
        note = tf.assign(last, slope)
        fetches = [step, note, loss, y, h, slope, tf.reshape(slope, [-1]), x, tf.transpose(h)]
    sessions = [started(graph, executor=e) for e in ("numpy", "reference")]
    with graph.as_default():
        for v in tf.global_variables():
            v.load(sessions[0].run(v), sessions[1])
    feeds = [{x: array(32, 64), target: array(32, 8)} for _ in range(4)]
    got, want = ([s.run(fetches, f)[1:] for f in feeds] for s in sessions)
    for a, b in zip(got, want):
        same(a, b)
    for results in got:
        for r in results:
            if r.ndim:
                r[...] = 7
    same(sessions[0].run([weights, last]), sessions[1].run([weights, last]))
    same(*[s.run(fetches, feeds[0])[1:] for s in sessions])


def test_without_a_library_the_first_look_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a library that comes later is used."""
    x = tf.placeholder(tf.float32, [None, 300])
    y = tf.nn.relu(tf.matmul(x, tf.Variable(np.ones((300, 200), np.float32))))
    value = np.ones((64, 300), np.float32)
    looks = []
    first = bound_runs.BoundRuns._first

    def counted(self: Any, *args: Any) -> Any:
        looks.append(args)
        return first(self, *args)

    monkeypatch.setattr(bound_runs.BoundRuns, "_first", counted)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with monkeypatch.context() as without:
            without.setattr(bound_runs, "library", lambda: None)
            for _ in range(5):
                session.run(y, {x: value})
            assert len(looks) == 1
            assert "there is no kernel library" in str(session.explain(y, {x: value}))
        for _ in range(5):
            made = session.run(y, {x: value})
        assert len(looks) > 1 and np.all(made == 300)
