"""The listing of what runs: as text, and its rules."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.executors import make_executable, options_for
from headrace.lower import listing as listing_module
from headrace.lower.emit import emit
from headrace.lower.listing import IN_PLACE, NEW, VIEW, Listing, Stage, Storage
from headrace.lower.listing_text import text_of_listing
from headrace.lower.listing_verify import verify_listing
from headrace.lower.passes import make_listing
from headrace.lower.segment_cuts import ShapeFacts
from headrace.program.snapshot import snapshot
from headrace.program.verify import Malformed
from tests.lower.bound_networks import needs_library


@pytest.fixture(autouse=True)
def no_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small steps stand for themselves (lower/native_segments.py)."""
    cut = lambda facts, block, stands_alone: [(False, block)] if block else []
    monkeypatch.setattr(ShapeFacts, "cut", cut)


def listing_of(fetches: Any, feeds: Any) -> Listing:
    found = make_executable(snapshot(fetches, feeds), options_for()).details.listing
    assert found is not None
    return found


def chain() -> Listing:
    """A product that is overwritten, and one more that is returned."""
    x = tf.placeholder(tf.float32, [100, 100])
    w = tf.Variable(tf.ones([100, 100]), name="w")
    y = tf.matmul(tf.matmul(x, w) * 2.0, w)
    return listing_of([y], [x])


def test_every_instruction_says_what_where_and_by_what() -> None:
    listing = chain()
    assert [i.op for i in listing.instrs] == ["MatMul", "Mul", "MatMul", "return"]
    product, times = listing.instrs[:2]
    assert times.storage == (IN_PLACE, product.outputs[0])
    assert product.implementation == "product" and product.stage is Stage.RUN
    assert listing.given == [listing.program.fetches[0]]
    text = text_of_listing(listing)
    assert f"over %{product.outputs[0]}" in text
    assert "w" in text and "MatMul" in text


def test_lines_belong_to_instructions() -> None:
    listing = chain()
    for n, instr in enumerate(listing.instrs):
        numbers = listing.lines_of(n)
        assert numbers, instr.op
        if instr.source is not None:
            assert all(listing.steps[k] is instr.source for k in numbers)
    assert [listing.lines[k - 1].split()[0] for k in listing.lines_of(3)] == ["return"]


DECIDED = ("op", "inputs", "outputs", "depth", "stage", "storage", "implementation", "reason")
DECIDED += ("text", "function", "params", "arguments", "arrays", "code", "detail", "ends")


def test_the_emitter_decides_nothing() -> None:
    """An instruction is complete before a line is written; the listing is given its lines."""
    folder = Path(listing_module.__file__).parent
    written = {
        (path.name, target.attr)
        for path in folder.glob("emit*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for target in ast.walk(node)
        if isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store)
        if isinstance(target.value, ast.Name) and target.value.id in ("instr", "made", "listing")
    }
    assert {attribute for _, attribute in written} == {"written"}


def test_the_emitter_makes_nothing_that_lines_call() -> None:
    """Kernels, groups and writers are in the instructions; a plan is not looked at."""
    folder = Path(listing_module.__file__).parent
    for path in folder.glob("emit*.py"):
        found = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ImportFrom)]
        modules = {str(n.module).removeprefix("headrace.") for n in found}
        others = ("kernels", "ops", "lower.plan", "lower.fus", "lower.native", "lower.select")
        assert not [m for m in modules if m.startswith((*others, "lower.group", "rewrite"))], path


def test_a_listing_is_whole_before_lines_are_written() -> None:
    x = tf.placeholder(tf.float32, [100, 100])
    w = tf.Variable(tf.ones([100, 100]), name="w")
    loop = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0 + 1.0), [0, x])[1]
    step = w.assign_add(tf.matmul(loop, w) * 2.0)
    plan = make_executable(snapshot([step, loop], [x]), options_for()).plan
    whole = make_listing(plan)
    assert not whole.lines
    verify_listing(whole, "a test")
    before = [[getattr(i, name) for name in DECIDED] for i in whole.instrs]
    emitted = emit(whole).listing
    assert emitted is whole
    assert [[getattr(i, name) for name in DECIDED] for i in emitted.instrs] == before
    assert emitted.lines and emitted.written.firsts[-1] > 0


def test_text_is_at_most_100_columns() -> None:
    with tf.name_scope("a_long_name_of_a_scope_that_goes_on_and_on_and_on_and_on_and_on_and_on"):
        x = tf.placeholder(tf.float32, [None, 8])
        y = tf.add_n([tf.nn.relu(tf.layers.dense(x, 4, name=f"layer_{n}")) for n in range(30)])
        grads = tf.gradients(y, tf.trainable_variables())
        loop = tf.while_loop(
            lambda i: i < 3, lambda i: tf.cond(i > 1, lambda: i + 2, lambda: i + 1), [0]
        )
    with tf.Session() as session:
        explained = session.explain([y, grads, loop], [x])
    lines = explained.listing.splitlines()
    assert len(lines) > 60 and max(map(len, lines)) <= 98
    assert explained.listing.splitlines()[5] in str(explained)


