"""Consecutive small steps as one native function compute what the steps compute one by one."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import headrace as tf
from headrace.kernels.native import llvm_library
from headrace.kernels.native.native_types import ELEMENTWISE, has_code
from headrace.lower import native_groups, native_segments

needs_llvm = pytest.mark.skipif(
    llvm_library.available() is None, reason=f"no native code: {llvm_library.status()}"
)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 3.5, -2.5, 88.0, -104.0, 1e-40, np.inf, -np.inf, np.nan]


@pytest.fixture
def always(monkeypatch):
    """Segments are compiled at their first run; each run says whether it was native."""
    monkeypatch.setenv("HEADRACE_NATIVE", "always")


def bound(monkeypatch):
    """A list that gets, for each segment that was looked at, whether it was compiled."""
    found = []
    bind = native_segments.NativeSegment._bind

    def recorded(self, inputs):
        made = bind(self, inputs)
        found.append("" if made is not None else self.why_not)
        return made

    monkeypatch.setattr(native_segments.NativeSegment, "_bind", recorded)
    return found


def run(build, feeds):
    """The second run's results."""
    with tf.Graph().as_default() as graph, np.errstate(all="ignore"):
        inputs, fetches = build()
        feed = dict(zip(inputs, feeds))
        with tf.Session(graph=graph) as session:
            session.run(fetches, feed)
            return session.run(fetches, feed)


def compare(monkeypatch, build, feeds, tolerance=2e-6):
    """``build()`` gives placeholders and fetches: one by one, and native."""
    monkeypatch.setenv("HEADRACE_NATIVE", "off")
    expected = run(build, feeds)
    monkeypatch.setenv("HEADRACE_NATIVE", "always")
    seen = bound(monkeypatch)
    found = run(build, feeds)
    for e, f in zip(expected, found):
        assert np.asarray(e).dtype == np.asarray(f).dtype
        np.testing.assert_allclose(f, e, rtol=tolerance, atol=tolerance)
    assert "" in seen, seen


@needs_llvm
def test_element_wise_chains_of_special_numbers(monkeypatch):
    def build():
        x = tf.placeholder(tf.float32, [None, len(SPECIAL)])
        row = tf.constant(np.linspace(-2, 2, len(SPECIAL)).astype(np.float32))
        y = tf.maximum(x + row, x * 0.5)
        column = tf.reduce_max(tf.abs(x), 1, keepdims=True)
        z = tf.where(y > 0.0, tf.tanh(y), tf.exp(-tf.abs(y)))
        return [x], [y, z, z - tf.zeros_like(column), tf.sigmoid(x), tf.nn.softplus(row * 1.5)]

    compare(monkeypatch, build, [np.array([SPECIAL, SPECIAL[::-1]], np.float32)])


@needs_llvm
@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 15, 16, 17, 63, 64, 65, 200])
def test_reductions_of_every_length(monkeypatch, size):
    rng = np.random.RandomState(size)

    def build():
        x = tf.placeholder(tf.float32, [None, size, 3])
        n = tf.placeholder(tf.int32, [size, 5])
        return [x, n], [
            tf.reduce_sum(x, 2),
            tf.reduce_sum(x, [0, 1]),
            tf.reduce_mean(x),
            tf.reduce_max(x, [0, 2]),
            tf.reduce_min(x, 1),
            tf.reduce_prod(x, 2),
            tf.reduce_sum(n, 0),
            tf.reduce_max(n, 1),
            tf.argmax(tf.transpose(n), 1),
        ]

    feeds = rng.rand(4, size, 3).astype(np.float32), rng.randint(-9, 9, (size, 5)).astype(np.int32)
    compare(monkeypatch, build, feeds, tolerance=2e-5)


@needs_llvm
@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 3, 2), (6, 16, 33), (13, 7, 10), (32, 64, 64)])
@pytest.mark.parametrize("turned", ["", "a", "b", "ab"])
def test_products(monkeypatch, sizes, turned):
    m, k, n = sizes
    rng = np.random.RandomState(0)
    shapes = [(k, m) if "a" in turned else (m, k), (n, k) if "b" in turned else (k, n), (n,)]

    def build():
        inputs = [tf.placeholder(tf.float32, s) for s in shapes]
        x, w, bias = inputs
        y = tf.matmul(x, w, transpose_a="a" in turned, transpose_b="b" in turned)
        layer = tf.nn.relu(y + bias)
        return inputs, [y, layer, tf.reduce_sum(layer, 0), layer * 2.0]

    compare(monkeypatch, build, [rng.randn(*s).astype(np.float32) for s in shapes], tolerance=2e-5)


