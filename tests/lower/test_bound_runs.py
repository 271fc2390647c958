"""Runs that are bound to their shapes give what the reference executor gives, step by step
(lower/bound_runs.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.kernels.onednn.conv_layouts import BLOCKS_FROM
from headrace.lower import select_packed
from headrace.lower.native_groups import native_expected
from headrace.runtime import thread_pool
from tests.lower.bound_networks import (
    RNG,
    array,
    assert_settled,
    bindings,
    block,
    check,
    dense,
    layer_norm,
    like,
    needs_library,
    placeholder,
    same,
    small_sizes,  # noqa: F401  (an autouse fixture)
    started,
)

pytestmark = needs_library


# each kind of step --------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", [None, "relu", "tanh", "sigmoid", "relu6"])
@pytest.mark.parametrize("bias", [False, True])
def test_dense(activation: str | None, bias: bool) -> None:
    def build() -> tuple[Any, Any]:
        x = placeholder(None, 12)
        function = None if activation is None else getattr(tf.nn, activation)
        return [x], dense(dense(x, 40, function, bias), 5, function, bias)

    check(build, [[(3, 12)], [(1, 12)], [(70, 12)]], 2)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3))))


@pytest.mark.parametrize("native", ["hot", "always", "0"])
@pytest.mark.parametrize("activation", [gelu, tf.nn.tanh, tf.nn.sigmoid])
def test_large_activations(activation: Any, native: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the product's own pass, and by compiled code behind it; of odd values, too."""
    monkeypatch.setenv("HEADRACE_NATIVE", native)
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 12)
        y = dense(dense(x, 512, activation), 5)
    session = started(graph)
    reference = like(session, graph)
    for rows in (129, 3, 129, 256):
        fed = array(rows, 12)
        for odd in (0.0, 30.0, -30.0, np.inf, -np.inf, np.nan):
            fed[1, 4] = odd
            same(session.run(y, {x: fed}), reference.run(y, {x: fed}))
    assert compiled_if_hot(session) <= 2
    if native == "0" or not native_expected():
        assert not compiled_if_hot(session)


def compiled_if_hot(session: Any, op: str = "") -> int:
    """Steps that are compiled, or will be; those of one op."""
    listed = [i for f in bindings(session) for i in f.binding.compiled.listing.instrs]
    return sum(i.implementation == "compiled if hot" and op in i.op for i in listed)


