"""Random graphs: the numpy executor, with and without rewrites and fusion, gives what the reference
executor gives.

The thresholds for fusion and blocks are lowered so that small arrays go the ways that otherwise
only large ones go.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as tf
from headrace.core.tensor import Tensor
from headrace.executors import options_for, shared_code
from headrace.kernels.numpy import blocks
from headrace.lower import fused_code as fused
from headrace.lower import fusion, storage_reuse
from headrace.session.session import Session

quick = settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(params=["small", "fused", "blocked"])
def thresholds(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The ways that a step may be run, whatever its size."""
    shared_code._families.clear()
    if request.param != "small":
        monkeypatch.setattr(fusion, "MIN_ELEMENTS", 1)
        monkeypatch.setattr(storage_reuse, "_MIN_REUSED", 1)
    if request.param == "blocked":
        monkeypatch.setattr(fused, "THREADS_FROM", 2)
        monkeypatch.setattr(blocks, "over_blocks", functools.partial(blocks.over_blocks, block=3))
        monkeypatch.setattr(blocks, "over_rows", functools.partial(blocks.over_rows, block=3))
    yield request.param
    shared_code._families.clear()


def with_options(**kwargs: Any) -> Session:
    s = tf.Session()
    s._options = options_for(**kwargs)
    return s


UNARY = [
    tf.tanh,
    tf.negative,
    tf.square,
    tf.abs,
    tf.sigmoid,
    tf.nn.relu,
    tf.floor,
    tf.sin,
    tf.cos,
    tf.identity,
    tf.stop_gradient,
    lambda x: tf.exp(-tf.abs(x)),
    lambda x: tf.log(tf.abs(x) + 1.0),
    lambda x: tf.sqrt(tf.abs(x)),
    tf.sign,
    tf.zeros_like,
    tf.ones_like,
    lambda x: tf.clip_by_value(x, -0.5, 0.5),
    tf.nn.softplus,
    tf.nn.elu,
    lambda x: x * 2.0,
    lambda x: 1.0 - x,
    lambda x: x + tf.constant(0.25, tf.float64),
    tf.round,
    tf.nn.leaky_relu,
]
BINARY = [
    tf.add,
    tf.subtract,
    tf.multiply,
    tf.maximum,
    tf.minimum,
    tf.squared_difference,
    lambda a, b: a / (tf.abs(b) + 1.0),
]
REDUCE = [tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min, tf.reduce_prod]
COMPARE = [tf.less, tf.greater_equal, tf.not_equal]


#: What changes nothing, and is mostly rewritten away.
NOTHING = [
    lambda x: x * 1.0,
    lambda x: x + 0.0,
    lambda x: x - 0.0,
    lambda x: x / 1.0,
    lambda x: -(-x),  # noqa: B002
    lambda x: tf.transpose(tf.transpose(x)),
    lambda x: tf.reshape(x, tf.shape(x)),
    lambda x: tf.squeeze(tf.expand_dims(x, 0), 0),
    lambda x: tf.reshape(tf.reshape(x, [-1]), tf.shape(x)),
    lambda x: tf.cast(tf.cast(x, tf.complex128), tf.float64),
    lambda x: tf.add_n([x]),
    lambda x: tf.broadcast_to(x, tf.shape(x)),
    lambda x: x**1.0,
    lambda x: tf.tile(x, tf.ones_like(tf.shape(x))),
    lambda x: tf.cond(tf.constant(True), lambda: x * 2.0, lambda: x - 1.0) / 2.0,
]