@needs_llvm
def test_losses_rows_and_rearrangements(monkeypatch):
    rng = np.random.RandomState(0)

    def build():
        x = tf.placeholder(tf.float32, [None, 10])
        labels = tf.placeholder(tf.int32, [None])
        table = tf.constant(np.sin(np.arange(120.0)).reshape(20, 6).astype(np.float32))
        one_hot = tf.one_hot(labels, 10)
        dense = tf.nn.softmax_cross_entropy_with_logits_v2(logits=x, labels=one_hot)
        sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=x, labels=labels)
        i, j = tf.split(x, 2, axis=1)
        moved = tf.concat([tf.transpose(i), tf.transpose(j) * 2.0], 0)
        rows = tf.gather(table, labels)
        mean, variance = tf.nn.moments(x, [1], keep_dims=True)
        norm = (x - mean) * tf.rsqrt(variance + 1e-5)
        fetches = [dense, sparse, tf.nn.softmax(x), tf.nn.log_softmax(x), moved[1:7:2, ::-1], rows]
        fetches += [norm, tf.unsorted_segment_sum(rows, labels % 4, 4), tf.stack([i, j], 1)]
        fetches += [tf.pad(i, [[1, 2], [0, 3]]), tf.pad(j, [[0, 1], [1, 0]], constant_values=2.5)]
        return [x, labels], fetches + tf.gradients([dense, sparse, norm], x)

    compare(
        monkeypatch,
        build,
        [rng.randn(7, 10).astype(np.float32) * 3, np.array([0, 9, 3, 3, 1, 7, 2], np.int32)],
        tolerance=1e-5,
    )


@needs_llvm
@pytest.mark.parametrize("optimizer", ["descent", "adam"])
def test_training_takes_the_same_way(monkeypatch, optimizer):
    rng = np.random.RandomState(0)
    data = rng.randn(20, 4).astype(np.float32), rng.randint(0, 3, 20).astype(np.int32)

    def losses(setting):
        monkeypatch.setenv("HEADRACE_NATIVE", setting)
        with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
            x, labels = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int32, [None])
            w = [
                tf.Variable(rng.__class__(k).randn(*s).astype(np.float32) * 0.5)
                for k, s in enumerate(((4, 8), (8,), (8, 3), (3,)))
            ]
            y = tf.matmul(tf.nn.elu(tf.matmul(x, w[0]) + w[1]), w[2]) + w[3]
            loss = tf.losses.sparse_softmax_cross_entropy(labels, y)
            made = {"descent": tf.train.GradientDescentOptimizer, "adam": tf.train.AdamOptimizer}
            train = made[optimizer](0.05).minimize(loss)
            session.run(tf.global_variables_initializer())
            return [session.run([loss, train], {x: data[0], labels: data[1]})[0] for _ in range(30)]

    np.testing.assert_allclose(losses("always"), losses("off"), rtol=2e-5)


OPTIMIZERS = {
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1, 0.9, momentum=0.5),
    "centered": lambda: tf.train.RMSPropOptimizer(0.1, 0.9, centered=True),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.1),
    "descent": lambda: tf.train.GradientDescentOptimizer(0.1),
}


@needs_llvm
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_updates_of_many_small_variables_have_the_same_bits(monkeypatch, name):
    rng = np.random.RandomState(0)
    shapes = [(3,), (4, 5), (1,), (17, 3), (8,), (2, 2), (33,)]
    starts = [rng.randn(*s).astype(np.float32) for s in shapes]
    gradients = [rng.randn(*s).astype(np.float32) for s in shapes]

    def trained(setting):
        monkeypatch.setenv("HEADRACE_NATIVE", setting)
        with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
            variables = [tf.Variable(s) for s in starts]
            pairs = [(tf.constant(g), v) for g, v in zip(gradients, variables)]
            train = OPTIMIZERS[name]().apply_gradients(pairs)
            session.run(tf.global_variables_initializer())
            for _ in range(5):
                session.run(train)
            return session.run(variables)

    for native, plain in zip(trained("always"), trained("off")):
        np.testing.assert_array_equal(native, plain)


