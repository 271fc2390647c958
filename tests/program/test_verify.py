"""Programs keep their rules through every pass, are readable, and broken ones are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.program.nodes import Node, Program
from headrace.program.snapshot import snapshot
from headrace.program.text import text_of
from headrace.program.verify import Malformed, verify


def program_of(fetches: Any, feeds: Any = ()) -> Program:
    graph = tf.get_default_graph()
    return snapshot(list(fetches), list(feeds), len(graph._ops))


def example() -> tuple[Program, Any]:
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    w = tf.Variable(np.ones((4, 3), np.float32), name="w")
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.matmul(x, w), lambda: -tf.matmul(x, w))
    loop = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.nn.relu(a) * 2), [0, y])
    step = tf.assign_add(w, tf.ones([4, 3]))
    return program_of([loop[1], step.op], [x]), x


def test_a_program_reads_like_one() -> None:
    text = text_of(example()[0])
    assert text.startswith("%0 = feed x:0  float32[?,4]")
    for part in ("if %", "if not %", "loop ", "while %", "next %", "writes w", "fetch %", "# "):
        assert part in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_good_program_passes() -> None:
    verify(example()[0])


def changed(program: Program, change: Any) -> Program:
    body = list(program.body)
    at = next(i for i, s in enumerate(body) if isinstance(s, Node) and s.inputs)
    body[at] = change(body[at])
    return program._replace(body=tuple(body))


@pytest.mark.parametrize(
    ("breaks", "message"),
    [
        (lambda p: changed(p, lambda n: n._replace(inputs=(*n.inputs, 0))), "inputs, its op takes"),
        (lambda p: changed(p, lambda n: n._replace(inputs=(10**6,))), "there is no value"),
        (lambda p: changed(p, lambda n: n._replace(outputs=p.feeds)), "is made already"),
        (lambda p: changed(p, lambda n: n._replace(inputs=n.outputs)), "is not made yet"),
        (lambda p: p._replace(body=p.body[1:]), "is not made yet"),
        (
            lambda p: p._replace(variables=tuple(v._replace(written=False) for v in p.variables)),
            "not marked as written",
        ),
        (lambda p: p._replace(body=(), effects=()), "fetch reads"),
    ],
)
def test_a_broken_program_is_found(breaks: Any, message: str) -> None:
    with pytest.raises(Malformed, match=message) as caught:
        verify(breaks(example()[0]), "a test")
    assert "after a test" in str(caught.value) and "feed x:0" in str(caught.value)


def test_users_can_ask_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a pass that breaks a program is named."""
    monkeypatch.setenv("HEADRACE_DEBUG", "verify")
    x = tf.placeholder(tf.float32, [None, 4])
    w = tf.Variable(np.ones((4, 3), np.float32))
    y = tf.matmul(tf.nn.relu(x), w)
    with tf.Session() as session:
        session.run(w.initializer)
        assert session.run(y, {x: np.ones((1, 4))}).tolist() == [[4.0, 4.0, 4.0]]
        import headrace.rewrite.engine as engine

        real = engine.rewrite
        monkeypatch.setattr(
            engine, "rewrite", lambda p, rules: real(p, rules)._replace(body=p.body[1:])
        )
        with pytest.raises(Malformed, match="after rewriting"):
            session.run(y + 1, {x: np.ones((1, 4))})
