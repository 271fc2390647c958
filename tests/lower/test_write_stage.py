"""What depends on variables alone is computed once and again only after a write."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.kernels import accel
from headrace.lower import write_stage as kept_values
from headrace.session import events


@pytest.fixture
def model() -> dict[str, Any]:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 100])
        w = tf.Variable(tf.random_normal([100, 80], seed=1), name="w")
        g = tf.Variable(2.0, name="g")
        y = tf.matmul(x, tf.nn.l2_normalize(w, 0) * g)
        step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y))
        init = tf.global_variables_initializer()
    session = tf.Session(graph=graph)
    session.run(init)
    return {"graph": graph, "session": session, "x": x, "w": w, "g": g, "y": y, "step": step}


ROWS = np.random.default_rng(0).normal(size=(3, 100)).astype(np.float32)


def counts() -> tuple[int, int]:
    now = events.snapshot()
    return now["kept_hits"], now["kept_misses"]


def expected(m: dict[str, Any]) -> Any:
    w, g = m["session"].run([m["w"], m["g"]])
    return ROWS @ (w / np.sqrt((w * w).sum(0)) * g)


def test_computed_once(model: dict[str, Any]) -> None:
    run = lambda: model["session"].run(model["y"], {model["x"]: ROWS})
    hits, misses = counts()
    first = run()
    for _ in range(3):
        np.testing.assert_array_equal(run(), first)
    more_hits, more_misses = (now - before for now, before in zip(counts(), (hits, misses)))
    assert more_misses == 1 and more_hits in (
        3,
        4,
    )  # a run that is bound to its shapes asks once more
    np.testing.assert_allclose(first, expected(model), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("how", ["train", "assign", "load", "scatter", "rank 0", "initializer"])
def test_every_kind_of_write_is_seen(model: dict[str, Any], how: str) -> None:
    m, session = model, model["session"]
    with m["graph"].as_default():
        write = {
            "train": lambda: session.run(m["step"], {m["x"]: ROWS}),
            "assign": lambda: session.run(m["w"].assign(np.ones((100, 80), np.float32))),
            "load": lambda: m["w"].load(np.ones((100, 80), np.float32), session),
            "scatter": lambda: session.run(tf.scatter_update(m["w"], [0], np.ones((1, 80)))),
            "rank 0": lambda: session.run(m["g"].assign(7.0)),
            "initializer": lambda: session.run(m["w"].initializer),
        }[how]
        for _ in range(3):
            session.run(m["y"], {m["x"]: ROWS})
            write()
            got = session.run(m["y"], {m["x"]: ROWS})
            np.testing.assert_allclose(got, expected(m), rtol=1e-4, atol=1e-4)


def test_large_variables_are_still_updated_in_place() -> None:
    with tf.Graph().as_default():
        w = tf.Variable(tf.ones([300, 200]))
        double = tf.reduce_sum(w * 2.0, 0)
        add = w.assign_add(tf.ones([300, 200])).op
        with tf.Session() as session:
            session.run(w.initializer)
            session.run(double)
            before = session._state.values[w.op.name].ctypes.data
            session.run(add)
            assert session._state.values[w.op.name].ctypes.data == before
            np.testing.assert_array_equal(session.run(double), np.full(200, 4.0 * 300))


def test_results_are_the_users_own(model: dict[str, Any]) -> None:
    m = model
    with m["graph"].as_default():
        whole = tf.nn.l2_normalize(m["w"], 0) * 3.0
    first = m["session"].run(whole)
    copy = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(m["session"].run(whole), copy)


def test_sessions_keep_their_own(model: dict[str, Any]) -> None:
    m = model
    other = tf.Session(graph=m["graph"])
    other.run([m["w"].initializer, m["g"].assign(1.0).op])
    a = m["session"].run(m["y"], {m["x"]: ROWS})
    other.run(m["g"].assign(4.0))
    b = other.run(m["y"], {m["x"]: ROWS})
    np.testing.assert_allclose(b, 2 * a, rtol=1e-5)


def test_a_program_that_writes_the_variable_keeps_nothing(model: dict[str, Any]) -> None:
    hits, misses = counts()
    for _ in range(3):
        model["session"].run([model["y"], model["step"]], {model["x"]: ROWS})
    assert counts() == (hits, misses)


def test_uninitialized_is_said_as_ever(model: dict[str, Any]) -> None:
    with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value"):
        tf.Session(graph=model["graph"]).run(model["y"], {model["x"]: ROWS})


def test_an_error_inside_names_the_operation() -> None:
    with tf.Graph().as_default():
        w = tf.Variable(tf.ones([100, 100]))
        index = tf.Variable(200)
        row = tf.gather(w, index, name="far")
        session = tf.Session()
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="far"):
            session.run(row)


def test_explained(model: dict[str, Any]) -> None:
    explanation = model["session"].explain(model["y"], [model["x"]])
    assert explanation.kept and all("/" in n or n for n in explanation.kept)
    assert explanation.feeds == [model["x"].name]
    assert "depend on variables alone" in str(explanation)


def test_bounded(model: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_values, "MIN_BYTES_KEPT", 0)
    m = model
    with m["graph"].as_default():
        results = [m["w"] * float(i) + 1.0 for i in range(6)]
        for r in results:
            m["session"].run(tf.reduce_sum(r))
        wide = tf.tile(m["w"], [1, 10])
        m["session"].run(tf.matmul(m["x"], wide), {m["x"]: ROWS})
    held = sum(kept_values._bytes(e.values) for e in m["session"]._state.kept.values())
    assert held <= kept_values.MAX_COPIES * m["session"]._state.nbytes()


def test_threads_see_what_they_wrote(model: dict[str, Any]) -> None:
    """A reader never gets a value of a variable that has been replaced before it started."""
    m, session = model, model["session"]
    with m["graph"].as_default():
        value = tf.placeholder(tf.float32, [])
        write = m["w"].assign(tf.fill([100, 80], value)).op
        total = tf.reduce_sum(m["w"] * 2.0)
    wrong: list[Any] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            got = session.run(total)
            if abs(got / 16000 - round(got / 16000)) > 1e-3:
                wrong.append(got)

    session.run(write, {value: 0})
    readers = [threading.Thread(target=read) for _ in range(2)]
    for t in readers:
        t.start()
    for i in range(200):
        session.run(write, {value: i})
        got = session.run(total)
        if abs(got - 16000 * i) > 1:
            wrong.append((i, got))
    stop.set()
    for t in readers:
        t.join()
    assert not wrong


@pytest.mark.skipif(accel.library() is None, reason="without a kernel library nothing is packed")
def test_folded_and_packed_filters_of_several_shapes_are_within_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Filters that are folded with a norm and packed (on AVX2 with padding) were more than a
    session might keep, and runs of such networks were not bound to their shapes.
    """
    monkeypatch.setattr(kept_values, "MIN_BYTES_KEPT", 0)
    rng = np.random.default_rng(0)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 16, 16, 64])
        y = x
        for _ in range(3):
            w = tf.Variable(rng.normal(size=(3, 3, 64, 64)).astype(np.float32) / 24)
            ones, zeros = tf.Variable(tf.ones([64])), tf.Variable(tf.zeros([64]))
            y = tf.nn.conv2d(y, w, strides=[1, 1, 1, 1], padding="SAME")
            y = tf.nn.fused_batch_norm(y, ones, zeros, zeros, ones, is_training=False)[0]
            y = tf.nn.relu(y)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    images = rng.normal(size=(8, 16, 16, 64)).astype(np.float32)
    whole = session.run(y, {x: images})
    for count in (1, 2, 5, 8):
        for _ in range(12):
            part = session.run(y, {x: images[:count]})
        np.testing.assert_allclose(part, whole[:count], rtol=1e-4, atol=1e-5)
    explanation = session.explain(y, [x])
    assert len(explanation.bound) == 4, str(explanation)