@needs_llvm
def _cell_loop(steps=6):
    """An LSTM cell written out in a loop, and its gradient: views of a Split, values on stacks."""
    rng = np.random.RandomState(3)
    x = tf.placeholder(tf.float32, [None, 8, 5])
    w = tf.Variable(rng.randn(5 + 7, 28).astype(np.float32) * 0.4)

    rows = tf.TensorArray(tf.float32, 8).unstack(tf.transpose(x, [1, 0, 2]))

    def body(t, c, h):
        z = tf.matmul(tf.concat([rows.read(t), h], 1), w)
        i, j, f, o = tf.split(z, 4, 1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        return t + 1, c, tf.tanh(c) * tf.sigmoid(o)

    zeros = tf.zeros([tf.shape(x)[0], 7])
    _, c, h = tf.while_loop(lambda t, c, h: t < steps, body, [tf.constant(0), zeros, zeros])
    return x, [h, *tf.gradients(tf.reduce_sum(h * c), [x, w])]


def _run_cells(monkeypatch, setting, x_value, runs=3):
    monkeypatch.setenv("HEADRACE_NATIVE", setting)
    with tf.Graph().as_default():
        x, fetches = _cell_loop()
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(runs):
                got = sess.run(fetches, {x: x_value})
            return got


@needs_llvm
def test_cells_of_loops_are_one_segment_each_way(monkeypatch):
    found = {}
    call = native_segments.NativeSegment.__call__

    def recorded(self, state, *inputs):
        made = call(self, state, *inputs)
        ops = [n.opdef.name for s in self.steps for n in native_segments.nodes_of(s)]
        found.setdefault(self.number, (ops, []))[1].append(made is not None)
        return made

    monkeypatch.setattr(native_segments.NativeSegment, "__call__", recorded)
    x_value = np.random.RandomState(0).randn(4, 8, 5).astype(np.float32)
    got = _run_cells(monkeypatch, "always", x_value)
    segments = [*found.values()]
    for a, b in zip(got, _run_cells(monkeypatch, "0", x_value)):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
    for op in ("Sigmoid", "SigmoidGrad"):
        [is_native] = [native for ops, native in segments if ops.count(op) == 3]
        assert len(is_native) == 18 and all(is_native)


@needs_llvm
def test_views_with_gaps_are_copied_for_a_kernel(always, monkeypatch):
    made = []
    run = native_groups.NativeStep.run

    def recorded(self, inputs, own=None, out=None):
        result = run(self, inputs, own, out)
        made.append((result is not None, all(a.flags.c_contiguous for a in inputs)))
        return result

    monkeypatch.setattr(native_groups.NativeStep, "run", recorded)
    x = tf.placeholder(tf.float32, [256, 1024])
    left, right = tf.split(x, 2, 1)
    y = tf.tanh(left) * right + 1.0
    value = np.random.RandomState(0).randn(256, 1024).astype(np.float32)
    with tf.Session() as sess:
        got = sess.run(y, {x: value})
        a, b = value[:, :512].copy(), value[:, 512:].copy()
        same = sess.run(y, {left: a, right: b})
    np.testing.assert_array_equal(got, same)
    assert (True, False) in made and all(native for native, _ in made)


def test_indices_out_of_bounds_have_their_own_error(always):
    with tf.Graph().as_default(), tf.Session() as session:
        x, at = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.int32, [None])
        y = tf.exp(tf.gather(x * 2.0, at)) + 1.0
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=x + 1.0, labels=at) * 2.0
        z = tf.reduce_sum(loss) * 3.0
        good = {x: np.ones((2, 3), np.float32), at: [0, 1]}
        session.run([y, z], good)
        for bad in (-1, 2, 7):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices|out of"):
                session.run(y, {**good, at: [0, bad]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="valid range"):
            session.run(z, {**good, at: [0, 3]})
        session.run([y, z], good)


@needs_llvm
def test_results_are_the_callers_own(always):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [3])
        y = tf.exp(x) * 2.0 + 1.0
        fetches = [y, tf.reshape(y, [1, 3]), tf.shape(y), y * y]
        first = session.run(fetches, {x: [1, 2, 3]})
        kept = [a.copy() for a in first]
        for a in first:
            a[...] = 7
        second = session.run(fetches, {x: [1, 2, 3]})
        for a, b in zip(second, kept):
            np.testing.assert_array_equal(a, b)


