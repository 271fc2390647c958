"""Fetches of any nesting, feeds of any kind: random structures, and the particular cases."""

from __future__ import annotations

import collections
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as tf
from headrace.session.feeds import make_converter

Pair = collections.namedtuple("Pair", ["left", "right"])


@dataclasses.dataclass
class Record:
    first: Any
    second: Any


quick = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

# random structures: leaves are numbers of tensors in a pool --------------------------------------

leaf = st.tuples(
    st.just("leaf"), st.integers(0, 7), st.sampled_from(["tensor", "name", "op", "variable"])
)


def _containers(inner: Any) -> Any:
    return st.one_of(
        st.tuples(st.just("list"), st.lists(inner, max_size=4)),
        st.tuples(st.just("tuple"), st.lists(inner, max_size=4)),
        st.tuples(st.just("dict"), st.dictionaries(st.sampled_from("abcde"), inner, max_size=4)),
        st.tuples(st.just("pair"), st.tuples(inner, inner)),
        st.tuples(st.just("record"), st.tuples(inner, inner)),
    )


structures = st.recursive(leaf, _containers, max_leaves=12)


def _build(spec: Any, make: Any) -> Any:
    kind = spec[0]
    if kind == "leaf":
        return make(spec[1], spec[2])
    if kind == "list":
        return [_build(s, make) for s in spec[1]]
    if kind == "tuple":
        return tuple(_build(s, make) for s in spec[1])
    if kind == "dict":
        return {k: _build(s, make) for k, s in spec[1].items()}
    return {"pair": Pair, "record": Record}[kind](*[_build(s, make) for s in spec[1]])


def _same(got: Any, want: Any) -> None:
    assert type(got) is type(want) or isinstance(got, np.ndarray | np.generic), (got, want)
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            _same(g, w)
    elif isinstance(want, dict):
        assert list(got) == list(want)
        for k in want:
            _same(got[k], want[k])
    elif isinstance(want, Record):
        _same(got.first, want.first)
        _same(got.second, want.second)
    elif want is None:
        assert got is None
    else:
        np.testing.assert_array_equal(got, want)


def _leaves(value: Any, out: list[Any]) -> list[Any]:
    if isinstance(value, (list, tuple)):
        for v in value:
            _leaves(v, out)
    elif isinstance(value, dict):
        for v in value.values():
            _leaves(v, out)
    elif isinstance(value, Record):
        _leaves([value.first, value.second], out)
    elif isinstance(value, np.ndarray):
        out.append(value)
    return out


@given(structures)
@quick
def test_random_fetch_structures(spec: Any) -> None:
    tf.reset_default_graph()
    base = tf.placeholder_with_default(np.float32([1, 2]), [2])
    tensors = [tf.add(base, float(i), name=f"t{i}") for i in range(8)]
    values = [np.float32([1 + i, 2 + i]) for i in range(8)]
    variables = [
        tf.Variable(v, name=f"v{i}", use_resource=i % 2 == 0) for i, v in enumerate(values)
    ]

    def fetch(i: int, kind: str) -> Any:
        return {
            "tensor": tensors[i],
            "name": f"t{i}:0",
            "op": tensors[i].op,
            "variable": variables[i],
        }[kind]

    def value(i: int, kind: str) -> Any:
        return None if kind == "op" else values[i]

    session = tf.Session()
    session.run(tf.global_variables_initializer())
    fetches, wanted = _build(spec, fetch), _build(spec, value)
    for _ in range(2):  # planned, then remembered
        got = session.run(fetches)
        _same(got, wanted)
    leaves = _leaves(got, [])
    for array in leaves:
        assert array.flags.writeable
        array += 100  # the user's own: nothing else may notice
    for array in leaves:
        assert array.max() < 200
    _same(session.run(fetches), wanted)