class Builder:
    """Draws one operation after the other over a pool of tensors whose real shapes are known."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self.pool: list[tuple[Tensor, tuple[int, ...]]] = []
        self.feed: dict[Tensor, Any] = {}
        self.rng = np.random.RandomState(data.draw(st.integers(0, 1000)))
        self.variables: list[Any] = []
        self.writes: list[Any] = []

    def draw(self, strategy: Any) -> Any:
        return self.data.draw(strategy)

    def pick(self) -> tuple[Tensor, tuple[int, ...]]:
        return self.pool[self.draw(st.integers(0, len(self.pool) - 1))]

    def like(self, shape: tuple[int, ...]) -> Tensor:
        """A tensor that broadcasts with ``shape``: of the pool, or a new constant."""
        fitting = [t for t, s in self.pool if _broadcasts(s, shape)]
        if fitting and self.draw(st.booleans()):
            return fitting[self.draw(st.integers(0, len(fitting) - 1))]
        keep = self.draw(st.integers(0, len(shape)))
        reduced = tuple(1 if self.draw(st.booleans()) else d for d in shape[len(shape) - keep :])
        return tf.constant(self.rng.uniform(-2, 2, reduced))

    def source(self) -> None:
        shape = tuple(self.draw(st.lists(st.sampled_from([1, 2, 3, 5]), max_size=3)))
        value = self.rng.uniform(-2, 2, shape)
        kind = self.draw(
            st.sampled_from(["feed", "unknown", "rankless", "constant", "variable", "resource"])
        )
        if kind == "constant":
            tensor: Any = tf.constant(value)
        elif kind in ("variable", "resource"):
            variable = tf.Variable(value, use_resource=kind == "resource")
            self.variables.append(variable)
            tensor = tf.convert_to_tensor(variable)
        else:
            static = {"feed": shape, "unknown": [None] * len(shape), "rankless": None}[kind]
            tensor = tf.placeholder(tf.float64, static)
            self.feed[tensor] = value
        self.pool.append((tensor, shape))

    def step(self) -> None:
        x, shape = self.pick()
        kind = self.draw(st.sampled_from(_KINDS))
        made: Any = None
        if kind == "unary":
            made = (self.draw(st.sampled_from(UNARY))(x), shape)
        elif kind == "binary":
            other = self.like(shape)
            op = self.draw(st.sampled_from(BINARY))
            made = (op(x, other) if self.draw(st.booleans()) else op(other, x), None)
        elif kind == "same":
            made = (self.draw(st.sampled_from(BINARY))(x, x), shape)
        elif kind == "reduce":
            axes = (
                self.draw(st.sets(st.integers(0, len(shape) - 1), max_size=len(shape)))
                if shape
                else set()
            )
            keep = self.draw(st.booleans())
            made = (
                self.draw(st.sampled_from(REDUCE))(x, sorted(axes) or None, keepdims=keep),
                None,
            )
        elif kind == "reshape":
            made = (
                tf.reshape(
                    x,
                    self.draw(
                        st.sampled_from([[-1], [1, -1], [-1, 1], [int(np.prod(shape, dtype=int))]])
                    ),
                ),
                None,
            )
        elif kind == "transpose":
            made = (tf.transpose(x), shape[::-1])
        elif kind == "concat" and shape:
            axis = self.draw(st.integers(-len(shape), len(shape) - 1))
            made = (tf.concat([x, x * 0.5, x][: self.draw(st.integers(1, 3))], axis), None)
        elif kind == "stack":
            made = (tf.stack([x, x + 1.0], self.draw(st.integers(0, len(shape)))), None)
        elif kind == "slice" and shape and shape[0]:
            start = self.draw(st.integers(0, shape[0] - 1))
            made = (x[start:] if self.draw(st.booleans()) else x[start], None)
        elif kind == "select":
            other = self.like(shape) + tf.zeros_like(x)
            condition = self.draw(st.sampled_from(COMPARE))(x, other)
            made = (
                (tf.where(condition, x, tf.broadcast_to(other, tf.shape(x))), shape)
                if _fits(other, shape)
                else None
            )
        elif kind == "matmul" and len(shape) >= 2:
            made = (
                tf.matmul(x, x, transpose_a=True)
                if self.draw(st.booleans())
                else tf.matmul(x, x, transpose_b=True),
                None,
            )
        elif kind == "squeeze":
            made = (tf.squeeze(x), tuple(d for d in shape if d != 1))
        elif kind == "expand":
            made = (tf.expand_dims(x, self.draw(st.integers(0, len(shape)))), None)
        elif kind == "cast":
            made = (tf.cast(tf.cast(x * 3.0, tf.int32), tf.float64), shape)
        elif kind == "shape":
            made = (tf.cast(tf.shape(x), tf.float64), (len(shape),))
        elif kind == "cond":
            flag = tf.reduce_sum(x) > 0.0
            made = (tf.cond(flag, lambda: tf.tanh(x) * 2.0, lambda: x - 1.0), shape)
        elif kind == "loop":
            made = (
                tf.while_loop(
                    lambda i, a: i < 2, lambda i, a: (i + 1, tf.tanh(a) + x), [0, x * 0.5]
                )[1],
                shape,
            )
        elif kind == "assign" and self.variables:
            variable = self.variables[self.draw(st.integers(0, len(self.variables) - 1))]
            up = variable.assign_add(tf.zeros_like(variable.initial_value) + tf.reduce_mean(x))
            self.writes.append(up.op)
            with tf.control_dependencies([up.op]):
                made = (tf.identity(variable.read_value()) * 1.0, tuple(variable.shape.as_list()))
        elif kind == "spelling" and shape and shape[-1] > 1:
            made = (self.spelling(x, shape), None)
        elif kind == "nothing":
            made = (self.draw(st.sampled_from(NOTHING))(x), shape)
        if made is None:
            return
        tensor, known = made
        self.pool.append((tensor, known if known is not None else self.real_shape(tensor)))

    def spelling(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Layers as programs write them: what the rewrites about models look for."""
        n = shape[-1]
        g, b = (tf.constant(self.rng.uniform(-1, 1, [n])) for _ in range(2))
        kind = self.draw(
            st.sampled_from(["gelu", "norm", "softmax", "dense", "attention", "scaled"])
        )
        if kind == "gelu":
            return 0.5 * x * (1.0 + tf.tanh(0.7978845608028654 * (x + 0.044715 * tf.pow(x, 3.0))))
        if kind == "norm":
            mean = tf.reduce_mean(x, -1, keepdims=True)
            variance = tf.reduce_mean(tf.square(x - mean), -1, keepdims=True)
            return (x - mean) * tf.rsqrt(variance + 0.5) * g + b
        if kind == "softmax":
            e = tf.exp(x - tf.reduce_max(x, -1, keepdims=True))
            return e / tf.reduce_sum(e, -1, keepdims=True)
        if kind == "scaled":
            return (x * 2.0) * 0.3 / 4.0 + (-x) / 3.0
        rows = tf.reshape(x, [-1, n])
        if kind == "dense":
            w = tf.constant(self.rng.uniform(-1, 1, [n, n]))
            act = self.draw(
                st.sampled_from([tf.nn.relu, tf.nn.relu6, tf.tanh, tf.sigmoid, tf.identity])
            )
            return act(tf.reshape(tf.matmul(rows, tf.transpose(w)), [-1, 1, n]) + b)
        q = tf.expand_dims(rows, 0)
        scores = tf.matmul(q, q, transpose_b=True) * 0.5 + self.rng.uniform(-1, 1)
        return tf.matmul(tf.nn.softmax(scores), q * 2.0)

    def real_shape(self, tensor: Tensor) -> tuple[int, ...]:
        s = Session(executor="reference")
        s.run(tf.variables_initializer(self.variables))
        return tuple(np.shape(s.run(tensor, self.feed)))


