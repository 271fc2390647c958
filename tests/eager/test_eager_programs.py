"""Programs of eager code, functions and datasets that ran differently from TensorFlow once, and
others beside them.

The values are what TensorFlow 2.21 (TF 1.15 where sessions are used) gives for the same lines:
``tests/golden/judge_eager_programs.py`` runs this file on TensorFlow.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace.api.v1 as tf1
from headrace.api import v2 as tf
from headrace.cli import ops_table
from tests.eager_fixture import v2_behavior  # noqa: F401 (used by its name)

close = np.testing.assert_allclose


# mixing graphs and eager code -------------------------------------------------------------------


@pytest.fixture
def other_graph() -> Any:
    """A placeholder, a tensor, a variable and a session of a plain graph."""
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [])
        y = x * 2.0
        v = tf1.Variable(1.0, use_resource=True)
    sess = tf1.Session(graph=graph)
    sess.run(v.initializer)
    return x, y, v, sess


def test_an_eager_tensor_is_fed(other_graph: Any) -> None:
    x, y, _, sess = other_graph
    assert sess.run(y, {x: tf.constant(3.0)}) == 6.0
    assert sess.run(y, {x: tf.constant(4.0)}) == 8.0  # by the plan that is known
    assert sess.run(y, {x: tf.constant(5)}) == 10.0


def test_batches_of_a_dataset_are_fed() -> None:
    data = tf.data.Dataset.from_tensor_slices(np.arange(6.0, dtype=np.float32).reshape(3, 2)).batch(
        2
    )
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None, 2])
        y = tf.reduce_sum(x, 1)
        sess = tf1.Session()
    assert [sess.run(y, {x: batch}).tolist() for batch in data] == [[1.0, 5.0], [9.0]]


def test_an_eager_tensor_cannot_be_fetched(other_graph: Any) -> None:
    *_, sess = other_graph
    with pytest.raises(ValueError, match=r"eager tensor.*use \.numpy\(\)"):
        sess.run(tf.constant(1.0))


@pytest.mark.parametrize(
    "use",
    [
        lambda y, v: y + 1.0,
        lambda y, v: v + 1.0,
        lambda y, v: v.assign(2.0),
        lambda y, v: tf.function(lambda: y + 1.0)(),
        lambda y, v: tf.function(lambda: v + 1.0)(),
        lambda y, v: tf.function(lambda: v.assign(2.0))(),
    ],
)
def test_what_belongs_to_a_graph_is_out_of_scope(use: Callable[..., Any]) -> None:
    with tf.Graph().as_default() as graph:
        y = tf1.placeholder(tf.float32, []) * 2.0
        v = tf1.Variable(1.0, use_resource=True)
    count = len(graph.get_operations())
    with pytest.raises(TypeError, match="is out of scope and cannot be used here"):
        use(y, v)
    assert len(graph.get_operations()) == count


def test_tensors_of_graphs_say_what_they_refuse() -> None:
    with tf.Graph().as_default():
        t = tf.constant([1.0])
        for use in (bool, list):
            with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
                use(t)
    assert issubclass(tf.errors.OperatorNotAllowedInGraphError, TypeError)


# functions --------------------------------------------------------------------------------------


def test_a_method_with_an_input_signature() -> None:
    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)])
        def double(self, x: Any) -> Any:
            return x * 2.0

    model = Model()
    assert model.double(2.0).numpy() == 4.0
    assert model.double([1.0, 2.0]).numpy().tolist() == [2.0, 4.0]
    with pytest.raises(TypeError, match="missing type constraint for y"):

        @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)])
        def two(self: Any, x: Any, y: Any) -> Any: ...


def test_signatures_in_words() -> None:
    @tf.function
    def f(x: Any, y: Any = 2, *, z: Any = None) -> Any:
        return {"a": x, "b": [x]}

    made = f.get_concrete_function(tf.TensorSpec([None], tf.float32), [1, (2, 3)], z={"k": 1})
    spec = "TensorSpec(shape=(None,), dtype=tf.float32, name=None)"
    assert made.pretty_printed_signature().splitlines() == [
        "Input Parameters:",
        f"  x (POSITIONAL_OR_KEYWORD): {spec}",
        "  y (POSITIONAL_OR_KEYWORD): List[Literal[1], Tuple[Literal[2], Literal[3]]]",
        "  z (KEYWORD_ONLY): Dict[['k', Literal[1]]]",
        "Output Type:",
        f"  Dict[['a', {spec}], ['b', List[{spec}]]]",
        "Captures:",
        "  None",
    ]


def test_a_retrace_is_compared_with_the_latest_like_it() -> None:
    f = tf.function(lambda x: tf.constant(1.0) * x)
    for x in (tf.constant(1.0), 2.0, 3.0, 3.5):
        f(x)
    assert f.explain_retracing().splitlines()[-1] == "  4. x: was Literal[3.0], is Literal[3.5]"


def test_a_function_that_is_always_traced_keeps_a_bounded_history() -> None:
    f = tf.function(lambda x: tf.constant(1.0) * x)
    for i in range(300):
        f(float(i))
    lines = f.explain_retracing().splitlines()
    assert lines[0] == "<lambda> was traced 300 times:"
    assert lines[1] == "  (of the last 256)"
    assert lines[2].startswith("  45. x: was Literal[43.0]")
    assert f.experimental_get_tracing_count() == 300


def test_python_functions_as_decorators() -> None:
    @tf.py_function(Tout=tf.float32)
    def add(x: Any, y: Any) -> Any:
        return x + y

    @tf.numpy_function(Tout=tf.float32)
    def multiply(x: Any, y: Any) -> Any:
        return x * y

    @tf.function
    def both(x: Any) -> Any:
        return add(x, 1.0), multiply(x, 3.0)

    assert add(tf.constant(1.0), 2.0).numpy() == 3.0
    assert multiply(np.float32(2.0), np.float32(4.0)).numpy() == 8.0
    assert [float(t) for t in both(tf.constant(2.0))] == [3.0, 6.0]


def test_jumps_out_of_loops() -> None:
    @tf.function
    def f(xs: Any) -> Any:
        total = tf.constant(0)
        for x in xs:
            if x < 0:
                continue
            if x > 10:
                break
            total += x
        return total

    @tf.function
    def first_square_above(x: Any) -> Any:
        for i in tf.range(10):
            if i * i > x:
                return i
        return -1

    assert f(tf.constant([1, -5, 3, 20, 4])).numpy() == 4
    assert [int(first_square_above(tf.constant(x))) for x in (20, 1000)] == [5, -1]


def test_a_generator_in_a_function_draws_at_every_call() -> None:
    g = tf.random.Generator.from_seed(1)

    @tf.function
    def draw() -> Any:
        return (
            g.normal([2]),
            g.uniform([2], 0, 10, tf.int32),
            g.make_seeds(2),
            g.uniform_full_int([2], tf.uint64),
            g.truncated_normal([1]),
            g.uniform([tf.constant(2)], 1.0, 2.0),
        )

    first = draw()
    close(first[0], [0.43842274, -0.53439844], rtol=1e-6)
    assert first[1].numpy().tolist() == [3, 5]
    assert first[2].numpy().tolist() == [[-7860742046827996452, 5023477788091584457], [0, 0]]
    assert first[3].numpy().tolist() == [13221018172261337930, 6443273789380984323]
    close(first[4], [0.9560716], rtol=1e-6)
    close(first[5], [1.9792037, 1.5718879], rtol=1e-6)
    close(draw()[0], [-1.0439487, -0.23537067], rtol=1e-6)
    assert g.state.numpy().tolist() == [5633, 0, 0]
    close(g.normal([2]), [-2.0230167, 0.32989463], rtol=1e-6)


def test_a_generator_made_in_the_first_call() -> None:
    made: list[Any] = []

    @tf.function
    def draw() -> Any:
        if not made:
            made.append(tf.random.Generator.from_seed(1))
        return made[0].normal([])

    close([draw(), draw()], [0.43842274, 1.6272374], rtol=1e-6)


# derivatives ------------------------------------------------------------------------------------


def test_jacobians() -> None:
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sin(x) @ tf.constant([[1.0], [2.0]])
    want = [[[0.5403023, -0.8322937]], [[-0.9899925, -1.3072872]], [[0.2836622, 1.9203405]]]
    close(tape.batch_jacobian(y, x), want, rtol=1e-5)

    @tf.function
    def hessian(x: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(x**3)
            first = inner.gradient(y, x)
        return outer.jacobian(first, x)

    close(hessian(tf.constant([1.0, 2.0])), [[6.0, 0.0], [0.0, 12.0]])


def test_a_custom_gradient_with_a_variable() -> None:
    v = tf.Variable(2.0)

    @tf.custom_gradient
    def f(x: Any) -> Any:
        def grad(dy: Any, variables: Any = None) -> Any:
            return dy * 10.0, [tf.constant(7.0)]

        return x * v, grad

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert [float(g) for g in tape.gradient(y, [x, v])] == [10.0, 7.0]


# random numbers and orders ----------------------------------------------------------------------


def test_seeded_numbers() -> None:
    tf.random.set_seed(0)
    close(tf.random.normal([3]), [1.5110626, 0.42292204, -0.41969493], rtol=1e-6)
    close(tf.random.uniform([2]), [0.5554141, 0.22129297], rtol=1e-6)
    close(tf.random.normal([2], seed=3), [-1.4095545, -0.5366828], rtol=1e-6)
    close(tf.random.normal([2], seed=3), [-1.183044, -0.38426158], rtol=1e-6)
    assert tf.random.shuffle(tf.range(8)).numpy().tolist() == [4, 7, 6, 1, 2, 3, 0, 5]


def test_seeded_numbers_in_functions() -> None:
    @tf.function
    def draw() -> Any:
        return tf.random.normal([2]), tf.random.uniform([1], seed=7)

    tf.random.set_seed(5)
    (a, b), (c, d) = draw(), draw()
    close(a, [-1.7138785, -0.6787023], rtol=1e-6)
    close(b, [0.44746375], rtol=1e-6)
    close(c, [-0.2950869, -0.21065663], rtol=1e-6)
    close(d, [0.04830694], rtol=1e-5)


def test_seeded_orders() -> None:
    tf.random.set_seed(1)
    assert [int(x) for x in tf.data.Dataset.range(10).shuffle(4)] == [2, 0, 1, 6, 3, 5, 9, 8, 7, 4]
    again = tf.data.Dataset.range(6).shuffle(6, seed=2)
    rounds = [[int(x) for x in again] for _ in range(2)]
    assert rounds == [[4, 5, 2, 0, 1, 3], [1, 0, 2, 3, 4, 5]]
    tf.random.set_seed(9)
    drawn = tf.data.Dataset.range(4).map(lambda x: tf.random.uniform([]))
    close([float(x) for x in drawn], [0.08012962, 0.21256793, 0.9733671, 0.15101111], rtol=1e-6)


# strings, masks, ranges -------------------------------------------------------------------------


def test_the_sum_of_scalar_strings_goes_on() -> None:
    """FizzBuzz: the messages are sums of strings that are compared and printed."""

    @tf.function
    def word(i: Any) -> Any:
        message = ""
        if i % 3 == 0:
            message += "Fizz"
        if i % 5 == 0:
            message += "Buzz"
        if message == "":
            message = tf.strings.as_string(i)
        return message

    assert [word(tf.constant(i)).numpy() for i in (7, 9, 10, 15)] == [
        b"7",
        b"Fizz",
        b"Buzz",
        b"FizzBuzz",
    ]


@pytest.mark.parametrize(
    ("use", "want"),
    [
        (tf.strings.length, 2),
        (lambda s: tf.expand_dims(s, 0), [b"xy"]),
        (lambda s: tf.concat([[s], ["z"]], 0), [b"xy", b"z"]),
        (lambda s: tf.fill([2], s), [b"xy", b"xy"]),
        (tf.shape, []),
        (lambda s: tf.io.decode_raw(s, tf.uint8), [120, 121]),
    ],
)
def test_what_is_done_with_a_sum_of_strings(use: Callable[..., Any], want: Any) -> None:
    with tf.Graph().as_default(), tf1.Session() as sess:
        a, b = tf1.placeholder(tf.string, []), tf1.placeholder(tf.string, [])
        result = sess.run(use(a + b), {a: "x", b: "y"})
    assert np.asarray(result).tolist() == want


def test_splitting_one_string() -> None:
    assert tf.strings.split("a b  c").numpy().tolist() == [b"a", b"b", b"c"]
    assert tf.strings.split("a,b,,c", ",").numpy().tolist() == [b"a", b"b", b"", b"c"]
    assert tf.strings.split("a,b,,c", ",", 1).numpy().tolist() == [b"a", b"b,,c"]
    assert tf.strings.bytes_split("Duck").numpy().tolist() == [b"D", b"u", b"c", b"k"]
    assert tf.strings.split(["a b", "c"]).to_list() == [[b"a", b"b"], [b"c"]]


def test_a_mask_as_index() -> None:
    c = tf.constant([[1, -2, 3], [4, 5, -6]])
    assert c[c < 0].numpy().tolist() == [-2, -6]
    assert c[np.array([True, False])].numpy().tolist() == [[1, -2, 3]]
    v = tf.Variable([1.0, -2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(v[v < 0] * 3.0)
    assert tf.convert_to_tensor(tape.gradient(y, v)).numpy().tolist() == [0.0, 3.0]
    with pytest.raises(ValueError, match="mask cannot be scalar"):
        c[True]
    with tf.Graph().as_default(), tf1.Session() as sess:
        x = tf1.placeholder(tf.int32, [2, 3])
        assert x[x < 0].shape.as_list() == [None]
        assert sess.run(x[x < 0], {x: c.numpy()}).tolist() == [-2, -6]


def test_linspace() -> None:
    assert tf.linspace(-2, 2, 5).numpy().tolist() == [-2.0, -1.0, 0.0, 1.0, 2.0]
    assert tf.linspace(0, 10, 4).dtype == tf.float64
    columns = tf.linspace([0.0, 1.0], [10.0, 5.0], 3)
    assert columns.numpy().tolist() == [[0.0, 1.0], [5.0, 3.0], [10.0, 5.0]]
    rows = tf.linspace([0.0, 1.0], [10.0, 5.0], 3, axis=-1)
    assert rows.numpy().tolist() == [[0.0, 5.0, 10.0], [1.0, 3.0, 5.0]]
    assert tf.linspace([0.0, 1.0], 10.0, 3).numpy().tolist() == [[0, 1], [5, 5.5], [10, 10]]
    assert tf.linspace([1.0, 2.0], 5.0, 1).numpy().tolist() == [[1.0, 2.0]]
    traced = tf.function(lambda n: tf.linspace([1.0], [3.0], n))
    assert traced(tf.constant(3)).numpy().tolist() == [[1.0], [2.0], [3.0]]
    assert traced(tf.constant(1)).numpy().tolist() == [[1.0]]


def test_sparse_values() -> None:
    sparse = tf.sparse.from_dense([[1, 0, 8], [0, 3, 0]])
    assert str(sparse).startswith("SparseTensor(indices=tf.Tensor(")
    added = tf.sparse.to_dense(tf.sparse.map_values(tf.add, sparse, 5))
    assert added.numpy().tolist() == [[6, 0, 13], [0, 8, 0]]
    with pytest.raises(ValueError, match="No SparseTensor"):
        tf.sparse.map_values(tf.add, 1, 2)


def test_the_time_of_a_run() -> None:
    before = time.time()
    f = tf.function(lambda: tf.timestamp())
    first, second = float(f()), float(f())
    assert before <= first < second <= time.time()
    with tf.Graph().as_default(), tf1.Session() as sess:
        t = tf1.timestamp()
        assert t.dtype == tf.float64
        assert sess.run(t) >= second


# the rest ---------------------------------------------------------------------------------------


def test_names_of_contrib_eager() -> None:
    from headrace.api.contrib import eager as tfe

    iterator = tfe.Iterator(tf.data.Dataset.range(2))
    assert [int(iterator.next()), int(iterator.next())] == [0, 1]
    assert int(tfe.defun(lambda x: x + 1)(tf.constant(1))) == 2


def test_a_dataset_of_tf_1_in_words() -> None:
    data = tf1.data.Dataset.from_tensor_slices({"a": [1, 2], "b": [[1.0], [2.0]]})
    assert (
        repr(data)
        == "<DatasetV1Adapter shapes: {a: (), b: (1,)}, types: {a: tf.int32, b: tf.float32}>"
    )


def test_the_table_has_every_op() -> None:
    names = {row["name"] for row in ops_table.rows()}
    assert {"MatMul", "SparseAdd", "TensorSliceDataset", "DecodeJpeg", "Timestamp"} <= names


def test_a_missing_name_of_compat_v1_is_known() -> None:
    with pytest.raises(AttributeError, match=r"tf\.keras.* is part of TensorFlow 1\.15"):
        tf.compat.v1.keras.layers.Dense  # noqa: B018


# random numbers -----------------------------------------------------------------------------------


def test_random_numbers_are_tensorflows() -> None:
    tf.random.set_seed(1)
    want = [
        (tf.random.normal([2]), [-1.1012202501296997, 1.545751690864563]),
        (tf.random.uniform([2]), [0.5101070404052734, 0.44353175163269043]),
        (tf.random.uniform([2], seed=3), [0.7787855863571167, 0.8011977672576904]),
        (tf.random.uniform([2], seed=3), [0.24208664894104004, 0.8160603046417236]),
        (tf.random.normal([2]), [-0.45701223611831665, -0.40686726570129395]),
        (tf.random.shuffle([1, 2, 3, 4]), [1, 2, 4, 3]),
        (tf.random.uniform([3], 0, 9, dtype=tf.int32), [8, 2, 2]),
        (tf.random.truncated_normal([2]), [-1.1771782636642456, -0.9032594561576843]),
        (tf.random.categorical([[1.0, 2.0]], 4), [[1, 1, 1, 1]]),
        (tf.nn.dropout(tf.ones([5]), 0.5), [0, 2, 0, 0, 0]),
        (tf.random.gamma([2], 1.0), [0.7691288590431213, 0.1815166026353836]),
        (tf.random.stateless_uniform([2], [1, 2]), [0.8440604209899902, 0.19204533100128174]),
    ]
    for got, numbers in want:
        np.testing.assert_allclose(got.numpy(), numbers, rtol=3e-6)


def test_generator() -> None:
    g = tf.random.Generator.from_seed(1234)
    np.testing.assert_allclose(g.uniform([3]).numpy(), [0.3581475, 0.1132276, 0.566709], rtol=1e-6)
    np.testing.assert_allclose(g.normal([3]).numpy(), [1.1264246, -1.0338292, 0.257107], rtol=1e-5)
    assert g.uniform([3], 0, 10, dtype=tf.int32).numpy().tolist() == [4, 9, 1]
    assert g.state.numpy().tolist() == [3538, 0, 0]
    np.testing.assert_allclose(
        g.truncated_normal([2]).numpy(), [-0.00286504, -0.69419545], rtol=1e-4
    )
    assert g.uniform_full_int([2], dtype=tf.int32).numpy().tolist() == [1489833446, -162375335]
    keys = [int(s.state.numpy()[2]) for s in g.split(2)]
    assert keys == [-4896663327461904535, -5851742018268803918]
    assert g.make_seeds(2).numpy().tolist() == [[5394157901782015838, -1253747224176783485], [0, 0]]
    copied = tf.random.Generator(copy_from=g)
    assert copied.normal([2]).numpy().tolist() == g.normal([2]).numpy().tolist()