@needs_llvm
def test_the_run_that_switches_is_counted_and_belongs_to_shapes(monkeypatch):
    monkeypatch.setenv("HEADRACE_NATIVE", "hot")
    monkeypatch.setattr(native_segments, "HOT_STEPS", 40)
    monkeypatch.setattr(native_segments, "WORK_OF_COMPILING", 4)
    found = []

    class Recorded(native_segments.Build):
        def result(self):
            made = super().result()
            found.append("" if made is not None else "refused")
            return made

    monkeypatch.setattr(native_segments, "Build", Recorded)
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None])
        y = tf.reduce_sum(tf.reduce_max(tf.nn.softmax(tf.reshape(x, [1, -1])), 0) * 2.0)
        switches = []
        for _ in range(2):
            with tf.Session(graph=graph) as session:
                for n in range(40):
                    before = len(found)
                    session.run(y, {x: np.ones(5, np.float32)})
                    if len(found) > before:
                        switches.append(n)
                session.run(y, {x: np.ones(6, np.float32)})  # another shape counts anew
    assert len(found) == 2 and found == ["", ""]
    assert switches[0] == switches[1] > 5


@needs_llvm
def test_larger_arrays_switch_earlier(monkeypatch):
    """The count of runs is one of work: the same steps with other sizes."""
    monkeypatch.setenv("HEADRACE_NATIVE", "hot")
    monkeypatch.setattr(native_segments, "HOT_STEPS", 400)
    monkeypatch.setattr(native_segments, "WORK_OF_COMPILING", 20)
    taken = []

    class Recorded(native_segments.Build):
        def result(self):
            taken.append(True)
            return super().result()

    monkeypatch.setattr(native_segments, "Build", Recorded)
    runs = []
    for size in (8, 60_000):
        taken.clear()
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32, [2, size // 2])
            y = tf.reduce_max(tf.nn.softmax(x) * 2.0, 0)
            value = np.ones((2, size // 2), np.float32)
            count = 0
            while not taken and count < 2000:
                session.run(y, {x: value})
                count += 1
        runs.append(count)
    assert 2000 > runs[0] > 4 * runs[1] > 4


@needs_llvm
def test_explain_says_which_steps_are_native_and_why_not(monkeypatch):
    monkeypatch.setenv("HEADRACE_NATIVE", "hot")
    with tf.Graph().as_default(), tf.Session() as session:
        x, w = tf.placeholder(tf.float32, [None, 3]), tf.Variable(np.ones((3, 2), np.float32))
        y = tf.nn.softmax(tf.matmul(x, w)) * 2.0 + tf.reduce_sum(w)
        session.run(tf.global_variables_initializer())
        feed = {x: np.ones((4, 3), np.float32)}
        session.run(y, feed)
        assert {s.by for s in session.explain(y, feed).steps} == {"NumPy or library"}
        assert "it has not run often enough" in str(session.explain(y, feed))
        monkeypatch.setenv("HEADRACE_NATIVE", "always")
        session.run(y, feed)
        assert {s.by for s in session.explain(y, feed).steps} == {"native"}


@needs_llvm
def test_shapes_that_change_are_computed_anew(always):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, None])
        y = tf.reshape(tf.exp(x) + 1.0, [tf.shape(x)[0] * tf.shape(x)[1]]) * 2.0
        for shape in ((2, 3), (3, 2), (6, 1), (2, 3), (1, 1), (5, 4)):
            value = np.random.rand(*shape).astype(np.float32)
            expected = (np.exp(value) + 1).reshape(-1) * 2
            np.testing.assert_allclose(session.run(y, {x: value}), expected, rtol=1e-6)


@needs_llvm
def test_the_list_of_types_is_that_of_the_rules():
    from headrace.kernels.native.element_rules import RULES

    assert {*ELEMENTWISE} == {*RULES}
    names = {"float32": "f32", "float64": "f64", "int32": "i32", "uint8": "u8", "bool": "bool"}
    for op, rule in RULES.items():
        for dtype, element in names.items():
            given = ["bool", dtype, dtype] if op.startswith("Select") else [dtype]
            assert has_code(op, *given) == (element in rule.types), (op, dtype)


@needs_llvm
def test_calls_look_at_their_arguments():
    from headrace.kernels.native.array_calls import MISFIT, Argument, ArrayCall, refusal
    from headrace.kernels.native.segment_code import SegmentCode

    assert refusal() == ""
    code = SegmentCode()
    x = code.operand("input", "f32", (2, 3))
    number = code.operand("input", "f32", ())
    code.give(code.elements("Mul", [x, number], "f32", (2, 3)))
    text, _ = code.source()
    f32 = np.dtype(np.float32)
    arguments = [Argument((2, 3), f32), Argument((), f32), Argument((2, 3), f32)]
    call = ArrayCall(llvm_library.load().compile(text), "segment", arguments, [np.empty(8)])
    value, out = np.arange(6, dtype=f32).reshape(2, 3), np.zeros((2, 3), f32)
    for two in (np.float32(2), np.array(2, f32)):
        assert call.function(value, two, out) == 0
        np.testing.assert_array_equal(out, value * 2)
    misfits = [
        (value,),
        (value.T.copy(), two, out),
        (value.astype(np.float64), two, out),
        (np.asfortranarray(value), two, out),
        (value, np.float64(2), out),
        (value, 2.0, out),
        (None, two, out),
        (value[None], two, out),
    ]
    for given in misfits:
        assert call.function(*given) == MISFIT


WITHOUT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ImportError(name)

BLOCKED = sys.argv[1].split(",")
sys.meta_path.insert(0, Blocked())
import numpy as np
import headrace as tf

x, labels = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.int32, [None])
w = tf.Variable(np.linspace(-1, 1, 6).reshape(3, 2).astype(np.float32))
loss = tf.losses.sparse_softmax_cross_entropy(labels, tf.tanh(tf.matmul(x, w)))
train = tf.train.AdamOptimizer(0.1).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    feed = {x: np.eye(3, dtype=np.float32), labels: [0, 1, 0]}
    for _ in range(3):
        value = session.run([loss, train], feed)[0]
    print(repr(float(value)), session.explain([loss, train], feed).native)
