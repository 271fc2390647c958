"""Eager tensors and operations: values, conversions and errors as in TensorFlow 2.21."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import headrace as tf1
from headrace import errors
from headrace.api import v2 as tf
from headrace.eager.eager_tensor import EagerTensor
from tests.eager_fixture import v2_behavior  # noqa: F401


def c() -> Any:
    return tf.constant([1.0, 2.0])


# tensors ------------------------------------------------------------------------------------------


def test_a_tensor_has_its_value() -> None:
    x = c()
    assert isinstance(x, tf.Tensor)
    assert isinstance(x, EagerTensor)
    assert tf.executing_eagerly()
    assert x.dtype is tf.float32
    assert x.shape == (2,)
    assert x.shape[0] == 2
    assert x.ndim == 1
    assert x.device == "/job:localhost/replica:0/task:0/device:CPU:0"
    np.testing.assert_array_equal(x.numpy(), np.array([1, 2], np.float32))


def test_writing_to_what_numpy_gives_does_not_change_the_tensor() -> None:
    x = c()
    own = x.numpy()
    own[0] = 9
    assert not np.asarray(x).flags.writeable
    array = np.ones(2, np.float32)
    y = tf.constant(array)
    array[0] = 9
    np.from_dlpack(x)[0] = 9
    assert x.numpy().tolist() == [1, 2]
    assert y.numpy().tolist() == [1, 1]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            [1.0, 2.0],
            "<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>",
        ),
        (3.5, "<tf.Tensor: shape=(), dtype=float32, numpy=3.5>"),
        (True, "<tf.Tensor: shape=(), dtype=bool, numpy=True>"),
        ("a", "<tf.Tensor: shape=(), dtype=string, numpy=b'a'>"),
        (
            ["a", "b"],
            "<tf.Tensor: shape=(2,), dtype=string, numpy=array([b'a', b'b'], dtype=object)>",
        ),
        (
            [[1], [2]],
            "<tf.Tensor: shape=(2, 1), dtype=int32, numpy=\narray([[1],\n       [2]], "
            "dtype=int32)>",
        ),
    ],
)
def test_repr(value: Any, text: str) -> None:
    assert repr(tf.constant(value)) == text


def test_str_and_format() -> None:
    assert str(c()) == "tf.Tensor([1. 2.], shape=(2,), dtype=float32)"
    assert f"{tf.constant(3.14159):.2f} {c()}" == "3.14 [1. 2.]"


def test_python_conversions() -> None:
    assert bool(tf.constant(1))
    assert int(tf.constant(3.7)) == 3
    assert float(tf.constant(2)) == 2.0
    assert list(range(tf.constant(3))) == [0, 1, 2]
    assert len(tf.ones([3, 2])) == 3
    assert [float(v) for v in c()] == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"truth value of an array"):
        bool(c())
    with pytest.raises(TypeError):
        int(c())
    with pytest.raises(TypeError, match=r"Scalar tensor has no `len\(\)`"):
        len(tf.constant(1))
    with pytest.raises(TypeError, match=r"Cannot iterate over a scalar tensor."):
        iter(tf.constant(1))


@pytest.mark.parametrize("name", ["op", "graph", "name", "value_index"])
def test_graph_attributes_are_undefined(name: str) -> None:
    with pytest.raises(
        AttributeError, match=f"Tensor.{name} is undefined when eager execution is enabled."
    ):
        getattr(c(), name)
    assert not hasattr(c(), name)


def test_graph_methods_are_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"is .numpy"):
        c().eval()
    with pytest.raises(NotImplementedError):
        c().consumers()
    c().set_shape([2])
    with pytest.raises(ValueError, match=r"not compatible"):
        c().set_shape([3])


def test_copies() -> None:
    x = c()
    assert copy.copy(x) is x
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other.numpy().tolist() == [1, 2]
        assert other.dtype is tf.float32
    s = pickle.loads(pickle.dumps(tf.constant(["a"])))
    assert s.numpy().tolist() == [b"a"]


def test_equality_is_by_value() -> None:
    assert (c() == c()).numpy().tolist() == [True, True]
    assert (c() != 1.0).numpy().tolist() == [False, True]
    assert (c() == tf.constant([1.0, 2.0, 3.0])).numpy() == np.False_
    assert (c() == None) is False  # noqa: E711
    with pytest.raises(TypeError, match=r"Tensor is unhashable. Instead, use tensor.ref"):
        hash(c())
    x = c()
    assert {x.ref(): 1}[x.ref()] == 1
    assert x.ref().deref() is x
    assert x.ref() != c().ref()


def test_dlpack() -> None:
    capsule = tf.experimental.dlpack.to_dlpack(c())
    assert tf.experimental.dlpack.from_dlpack(capsule).numpy().tolist() == [1, 2]
    assert tf.experimental.dlpack.from_dlpack(np.arange(3)).dtype is tf.int64
    assert np.from_dlpack(c()).tolist() == [1, 2]


# operators and conversions ----------------------------------------------------------------------


def test_operators() -> None:
    x, y = c(), tf.constant([3.0, 5.0])
    for got, want in [
        (x + y, [4, 7]),
        (x - y, [-2, -3]),
        (x * y, [3, 10]),
        (y / x, [3, 2.5]),
        (y // x, [3, 2]),
        (y % x, [0, 1]),
        (x**2, [1, 4]),
        (-x, [-1, -2]),
        (abs(-x), [1, 2]),
        (1 - x, [0, -1]),
        (2 / x, [2, 1]),
        (2**x, [2, 4]),
        (x + 1, [2, 3]),
        (x * 2.0, [2, 4]),
        (x + np.array([1.0, 1.0]), [2, 3]),
        (np.float32(1) + x, [2, 3]),
    ]:
        assert got.dtype is tf.float32
        np.testing.assert_allclose(got.numpy(), want)
    assert (x < y).numpy().tolist() == [True, True]
    assert (x >= 2).numpy().tolist() == [False, True]
    assert (~(x < y) | (x > 1)).numpy().tolist() == [False, True]
    assert (tf.ones([2, 2]) @ tf.ones([2, 2])).numpy().tolist() == [[2, 2], [2, 2]]
    assert (tf.constant([1, 2]) / 2).dtype is tf.float64


@pytest.mark.parametrize(
    ("key", "want"),
    [
        (0, [0, 1, 2]),
        (-1, [3, 4, 5]),
        ((1, 2), 5),
        (slice(1, None), [[3, 4, 5]]),
        ((slice(None), slice(None, None, -1)), [[2, 1, 0], [5, 4, 3]]),
        ((Ellipsis, 0), [0, 3]),
        ((None, 0), [[0, 1, 2]]),
        (slice(5, 9), np.zeros((0, 3))),
    ],
)
def test_slices(key: Any, want: Any) -> None:
    x = tf.reshape(tf.range(6.0), [2, 3])
    np.testing.assert_array_equal(x[key].numpy(), want)
    with tf.GradientTape() as tape:  # operators of tensors give the same
        tape.watch(x)
        y = x[key]
    np.testing.assert_array_equal(y.numpy(), want)
    assert tape.gradient(y, x).shape == (2, 3)


def test_slices_with_tensors_and_mistakes() -> None:
    x = tf.range(5)
    assert x[tf.constant(1) : tf.constant(3)].numpy().tolist() == [1, 2]
    with pytest.raises(
        errors.InvalidArgumentError, match=r"slice index 9 of dimension 0 out of bounds"
    ):
        x[9]
    with pytest.raises(TypeError, match=r"Only integers, slices"):
        x["a"]


def test_types_beside_each_other() -> None:
    i = tf.constant([1, 2])
    assert (i + np.float32(1)).dtype is tf.int32
    assert (i + np.array([1, 2], np.int64)).dtype is tf.int32
    assert tf.pow(2, c()).dtype is tf.float32
    with pytest.raises(
        errors.InvalidArgumentError,
        match=r"cannot compute AddV2 as input #1\(zero-based\) was expected to be a float "
        r"tensor but is a int32 tensor",
    ):
        c() + i
    with pytest.raises(
        errors.InvalidArgumentError, match=r"expected to be a int32 tensor but is a float tensor"
    ):
        i + 1.5
    with pytest.raises(TypeError, match=r"Cannot convert 1.5 to EagerTensor of dtype int32"):
        1.5 + i
    with pytest.raises(TypeError, match=r"Cannot convert 1.5 to EagerTensor of dtype int32"):
        tf.constant(1.5, tf.int32)
    with pytest.raises(
        ValueError, match=r"Tensor conversion requested dtype int32 for Tensor with dtype float32"
    ):
        tf.convert_to_tensor(c(), tf.int32)
    with pytest.raises(ValueError, match=r"Attempt to convert a value \(None\)"):
        c() + None
    with pytest.raises(
        errors.InvalidArgumentError, match=r"Value for attr 'T' of bool is not in the list"
    ):
        tf.constant(True) + tf.constant(True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: c() + tf.ones([3]), r"Incompatible shapes: \[2\] vs. \[3\] \[Op:AddV2\]"),
        (
            lambda: tf.matmul(tf.ones([2, 3]), tf.ones([2, 3])),
            r"Matrix size-incompatible: In\[0\]: \[2,3\], In\[1\]: \[2,3\] \[Op:MatMul\]",
        ),
        (
            lambda: tf.reshape(c(), [3]),
            r"Input to reshape is a tensor with 2 values, but the requested shape has 3 "
            r"\[Op:Reshape\]",
        ),
        (lambda: tf.gather(c(), [5]), r"indices\[0\] = 5 is not in \[0, 2\) \[Op:GatherV2\]"),
        (lambda: tf.constant([1]) // 0, "Integer division by zero"),
        (lambda: tf.concat([c(), tf.constant([1])], 0), "cannot compute ConcatV2 as input #1"),
        (lambda: tf.reduce_sum(c(), axis=5), "Invalid reduction dimension"),
        (lambda: tf.debugging.assert_equal(c(), c() + 1), "did not hold"),
    ],
)
def test_errors_name_the_op(call: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        call()


def test_no_floating_point_warnings() -> None:
    with np.errstate(all="raise"):
        assert np.isinf((c() / tf.zeros([2])).numpy()).all()
        assert np.isnan(tf.sqrt(-c()).numpy()).all()


# graphs beside eager execution ------------------------------------------------------------------


def test_a_graph_is_a_graph() -> None:
    x = c()
    with tf.Graph().as_default() as graph:
        assert not tf.executing_eagerly()
        y = tf.constant(1.0) + x
        assert type(y) is tf.Tensor
        with tf1.Session(graph=graph) as session:
            assert session.run(y).tolist() == [2, 3]
    assert tf.executing_eagerly()
    with pytest.raises(TypeError, match=r"is out of scope and cannot be used here"):
        y + 1
    with pytest.raises(TypeError, match=r"is out of scope and cannot be used here"):
        tf.exp(y)


def test_what_needs_a_graph_says_so() -> None:
    with pytest.raises(
        RuntimeError, match=r"tf.gradients is not supported when eager execution is enabled"
    ):
        tf.gradients(c(), c())
    with pytest.raises(RuntimeError, match=r"placeholder.* is not compatible with eager execution"):
        tf1.placeholder(tf.float32)
    variable = tf.Variable(1.0)
    with (
        tf.Graph().as_default(),
        pytest.raises(RuntimeError, match=r"Attempting to capture an EagerTensor"),
    ):
        tf.identity(variable)


def test_scopes_and_contexts() -> None:
    with tf.name_scope("a"), tf.name_scope("b") as scope:
        assert scope == "a/b/"
        assert tf.Variable(1.0, name="v").name == "a/b/v:0"
    with tf.device("/cpu:0"), tf.control_dependencies([c()]):
        assert tf.group(c()) is None
        assert tf.no_op() is None
    with tf.init_scope():
        assert tf.executing_eagerly()


def test_control_flow_is_pythons() -> None:
    assert tf.cond(tf.constant(True), lambda: 1, lambda: 2) == 1
    assert tf.case([(tf.constant(False), lambda: 1)], default=lambda: 2) == 2
    assert tf.switch_case(tf.constant(1), [lambda: 1, lambda: 5]) == 5
    i, j = tf.while_loop(
        lambda i, j: i < 3, lambda i, j: (i + 1, j * 2), [tf.constant(0), tf.constant(1)]
    )
    assert (int(i), int(j)) == (3, 8)
    assert [
        int(v)
        for v in tf.while_loop(
            lambda i: i < 9, lambda i: [i + 1], [tf.constant(0)], maximum_iterations=4
        )
    ] == [4]
    assert tf.map_fn(lambda x: x * 2, c()).numpy().tolist() == [2, 4]
    assert tf.scan(lambda a, x: a + x, tf.constant([1, 2, 3])).numpy().tolist() == [1, 3, 6]
    assert int(tf.foldl(lambda a, x: a + x, tf.constant([1, 2, 3]))) == 6
    assert int(tf.foldr(lambda a, x: a * 2 + x, tf.constant([1, 2, 3]))) == 17


def test_tensor_array() -> None:
    array = tf.TensorArray(tf.float32, 2)
    array = array.write(0, 1.0).write(1, 2.0)
    assert array.stack().numpy().tolist() == [1, 2]
    assert float(array.read(0)) == 1.0  # stacking leaves the elements, reading takes them
    with pytest.raises(errors.InvalidArgumentError, match=r"because it was cleared"):
        array.read(0)
    with pytest.raises(errors.OutOfRangeError, match=r"not resizeable and size is: 2"):
        array.write(5, 1.0)
    grown = tf.TensorArray(tf.int32, 0, dynamic_size=True).unstack([1, 2, 3])
    assert int(grown.size()) == 3
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.TensorArray(tf.float32, 2).write(0, x * x).write(1, x).stack()
    assert float(tape.gradient(y, x)) == 7.0


# random numbers: TensorFlow 2.21's --------------------------------------------------------------


def test_set_seed_starts_again() -> None:
    tf.random.set_seed(5)
    first = [
        tf.random.normal([2]).numpy().tolist(),
        tf.random.uniform([1], seed=2).numpy().tolist(),
    ]
    tf.random.set_seed(5)
    again = [
        tf.random.normal([2]).numpy().tolist(),
        tf.random.uniform([1], seed=2).numpy().tolist(),
    ]
    assert first == again


# switches ---------------------------------------------------------------------------------------


def test_v1_eager_compares_by_identity() -> None:
    tf1.disable_v2_behavior()
    tf1.enable_eager_execution()
    x = tf1.constant([1.0, 2.0])
    assert (x == tf1.constant([1.0, 2.0])) is False
    assert {x: 1}[x] == 1
    assert x.shape[0].value == 2


def test_eager_execution_is_for_the_start_of_a_program() -> None:
    tf1.disable_v2_behavior()
    tf1.constant(1.0)
    with pytest.raises(ValueError, match=r"must be called at program startup"):
        tf1.enable_eager_execution()
    tf1.reset_default_graph()


def test_threads() -> None:
    found: list[bool] = []

    def work() -> None:
        x = tf.constant(3.0)
        for _ in range(50):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x * x
            found.append(float(tape.gradient(y, x)) == 6.0 and tf.executing_eagerly())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [True] * 200


def _product(a: Any, b: Any, **name: Any) -> Any:
    try:
        return tf.matmul(a, b, **name)
    except (tf.errors.InvalidArgumentError, TypeError, ValueError) as error:
        return type(error), str(error).replace("named/", "").replace("MatMul/", "")


@pytest.mark.parametrize("kinds", [("t", "t"), ("t", "v"), ("v", "t"), ("n", "t"), ("t", "n")])
@pytest.mark.parametrize("types", ["ff", "dd", "ii", "fd", "cc", "hh"])
def test_products_on_the_short_way_are_the_usual_ones(kinds: tuple[str, str], types: str) -> None:
    """With a name the usual way computes, and refuses what does not fit."""
    make: dict[str, Any] = {"t": tf.constant, "v": tf.Variable, "n": np.asarray}
    dtype = {"f": "f4", "d": "f8", "i": "i4", "c": "c8", "h": "f2"}
    sizes = [
        ((3, 4), (4, 5)),
        ((3, 4), (3, 5)),
        ((4,), (4, 5)),
        ((2, 3, 4), (4, 5)),
        ((0, 4), (4, 5)),
    ]
    for shapes in sizes:
        a, b = (
            make[kind](np.arange(np.prod(shape)).reshape(shape).astype(dtype[t]))
            for kind, shape, t in zip(kinds, shapes, types)
        )
        got, want = _product(a, b), _product(a, b, name="named")
        if isinstance(want, tuple):
            assert isinstance(got, tuple) and got[0] is want[0], (got, want)
        else:
            np.testing.assert_array_equal(got.numpy(), want.numpy())
            assert got.dtype == want.dtype


def test_a_tape_sees_products_of_variables() -> None:
    x, w = tf.constant(np.ones((2, 3), np.float32)), tf.Variable(np.ones((3, 4), np.float32))
    tf.matmul(x, w)
    with tf.GradientTape() as tape:
        y = tf.matmul(x, w)
    np.testing.assert_array_equal(tape.gradient(y, w).numpy(), np.full((3, 4), 2, np.float32))
    made = tf.function(lambda a: tf.matmul(a, w))(x)
    np.testing.assert_array_equal(made.numpy(), y.numpy())


@pytest.mark.parametrize("of_variable", [True, False])
def test_a_persistent_tape_differentiates_its_own_gradients_of_a_function(
    of_variable: bool,
) -> None:
    """cos(2 v) again and again; the second derivative was None."""
    v = tf.Variable(1.0)
    x = tf.constant(1.0)
    function = tf.function(lambda z: tf.cos(2.0 * (v if of_variable else z)))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        value = function(x)
        found = [value]
        for _ in range(3):
            value = tape.gradient(value, v if of_variable else x)
            found.append(value)
    wanted = [np.cos(2), -2 * np.sin(2), -4 * np.cos(2), 8 * np.sin(2)]
    np.testing.assert_allclose([f.numpy() for f in found], wanted, rtol=1e-6)