@given(st.data())
@quick
def test_random_feeds(data: Any) -> None:
    """Any subset of a chain's tensors may be fed, by tensor or name, in any nesting of tuples."""
    tf.reset_default_graph()
    x = tf.placeholder_with_default(np.float32(1), [], name="x")
    chain = [x]
    for i in range(5):
        chain.append(tf.add(chain[-1] * 2.0, 1.0, name=f"c{i}"))
    fed = data.draw(st.dictionaries(st.integers(0, 5), st.integers(-9, 9), max_size=4))
    wanted = []
    for i in range(6):
        wanted.append(float(fed[i]) if i in fed else 1.0 if i == 0 else wanted[-1] * 2 + 1)
    feed: dict[Any, Any] = {}
    items = [
        (chain[i].name if data.draw(st.booleans()) else chain[i], data.draw(_forms)(v))
        for i, v in fed.items()
    ]
    if len(items) > 1 and data.draw(st.booleans()):
        (k0, v0), (k1, v1), *rest = items
        feed[k0, k1] = (v0, v1) if data.draw(st.booleans()) else [v0, v1]
        feed.update(rest)
    else:
        feed.update(items)
    session = tf.Session()
    for _ in range(2):
        assert session.run(chain, feed) == wanted
    assert session.run(chain[-1], feed) == wanted[-1]


_forms = st.sampled_from(
    [int, float, np.float32, np.float64, np.int64, lambda v: np.array(v, np.float32), np.array]
)


# particular fetches -----------------------------------------------------------------------------


def test_duplicates_are_computed_once_and_not_shared() -> None:
    calls: list[int] = []

    def f(x: Any) -> Any:
        calls.append(1)
        return x * 2

    y = tf.py_func(f, [tf.constant([1.0, 2.0])], tf.float32)
    a, b, c = tf.Session().run([y, y, {"k": y}])
    assert len(calls) == 1
    a[0] = 99
    assert b[0] == 2 and c["k"][0] == 2
    b[0] = 98
    assert c["k"][0] == 2


def test_sparse_and_slices() -> None:
    st_ = tf.SparseTensor([[0, 1], [1, 2]], [1.0, 2.0], [2, 3])
    sl = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([3, 4]), tf.constant([9, 1]))
    partial = tf.IndexedSlices(tf.constant([1.0]), tf.constant([3]))
    a, (b, c) = tf.Session().run([st_, (sl, partial)])
    assert type(a).__name__ == "SparseTensorValue" and type(b).__name__ == "IndexedSlicesValue"
    np.testing.assert_array_equal(a.indices, [[0, 1], [1, 2]])
    np.testing.assert_array_equal(a.values, np.float32([1, 2]))
    np.testing.assert_array_equal(a.dense_shape, [2, 3])
    np.testing.assert_array_equal(b.values, np.float32([[1], [2]]))
    np.testing.assert_array_equal(b.indices, [3, 4])
    np.testing.assert_array_equal(b.dense_shape, [9, 1])
    assert c.dense_shape is None


def test_fetch_of_a_fed_tensor_gives_a_copy() -> None:
    x = tf.placeholder(tf.float32, [2])
    given_array = np.float32([1, 2])
    got = tf.Session().run(x, {x: given_array})
    got[0] = 9
    assert given_array[0] == 1


@pytest.mark.parametrize("bad", [None, [None], {"a": None}, (1.5,), [object()], 3])
def test_fetch_of_a_wrong_type(bad: Any) -> None:
    tf.constant(1)
    with pytest.raises(TypeError, match=r"Fetch argument .* has invalid type"):
        tf.Session().run(bad)


def test_fetch_of_a_name_that_is_not_there() -> None:
    tf.constant(1, name="here")
    s = tf.Session()
    assert s.run("here:0") == 1
    assert s.run("here") is None
    for bad in ("nowhere:0", "nowhere", "here:5", "here:x"):
        with pytest.raises(ValueError, match="cannot be interpreted as a Tensor"):
            s.run(bad)