def test_branches_and_loops_are_levels() -> None:
    i = tf.placeholder(tf.int32, [])
    loop = tf.while_loop(
        lambda i: i < 9, lambda i: tf.cond(i > 1, lambda: i * 2, lambda: i + 1), [i]
    )
    listing = listing_of([loop], [i])
    depth = {instr.op: instr.depth for instr in listing.instrs}
    assert depth["while"] == 0 and depth["break"] == 1 and depth["if"] == 1 and depth["Mul"] == 2


# the rules ----------------------------------------------------------------------------------------


def malformed(listing: Listing) -> str:
    with pytest.raises(Malformed) as found:
        verify_listing(listing, "a test")
    return str(found.value)


def test_a_whole_listing_passes() -> None:
    verify_listing(chain())


def test_a_value_that_is_not_made() -> None:
    listing = chain()
    del listing.instrs[1]
    assert "which is not made yet" in malformed(listing) and "after a test" in malformed(listing)


def test_what_is_read_later_is_not_overwritten() -> None:
    listing = chain()
    product, last = listing.instrs[0], listing.instrs[2]
    last.inputs = (*last.inputs, product.outputs[0])
    assert "afterwards" in malformed(listing)


def test_a_view_of_what_is_overwritten() -> None:
    x = tf.placeholder(tf.float32, [100, 100])
    w = tf.Variable(tf.ones([100, 100]))
    product = tf.matmul(x, w)
    y = tf.matmul(tf.transpose(product), product * 2.0)
    listing = listing_of([y], [x])
    assert all(i.storage.kind != IN_PLACE for i in listing.instrs)
    view = next((i for i in listing.instrs if i.storage is VIEW), None)
    times = next(i for i in listing.instrs if i.op == "Mul")
    if view is None:  # the transpose is part of the product
        pytest.skip("there is no view")
    times.storage = Storage(IN_PLACE, times.inputs[0])
    assert "afterwards" in malformed(listing)


def test_feeds_and_variables_are_not_overwritten() -> None:
    for position in (0, 1):
        listing = chain()
        product = listing.instrs[0]
        product.storage = Storage(IN_PLACE, product.inputs[position])
        assert "not its own" in malformed(listing)


def test_a_feed_is_not_given_away() -> None:
    listing = chain()
    listing.given = [listing.program.feeds[0]]
    assert "not the run's own" in malformed(listing)
    listing = chain()
    listing.given = [*listing.given, *listing.given]
    assert "twice" in malformed(listing)


def test_stages_go_one_way() -> None:
    listing = chain()
    listing.instrs[0].stage = Stage.SHAPE
    assert "of the later stage RUN" in malformed(listing)


def test_loops_read_what_was_made_before_them_until_their_end() -> None:
    x = tf.placeholder(tf.float32, [200, 200])
    start = tf.exp(x)
    loop = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.matmul(a, start * a)), [0, x])
    listing = listing_of([loop[1]], [x])
    times = next(i for i in listing.instrs if i.op == "Mul")
    assert times.storage is NEW
    made = next(i for i in listing.instrs if i.op in ("Exp", "fused")).outputs[0]
    times.storage = Storage(IN_PLACE, made)
    assert "afterwards" in malformed(listing)


@needs_library
def test_what_is_kept_of_a_variable_is_watched() -> None:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        x = tf.placeholder(tf.float32, [None, 128])
        w = tf.Variable(tf.random_normal([128, 128], seed=1), name="w")
        y = tf.matmul(x, tf.nn.l2_normalize(w, 0)) + tf.reduce_sum(w, 0)
        session.run(tf.global_variables_initializer())
        feed = {x: np.ones((8, 128), np.float32)}
        for _ in range(3):
            session.run(y, feed)
        explained = session.explain(y, [x])
        table = [t for t in session._state.bindings.values() if t]
        (found,) = [f for t in table for f in t.values()]
        listing = found.binding.compiled.listing
        assert listing.bound and listing.watched == ("w",)
        assert explained.bound_listings and "bound to them" in str(explained)
        before = session.run(y, feed)
        w.load(2.0 * w.eval(session), session)
        after = session.run(y, feed)
        assert not np.array_equal(before, after)
        kept = next((i for i in listing.instrs if i.stage is Stage.WRITE), None)
        if kept is not None:
            listing.watched = ()
            assert "which is not watched" in malformed(listing)