"""


@pytest.mark.parametrize("setting", ["always", "1", "0"])
@pytest.mark.parametrize("blocked", ["llvmlite", "llvmlite,cffi,_cffi_backend", "-"])
def test_without_the_compiler_steps_run_one_by_one(setting, blocked):
    env = {**os.environ, "HEADRACE_NATIVE": setting}
    command = [sys.executable, "-c", WITHOUT, blocked]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    loss, _, status = done.stdout.partition(" ")
    assert float(loss) == pytest.approx(0.5902588, abs=1e-6)  # TF 1.15
    if setting == "0":
        assert "switched off" in status
    elif blocked != "-":
        assert "llvmlite" in status or "cffi" in status


@needs_llvm
def test_large_products_do_not_keep_their_neighbours_from_being_native(always):
    """Batches are not declared, so it is the weights that show what is left to a library."""
    value = np.random.default_rng(1).normal(size=(128, 256)).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 256])
        weights = tf.placeholder(tf.float32, [256, 256])
        chances = tf.nn.softmax(tf.matmul(x, weights))
        total = tf.reduce_sum(chances * chances, 1, keepdims=True)
        y = tf.matmul(chances / (total + tf.reduce_max(chances, 1, keepdims=True)), weights)
        feed = {x: value, weights: np.eye(256, dtype=np.float32)}
        steps = tf.Variable(0)
        fetches = [y, tf.assign_add(steps, 1)]  # (a run that writes is not bound to memory here)
        session.run(tf.global_variables_initializer())
        found, _ = session.run(fetches, feed)
        taken = session.explain(fetches, feed).steps
    native = {s.op_type for s in taken if s.by == "native"}
    assert {"Softmax", "Max"} <= native and "MatMul" not in native
    powers = np.exp(value - value.max(1, keepdims=True))
    chances = powers / powers.sum(1, keepdims=True)
    wanted = chances / ((chances**2).sum(1, keepdims=True) + chances.max(1, keepdims=True))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
