"""Plans for the shapes that are fed (executors/specialised.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace.compat.v1 as tf
from headrace.executors import specialised
from headrace.executors.specialised import RUNS


def dropout_step(seed: int = 1) -> tuple[Any, Any, Any, dict[str, Any]]:
    """A training step whose placeholders have no shapes, or a batch of any size."""
    graph = tf.Graph()
    with graph.as_default():
        tf.set_random_seed(seed)
        x = tf.placeholder("float", [None, 300])
        y = tf.placeholder("float", [None, 3])
        keep = tf.placeholder("float")
        w1 = tf.Variable(tf.random_normal([300, 200], stddev=0.1, seed=2))
        w2 = tf.Variable(tf.random_normal([200, 3], stddev=0.1, seed=3))
        h = tf.nn.dropout(tf.nn.relu(tf.matmul(x, w1)), keep, seed=4)
        logits = tf.matmul(h, w2)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=y))
        train = tf.train.RMSPropOptimizer(0.001, 0.9).minimize(loss)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    return session, [train, loss], (x, y, keep), {"logits": logits, "h": h}


def batch(rows: int = 100, seed: int = 0) -> tuple[Any, Any, float]:
    made = np.random.RandomState(seed)
    labels = np.eye(3, dtype=np.float32)[made.randint(0, 3, rows)]
    return made.rand(rows, 300).astype(np.float32), labels, 0.5


def losses(count: int) -> tuple[list[float], Any]:
    session, fetches, feeds, _ = dropout_step()
    feed = dict(zip(feeds, batch()))
    found = [float(session.run(fetches, feed)[1]) for _ in range(count)]
    return found, session.explain(fetches, feed)


def test_fewer_steps_and_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    found, explained = losses(RUNS + 12)
    assert "steps instead of" in explained.planned_again[0]
    assert "planned again for the feeds: [100,300] [100,3] []" in str(explained)
    monkeypatch.setattr(specialised, "RUNS", 10**9)
    general, before = losses(RUNS + 12)
    assert before.planned_again[0].startswith("none yet")
    assert len(explained.steps) < len(before.steps)
    np.testing.assert_allclose(found, general, rtol=2e-4)
    assert found[:RUNS] == general[:RUNS]  # the general plan until then


def test_which_run_changes_over_is_the_same_every_time() -> None:
    assert losses(RUNS + 8)[0] == losses(RUNS + 8)[0]


def test_other_shapes_take_the_general_plan() -> None:
    session, fetches, feeds, tensors = dropout_step()
    feed = dict(zip(feeds, batch()))
    for _ in range(RUNS + 2):
        session.run(fetches, feed)
    for rows in (1, 7, 250):
        other = dict(zip(feeds, batch(rows)))
        assert session.run(tensors["logits"], other).shape == (rows, 3)
        assert np.isfinite(session.run(fetches, other)[1])
    with pytest.raises(ValueError, match="Cannot feed value of shape"):
        session.run(fetches, {**feed, feeds[0]: np.zeros((4, 299), np.float32)})


def test_errors_name_the_operation() -> None:
    session, fetches, feeds, _ = dropout_step()
    x, y, keep = batch()
    for _ in range(RUNS + 2):
        session.run(fetches, dict(zip(feeds, (x, y, keep))))
    with pytest.raises(tf.errors.InvalidArgumentError, match="softmax_cross_entropy"):
        session.run(fetches, dict(zip(feeds, (x, y[:50], keep))))
    assert np.isfinite(session.run(fetches, dict(zip(feeds, (x, y, keep))))[1])


def test_the_number_of_plans_is_bounded() -> None:
    session, fetches, feeds, _ = dropout_step()
    for rows in range(1, 9):
        for _ in range(RUNS * 6):
            session.run(fetches, dict(zip(feeds, batch(rows))))
    notes = session.explain(fetches, dict(zip(feeds, batch()))).planned_again
    assert 0 < len(notes) <= specialised.MAX_SHAPES


def test_two_sessions_count_for_themselves() -> None:
    session, fetches, feeds, _ = dropout_step()
    feed = dict(zip(feeds, batch()))
    for _ in range(RUNS + 1):
        session.run(fetches, feed)
    other = tf.Session(graph=session.graph)
    with session.graph.as_default():
        other.run(tf.global_variables_initializer())
    other.run(fetches, feed)
    assert other.explain(fetches, feed).planned_again[0].startswith("none yet")
    for _ in range(RUNS):
        other.run(fetches, feed)
    assert "instead of" in other.explain(fetches, feed).planned_again[0]


def test_a_loop_and_a_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialised, "MIN_OPEN_STEPS", 0)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, None])
        grown = tf.while_loop(
            lambda i, a: i < 3,
            lambda i, a: (i + 1, tf.concat([a, a], 0)),
            [0, x],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, None])],
        )[1]
        chosen = tf.cond(tf.shape(x)[0] > 2, lambda: grown * 2.0, lambda: grown)
        total = tf.reduce_sum(tf.reshape(chosen, [tf.shape(chosen)[0], -1]), 1)
        session = tf.Session()
        for rows in (2, 3):
            given = np.ones((rows, 4), np.float32)
            for _ in range(RUNS + 3):
                found = session.run([total, grown], {x: given})
            np.testing.assert_array_equal(found[0], np.full(8 * rows, 8.0 if rows > 2 else 4.0))
            assert found[1].shape == (8 * rows, 4)
