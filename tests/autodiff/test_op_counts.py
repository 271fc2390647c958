"""A random op's seed depends on the number of operations before it.

Calls count as TensorFlow's do (core/seeds.py).
"""

from __future__ import annotations

import json
import os

import pytest

import headrace as tf
from headrace.core.seeds import ops_counted
from tests.golden.op_count_inputs import inputs

with open(
    os.path.join(os.path.dirname(os.path.dirname(__file__)), "golden", "op_counts.json")
) as _file:
    ROWS: list[tuple[str, int, int]] = json.load(_file)


def count(call: str, known: bool) -> int:
    with tf.Graph().as_default() as graph:
        names = inputs(tf, known)
        before = ops_counted(graph)
        exec(call, names)
        return ops_counted(graph) - before


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_calls_count_as_in_tensorflow(known: bool) -> None:
    expected = {call: with_known if known else unknown for call, with_known, unknown in ROWS}
    found = {call: count(call, known) for call in expected}
    assert {c: (found[c], n) for c, n in expected.items() if found[c] != n} == {}


def test_seed_after_calls_that_make_fewer_operations() -> None:
    tf.set_random_seed(1)
    tf.nn.softmax_cross_entropy_with_logits_v2(labels=[[1.0, 0.0]], logits=[[2.0, 1.0]])
    noise = tf.random_normal([2])
    # labels, logits and 31 operations, then the shape, the mean and the deviation
    assert noise.op.inputs[0].op.inputs[0].op.get_attr("seed2") == 36
