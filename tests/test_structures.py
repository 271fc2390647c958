"""A program gives the same after any other programs of its structure as it gives first.

Each family below is one structure; its members differ in constants, attributes, types or shapes.
Whatever an engine keeps (compiled functions, plans, settled runs, kernel library primitives) is
keyed on some of that: a key that leaves out what matters makes a member answer with another
member's result.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.executors import shared_code
from headrace.lower import emit_lines
from headrace.lower import fused_code as fused

X = np.arange(1.0, 13.0, dtype=np.float32).reshape(2, 2, 3)
SPECIAL = np.array([[-np.inf, -1.5, -0.0], [0.0, 2.5, np.nan]], np.float32)

Maker = Callable[..., Any]

#: name -> (function of the fed tensor and a member, members, what is fed)
FAMILIES: dict[str, tuple[Maker, list[Any], Any]] = {
    **{
        f"{name} axis": (lambda x, a, f=f: f(x, a), [0, 1, 2, -1, -2, (0, 1), (0, 2), (1, 2)], X)
        for name, f in [
            ("sum", tf.reduce_sum),
            ("mean", tf.reduce_mean),
            ("max", tf.reduce_max),
            ("min", tf.reduce_min),
            ("prod", tf.reduce_prod),
            ("logsumexp", tf.reduce_logsumexp),
        ]
    },
    "sum of a chain": (lambda x, a: tf.reduce_sum(tf.tanh(x * 2.0) + 1.0, a), [0, 1, 2, -1], X),
    "cumsum": (
        lambda x, a: tf.cumsum(x, a[0], exclusive=a[1], reverse=a[2]),
        list(itertools.product([0, 1, -1], [False, True], [False, True])),
        X,
    ),
    "argmax": (lambda x, a: tf.argmax(x, a), [0, 1, 2, -1], X),
    "expand": (lambda x, a: tf.expand_dims(x, a), [0, 1, 2, 3, -1, -2], X),
    "concat": (lambda x, a: tf.concat([x, x * 2.0], a), [0, 1, 2, -1], X),
    "stack": (lambda x, a: tf.stack([x, -x], a), [0, 1, 2, -1], X),
    "split": (lambda x, a: tf.split(x, a[0], a[1])[0], [(2, 0), (2, 1), (3, 2), (1, 0)], X),
    "transpose": (lambda x, a: tf.transpose(x, a), list(itertools.permutations(range(3))), X),
    "reshape": (
        lambda x, a: tf.reduce_sum(tf.reshape(x, a), 1),
        [(3, 4), (4, 3), (2, -1), (-1, 2), (6, 2)],
        X,
    ),
    "slice": (lambda x, a: tf.slice(x, [0, a, 0], [-1, 1, 2]), [0, 1], X),
    "strided": (lambda x, a: x[:, a:, ::2] * 1.0, [0, 1, -1], X),
    "gather": (
        lambda x, a: tf.gather(x, a[0], axis=a[1]),
        [([0, 1], 0), ([1, 0], 0), ([1, 0], 1), ([2, 0], 2)],
        X,
    ),
    "tile": (lambda x, a: tf.tile(x, a), [(1, 2, 1), (2, 1, 1), (1, 1, 3)], X),
    "pad": (
        lambda x, a: tf.pad(x, [[0, 0], [a[0], 1], [0, a[1]]], constant_values=a[2]),
        [(0, 0, 0), (1, 0, 0), (1, 2, 7)],
        X,
    ),
    "reverse": (lambda x, a: tf.reverse(x, [a]), [0, 1, 2, -1], X),
    "one hot": (
        lambda x, a: tf.one_hot(tf.cast(x, tf.int32), a[0], a[1], a[2]),
        [(3, 1.0, 0.0), (3, 5.0, 2.0), (12, 1.0, 0.0)],
        X,
    ),
    "scalars": (
        lambda x, a: (x * a[0] + a[1]) / a[2],
        [(1.0, 0.0, 1.0), (2.0, 3.0, 4.0), (0.0, -0.0, 3.0), (-1.0, 1.0, 0.5)],
        X,
    ),
    "signed zero": (lambda x, a: tf.zeros_like(x) * a, [0.0, -0.0, 1.0, -1.0], X),
    "power": (lambda x, a: x**a, [0.0, 1.0, 2.0, 0.5, -1.0, 3.0], X),
    "clip": (lambda x, a: tf.clip_by_value(x, *a), [(2.0, 5.0), (0.0, 3.0), (1.0, 1.0)], X),
    "leaky relu": (lambda x, a: tf.nn.leaky_relu(x, a), [0.0, -0.0, 0.25, 1.0, 2.0], SPECIAL),
    "cast": (
        lambda x, a: tf.cast(x * 100.5, a),
        [tf.int32, tf.uint8, tf.float64, tf.int8, tf.bool],
        X,
    ),
    "shape of another": (lambda x, a: x + tf.reduce_sum(tf.ones(a)), [(2,), (3,), (2, 2), ()], X),
    "matmul": (lambda x, a: tf.matmul(x, x, transpose_a=a, transpose_b=not a), [True, False], X[0]),
    "where": (lambda x, a: tf.where(x > a, x, -x), [3.0, 6.0, -1.0], X),
    "fill": (lambda x, a: x + tf.fill([2, 2, 3], a), [1.0, 2.0, 0.0, -0.0], X),
    "range": (
        lambda x, a: x + tf.range(a[0], a[0] + 3 * a[1], a[1]),
        [(0.0, 1.0), (2.0, 3.0), (0.0, -1.0)],
        X,
    ),
    "softmax": (lambda x, a: tf.nn.softmax(x, a), [0, 1, 2, -1], X),
    "broadcast": (
        lambda x, a: tf.broadcast_to(x[:1, :1, :1], a),
        [(2, 2, 3), (1, 4, 1), (3, 1, 2)],
        X,
    ),
    "string": (lambda x, a: tf.strings.join([tf.as_string(x), a]), ["a", "b", "", "ab"], X),
    "norm": (
        lambda x, a: tf.norm(x, a[0], axis=a[1]),
        [("euclidean", 0), (1, 0), (1, 1), (np.inf, 1)],
        X,
    ),
    "gradient": (lambda x, a: tf.gradients(tf.reduce_sum(x * x, a) * 3.0, x)[0], [0, 1, 2, -1], X),
    "top k": (lambda x, a: tf.nn.top_k(x, a).values, [1, 2, 3], X),
    "pool": (
        lambda x, a: tf.nn.max_pool(x[..., None], [1, *a, 1], [1, *a, 1], "VALID"),
        [(1, 1), (2, 1), (1, 3), (2, 3)],
        X,
    ),
}


def fresh() -> None:
    """Forget what is shared between graphs."""
    shared_code._families.clear()
    emit_lines._factories.clear()
    fused._code.clear()


def answer(make: Maker, member: Any, fed: Any, shape: Any, session: Any = None) -> Any:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.as_dtype(fed.dtype), shape)
        y = make(x, member)
        return tf.Session().run(y, {x: fed})


def same(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "O":
        return a.tolist() == b.tolist()
    if not np.array_equal(np.signbit(a), np.signbit(b)) if a.dtype.kind == "f" else False:
        return False
    return bool(np.allclose(a, b, 1e-6, 0, equal_nan=True))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", FAMILIES)
def test_members_of_a_structure_do_not_answer_for_each_other(name: str, known: bool) -> None:
    make, members, fed = FAMILIES[name]
    shape = fed.shape if known else (None,) * fed.ndim
    first = []
    for m in members:
        fresh()
        first.append(answer(make, m, fed, shape))
    fresh()
    order = list(range(len(members))) * 3
    np.random.RandomState(len(name)).shuffle(order)
    for i in order:
        got = answer(make, members[i], fed, shape)
        assert same(got, first[i]), (members[i], got, first[i])


def test_types_and_shapes_of_feeds_and_constants() -> None:
    kinds = [np.float32, np.float64, np.int32, np.int64, np.complex64]
    shapes = [(6,), (2, 3), (3, 2), (1, 6)]
    members = list(itertools.product(kinds, shapes))
    order = members * 3
    np.random.RandomState(0).shuffle(order)  # type: ignore[arg-type]
    for kind, shape in order:
        fed = np.arange(1, 7).reshape(shape).astype(kind)
        got = answer(lambda x, a: tf.reduce_sum(x * a + a, 0), kind(3), fed, None)
        assert same(got, np.sum(fed * kind(3) + kind(3), 0, dtype=kind)), (kind, shape, got)


def test_new_operations_in_one_session() -> None:
    x = tf.placeholder(tf.float32, [2, 3])
    s = tf.Session()
    fed = X[0]
    for i in range(30):
        axis = (1, 0, 1, -1, -2)[i % 5]
        got = s.run(tf.reduce_sum(x * float(i), axis), {x: fed})
        np.testing.assert_allclose(got, (fed * np.float32(i)).sum(axis), 1e-6)


def test_structure_is_shared_where_values_do_not_matter() -> None:
    fresh()
    x = tf.placeholder(tf.float32, [2, 2, 3])
    s = tf.Session()
    for i in range(20):
        s.run(tf.reduce_sum(x * float(i) + float(-i), i % 2), {x: X})
    (family,) = shared_code._families.values()
    assert family is not None and family.count == 2  # one for each axis


def test_a_structure_whose_values_never_repeat_is_planned_each_time() -> None:
    fresh()
    x = tf.placeholder(tf.float32, [100])
    s = tf.Session()
    fed = np.arange(100, dtype=np.float32)
    for i in range(1, 20):
        y = tf.reduce_sum(tf.reshape(x, [i, -1]) if 100 % i == 0 else x[:i, None], 1)
        assert s.run(y, {x: fed}).shape == (i,)
    assert all(
        f is None or f.count <= shared_code.MAX_VARIANTS for f in shared_code._families.values()
    )


# other things that are kept ---------------------------------------------------------------------


def test_plans_follow_changes_of_the_graph() -> None:
    """A session that has run an operation may not see that it was changed (as in TensorFlow).

    A new one does.
    """
    v = tf.Variable(1.0)
    y = tf.identity(v + 1.0)
    s = tf.Session()
    s.run(v.initializer)
    assert s.run(y) == 2.0
    y.op._add_control_input(v.assign_add(10.0).op)
    s = tf.Session()
    s.run(v.initializer)
    s.run(y)
    assert s.run(v) == 11.0


def test_attributes_that_compare_equal_are_not_shared() -> None:
    """-0.0 equals 0.0: two nodes with these attributes are not one."""
    x = tf.placeholder(tf.float32, [4])
    a, b = tf.nn.leaky_relu(x, 0.0), tf.nn.leaky_relu(x, -0.0)
    got = tf.Session().run([a, b], {x: np.array([-1.0, -2.0, 1.0, 2.0])})
    with tf.Graph().as_default():
        for got_one, alpha in zip(got, (0.0, -0.0)):
            fresh()
            one = answer(
                lambda x, a: tf.nn.leaky_relu(x, a),
                alpha,
                np.array([-1.0, -2.0, 1.0, 2.0], np.float32),
                [4],
            )
            np.testing.assert_array_equal(np.signbit(got_one), np.signbit(one))


@pytest.mark.parametrize("kind", ["variable", "constant"])
def test_kept_values_follow_their_variables(kind: str) -> None:
    """What depends on variables alone is kept between runs: it changes with them, in each
    session.
    """
    w = tf.Variable(tf.ones([64, 64]))
    x = tf.placeholder(tf.float32, [None, 64])
    scale = tf.Variable(1.0) if kind == "variable" else tf.constant(2.0)
    y = tf.nn.relu(tf.matmul(x, tf.transpose(w) * scale) + 1.0)
    new = tf.placeholder(tf.float32, [64, 64])
    assign = w.assign(new)
    sessions = [tf.Session() for _ in range(2)]
    rng = np.random.RandomState(0)
    held = []
    for s in sessions:
        s.run(tf.global_variables_initializer())
        held.append(np.ones((64, 64), np.float32))
    k = 1.0 if kind == "variable" else 2.0
    for step in range(24):
        i = rng.randint(2)
        if step % 3 == 0:
            held[i] = rng.uniform(-1, 1, (64, 64)).astype(np.float32)
            sessions[i].run(assign, {new: held[i]})
        fed = rng.uniform(-1, 1, (rng.choice([1, 4, 7]), 64)).astype(np.float32)
        got = sessions[i].run(y, {x: fed})
        np.testing.assert_allclose(got, np.maximum(fed @ (held[i].T * k) + 1.0, 0), 1e-4, 1e-4)


def test_settled_runs_of_other_batch_sizes_and_weights() -> None:
    rng = np.random.RandomState(1)
    x = tf.placeholder(tf.float32, [None, 32])
    shapes = [(32, 64), (64, 32)]
    ws = [tf.Variable(tf.zeros(s)) for s in shapes]
    h = x
    for w in ws:
        h = tf.nn.relu(tf.matmul(h, w))
    s = tf.Session()
    for step in range(30):
        if step % 7 == 0:
            values = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
            for w, v in zip(ws, values):
                w.load(v, s)
        fed = rng.uniform(-1, 1, (int(rng.choice([1, 2, 8])), 32)).astype(np.float32)
        want = fed
        for v in values:
            want = np.maximum(want @ v, 0)
        np.testing.assert_allclose(s.run(h, {x: fed}), want, 1e-4, 1e-4)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_convolutions_that_differ_in_one_attribute(padding: str) -> None:
    """The kernel library's primitives are kept by what they compute."""
    rng = np.random.RandomState(2)
    image = rng.uniform(-1, 1, (1, 9, 9, 4)).astype(np.float32)
    kernel = rng.uniform(-1, 1, (3, 3, 4, 8)).astype(np.float32)
    x = tf.placeholder(tf.float32, [None, 9, 9, 4])
    members = [(st, dil) for st in (1, 2) for dil in (1, 2) if st == 1 or dil == 1]
    ys = [
        tf.nn.conv2d(x, kernel, [1, st, st, 1], padding, dilations=[1, dil, dil, 1])
        for st, dil in members
    ]
    fast, slow = tf.Session(), tf.Session(executor="reference")
    for i in [0, 1, 2, 0, 2, 1, 0, 1, 2] * 2:
        got, want = fast.run(ys[i], {x: image}), slow.run(ys[i], {x: image})
        np.testing.assert_allclose(got, want, 1e-4, 1e-5)