def test_fetch_from_another_graph() -> None:
    with tf.Graph().as_default():
        other = tf.constant(1)
    tf.constant(2)
    with pytest.raises(ValueError, match="not an element of this graph"):
        tf.Session().run(other)
    with pytest.raises(ValueError, match="not an element of this graph"):
        tf.Session().run({"a": [other.op]})


def test_prevented_fetches_and_feeds() -> None:
    a = tf.constant(1.0)
    b = a + 1.0
    b.graph.prevent_fetching(b.op)
    b.graph.prevent_feeding(a)
    s = tf.Session()
    with pytest.raises(ValueError, match="marked as not fetchable"):
        s.run(b)
    with pytest.raises(ValueError, match="may not be fed"):
        s.run(b * 2.0, {a: 2.0})


# particular feeds -------------------------------------------------------------------------------


def test_any_tensor_may_be_fed() -> None:
    c = tf.constant(1.0)
    v = tf.Variable(2.0)
    w = tf.Variable(3.0, use_resource=True)
    y = (c + v) * w
    s = tf.Session()
    s.run(tf.global_variables_initializer())
    assert s.run(y) == 9.0
    assert s.run(y, {c: 5.0}) == 21.0
    assert s.run(y, {c + v: 5.0}) == 9.0  # another sum than the one inside y
    assert s.run(y, {y.op.inputs[0]: 5.0}) == 15.0
    assert s.run(y, {v.value(): 0.0}) == 3.0
    assert s.run(y, {y: 1.0}) == 1.0
    assert s.run([v, w]) == [2.0, 3.0]


def test_feed_one_output_of_several() -> None:
    a, b = tf.split(tf.constant([1.0, 2.0]), 2)
    s = tf.Session()
    got = s.run([a, b], {a: [9.0]})
    assert got[0].tolist() == [9.0] and got[1].tolist() == [2.0]


def test_control_dependency_on_a_fed_placeholder() -> None:
    p = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([p]):
        y = tf.constant(2.0) * 3.0
    s = tf.Session()
    assert s.run(y, {p: 1.0}) == 6.0
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="You must feed a value for placeholder"
    ):
        s.run(y)


def test_sparse_and_slices_as_keys() -> None:
    sp = tf.sparse_placeholder(tf.float32, [2, 3])
    dense = tf.sparse_tensor_to_dense(sp)
    s = tf.Session()
    value = tf.SparseTensorValue(np.int64([[0, 1]]), np.float32([7]), np.int64([2, 3]))
    np.testing.assert_array_equal(s.run(dense, {sp: value}), [[0, 7, 0], [0, 0, 0]])
    as_tuple = (np.int64([[1, 2]]), np.float32([5]), np.int64([2, 3]))
    np.testing.assert_array_equal(s.run(dense, {sp: as_tuple}), [[0, 0, 0], [0, 0, 5]])
    slices = tf.IndexedSlices(tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int32, [None]))
    total = tf.unsorted_segment_sum(slices.values, slices.indices, 3)
    np.testing.assert_array_equal(s.run(total, {slices: ([1.0, 2.0], [2, 2])}), [0, 0, 3])


def test_tensors_and_variables_as_values() -> None:
    x = tf.placeholder(tf.float32, [2])
    n = tf.placeholder(tf.string, [])
    v = tf.Variable([1.0, 2.0])
    s = tf.Session()
    s.run(v.initializer)
    y = x * 2.0
    for _ in range(2):
        np.testing.assert_array_equal(s.run(y, {x: tf.constant([3.0, 4.0])}), [6, 8])
        np.testing.assert_array_equal(s.run(y, {x: v}), [2, 4])
        np.testing.assert_array_equal(s.run(y, {x: np.float32([5, 6])}), [10, 12])
        assert s.run(n, {n: tf.constant("abc")}) == b"abc"
    with pytest.raises(TypeError, match="operation"):
        s.run(y, {x: tf.no_op()})
    with pytest.raises(ValueError, match="Cannot feed value of shape"):
        s.run(y, {x: tf.constant([3.0])})