_KINDS = [
    "unary",
    "unary",
    "unary",
    "binary",
    "binary",
    "binary",
    "same",
    "reduce",
    "reshape",
    "transpose",
    "concat",
    "stack",
    "slice",
    "select",
    "matmul",
    "squeeze",
    "expand",
    "cast",
    "shape",
    "cond",
    "loop",
    "assign",
    "spelling",
    "spelling",
    "nothing",
    "nothing",
]


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


def _fits(tensor: Tensor, shape: tuple[int, ...]) -> bool:
    static = tensor.shape
    return (
        static.ndims is not None
        and static.ndims <= len(shape)
        and static.is_fully_defined()
        and (np.broadcast_shapes(tuple(static.as_list()), shape) == shape)
    )


def _run(session: Session, fetches: Any, feed: Any, variables: list[Any]) -> list[Any]:
    """Two runs (planned, remembered) and the variables after them."""
    session.run(tf.variables_initializer(variables))
    return [session.run(fetches, feed), session.run(fetches, feed), session.run(variables)]


def _compare(got: Any, want: Any) -> None:
    if isinstance(want, list):
        for g, w in zip(got, want, strict=True):
            _compare(g, w)
    elif want is None:
        assert got is None
    else:
        assert np.shape(got) == np.shape(want) and np.asarray(got).dtype == np.asarray(want).dtype
        np.testing.assert_allclose(got, want, 1e-9, 1e-9)


