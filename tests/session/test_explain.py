"""explain: what a run does, as data and as text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.kernels import accel
from headrace.lower.native_groups import native_state


def test_pruned_folded_shared() -> None:
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    c = tf.constant(2.0) * tf.constant(3.0)
    a, b = tf.exp(x), tf.exp(x)
    y = tf.add(a * c, b, name="y")
    for _ in range(10):
        tf.exp(x, name="unused")
    e = tf.Session().explain(y, {x: None})
    assert e.fetches == ["y:0"] and e.feeds == ["x:0"] and e.executor == "numpy"
    assert e.ops_in_graph == len(tf.get_default_graph().get_operations())
    assert e.pruned >= 10 and e.ops_needed == e.ops_in_graph - e.pruned
    assert e.folded >= 1 and e.shared >= 1
    kinds = " ".join(s.op_type for s in e.steps)
    assert kinds.count("Exp") == 1


def test_text() -> None:
    x = tf.placeholder(tf.float32, [None], name="x")
    y = tf.tanh(x * 2.0 + 1.0, name="y")
    text = str(tf.Session().explain(y, [x]))
    for part in ("y:0", "x:0", "executor", "numpy", "pruned", "fused", "Tanh", "test_explain.py"):
        assert part in text, part


def test_fused_groups() -> None:
    x = tf.placeholder(tf.float32, [300, 300])
    y = tf.tanh(x * 2.0 + 1.0)
    e = tf.Session().explain(y, [x])
    assert [len(g) for g in e.fused] == [3]
    assert e.fused[0][-1] == y.op.name


def test_variables() -> None:
    a, b, c = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b"), tf.Variable(3.0, name="c")
    e = tf.Session().explain([b.assign(a * 2.0).op, tf.constant(1)])
    assert e.variables_read == ["a"]
    assert e.variables_written == ["b"]
    e = tf.Session().explain(c.assign_add(1.0))
    assert e.variables_written == ["c"]


def test_control_flow_steps_are_nested() -> None:
    n = tf.placeholder(tf.int32, [], name="n")

    def body(i: Any) -> Any:
        return tf.cond(i > 2, lambda: i + 2, lambda: i + 1)

    e = tf.Session().explain(tf.while_loop(lambda i: i < n, body, [0]), [n])
    kinds = [s.kind for s in e.steps]
    assert "while" in kinds and "if" in kinds
    assert max(s.depth for s in e.steps) >= 2
    assert "While" in str(e)


def test_constants_and_buffers() -> None:
    x = tf.placeholder(tf.float32, [1000, 10])
    c = tf.constant(np.zeros((10, 10), np.float32))
    y = tf.nn.relu(tf.matmul(x, c) + 1.0)
    e = tf.Session().explain(y, [x])
    assert e.constants >= 1 and e.constant_bytes >= 400
    assert isinstance(e.buffers_reused, int)


def test_as_dict_and_no_run() -> None:
    v = tf.Variable(1.0)
    s = tf.Session()
    e = s.explain(v.assign_add(1.0))  # nothing runs: the variable need not even be there
    data = e.as_dict()
    assert data["executor"] == "numpy" and data["steps"]
    s.run(v.initializer)
    s.explain(v.assign_add(1.0))
    assert s.run(v) == 1.0


def test_after_and_before_runs_and_by_name() -> None:
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.multiply(x, 3.0, name="y")
    s = tf.Session()
    before = str(s.explain("y:0", ["x:0"]))
    assert s.run(y, {x: 2.0}) == 6.0
    assert str(s.explain(y, {x: 2.0})) == before
    assert s.explain(y, x).feeds == ["x:0"]


def test_reference_executor() -> None:
    e = tf.Session(executor="reference").explain(tf.constant(1.0) + tf.constant(2.0))
    assert e.executor == "reference" and e.folded == 0


@pytest.mark.skipif(accel.library() is None, reason="no kernel library to bind to")
def test_settled_runs() -> None:
    x = tf.placeholder(tf.float32, [None, 300], name="x")
    y = tf.nn.relu(tf.matmul(x, tf.Variable(np.ones((300, 256), np.float32))))
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    e = session.explain(y, [x])
    assert e.may_be_bound and e.bound == [] and "none yet" in str(e)
    for rows in (3, 8, 3):
        session.run(y, {x: np.ones((rows, 300), np.float32)})
    e = session.explain(y, [x])
    assert [b.shapes for b in e.bound] == [[(3, 300)], [(8, 300)]]
    assert all(b.primitives == 1 and b.other_lines >= 2 for b in e.bound)
    assert "[3,300] (1 primitives" in str(e) and e.as_dict()["bound"][0]["primitives"] == 1
    assert tf.Session().explain(y, [x]).bound == []  # another session, the same plan
    plain = session.explain(x + 1.0, [x])
    assert not plain.may_be_bound and "bound      no" in str(plain)


@pytest.mark.skipif(accel.library() is None, reason="no kernel library to bind to")
@pytest.mark.parametrize("native", ["hot", "always", "0"])
def test_who_computes_a_bound_step(native: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A product of one row is the library's until it is hot; a view is nobody's work."""
    monkeypatch.setenv("HEADRACE_NATIVE", native)
    x = tf.placeholder(tf.float32, [None, 300], name="x")
    y = tf.matmul(x, tf.Variable(np.ones((300, 256), np.float32)), name="product")
    z = tf.reshape(y, [-1, 16, 16])
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    session.run(z, {x: np.ones((1, 300), np.float32)})
    explained = session.explain(z, [x])
    product, view = (
        next(s for s in explained.steps if s.name == n) for n in ("product", "Reshape")
    )
    assert (view.by, view.why_not_native) == ("nothing to compute", "a view of its input")
    possible = not native_state()  # (a process that was started without stays without)
    if native == "always" and possible:
        assert (product.by, product.why_not_native) == ("native", "")
        assert "[native]" in str(explained)
    else:
        assert product.by == "library"
        hot = native == "hot" and possible
        assert product.why_not_native.startswith("it has not proved hot yet") == hot


def test_the_text_is_at_most_100_columns_wide() -> None:
    scope = "a_long_name_of_a_scope_that_goes_on_and_on_and_on_and_on"
    with tf.Graph().as_default(), tf.name_scope(scope), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 8])
        y = tf.add_n([tf.nn.relu(tf.layers.dense(x, 4, name=f"layer_{n}")) for n in range(20)])
        step = tf.train.AdamOptimizer().minimize(
            tf.reduce_mean(tf.cond(y[0, 0] > 0, lambda: y * 2, lambda: y))
        )
        session.run(tf.global_variables_initializer())
        lines = str(session.explain([step, y], [x])).splitlines()
    assert len(lines) > 60
    assert [line for line in lines if len(line) > 100 and " " in line.strip()] == []
