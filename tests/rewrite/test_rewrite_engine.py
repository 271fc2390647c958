"""The engine.

Order, firings as events, near misses, exactness as an option, templates, and the table of the
documentation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.core.opdef import ALL_OPS, ROLES
from headrace.ops import load_all
from headrace.program.nodes import walk
from headrace.rewrite.engine import BRANCH, LOOP, ROUNDS, UNROLL
from headrace.rewrite.rule_table import EXACT_RULES, RULES, VALUE_FREE_RULES, rules_for
from headrace.rewrite.rules.composites import LAYER
from headrace.session import events
from tests.rewrite.rewrites_table import END, START, table
from tests.rewrite.rewriting import program_of

DOCS = Path(__file__).parent.parent.parent / "docs" / "rewrites.md"


def test_rules_are_named_once_and_described() -> None:
    names = [r.name for r in RULES]
    assert len(set(names)) == len(names)
    for rule in RULES:
        assert rule.does.endswith(".") and "->" in rule.example, rule.name


def test_rules_name_op_types_that_exist() -> None:
    load_all()
    known = {
        *ALL_OPS,
        *ROLES,
        BRANCH,
        LAYER,
        LOOP,
        ROUNDS,
        UNROLL,
        "<constant>",
        "all",
        "Snapshot",
        "Concat",
    }
    for rule in RULES:
        assert not {*rule.ops, *rule.after} - known, rule.name


def test_sets_of_rules() -> None:
    assert rules_for(often=True) is RULES and rules_for(True, often=True) is EXACT_RULES
    assert {*RULES} - {*rules_for()} == {r for r in RULES if UNROLL in r.ops}
    assert {*rules_for(exact=True)} <= {*EXACT_RULES}
    assert rules_for(value_free=True) is VALUE_FREE_RULES
    assert all(r.exact for r in EXACT_RULES)
    assert all(r.exact and r.value_free for r in rules_for(True, True))
    assert "constant folding" not in {r.name for r in VALUE_FREE_RULES}


def test_documentation_has_the_table() -> None:
    text = DOCS.read_text()
    assert text[text.index(START) + len(START) : text.index(END)].strip() == table().strip()


def test_firings_are_events() -> None:
    x = tf.placeholder(tf.float32, [3])
    y = tf.exp(x * 1.0, name="y")
    seen: list[Any] = []
    stop = events.listen(lambda name, data: seen.append((name, data.get("rule"), data.get("op"))))
    try:
        with tf.Session() as session:
            session.run(y, {x: [1.0, 2.0, 3.0]})
    finally:
        stop()
    assert ("rewrite", "neutral element", "mul") in seen


def test_explain_shows_firings_and_near_misses() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    product = tf.matmul(x, tf.ones([4, 3]), name="product")
    y = tf.add(product, [1.0, 2.0, 3.0], name="y")
    e = tf.Session().explain([y, product], [x])
    assert ("matmul and bias", "y") in [(rule, op) for rule, op, _ in e.near_misses]
    assert "used elsewhere" in e.near_misses[0][2] and "used elsewhere" in str(e)
    e = tf.Session().explain(y, [x])
    assert ("matmul and bias", "y") in e.firings and e.near_misses == []


def _exact_config(kind: str) -> Any:
    config = tf.ConfigProto()
    if kind == "rewriter":
        config.graph_options.rewrite_options.disable_meta_optimizer = True
    else:
        config.graph_options.optimizer_options.opt_level = -1
    return config


@pytest.mark.parametrize("how", ["argument", "rewriter", "level"])
def test_exact_sessions(how: str) -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.nn.relu(tf.matmul(x, tf.ones([4, 3])) + [1.0, 2.0, 3.0])
    session = tf.Session(exact=True) if how == "argument" else tf.Session(config=_exact_config(how))
    e = session.explain(y, [x])
    assert "matmul and bias" not in e.rewrites
    assert "matmul and bias" in tf.Session(config=tf.ConfigProto()).explain(y, [x]).rewrites
    feed = {x: np.random.RandomState(0).randn(5, 4)}
    want = tf.Session(executor="reference").run(y, feed)
    assert session.run(y, feed).tobytes() == want.tobytes()


def test_exact_rules_only_fire_where_allowed() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.matmul(tf.transpose(x), x) / 3.0 + 0.0
    fired = set(program_of(y, [x], exact=True).notes) - {"dead code"}
    assert fired <= {r.name for r in EXACT_RULES}


def test_equal_graphs_give_equal_bits() -> None:
    """The second and third time a structure is met it comes from a template, with other
    constants.
    """
    results = []
    given = np.linspace(-3, 3, 7).astype(np.float32)
    for scale in (0.5, 0.5, 0.5, 0.25, 1.0):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32, [7])
            y = scale * x * (1 + tf.tanh(0.7978845608 * (x + 0.044715 * tf.pow(x, 3)))) * 1.0
            results.append(session.run(y, {x: given}))
        with tf.Graph().as_default(), tf.Session(executor="reference") as session:
            x = tf.placeholder(tf.float32, [7])
            y = scale * x * (1 + tf.tanh(0.7978845608 * (x + 0.044715 * tf.pow(x, 3)))) * 1.0
            np.testing.assert_allclose(results[-1], session.run(y, {x: given}), atol=1e-6)
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()


def test_constants_that_only_look_alike_in_templates() -> None:
    """Value-dependent rules must not leave their mark in a template."""
    for factor, axes in ((1.0, [0, 1]), (1.0, [0, 1]), (2.0, [1, 0]), (1.0, [1, 0]), (3.0, [0, 1])):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32, [2, 2])
            y = tf.transpose(x * factor, axes) + 0.0
            got = session.run(y, {x: [[1.0, 2.0], [3.0, 4.0]]})
        want = np.transpose(np.array([[1.0, 2.0], [3.0, 4.0]]) * factor, axes)
        np.testing.assert_array_equal(got, want)


def test_numbers_beside_arrays_in_templates() -> None:
    """A constant that serves as a number beside an array and beside a number."""
    for factor in (2.0, 3.0, 4.0, 5.0):
        with tf.Graph().as_default(), tf.Session() as session:
            x, n = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [])
            by = tf.constant(factor)
            got = session.run([by * x, by * n, by], {x: [1.0, 2.0], n: 10.0})
        assert got[0].tolist() == [factor, 2 * factor]
        assert (got[1], got[2]) == (10 * factor, factor)
        assert all(type(number) is np.float32 for number in got[1:])


def test_rewriting_is_linear() -> None:
    """Each node is looked at a fixed number of times, however long the graph: counted, not
    timed.
    """
    counts = []
    for n in (200, 400):
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [None, 8])
            y = x
            for _ in range(n):
                y = tf.reshape(tf.nn.relu(y) * 2.0 + 1.0, [tf.shape(y)[0], 8])
            calls = 0

            def count(frame: Any, event: str, arg: Any) -> None:
                nonlocal calls
                calls += event == "call"

            import sys

            sys.setprofile(count)
            try:
                program = program_of(y, [x])
            finally:
                sys.setprofile(None)
            assert "Reshape" not in [m.opdef.name for m in walk(program.body)]
            counts.append(calls)
    assert counts[1] < 2.3 * counts[0]
