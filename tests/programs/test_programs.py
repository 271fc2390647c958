"""Whole programs as people write them, compared with what TF 1.15 printed, named and counted
(golden/programs.json).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.core.seeds import ops_counted
from tests.golden import programs_methods, programs_networks, programs_sequences

PROGRAMS = programs_networks.PROGRAMS + programs_sequences.PROGRAMS + programs_methods.PROGRAMS
with open(
    os.path.join(os.path.dirname(os.path.dirname(__file__)), "golden", "programs.json")
) as _file:
    GOLDEN = json.load(_file)

#: Gradients of loops and branches consist of other operations than TF's, and so do a few rarer
#: ones.
COUNTED_OTHERWISE = frozenset(
    [
        "batch_norm_by_hand",
        "gru_with_while_loop",
        "lstm_with_scan",
        "meta_learning",
        "own_gradients",
        "speech",
        "translation",
        "word_vectors",
    ]
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program(program: Callable[[Any], list[Any]]) -> None:
    golden = GOLDEN[program.__name__]
    with tf.Graph().as_default() as graph:
        values = program(tf)
        variables = [[v.name, v.shape.as_list(), v.dtype.name] for v in tf.global_variables()]
        for step, (value, expected) in enumerate(zip(values, golden["values"])):
            np.testing.assert_allclose(
                np.ravel(value), expected, 2e-4, 1e-5, err_msg=f"value {step}"
            )
        assert len(values) == len(golden["values"])
        assert variables == golden["variables"]
        for key, names in golden["collections"].items():
            assert [v.name for v in graph.get_collection(key)] == names, key
        if program.__name__ not in COUNTED_OTHERWISE:
            assert ops_counted(graph) == golden["ops"]


def test_list_of_programs() -> None:
    assert sorted(GOLDEN) == sorted(p.__name__ for p in PROGRAMS)


def test_gradients_taken_inside_a_loop() -> None:
    """Gradient descent in a while_loop, gradients per example in map_fn, with a loop of their own
    inside.
    """
    goal = tf.constant([1.0, 2.0, 3.0])
    w = tf.Variable([1.0, 2.0, 3.0])
    rows = tf.constant([[1.0, 0.0, 2.0], [3.0, 1.0, 1.0]])

    def descend(i: Any, x: Any) -> Any:
        (slope,) = tf.gradients(tf.reduce_sum(tf.square(x - goal) * tf.sin(x)), x)
        return i + 1, x - 0.1 * slope

    def through_loop(row: Any) -> Any:
        out = tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, y * w), [0, row])[1]
        return tf.gradients(tf.reduce_sum(out), [row, w])[1]

    found = tf.while_loop(lambda i, _: i < 5, descend, [0, tf.ones([3])])[1]
    per_row = tf.map_fn(lambda row: tf.gradients(tf.square(tf.reduce_sum(row * w)), w)[0], rows)
    nested = tf.map_fn(through_loop, rows)
    with tf.Session() as sess:
        sess.run(w.initializer)
        np.testing.assert_allclose(sess.run(found), [1.0, 1.5810708, 2.10146], 1e-6)
        assert sess.run(per_row).tolist() == [[14, 0, 28], [48, 16, 16]]
        assert sess.run(nested).tolist() == [[2, 0, 12], [6, 4, 6]]


def test_nothing_flows_back_through_shapes() -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    noise = tf.random_normal(tf.shape(x)) * 3.0
    tf.gradients(x * noise, x)
    visited = {
        op.name.split("/")[1]
        for op in tf.get_default_graph().get_operations()
        if "_grad/" in op.name
    }
    assert visited == {"mul_1_grad"}