@pytest.mark.parametrize("native", ["hot", "always", "0"])
@pytest.mark.parametrize("activation", [None, gelu, tf.nn.tanh, tf.nn.sigmoid, tf.nn.relu])
def test_products_of_single_rows(
    activation: Any, native: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole and broken panels and tiles, with and without bias, turned weights, odd values; weights
    that are written.
    """
    monkeypatch.setenv("HEADRACE_NATIVE", native)
    with tf.Graph().as_default() as graph:
        x = placeholder(None, 70)
        h = dense(dense(x, 130, activation), 300, activation, bias=False)
        turned = tf.matmul(h, tf.Variable(array(17, 300)), transpose_b=True)
        y = [dense(h, 5), turned, dense(turned, 64, activation), h]
    session = started(graph)
    session.run(y, {x: array(1, 70)})
    assert (compiled_if_hot(session) == 5) == (native != "0" and native_expected())
    for _ in range(2):
        reference = like(session, graph)
        for rows in (1, 2, 1):
            fed = array(rows, 70)
            for odd in (0.0, 30.0, np.inf, -np.inf, np.nan):
                fed[0, 4] = odd
                got, want = (s.run(y, {x: fed}) for s in (session, reference))
                same(got, want, rtol=1e-3, atol=3e-3)
        with graph.as_default():
            for v in tf.global_variables():
                v.load(session.run(v) * np.float32(0.7), session)


@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("frozen", [False, True])
def test_products_with_constants_and_turned_weights(frozen: bool, transpose_b: bool) -> None:
    def build() -> tuple[Any, Any]:
        x = placeholder(None, 12)
        values = array(7, 12) if transpose_b else array(12, 7)
        w = tf.constant(values) if frozen else tf.Variable(values)
        return [x], tf.matmul(x, w, transpose_b=transpose_b)

    check(build, [[(3, 12)], [(1, 12)]], 1)


def test_products_of_small_weights_that_are_views(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without packing: a weight may lie in any way."""
    limits = {"matmul": 1 << 30}
    monkeypatch.setattr(select_packed, "min_elements", lambda opdef: limits.get(opdef.role, 0))

    def build() -> tuple[Any, Any]:
        images = placeholder(None, 6, 6, 4)
        h = tf.nn.conv2d(images, tf.Variable(array(3, 3, 4, 8)), [1, 1, 1, 1], "SAME")
        flat = tf.reduce_mean(h, [1, 2])
        w = tf.Variable(array(8, 8))
        row = tf.Variable(array(1, 8))
        results = [tf.matmul(flat, w), tf.matmul(flat, w[:, ::-1]), tf.matmul(flat, w[:, ::2])]
        results += [
            tf.matmul(flat, tf.reshape(w, [8, 8]), transpose_b=True),
            tf.matmul(flat, w[::-1]),
        ]
        results += [tf.matmul(flat, tf.broadcast_to(row, [8, 8])), tf.matmul(flat, w) + row]
        return [images], results

    check(build, [[(2, 6, 6, 4)], [(3, 6, 6, 4)]])


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride", [1, 2])
def test_convolution(stride: int, padding: str, relu: bool) -> None:
    def build() -> tuple[Any, Any]:
        x = placeholder(None, 9, 9, 8)
        y = tf.nn.conv2d(x, tf.Variable(array(3, 3, 8, 16)), [1, stride, stride, 1], padding)
        y = tf.nn.bias_add(y, tf.Variable(array(16)))
        return [x], tf.nn.relu(y) if relu else y

    check(build, [[(2, 9, 9, 8)], [(1, 9, 9, 8)], [(5, 9, 9, 8)]], 1)


def test_residual_network() -> None:
    def build() -> tuple[Any, Any]:
        x = placeholder(None, 8, 8, 8)
        y = block(block(x, 8), 8)
        y = tf.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
        y = tf.nn.avg_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
        return [x], dense(tf.reduce_mean(y, [1, 2]), 10)

    check(build, [[(2, 8, 8, 8)], [(1, 8, 8, 8)]], 8)


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize("fed", [False, True])
def test_convolution_in_blocks_of_channels(
    fed: bool, blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many channels over few pixels, on CPUs where blocks are faster and on others.

    There and back into an order of its own, with a shortcut of each kind.
    """
    wide = 256 if blocks else 240  # (other primitives)
    table = {what: {8: 64} if blocks else {} for what in ("forward", "input")}
    for cpu in BLOCKS_FROM:
        monkeypatch.setitem(BLOCKS_FROM, cpu, table)

    def build() -> tuple[Any, Any]:
        x = placeholder(2, 4, 4, wide)
        given = [x, placeholder(2, 4, 4, wide)]
        w, b = tf.Variable(array(3, 3, wide, wide) * 0.1), tf.Variable(array(wide))
        plain = tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), b)
        shift = given[1] if fed else tf.Variable(array(2, 4, 4, wide))
        return given, [
            tf.nn.relu(plain + x),
            tf.nn.relu(tf.nn.conv2d(plain, w, [1, 1, 1, 1], "SAME") + b + shift),
        ]

    with tf.Graph().as_default() as graph:
        given, fetches = build()
    session = started(graph)
    for _ in range(3):
        feed = {x: array(2, 4, 4, wide) for x in given}
        want = like(session, graph).run(fetches, feed)
        same(session.run(fetches, feed), want, rtol=1e-3, atol=1e-3)
        with graph.as_default():  # a shortcut may be a variable: it is another array from now on
            for v in tf.global_variables():
                v.load(session.run(v) * np.float32(0.7), session)
    assert_settled(session)


@pytest.mark.parametrize("keep", [False, True])
def test_pooling_and_means(keep: bool) -> None:
    def build() -> tuple[Any, Any]:
        x = placeholder(None, 10, 10, 16)
        y = tf.nn.conv2d(x, tf.Variable(array(1, 1, 16, 16)), [1, 1, 1, 1], "SAME")
        pools = [
            f(y, [1, 3, 3, 1], [1, 2, 2, 1], padding)
            for f in (tf.nn.max_pool, tf.nn.avg_pool)
            for padding in ("SAME", "VALID")
        ]
        means = [
            tf.reduce_mean(y, [2, 1], keepdims=keep),
            tf.reduce_mean(y, [-2, 1], keepdims=keep),
        ]
        return [x], [
            *pools,
            *means,
            tf.reduce_mean(y, [1]),
            tf.reduce_mean(y, [0, 3], keepdims=keep),
        ]

    check(build, [[(2, 10, 10, 16)], [(1, 10, 10, 16)]])


@pytest.mark.parametrize("rank", [2, 3])
def test_layer_norm(rank: int) -> None:
    def build() -> tuple[Any, Any]:
        x = placeholder(None, *[5] * (rank - 2), 32)
        return [x], layer_norm(x * 2.0)

    check(build, [[(3, *[5] * (rank - 2), 32)], [(1, *[5] * (rank - 2), 32)]], 1)


def test_softmax_after_a_product() -> None:
    def build() -> tuple[Any, Any]:
        x = placeholder(None, 12)
        y = dense(x, 9)
        return [x], [tf.nn.softmax(y), tf.nn.log_softmax(y), tf.argmax(y, 1)]

    check(build, [[(3, 12)], [(1, 12)]], 2)


def heads(x: Any, n: int, rows: int) -> Any:
    wide = int(x.shape[-1])
    return tf.transpose(tf.reshape(x, [-1, rows, n, wide // n]), [0, 2, 1, 3])


@pytest.mark.parametrize("mask", [None, "rows", "full", "examples", "both", "product"])
def test_attention(mask: str | None) -> None:
    rows, wide, n = 6, 16, 2

    def build() -> tuple[Any, Any]:
        x = placeholder(None, rows, wide)
        given = [x]
        flat = tf.reshape(x, [-1, wide])
        q, k, v = (heads(dense(flat, wide), n, rows) for _ in range(3))
        scores = tf.matmul(q, k, transpose_b=True) * (1 / np.sqrt(wide // n)).astype(np.float32)
        band = np.triu(np.full((rows, rows), -1e9, np.float32), 1)
        if mask in ("rows", "both"):
            scores += band
        if mask == "full":
            scores += band[None, None]
        if mask in ("examples", "both"):
            given.append(placeholder(None, 1, 1, rows))
            scores += given[-1]
        if mask == "product":
            allowed = (band == 0).astype(np.float32)
            scores = scores * allowed - 1e9 * (1 - allowed)
        y = tf.matmul(tf.nn.softmax(scores), v)
        y = tf.reshape(tf.transpose(y, [0, 2, 1, 3]), [-1, wide])
        out = x + tf.reshape(dense(y, wide), [-1, rows, wide])
        return given, layer_norm(out)

    with_mask = mask in ("examples", "both")
    shapes = [[(b, rows, wide), *[(b, 1, 1, rows)] * with_mask] for b in (2, 1, 5)]
    check(build, shapes)


def test_attention_with_a_large_mask_that_is_fed() -> None:
    """A large feed is read where the caller has it, which is another place in each run."""
    rows, wide = 64, 16

    def build() -> tuple[Any, Any]:
        x, mask = placeholder(None, rows, wide), placeholder(None, 2, rows, rows)
        flat = tf.reshape(x, [-1, wide])
        q, k, v = (heads(dense(flat, wide), 2, rows) for _ in range(3))
        scores = tf.matmul(q, k, transpose_b=True) * 0.5 + mask
        return [x, mask], tf.matmul(tf.nn.softmax(scores), v)

    check(build, [[(3, rows, wide), (3, 2, rows, rows)]])


def test_batches_of_products() -> None:
    def build() -> tuple[Any, Any]:
        a, b = placeholder(None, 4, 5), placeholder(None, 5, 6)
        c = tf.matmul(a, b)
        d = tf.matmul(a, b, transpose_a=False, transpose_b=False)
        return [a, b], [c, tf.matmul(c, d, transpose_b=True), dense(tf.reshape(c, [-1, 6]), 3)]

    check(build, [[(2, 4, 5), (2, 5, 6)], [(1, 4, 5), (1, 5, 6)]])


@pytest.mark.parametrize("native", ["hot", "always", "0"])
@pytest.mark.parametrize("units", [32, 20])
@pytest.mark.parametrize("time_major", [False, True])
def test_lstm_layers(
    units: int, time_major: bool, native: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As primitives, and as compiled code, which takes them over once they are hot."""
    from tests.rewrite.test_lstm_cells import CELLS, unrolled

    monkeypatch.setenv("HEADRACE_NATIVE", native)
    steps, wide = 4, 8

    def build() -> tuple[Any, Any]:
        x = placeholder(steps, None, wide) if time_major else placeholder(None, steps, wide)
        inputs = tf.unstack(x, axis=0 if time_major else 1)
        start = tf.zeros([tf.shape(inputs[0])[0], units])
        fetches = []
        for cell, into in (("basic", wide), ("plain", units)):
            weights = tf.Variable(array(into + units, 4 * units)), tf.Variable(array(4 * units))
            inputs, last = unrolled(CELLS[cell], inputs, start, start, *weights)
            fetches += [inputs[-1], last, inputs[1]]
        return [x], [*fetches, dense(inputs[-1], 3)]

    sizes = [(steps, rows, wide) if time_major else (rows, steps, wide) for rows in (3, 1, 17)]
    session = check(build, [[s] for s in sizes])
    assert all(f.binding.notes["primitives"] >= 3 for f in bindings(session))
    compiled = native != "0" and native_expected()
    assert compiled_if_hot(session, "LSTM") == (2 * len(sizes) if compiled else 0)


@pytest.mark.skipif(not native_expected(), reason="no compiler")
@pytest.mark.parametrize("units, compiled", [(128, 2), (132, 1)])
def test_lstm_layers_of_few_rows(
    units: int, compiled: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library divides large weights among threads; compiled code gives a row to one thread."""
    from tests.rewrite.test_lstm_cells import CELLS, unrolled

    monkeypatch.setattr(thread_pool, "_threads", 2)

    def build() -> tuple[Any, Any]:
        x = placeholder(None, 3, 8)
        start = tf.zeros([tf.shape(x)[0], units])
        weights = tf.Variable(array(8 + units, 4 * units)), tf.Variable(array(4 * units))
        outputs, _ = unrolled(CELLS["basic"], tf.unstack(x, axis=1), start, start, *weights)
        return [x], [dense(outputs[-1], 3)]

    session = check(build, [[(1, 3, 8)], [(2, 3, 8)]])
    assert compiled_if_hot(session, "LSTM") == compiled


def test_gather() -> None:
    with tf.Graph().as_default() as graph:
        ids = tf.placeholder(tf.int32, [None, 3])
        table = tf.Variable(array(10, 8))
        turned = tf.gather(table, tf.transpose(ids))
        y = dense(tf.reshape(tf.nn.embedding_lookup(table, ids), [-1, 24]), 5)
    session = started(graph)
    reference = like(session, graph)
    for rows in (2, 1, 2, 4, 1):
        feed = {ids: RNG.integers(0, 10, (rows, 3))}
        same(session.run([y, turned], feed), reference.run([y, turned], feed))
    assert len(bindings(session)) == 3


@pytest.mark.parametrize("bad", [-1, 10, 1 << 30, -(1 << 31)])
@pytest.mark.parametrize("turned", [False, True])
def test_gather_out_of_range(bad: int, turned: bool) -> None:
    with tf.Graph().as_default() as graph:
        ids = tf.placeholder(tf.int32, [None, 3])
        table = tf.Variable(array(10, 8))
        at = tf.reshape(tf.transpose(ids), [3, -1]) if turned else ids
        rows = tf.gather(table, at, name="look_up")
        y = dense(tf.reshape(rows, [-1, 24]), 5)
    session = started(graph)
    good = RNG.integers(0, 10, (2, 3))
    want = session.run(y, {ids: good})
    wrong = good.copy()
    wrong[1, 0] = bad
    for _ in range(10):
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not in") as caught:
            session.run(y, {ids: wrong})
        assert caught.value.op.name == "look_up" and f"= {bad} is not in [0, 10)" in str(
            caught.value
        )
        np.testing.assert_array_equal(session.run(y, {ids: good}), want)
    assert_settled(session)


def test_steps_of_many_outputs() -> None:
    def build() -> tuple[Any, Any]:
        x = placeholder(None, 12)
        y = dense(x, 12)
        a, b, c = tf.split(y, 3, 1)
        rows = tf.unstack(tf.reshape(y, [-1, 3, 4]), axis=1)
        mean, variance = tf.nn.moments(y, [0])
        values, at = tf.nn.top_k(y, 2)
        joined = tf.concat([c, a, a, rows[1]], 1)
        return [x], [joined, b * rows[0], rows[2], mean, variance, values, at, dense(joined, 2)]

    check(build, [[(3, 12)], [(2, 12)]])


def test_values_that_are_read_much_later() -> None:
    """Memory is used again only after the last reader, views counted."""

    def build() -> tuple[Any, Any]:
        x = placeholder(None, 16)
        early = dense(x, 16, tf.nn.relu)
        view = tf.transpose(tf.reshape(early, [-1, 4, 4]), [0, 2, 1])
        parts = tf.split(early, 2, 1)
        y = early
        for _ in range(6):
            y = dense(tf.nn.softmax(y) * 2.0, 16, tf.nn.relu)
        late = tf.reshape(view, [-1, 16]) * y + x
        return [x], [dense(late, 3), tf.reduce_sum(view, [1, 2]), tf.concat([parts[1], y], 1)]

    check(build, [[(3, 16)], [(1, 16)], [(40, 16)]])


# sums that products take in ---------------------------------------------------------------------


def test_sums_after_products() -> None:
    def build() -> tuple[Any, Any]:
        x = placeholder(None, 3, 8)
        flat = tf.reshape(x, [-1, 8])
        h = dense(flat, 8)
        taken = tf.reshape(dense(h, 8), [-1, 3, 8]) + x
        twice = dense(h, 8) + h
        broad = dense(h, 8) + h[:1]
        own = dense(h, 8)
        late = dense(h, 8)
        return (
            [x],
            [
                taken,
                twice * 2.0,
                tf.tanh(twice),
                broad,
                own + own,
                own,  # a product that is read more than once
                late + dense(h, 8, tf.nn.relu),
                tf.reshape(h, [-1, 3, 8]) + dense(h, 8)[:, None, :][:3],
            ],
        )

    check(build, [[(3, 3, 8)], [(1, 3, 8)]])


def test_a_sum_that_broadcasts_with_equal_sizes_is_not_taken_in() -> None:
    with tf.Graph().as_default() as graph:
        x, other = placeholder(None, 8), placeholder(None, None, None)
        turned = tf.reshape(dense(x, 8), tf.gather(tf.shape(other), [1, 0, 2]))  # [1, 6, 8]
        z = turned + other
        shape = tf.placeholder(tf.int32, [3])
        fed = tf.reshape(dense(x, 8), shape) + other
    session, feed = started(graph), {x: array(6, 8), other: array(6, 1, 8)}
    reference = like(session, graph)
    for _ in range(3):
        same(session.run(z, feed), reference.run(z, feed))
        for now in ([1, 6, 8], [6, 1, 8], [1, 6, 8]):
            same(session.run(fed, {**feed, shape: now}), reference.run(fed, {**feed, shape: now}))


def test_the_sum_and_its_summands_are_fetched() -> None:
    def build() -> tuple[Any, Any]:
        x = placeholder(None, 8)
        h = dense(x, 8)
        y = dense(h, 8)
        return [x], [y + h, h, y, tf.reshape(y, [-1, 2, 4]) + tf.reshape(h, [-1, 2, 4])]

    check(build, [[(3, 8)], [(1, 8)]])


# shapes that depend on values -------------------------------------------------------------------


def test_shapes_that_depend_on_fed_values() -> None:
    with tf.Graph().as_default() as graph:
        x, n = placeholder(None, 8), tf.placeholder(tf.int32, [])
        y = dense(x, 8)
        fetches = [
            y[:n],
            tf.tile(y[:1], tf.stack([n, 1])),
            tf.slice(y, [0, 0], tf.stack([n, 4])),
            y[:, n],
            tf.reshape(y, tf.stack([n, -1])),
            tf.fill(tf.stack([n, 2]), y[0, 0]),
            tf.one_hot([0, 1], n),
            tf.nn.top_k(y, n)[0],
            tf.concat([y, y[:n]], 0),
        ]
        total = tf.reduce_sum(y[:n], 0)
    session = started(graph)
    reference = like(session, graph)
    for n_now in (3, 1, 2, 1, 3, 3, 2, 1):
        feed = {x: array(6, 8), n: n_now}
        for fetch in [*fetches, total]:
            same(session.run(fetch, feed), reference.run(fetch, feed))


def test_shapes_that_depend_on_variables() -> None:
    with tf.Graph().as_default() as graph:
        x, n = placeholder(None, 8), tf.Variable(3)
        y = dense(x, 8)
        tiled = tf.tile(y[:1], tf.stack([n, 1]))
        row = tf.fill(tf.stack([n, 1]), 2.0) + y[:1]
        slices = y[:n]
    session = started(graph)
    for n_now in (3, 1, 2, 1, 3):
        n.load(n_now, session)
        feed = {x: array(6, 8)}
        reference = like(session, graph)
        for fetch in (tiled, row, slices):
            same(session.run(fetch, feed), reference.run(fetch, feed))
