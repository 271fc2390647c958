"""Shapes that are known in loops, gradients of concatenations, and sums of products over the
rounds of a loop.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.ops.internal import loop_sums
from headrace.program.nodes import Program, While, walk
from tests.rewrite.rewriting import ops_of, program_of, same

RNG = np.random.RandomState(3)
RULE = "product summed over rounds"
SHAPE_OPS = {"BroadcastGradientArgs", "Shape", "ShapeN", "ConcatOffset"}


def randn(*shape: int) -> Any:
    return RNG.randn(*shape).astype(np.float32)


def variable(*shape: int) -> Any:
    return tf.Variable(randn(*shape) * np.float32(0.3))


def loops_of(program: Program) -> list[While]:
    return [s for s in program.body if isinstance(s, While)]


def inside(program: Program, which: int = -1) -> list[str]:
    loop = loops_of(program)[which]
    return [n.opdef.name for n in walk((*loop.test, *loop.body))]


class Rnn:
    """What tf.nn.dynamic_rnn makes: a loop over the steps of x with an LSTM cell."""

    def __init__(
        self, units: int = 4, features: int = 3, steps: int | None = 5, masked: bool = False
    ) -> None:
        self.x = tf.placeholder(tf.float32, [None, steps, features])
        self.kernel, self.bias = variable(features + units, 4 * units), variable(4 * units)
        self.lengths = tf.placeholder(tf.int32, [None]) if masked else None
        shape = tf.shape(self.x)
        times = tf.transpose(self.x, [1, 0, 2])
        count = shape[1]
        inputs = tf.TensorArray(tf.float32, count).unstack(times)
        outputs = tf.TensorArray(tf.float32, count)
        zeros = tf.zeros([shape[0], units])

        def body(i: Any, c: Any, h: Any, outputs: Any) -> Any:
            gates = tf.matmul(tf.concat([inputs.read(i), h], 1), self.kernel) + self.bias
            a, f, g, o = tf.split(gates, 4, axis=1)
            new_c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(a) * tf.tanh(g)
            new_h = tf.sigmoid(o) * tf.tanh(new_c)
            if self.lengths is not None:
                going = i < self.lengths
                new_c, new_h = tf.where(going, new_c, c), tf.where(going, new_h, h)
            return i + 1, new_c, new_h, outputs.write(i, new_h)

        done = tf.while_loop(lambda i, *_: i < count, body, (tf.constant(0), zeros, zeros, outputs))
        self.state = done[1:3]
        self.outputs = done[3].stack()
        loss = tf.reduce_sum(tf.sin(self.outputs)) + tf.reduce_sum(tf.square(done[1]))
        self.loss = loss
        self.grads = tf.gradients(loss, [self.kernel, self.bias, self.x])

    def feed(self, batch: int, steps: int = 5, features: int = 3) -> dict[Any, Any]:
        feed = {self.x: randn(batch, steps, features)}
        if self.lengths is not None:
            feed[self.lengths] = RNG.randint(0, steps + 1, batch)
        return feed


# a network with its gradient ----------------------------------------------------------------------


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("batch", [1, 6])
@pytest.mark.parametrize("steps", [None, 5])
def test_rnn(masked: bool, batch: int, steps: int | None) -> None:
    net = Rnn(steps=steps, masked=masked)
    fetches = [net.loss, *net.grads]
    program = program_of(fetches, list(net.feed(batch)))
    left = inside(program)
    assert not SHAPE_OPS & set(left), left
    assert "Reshape" not in left and "Sum" not in left and "MatMul" in left
    assert left.count("_AddProduct") == 1 and left.count("_AddRows") == 1
    assert program.notes[RULE] == 2 and program.notes["part of a joined gradient"] == 2
    for _ in range(2):
        same(fetches, net.feed(batch), 1e-5)


def test_rnn_with_every_bit() -> None:
    net = Rnn()
    fetches = [net.loss, *net.grads]
    program = program_of(fetches, [net.x], exact=True)
    left = inside(program)
    assert RULE not in program.notes and not {"_AddProduct", "_RowSum"} & set(left)
    assert not SHAPE_OPS & set(left)
    with_rules = tf.Session(exact=True)
    reference = tf.Session(executor="reference")
    weights = {v: randn(*v.shape.as_list()) for v in (net.kernel, net.bias)}
    feed = net.feed(3)
    results = []
    for session in (with_rules, reference):
        for v, value in weights.items():
            v.load(value, session)
        results.append(session.run(fetches, feed))
    for got, want in zip(*results):
        np.testing.assert_array_equal(got, want)


def test_rnn_without_steps() -> None:
    """No round: the gradients are what the sums started with."""
    net = Rnn(steps=None)
    loss = tf.reduce_sum(tf.square(net.state[0] + 1.0))
    fetches = [loss, *tf.gradients(loss, [net.kernel, net.bias])]
    assert program_of(fetches, [net.x]).notes[RULE] == 2
    same(fetches, {net.x: np.zeros((2, 0, 3), np.float32)})


def test_stacks_that_only_gave_shapes_go() -> None:
    net = Rnn()
    ops = ops_of([net.loss, *net.grads], [net.x])
    assert ops.count("StackV2") == ops.count("StackPushV2") == ops.count("StackPopV2")
    raw = ops_of([net.loss, *net.grads], [net.x], without="known broadcast")
    assert 0 < ops.count("StackV2") < raw.count("StackV2")


@pytest.mark.parametrize("batch", [1, 4])
def test_scan_and_map(batch: int) -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    w, b = variable(3, 3), variable(3)
    steps = tf.constant(randn(4))
    scanned = tf.scan(lambda a, s: tf.tanh(tf.matmul(a, w) * s + b), steps, initializer=x)
    mapped = tf.map_fn(lambda s: tf.reduce_sum(tf.matmul(x, w) * s, 0), steps)
    for y in (scanned, mapped):
        fetches = [y, *tf.gradients(tf.reduce_sum(tf.sin(y)), [w, x])]
        same(fetches, {x: randn(batch, 3)}, 1e-5)


# lengths of loop variables ----------------------------------------------------------------------


def test_lengths_that_stay() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.tanh(a) * x), (0, x * 2.0))[1]
    out = tf.reshape(y, [tf.shape(x)[0], 3])
    assert "Reshape" not in ops_of(out, [x])
    same(out, {x: randn(2, 3)})
    same(out, {x: randn(1, 3)})


def test_lengths_that_change_are_not_assumed() -> None:
    """A variable that grows, and others that follow it in later rounds only."""
    x = tf.placeholder(tf.float32, [None, 3])
    free = tf.TensorShape([None, 3])

    def body(i: Any, a: Any, b: Any, c: Any) -> Any:
        return i + 1, tf.concat([a, x], 0), tf.tanh(a), tf.sin(b)

    start = (0, x * 1.5, x * 2.0, x * 2.5)
    loop = tf.while_loop(
        lambda i, *_: i < 4, body, start, shape_invariants=[tf.TensorShape([]), free, free, free]
    )
    for y in loop[1:]:
        again = tf.reshape(y, [tf.shape(x)[0], -1])
        program = program_of(again, [x])
        assert "Reshape" in [n.opdef.name for n in walk(program.body)]
        same([again, *tf.gradients(tf.reduce_sum(tf.sin(y)), x)], {x: randn(2, 3)}, 1e-5)


def test_gradients_of_a_sum_of_lengths_that_change() -> None:
    """In the first round both are as long as the batch, later one of them is 1.

    The gradient is summed there.
    """
    x = tf.placeholder(tf.float32, [None, 3])
    free = tf.TensorShape([None, 3])

    def body(i: Any, a: Any, b: Any) -> Any:
        return i + 1, a + b, tf.reduce_sum(b, 0, keepdims=True)

    start = (0, x * 1.5, tf.sin(x))
    invariants = [tf.TensorShape([]), free, free]
    y = tf.while_loop(lambda i, *_: i < 3, body, start, shape_invariants=invariants)[1]
    for batch in (1, 4):
        same([y, *tf.gradients(tf.reduce_sum(tf.square(y)), x)], {x: randn(batch, 3)}, 1e-5)


def test_two_batches_that_may_differ() -> None:
    """Nothing says that x and z are equally long: z may have one row."""
    x, z = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 3])

    def body(i: Any, a: Any, b: Any) -> Any:
        return i + 1, a * b + x, tf.tanh(b)

    y = tf.while_loop(lambda i, *_: i < 3, body, (0, x, z))[1]
    fetches = [y, *tf.gradients(tf.reduce_sum(tf.sin(y)), [x, z])]
    same(fetches, {x: randn(4, 3), z: randn(1, 3)}, 1e-5)
    same(fetches, {x: randn(4, 3), z: randn(4, 3)}, 1e-5)


def test_variables_that_change_places() -> None:
    x, z = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    free = [tf.TensorShape([]), tf.TensorShape([None]), tf.TensorShape([None])]
    loop = tf.while_loop(
        lambda i, *_: i < 3, lambda i, a, b: (i + 1, b, a), (0, x, z), shape_invariants=free
    )
    out = tf.reshape(loop[1], [tf.shape(x)[0]])
    assert "Reshape" in ops_of(out, [x, z])
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(out, {x: [1.0, 2.0], z: [1.0, 2.0, 3.0]})
        assert session.run(out, {x: [1.0], z: [2.0]}) == [2.0]


def test_nested_loops() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    w = variable(3, 3)

    def outer(i: Any, a: Any) -> Any:
        inner = tf.while_loop(
            lambda j, b: j < 2, lambda j, b: (j + 1, tf.tanh(tf.matmul(b, w)) * a), (0, a)
        )
        return i + 1, inner[1] + x

    y = tf.while_loop(lambda i, a: i < 3, outer, (0, x))[1]
    fetches = [y, *tf.gradients(tf.reduce_sum(tf.sin(y)), [w, x])]
    assert "BroadcastGradientArgs" not in ops_of(fetches, [x])
    for batch in (1, 4):
        same(fetches, {x: randn(batch, 3)}, 1e-5)


def test_an_inner_loop_whose_values_grow_with_the_outer_one() -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    free = tf.TensorShape([None, 2])

    def outer(i: Any, a: Any) -> Any:
        inner = tf.while_loop(lambda j, b: j < 2, lambda j, b: (j + 1, tf.sin(b) * a), (0, a))[1]
        return i + 1, tf.concat([inner, x], 0)

    invariants = [tf.TensorShape([]), free]
    y = tf.while_loop(lambda i, a: i < 3, outer, (0, x), shape_invariants=invariants)[1]
    same([y, *tf.gradients(tf.reduce_sum(y), x)], {x: randn(2, 2)}, 1e-5)
    assert "Reshape" in ops_of(tf.reshape(y, [tf.shape(x)[0], -1]), [x])


@pytest.mark.parametrize("batch", [1, 3])
def test_branches_in_the_body(batch: int) -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    w = variable(3, 3)

    def body(i: Any, a: Any) -> Any:
        b = tf.cond(i < 2, lambda: tf.tanh(tf.matmul(a, w)) * x, lambda: tf.sin(a))
        return i + 1, b + a

    y = tf.while_loop(lambda i, a: i < 4, body, (0, x))[1]
    fetches = [y, *tf.gradients(tf.reduce_sum(tf.sin(y)), [w, x])]
    program = program_of(fetches, [x])
    assert RULE not in program.notes  # the product comes from a branch
    same(fetches, {x: randn(batch, 3)}, 1e-5)


def test_a_branch_with_a_row_instead_of_a_batch() -> None:
    """What a branch gives has the lengths that both branches have."""
    x = tf.placeholder(tf.float32, [None, 3])

    def body(i: Any, a: Any) -> Any:
        b = tf.cond(i < 1, lambda: tf.sin(a), lambda: tf.reduce_sum(a, 0, keepdims=True))
        return i + 1, b * x

    y = tf.while_loop(lambda i, a: i < 3, body, (0, x))[1]
    for batch in (1, 3):
        same([y, *tf.gradients(tf.reduce_sum(y), x)], {x: randn(batch, 3)}, 1e-5)


# TensorArrays -----------------------------------------------------------------------------------


def test_elements_that_differ_in_length() -> None:
    """Written in a branch before the loop or in it, with other lengths.

    Nothing is known of what is read.
    """
    x = tf.placeholder(tf.float32, [None])
    held = tf.TensorArray(tf.float32, 2, infer_shape=False, clear_after_read=False)
    held = held.write(0, x).write(1, x[:1])

    def body(i: Any, total: Any) -> Any:
        return i + 1, total + tf.reduce_sum(held.read(i) * tf.sin(x))

    y = tf.while_loop(lambda i, t: i < 2, body, (0, 0.0))[1]
    same([y, *tf.gradients(y, x)], {x: randn(3)}, 1e-5)


def test_elements_written_later_in_the_same_round() -> None:
    x = tf.placeholder(tf.float32, [None])
    held = tf.TensorArray(tf.float32, 4, infer_shape=False, clear_after_read=False).write(0, x)

    def body(i: Any, total: Any, held: Any) -> Any:
        had = held.read(i)
        return i + 1, total + tf.reduce_sum(had * tf.sin(x)), held.write(i + 1, had[:1])

    y = tf.while_loop(lambda i, *_: i < 3, body, (0, 0.0, held))[1]
    same([y, *tf.gradients(y, x)], {x: randn(3)}, 1e-5)


def test_rows_of_a_split() -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    lengths = tf.placeholder(tf.int64, [None])
    held = tf.TensorArray(tf.float32, 3, infer_shape=False).split(x, lengths)

    def body(i: Any, total: Any) -> Any:
        part = held.read(i)
        return i + 1, total + tf.reduce_sum(part * tf.reduce_mean(part, 0))

    y = tf.while_loop(lambda i, t: i < 3, body, (0, 0.0))[1]
    same([y, *tf.gradients(y, x)], {x: randn(6, 2), lengths: [1, 3, 2]}, 1e-5)


def test_what_is_gathered_has_the_lengths_of_what_was_written() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    held = tf.TensorArray(tf.float32, 4)
    body = lambda i, held: (i + 1, held.write(i, tf.sin(x) * tf.cast(i, tf.float32)))
    y = tf.while_loop(lambda i, *_: i < 4, body, (0, held))[1].stack()
    z = y + tf.ones_like(x)
    fetches = [z, *tf.gradients(tf.reduce_sum(tf.square(z)), x)]
    assert "BroadcastGradientArgs" not in ops_of(fetches, [x])
    for batch in (1, 3):
        same(fetches, {x: randn(batch, 3)}, 1e-5)


# gradients of concatenations --------------------------------------------------------------------


def test_part_of_a_joined_gradient() -> None:
    x, z = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 2])
    y = tf.reduce_sum(tf.sin(tf.concat([x, tf.tanh(x), z], 1)))
    fetches = tf.gradients(y, [x, z])
    program = program_of(fetches, [x, z])
    assert program.notes["part of a joined gradient"] == 2  # z need not be as long as x
    feed = {x: randn(4, 3), z: randn(4, 2)}
    same(fetches, feed)
    same(fetches[:1], {x: randn(1, 3), z: randn(1, 2)})
    assert "part of a joined gradient" in program_of(fetches, [x, z], exact=True).notes


def test_parts_of_unknown_length_stay() -> None:
    x, z = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 3])
    y = tf.reduce_sum(tf.sin(tf.concat([x, z], 0)))
    fetches = tf.gradients(y, [x, z])
    assert "ConcatOffset" in ops_of(fetches, [x, z])
    same(fetches, {x: randn(4, 3), z: randn(1, 3)})


# sums over rounds -------------------------------------------------------------------------------


def summing(start: float = 0.5) -> tuple[Any, Any, Any]:
    """total += a.T @ b, another a and b in every round."""
    a, rounds = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int32, [])

    def body(i: Any, total: Any) -> Any:
        rows = tf.sin(a * tf.cast(i + 1, tf.float32))
        return i + 1, total + tf.matmul(rows, tf.cos(rows), transpose_a=True)

    return a, rounds, tf.while_loop(lambda i, t: i < rounds, body, (0, tf.fill([4, 4], start)))[1]


def test_sum_of_products() -> None:
    a, rounds, y = summing()
    program = program_of(y, [a, rounds])
    assert program.notes[RULE] == 1 and len(loops_of(program)[0].values) == 1
    assert "_AddProduct" in inside(program) and "MatMul" not in inside(program)
    assert RULE not in program_of(y, [a, rounds], exact=True).notes
    for n in (0, 1, 7):
        for rows in (0, 1, 3):
            same([y, y * 2.0], {a: randn(rows, 4), rounds: n}, 1e-5)


def test_rows_are_multiplied_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    a, rounds, y = summing()
    monkeypatch.setattr(loop_sums, "MAX_ROWS", 8)
    same(y, {a: randn(3, 4), rounds: 7}, 1e-5)
    same(y, {a: randn(20, 4), rounds: 3}, 1e-5)
    monkeypatch.setattr(loop_sums, "MAX_BYTES", 1)
    same(y, {a: randn(3, 4), rounds: 7}, 1e-5)


def test_memory_is_bounded() -> None:
    kept = loop_sums.RowSum()
    rows = randn(1000, 4)
    for _ in range(20):
        kept.add(rows, rows)
        assert kept.n_rows < loop_sums.MAX_ROWS
    kept.add_kept_rows()
    np.testing.assert_allclose(kept.total, 20 * (rows.T @ rows), rtol=1e-4)


def test_nothing_that_is_kept_is_written_over() -> None:
    """The rows go on to be used by steps that would otherwise compute into them."""
    x = tf.placeholder(tf.float32, [None, 64])

    def body(i: Any, a: Any, total: Any) -> Any:
        rows = tf.sin(a) * 2.0
        total = total + tf.matmul(rows, a, transpose_a=True)
        b = rows + a
        b = tf.tanh(b) * 1.5 - rows
        return i + 1, b, total

    y = tf.while_loop(lambda i, *_: i < 5, body, (0, x, tf.zeros([64, 64])))
    assert RULE in program_of([y[1], y[2]], [x]).notes
    for rows in (1, 100):
        same([y[1], y[2]], {x: randn(rows, 64)}, 2e-4)


def test_several_products_in_one_round() -> None:
    """A weight that is used twice in a round."""
    x, w = tf.placeholder(tf.float32, [None, 3]), variable(3, 3)
    step = lambda i, a: (i + 1, tf.tanh(tf.matmul(tf.tanh(tf.matmul(a, w)), w)))
    y = tf.while_loop(lambda i, a: i < 4, step, (0, x))[1]
    fetches = tf.gradients(tf.reduce_sum(tf.sin(y)), [w, x])
    program = program_of(fetches, [x])
    assert inside(program).count("_AddProduct") == 2 and program.notes[RULE] == 1
    for batch in (1, 4):
        same(fetches, {x: randn(batch, 3)}, 1e-5)


def test_double_precision() -> None:
    x = tf.placeholder(tf.float64, [None, 3])
    w = tf.Variable(RNG.randn(3, 3))
    step = lambda i, a: (i + 1, tf.tanh(tf.matmul(a, w)))
    y = tf.while_loop(lambda i, a: i < 4, step, (0, x))[1]
    fetches = tf.gradients(tf.reduce_sum(tf.sin(y)), w)
    assert RULE in program_of(fetches, [x]).notes
    same(fetches, {x: RNG.randn(4, 3)}, 1e-12)


@pytest.mark.parametrize("how", ["total is read", "sum is read", "term is read", "test reads"])
def test_sums_that_are_looked_at_stay(how: str) -> None:
    x = tf.placeholder(tf.float32, [None, 3])

    def body(i: Any, a: Any, total: Any) -> Any:
        term = tf.matmul(a, x, transpose_a=True)
        after = total + term
        seen = {"total is read": total, "sum is read": after, "term is read": term}.get(how, a)
        return i + 1, tf.sin(a) + tf.reduce_sum(seen) * 0.01, after

    def test(i: Any, a: Any, total: Any) -> Any:
        return tf.logical_and(i < 4, total[0, 0] < 1e9) if how == "test reads" else i < 4

    y = tf.while_loop(test, body, (0, x, tf.zeros([3, 3])))
    assert RULE not in program_of([y[1], y[2]], [x]).notes
    same([y[1], y[2]], {x: randn(4, 3)}, 1e-4)


def test_large_products_stay() -> None:
    x = tf.placeholder(tf.float32, [300, 3])
    body = lambda i, total: (
        i + 1,
        total + tf.matmul(x * tf.cast(i, tf.float32), x, transpose_a=True),
    )
    y = tf.while_loop(lambda i, *_: i < 4, body, (0, tf.zeros([3, 3])))[1]
    program = program_of(y, [x])
    assert RULE not in program.notes
    assert any(m.rule == RULE and "large" in m.why_not for m in program.near_misses)


def test_a_sum_in_an_inner_loop() -> None:
    """The inner loop's sum begins anew in every round of the outer one."""
    x = tf.placeholder(tf.float32, [None, 3])

    def outer(i: Any, a: Any, out: Any) -> Any:
        scaled = a * tf.cast(i + 1, tf.float32)

        def inner(j: Any, total: Any) -> Any:
            rows = tf.sin(scaled + tf.cast(j, tf.float32))
            return j + 1, total + tf.matmul(rows, x, transpose_a=True)

        total = tf.while_loop(lambda j, t: j < i, inner, (0, tf.zeros([3, 3])))[1]
        return i + 1, tf.tanh(a), out + tf.sin(total)

    y = tf.while_loop(lambda i, *_: i < 4, outer, (0, x, tf.zeros([3, 3])))[2]
    assert program_of(y, [x]).notes[RULE] == 1
    same(y, {x: randn(2, 3)}, 1e-5)