@given(data=st.data())
@quick
def test_executors_agree(thresholds: str, data: Any) -> None:
    tf.reset_default_graph()
    b = Builder(data)
    for _ in range(data.draw(st.integers(1, 3))):
        b.source()
    for _ in range(data.draw(st.integers(2, 12))):
        b.step()
    chosen = data.draw(st.lists(st.integers(0, len(b.pool) - 1), min_size=1, max_size=4))
    fetches = [b.pool[i][0] for i in chosen] + [b.pool[-1][0], *b.writes[:1]]
    given_before = {k: np.array(v) for k, v in b.feed.items()}
    with np.errstate(all="ignore"):
        want = _run(Session(executor="reference"), fetches, b.feed, b.variables)
        for options in (
            {},
            {"rewrites": False},
            {"fusion": False},
            {"rewrites": False, "fusion": False},
        ):
            _compare(_run(with_options(**options), fetches, b.feed, b.variables), want)
    for key, value in given_before.items():
        np.testing.assert_array_equal(b.feed[key], value)  # a plan never writes to what it was fed


@given(data=st.data())
@settings(quick, max_examples=80)
def test_gradients_agree(thresholds: str, data: Any) -> None:
    tf.reset_default_graph()
    b = Builder(data)
    for _ in range(2):
        b.source()
    for _ in range(data.draw(st.integers(2, 8))):
        b.step()
    sources = [t for t, _ in b.pool[:2]]
    target = tf.reduce_sum(b.pool[-1][0]) + tf.reduce_sum(b.pool[len(b.pool) // 2][0])
    grads = [g for g in tf.gradients(target, sources) if g is not None]
    with np.errstate(all="ignore"):
        want = _run(Session(executor="reference"), grads, b.feed, b.variables)
        for options in ({}, {"rewrites": False}):
            _compare(_run(with_options(**options), grads, b.feed, b.variables), want)


# particular cases that random search found or would find late
# ---------------------------------------


def _against_reference(fetches: Any, feed: Any) -> None:
    want = tf.Session(executor="reference").run(fetches, feed)
    got = tf.Session().run(fetches, feed)
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, 1e-6, 1e-6)
        assert g.dtype == w.dtype


def test_a_view_of_the_buffer_that_is_overwritten() -> None:
    """x dies in the fused step, but squeeze(x), which shares its memory, is read there too."""
    p = tf.placeholder(tf.float32, [1, 40000])
    x = tf.exp(p)
    given_value = np.random.RandomState(0).rand(1, 40000).astype(np.float32)
    _against_reference([x * 2.0 + tf.squeeze(x, [0])], {p: given_value})
    tf.reset_default_graph()
    p = tf.placeholder(tf.float32, [200, 200])
    x = tf.exp(p)
    square = np.random.RandomState(0).rand(200, 200).astype(np.float32)
    _against_reference([x * 2.0 + tf.transpose(x)], {p: square})


@pytest.mark.parametrize("rows", [3, 20000, 200000])
def test_a_column_times_a_row(rows: int) -> None:
    """[n,1] and [m] give [n,m]: the input of full rank does not have the result's shape."""
    p, w = tf.placeholder(tf.float32, [None, 1]), tf.placeholder(tf.float32, [10])
    q, v = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32, [None])
    feed = {p: np.ones((rows, 1)), w: np.arange(10.0), q: np.ones((rows, 1)), v: np.arange(10.0)}
    _against_reference([tf.exp(p * w * 0.1), tf.tanh(tf.exp(tf.exp(q) * 0.1) + v)], feed)


