"""What branches, loops and functions wait for, though it was made outside of them, happens as in
TF 1.15.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import headrace as tf
from tests.golden import dependency_programs

WANTED = json.loads(
    (Path(__file__).parent.parent / "golden" / "dependencies.json").read_text(encoding="utf-8")
)
CASES = dict(dependency_programs.cases())


@pytest.mark.parametrize("name", CASES)
def test_as_in_tensorflow(name: str) -> None:
    assert dependency_programs.run_one(tf, *CASES[name]) == WANTED[name]


@pytest.mark.parametrize("resource", [False, True])
def test_group_of_outer_updates_in_a_branch(resource: bool) -> None:
    vs = [tf.Variable(0.0, use_resource=resource) for _ in range(3)]
    updates = [v.assign_add(1.0) for v in vs]
    step = tf.cond(tf.constant(True), lambda: tf.group(*updates), lambda: tf.no_op())
    s = tf.Session()
    s.run(tf.global_variables_initializer())
    for n in range(1, 4):
        s.run(step)
        assert s.run(vs) == [n] * 3


def test_a_predicate_that_its_branch_writes(capsys: Any) -> None:
    p = tf.Variable(True)
    y = tf.cond(p, lambda: p.assign(False), lambda: p.assign(True))
    s = tf.Session()
    s.run(p.initializer)
    seen = []
    for _ in range(4):
        s.run(y)
        seen.append(bool(s.run(p)))
    assert seen == [False, True, False, True]