def test_a_tensor_among_two_values() -> None:
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    s = tf.Session()
    both = x - y
    for _ in range(2):
        assert s.run(both, {x: np.float64([3]), y: [1.0]}) == [2]
        assert s.run(both, {x: tf.constant([5.0]), y: [1.0]}) == [4]
        assert s.run(both, {x: np.float32([3]), y: tf.constant([5.0])}) == [-2]
    with pytest.raises(ValueError, match=r"shape \(\)"):  # None is a NaN of floats
        s.run(both, {x: [1.0], y: None})


@pytest.mark.parametrize(
    ("dtype", "value", "want"),
    [
        (tf.float32, 1, np.float32(1)),
        (tf.float32, True, np.float32(1)),
        (tf.float32, np.float64(1.1), np.float32(1.1)),
        (tf.float64, np.float32(1.5), np.float64(1.5)),
        (tf.int32, np.int64(7), np.int32(7)),
        (tf.int32, 1.7, np.int32(1)),  # as np.asarray(1.7, np.int32), TF's way
        (tf.int64, 2**40, np.int64(2**40)),
        (tf.uint8, 255, np.uint8(255)),
        (tf.bool, 1, np.True_),
        (tf.bool, 0.0, np.False_),
        (tf.complex64, 2, np.complex64(2)),
        (tf.float16, 1.5, np.float16(1.5)),
        (tf.string, "é", "é".encode()),
        (tf.string, b"x", b"x"),
    ],
)
@pytest.mark.parametrize("shape", [[], None])
def test_conversion_of_values(dtype: Any, value: Any, want: Any, shape: Any) -> None:
    x = tf.placeholder(dtype, shape)
    s = tf.Session()
    for _ in range(2):
        got = s.run(x, {x: value})
        assert got == want and getattr(got, "dtype", None) == getattr(want, "dtype", None)


def test_integers_that_do_not_fit() -> None:
    x = tf.placeholder(tf.int32, [])
    y = tf.placeholder(tf.uint8, None)
    s = tf.Session()
    for key, value in ((x, 2**40), (y, 256), (y, -1)):
        with pytest.raises(
            TypeError, match=r"Type of feed value .* is not compatible with Tensor type"
        ):
            s.run(key, {key: value})


def test_nested_lists_and_object_strings() -> None:
    x = tf.placeholder(tf.float32, [2, None])
    n = tf.placeholder(tf.string, [None])
    s = tf.Session()
    np.testing.assert_array_equal(s.run(x, {x: [[1, 2], (3, 4)]}), [[1, 2], [3, 4]])
    assert s.run(n, {n: ["a", b"b", "ü"]}).tolist() == [b"a", b"b", "ü".encode()]
    assert s.run(n, {n: np.array(["aa", "b"])}).tolist() == [b"aa", b"b"]
    with pytest.raises((ValueError, TypeError)):
        s.run(x, {x: [[1, 2], [3]]})
    with pytest.raises((ValueError, TypeError), match="Placeholder"):
        s.run(x, {x: "text"})


class Special(np.ndarray):
    """An array type of a user's own."""