def test_a_weight_that_is_written_stays_as_it_was() -> None:
    """The rows come from a variable that later steps of the same run change."""
    v = variable(3, 3)
    body = lambda i, total: (
        i + 1,
        total + tf.matmul(tf.sin(v), v * tf.cast(i, tf.float32), transpose_a=True),
    )
    y = tf.while_loop(lambda i, *_: i < 4, body, (0, tf.zeros([3, 3])))[1]
    with tf.control_dependencies([y]):
        update = v.assign_add(tf.ones([3, 3]))
    same([y, update], {}, 1e-5)


def test_training_steps_agree() -> None:
    losses = []
    for executor in ("numpy", "reference"):
        RNG.seed(5)
        with tf.Graph().as_default():
            net = Rnn()
            step = tf.train.GradientDescentOptimizer(0.1).minimize(net.loss)
            with tf.Session(executor=executor) as session:
                session.run(tf.global_variables_initializer())
                feed = net.feed(4)
                losses.append([session.run([step, net.loss], feed)[1] for _ in range(8)])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)


def test_errors_are_at_the_product() -> None:
    a, b = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 3])

    def body(i: Any, total: Any) -> Any:
        f = tf.cast(i, tf.float32)
        return i + 1, total + tf.matmul(a * f, b * f, transpose_a=True, name="outer")

    y = tf.while_loop(lambda i, *_: i < 4, body, (0, tf.zeros([2, 3])))[1]
    assert RULE in program_of(y, [a, b]).notes
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="size-incompatible") as caught:
            session.run(y, {a: randn(2, 2), b: randn(3, 3)})
        assert caught.value.op is not None and "outer" in caught.value.op.name


