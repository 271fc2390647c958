"""Graphs of many operations.

Their code has few names, takes any number of constants and results, and still knows its lines.
"""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.lower import emit_lines
from headrace.lower.fusion import Fused, fuse
from headrace.program.snapshot import snapshot


def _chain(x: Any, z: Any, steps: int) -> Any:
    for _ in range(steps):
        x = x * z + z
    return x


def _names(source: str) -> set[str]:
    return set(re.findall(r"\bt\d+\b", source))


def test_names_of_dead_values_are_used_again() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, z = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [3])
        y = _chain(x, z, 500)
        assert len(_names(session.explain(y, [x, z]).source)) <= emit_lines.MAX_NAMES + 2
        got = session.run(y, {x: [1, 2, 3], z: [0.5, 0.25, 0]})
    expected = np.array([1, 2, 3], np.float32)
    factor = np.array([0.5, 0.25, 0], np.float32)
    for _ in range(500):
        expected = expected * factor + factor
    np.testing.assert_array_equal(got, expected)


def test_a_value_used_twice_by_its_last_reader_gives_its_name_back_once() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        zero = _chain(x, x * 0, emit_lines.MAX_NAMES)
        e = tf.exp(x + zero)
        square = e * e
        a, b = tf.sin(square), tf.cos(square)
        got = session.run([a + b, a - b], {x: [0, 1]})
    e = np.exp(np.array([0, 1], np.float32))
    a, b = np.sin(e * e), np.cos(e * e)
    np.testing.assert_allclose(got, [a + b, a - b], rtol=1e-6)


@pytest.mark.parametrize("taken", [True, False])
def test_values_of_branches_have_names_of_their_own(taken: bool) -> None:
    """Values inside of branches cannot be fetched, whatever had their name before."""
    with tf.Graph().as_default(), tf.Session() as session:
        x, p = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.bool, [])
        inside: list[Any] = []

        def branch() -> Any:
            inside.append(tf.exp(y))
            return inside[0] + 1

        y = _chain(x, x * 0.5, emit_lines.MAX_NAMES)
        chosen = tf.cond(p, branch, lambda: y)
        z = _chain(chosen, x, 5)
        want = tf.Session(executor="reference").run(z, {x: [1, 2], p: taken})
        for _ in range(3):
            np.testing.assert_allclose(session.run(z, {x: [1, 2], p: taken}), want, rtol=1e-6)
        with pytest.raises(tf.errors.InaccessibleTensorError, match="not fetchable"):
            session.run([z, inside[0]], {x: [1, 2], p: taken})


def test_an_error_in_a_long_graph_names_its_operation_and_inputs() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, z = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
        bad = tf.add(_chain(x, x * 0, 50), z, name="bad")
        y = _chain(bad, x, 50)
        with pytest.raises(tf.errors.InvalidArgumentError) as info:
            session.run(y, {x: [1, 2], z: [1, 2, 3]})
    assert info.value.op.name == "bad"
    assert "Incompatible shapes: [2] vs. [3]" in info.value.message


def test_more_constants_than_a_function_closes_over() -> None:
    count = emit_lines.MAX_PARAMETERS + 100
    numbers = np.arange(2 * count, dtype=np.float32).reshape(count, 2)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        y = tf.add_n([tf.tanh(x * row, name=f"row{i}") for i, row in enumerate(numbers)])
        np.testing.assert_allclose(
            session.run(y, {x: [0.1, 0.2]}), np.tanh([0.1, 0.2] * numbers).sum(0), rtol=1e-5
        )
        with pytest.raises(tf.errors.InvalidArgumentError) as info:
            session.run(y, {x: [1, 2, 3]})
    assert info.value.op.name.startswith(("mul", "row"))


def test_results_that_share_memory_are_the_callers_own() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [1, 2, 3])
        y = tf.exp(x)
        fetches = [y, tf.squeeze(y, [0]), tf.squeeze(y), tf.exp(y)]
        got = session.run(fetches, {x: np.zeros((1, 2, 3))})
    for i, a in enumerate(got):
        for b in got[i + 1 :]:
            assert not np.shares_memory(a, b)
    assert all(a.flags.writeable for a in got)


def test_structures_of_large_graphs_are_not_looked_at_in_full() -> None:
    from headrace.core.schedule import needed_ops

    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3])
        y = _chain(x, x, 100)
        assert len(needed_ops([y.op], ())) == 201
        assert 10 < len(needed_ops([y.op], (), limit=10)) <= 13
        assert needed_ops([y.op], (), limit=201) == needed_ops([y.op], ())


def _seconds_to_fuse(steps: int) -> float:
    """CPU time to bring a chain of element-wise operations together."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 8])
        y = x
        for _ in range(steps):
            y = tf.sin(y * 1.01)
        program = snapshot([y], [x])
    times = []
    for _ in range(3):
        start = time.process_time()
        (group,) = fuse(program, growing=True)
        times.append(time.process_time() - start)
        assert isinstance(group, Fused) and len(group.nodes) == 2 * steps
    return min(times)


def test_a_long_chain_is_fused_in_time_proportional_to_its_length() -> None:
    assert _seconds_to_fuse(8000) < 40 * _seconds_to_fuse(800)  # (a square would be 100)