@pytest.mark.parametrize(
    "kind", ["transposed", "strided", "reversed", "broadcast", "readonly", "swapped", "subclass"]
)
def test_unusual_arrays(kind: str) -> None:
    x = tf.placeholder(tf.float32, [3, 4])
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    value: Any = {
        "transposed": np.ascontiguousarray(base.T).T,
        "strided": np.repeat(base, 2, 1)[:, ::2],
        "reversed": base[::-1].copy()[::-1],
        "broadcast": np.broadcast_to(base[:1], (3, 4)),
        "readonly": base.copy(),
        "swapped": base.astype(">f4"),
        "subclass": base.view(Special),
    }[kind]
    if kind == "readonly":
        value.flags.writeable = False
    want = np.asarray(value, np.float32)
    y = tf.exp(-x) * 2.0 + x
    s = tf.Session()
    np.testing.assert_allclose(s.run(y, {x: value}), np.exp(-want) * 2 + want, 1e-6)
    got = s.run(x, {x: value})
    assert type(got) is np.ndarray and got.dtype == np.float32 and got.flags.writeable
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("given", "?bBhHiIlqQefdg")
@pytest.mark.parametrize("wanted", [tf.float16, tf.float32, tf.int32, tf.uint8, tf.complex64])
def test_arrays_of_other_types(wanted: Any, given: str) -> None:
    x = tf.placeholder(wanted, [None, 2])
    value = np.array([[0, 1], [1, 2], [3, 0]]).astype(given)
    got = tf.Session().run(x, {x: value})
    assert got.dtype == wanted.as_numpy_dtype
    np.testing.assert_array_equal(got, value.astype(wanted.as_numpy_dtype))


def test_an_array_whose_type_is_another_object_is_not_copied() -> None:
    """Arrays that come out of a pickle have such types."""
    value = pickle.loads(pickle.dumps(np.ones((2, 2), np.float32)))
    x = tf.placeholder(tf.float32, [None, 2])
    assert make_converter(x)(value) is value


@pytest.mark.parametrize("given_shape", [(), (2, 1), (0, 0)])
def test_wrong_rank_of_a_vector(given_shape: tuple[int, ...]) -> None:
    x = tf.placeholder(tf.float32, [None], name="x")
    with pytest.raises(ValueError, match=r"for Tensor 'x:0', which has shape '\(\?,\)'"):
        tf.Session().run(x, {x: np.zeros(given_shape)})


@pytest.mark.parametrize("given_shape", [(2,), (3, 2), (), (2, 3, 1), (0, 3)])
def test_wrong_shape(given_shape: tuple[int, ...]) -> None:
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    message = (
        rf"Cannot feed value of shape \({', '.join(map(str, given_shape))},?\) for Tensor "
        r"'x:0', which has shape '\(2, 3\)'"
    )
    with pytest.raises(ValueError, match=message):
        tf.Session().run(x, {x: np.zeros(given_shape)})


def test_unknown_dims_are_checked_where_known() -> None:
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    s = tf.Session()
    assert s.run(x, {x: np.zeros((0, 3))}).shape == (0, 3)
    with pytest.raises(ValueError, match=r"which has shape '\(\?, 3\)'"):
        s.run(x, {x: np.zeros((3, 2))})


@pytest.mark.parametrize("key", ["nowhere:0", 3.5, None])
def test_wrong_keys(key: Any) -> None:
    c = tf.constant(1)
    with pytest.raises(TypeError, match="Cannot interpret feed_dict key as Tensor"):
        tf.Session().run(c, {key: 1})


def test_key_from_another_graph() -> None:
    with tf.Graph().as_default():
        p = tf.placeholder(tf.float32)
    with pytest.raises(TypeError, match="not an element of this graph"):
        tf.Session().run(tf.constant(1), {p: 1})


def test_none_as_value() -> None:
    x, whole = tf.placeholder(tf.float32, []), tf.placeholder(tf.int32, [])
    assert np.isnan(tf.Session().run(x, {x: None}))  # as in TensorFlow 1.15
    with pytest.raises(TypeError, match="None"):
        tf.Session().run(whole, {whole: None})


def test_missing_feed_names_the_placeholder_and_its_line() -> None:
    x = tf.placeholder(tf.float32, [None, 3], name="images")  # the line
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match="You must feed a value for placeholder tensor 'images'",
    ) as e:
        tf.Session().run(x * 2.0)
    assert "test_fetch_feed.py" in str(e.value)


def test_the_users_feed_dict_is_not_changed() -> None:
    x = tf.placeholder(tf.float32, [])
    given_value = tf.constant(2.0)
    feed = {x: given_value}
    assert tf.Session().run(x, feed) == 2.0
    assert feed[x] is given_value