def test_functions_by_what_they_are_called_with() -> None:
    program = (
        "import headrace as tf, numpy as np\n"
        "tf.enable_eager_execution()\n"
        "@tf.function\n"
        "def f(x, a):\n"
        "    return tf.cast(x, tf.float32) * (2.0 if a is True else 3.0 if isinstance(a, "
        "int) else 5.0)\n"
        "out = [float(f(tf.constant(1), a)) for a in (1, True, 1.0, True, 1, 1.0)]\n"
        "assert out == [3.0, 2.0, 5.0, 2.0, 3.0, 5.0], out\n"
        "g = tf.function(lambda x: tf.reduce_sum(x, 0))\n"
        "for a in (np.ones(3, np.int32), np.ones(3, np.int64), np.ones(3, np.float32), "
        "np.ones((3, 2), np.int32)):\n"
        "    got = g(tf.constant(a)).numpy(); assert got.dtype == a.dtype and (got == "
        "3).all(), got\n"
        "total = 0\n"
        "def h(k): return tf.data.Dataset.range(3).map(lambda x: "
        "tf.reduce_sum(tf.stack([[x, x], [x, k]]), 1)[1])\n"
        "out = [[int(v) for v in h(k)] for k in (0, 5, 0)]\n"
        "assert out == [[0, 1, 2], [5, 6, 7], [0, 1, 2]], out\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