def test_threads_do_not_share_sums() -> None:
    a, rounds, y = summing()
    feeds = [{a: randn(3, 4), rounds: n} for n in (0, 3, 20, 40)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        want = [session.run(y, f) for f in feeds]
        wrong: list[int] = []

        def work(k: int) -> None:
            for _ in range(20):
                if not np.array_equal(session.run(y, feeds[k]), want[k]):
                    wrong.append(k)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong


# LSTM cells in loops ----------------------------------------------------------------------------

CELL = "LSTM cell in a loop"


@pytest.mark.parametrize("batch", [1, 6])
def test_lstm_cell_in_a_loop(batch: int) -> None:
    net = Rnn()
    fetches = [net.outputs, *net.state]
    program = program_of(fetches, [net.x])
    left = inside(program)
    assert program.notes[CELL] == 1 and "_LSTMCell" in left
    assert not {"Sigmoid", "Tanh", "Split"} & set(left)
    assert CELL not in program_of(fetches, [net.x], exact=True).notes
    same(fetches, net.feed(batch), 1e-6)


def test_lstm_cell_in_a_masked_loop() -> None:
    net = Rnn(masked=True)
    feed = net.feed(6)
    assert program_of([net.outputs, *net.state], list(feed)).notes[CELL] == 1
    same([net.outputs, *net.state], feed, 1e-6)


def test_no_cell_where_gradients_look_inside() -> None:
    net = Rnn()
    assert CELL not in program_of([net.loss, *net.grads], [net.x]).notes


def cell_of(gates: Any, c: Any) -> tuple[Any, Any]:
    a, f, g, o = tf.split(gates, 4, axis=1)
    c = tf.sigmoid(f) * c + tf.sigmoid(a) * tf.tanh(g)
    return c, tf.sigmoid(o) * tf.tanh(c)


def test_what_reads_the_state_before_and_after_the_output() -> None:
    """tf.identity of the state, and a sum that is built before the output."""
    x, w = tf.placeholder(tf.float32, [None, 3]), variable(3, 12)

    def body(i: Any, c: Any, h: Any, seen: Any) -> Any:
        a, f, g, o = tf.split(tf.matmul(h, w), 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(a) * tf.tanh(g)
        kept = tf.identity(c)
        early = tf.reduce_sum(c, 1)
        h = tf.sigmoid(o) * tf.tanh(c)
        return i + 1, kept, h, seen + early + tf.reduce_max(kept, 1)

    y = tf.while_loop(lambda i, *_: i < 3, body, (0, x, tf.sin(x), tf.reduce_sum(x, 1)))[1:]
    assert CELL in program_of(list(y), [x]).notes
    same(list(y), {x: randn(4, 3)}, 1e-6)


def test_cell_in_a_branch_of_a_loop() -> None:
    x, w = tf.placeholder(tf.float32, [None, 3]), variable(3, 12)

    def body(i: Any, c: Any, h: Any) -> Any:
        new, out = cell_of(tf.matmul(h, w), c)
        return tf.cond(
            i < 2, lambda: (i + 1, *cell_of(tf.matmul(out, w), new)), lambda: (i + 1, c, h)
        )

    y = tf.while_loop(lambda i, *_: i < 4, body, (0, x, tf.sin(x)))[1:]
    same(list(y), {x: randn(4, 3)}, 1e-6)


def test_output_in_a_branch_of_a_state_outside() -> None:
    """The state is computed in every round, the output in some."""
    x, w = tf.placeholder(tf.float32, [None, 3]), variable(3, 12)

    def body(i: Any, c: Any, h: Any) -> Any:
        a, f, g, o = tf.split(tf.matmul(h, w), 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(a) * tf.tanh(g)
        out = tf.cond(i < 2, lambda: tf.sigmoid(o) * tf.tanh(c), lambda: h)
        return i + 1, c, out

    y = tf.while_loop(lambda i, *_: i < 4, body, (0, x, tf.sin(x)))[1:]
    assert CELL not in program_of(list(y), [x]).notes
    same(list(y), {x: randn(4, 3)}, 1e-6)


def test_a_state_of_one_row_for_all() -> None:
    x, w, c = tf.placeholder(tf.float32, [None, 3]), variable(3, 12), variable(1, 3)

    def body(i: Any, h: Any) -> Any:
        return i + 1, cell_of(tf.matmul(h, w), c)[1]

    y = tf.while_loop(lambda i, *_: i < 3, body, (0, x))[1]
    assert CELL not in program_of(y, [x]).notes
    same(y, {x: randn(4, 3)}, 1e-6)


def test_lengths_that_only_a_branch_knows() -> None:
    """What is read outside of a branch is not asked of a value that is made in it."""
    x, flag = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.bool, [])
    held = tf.TensorArray(tf.int32, 1, infer_shape=False, clear_after_read=False)
    held = tf.cond(flag, lambda: held.write(0, tf.unique(x)[0]), lambda: held)

    def body(i: Any, total: Any) -> Any:
        return i + 1, total + tf.shape(held.read(0))[0]

    y = tf.while_loop(lambda i, *_: i < 2, body, (0, 0))[1]
    same(y, {x: [1, 2, 1], flag: True})
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="written"):
        session.run(y, {x: [1, 2, 1], flag: False})