@pytest.mark.parametrize("n", [5, 400])
def test_where_with_a_vector_of_rows(n: int) -> None:
    """tf.where(vector, matrix, matrix) chooses whole rows, also when the matrix is square."""
    c = tf.placeholder(tf.bool, [n])
    x = tf.placeholder(tf.float32, [n, n])
    rng = np.random.RandomState(0)
    y = tf.tanh(tf.where(c, tf.exp(x), x * 2.0) + 1.0)
    _against_reference([y], {c: rng.rand(n) > 0.5, x: rng.rand(n, n)})


@pytest.mark.parametrize(
    "dtype",
    ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "complex64", "bfloat16"],
)
@pytest.mark.usefixtures("any_float_type")
def test_large_chains_of_every_dtype(dtype: str) -> None:
    x = tf.placeholder(tf.as_dtype(dtype), [None, 300])
    y = x * x + x
    z = tf.maximum(y, x) - x if not dtype.startswith("complex") else y - x
    rng = np.random.RandomState(0)
    value = rng.randint(0, 5, (600, 300)).astype(tf.as_dtype(dtype).as_numpy_dtype)
    want = tf.Session(executor="reference").run([y, z, -z], {x: value})
    got = tf.Session().run([y, z, -z], {x: value})
    for g, w in zip(got, want):
        assert g.dtype == w.dtype
        np.testing.assert_array_equal(g, w)


@pytest.mark.usefixtures("any_float_type")
def test_scalars_of_every_dtype_keep_their_type() -> None:
    """Python operators on NumPy scalars must not widen: small integers wrap, halves stay halves."""
    for name in ("int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"):
        tf.reset_default_graph()
        dtype = tf.as_dtype(name)
        x = tf.placeholder(dtype, [])
        top = dtype.as_numpy_dtype(100)
        fetches = [x + x, x * x, x - x * x, -x, tf.square(x), tf.maximum(x, 1), x < 5]
        want = tf.Session(executor="reference").run(fetches, {x: top})
        got = tf.Session().run(fetches, {x: top})
        for g, w in zip(got, want):
            assert g.dtype == w.dtype and g == w
            assert isinstance(g, np.generic)


def test_the_same_result_with_one_thread_or_many() -> None:
    x = tf.placeholder(tf.float32, [None])
    y = tf.tanh(x * 1.1 + 0.1) * tf.sigmoid(x)
    given_value = np.linspace(-3, 3, 500001).astype(np.float32)
    before = blocks.thread_count()
    results = []
    try:
        for n in (1, 2, 5):
            blocks.set_threads(n)
            results.append(tf.Session().run(y, {x: given_value}))
    finally:
        blocks.set_threads(before)
    for other in results[1:]:
        assert results[0].tobytes() == other.tobytes()


def test_runs_repeat_bit_for_bit() -> None:
    tf.set_random_seed(3)
    x = tf.random_normal([300, 300])
    y = tf.reduce_sum(tf.tanh(tf.matmul(x, x)), 0)
    assert tf.Session().run(y).tobytes() == tf.Session().run(y).tobytes()
