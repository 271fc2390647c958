"""``tf.function``.

Calls, traces, signatures, methods, variables, errors; what is checked is what TensorFlow 2.21 does.
"""

from __future__ import annotations

import collections
import gc
import logging
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.core.specs import TensorSpec
from headrace.eager import eager_context as context
from headrace.eager import equality
from headrace.eager.eager_tensor import EagerTensor
from headrace.eager.tape import GradientTape
from headrace.functions import function as function_module
from headrace.functions import retracing
from headrace.functions.function import Function, inside_function
from headrace.session import events


@pytest.fixture(autouse=True, params=["identity", "value"])
def eager(request: pytest.FixtureRequest) -> Iterator[None]:
    """Eager execution, with tensors compared as in TF 1 and as in TF 2."""
    retracing._by_code.clear()
    context.enable()
    if request.param == "value":
        equality.enable()
    yield
    equality.disable()
    context.disable()


def c(value: Any, dtype: Any = None) -> Any:
    return tf.constant(value, dtype)


# calls --------------------------------------------------------------------------------------------


def test_as_a_decorator_with_and_without_arguments() -> None:
    @tf.function
    def f(x: Any) -> Any:
        """Doubles."""
        return x * 2.0

    @tf.function(autograph=False, reduce_retracing=True)
    def g(x: Any) -> Any:
        return x * 3.0

    assert float(f(c(2.0))) == 4.0
    assert float(g(c(2.0))) == 6.0
    assert isinstance(f, Function)
    assert (f.__name__, f.__doc__) == ("f", "Doubles.")
    assert f.python_function(3.0) == 6.0


def test_python_runs_once_for_each_kind_of_arguments() -> None:
    seen = []

    @tf.function
    def f(x: Any, y: Any = 2) -> Any:
        seen.append((x.dtype, x.shape.as_list(), y))
        return x + tf.cast(y, x.dtype)

    assert int(f(c(1))) == 3
    assert int(f(c(5), y=2)) == 7
    assert int(f(y=2, x=c(5))) == 7
    assert seen == [(tf.int32, [], 2)]
    f(c(1.0))
    f(c([1.0]))
    f(c([1.0]), 3)
    f(c([1.0]), c(3))
    assert len(seen) == f.experimental_get_tracing_count() == 5


def test_python_values_are_told_apart_by_type_and_value() -> None:
    @tf.function
    def f(x: Any) -> Any:
        return x

    for value, dtype in ((1, tf.int32), (1.0, tf.float32), (True, tf.bool), ("a", tf.string)):
        assert f(value).dtype == dtype
    assert f(None) is None
    assert f.experimental_get_tracing_count() == 5


def test_arrays_are_tensors() -> None:
    traces = []

    @tf.function
    def f(x: Any) -> Any:
        traces.append(x)
        return x * 2

    assert f(np.ones(2)).dtype == tf.float64
    f(np.zeros(2))
    f(c([1.0, 2.0], tf.float64))
    assert len(traces) == 1
    assert int(f(np.int32(4))) == 8


def test_structures_in_and_out() -> None:
    Point = collections.namedtuple("Point", ["x", "y"])
    traces = []

    @tf.function
    def f(d: Any, p: Any, *rest: Any, **more: Any) -> Any:
        traces.append(1)
        total = d["a"] + p.x + rest[0][0] + more["k"]["z"]
        return {"sum": total, "none": None, "nested": [(p.y, 1), Point(c(1), 2.5)]}

    out = f({"a": c(1), "b": "text"}, Point(c(2), c(3)), [c(4)], k={"z": c(5)})
    assert int(out["sum"]) == 12
    assert out["none"] is None
    assert [int(v) for v in out["nested"][0]] == [3, 1]
    assert isinstance(out["nested"][1], Point)
    assert isinstance(out["nested"][1].y, EagerTensor)
    f({"b": "text", "a": c(1)}, Point(c(2), c(3)), [c(4)], k={"z": c(5)})
    assert len(traces) == 1
    f({"b": "other", "a": c(1)}, Point(c(2), c(3)), [c(4)], k={"z": c(5)})
    assert len(traces) == 2


def test_none_and_nothing_returned() -> None:
    assert tf.function(lambda: None)() is None
    assert tf.function(lambda x: (x, None))(c(1))[1] is None
    assert tf.function(lambda: ())() == ()


def test_numbers_strings_and_arrays_returned() -> None:
    out = tf.function(lambda: (1, 2.0, "s", [np.ones(2)]))()
    assert [t.dtype for t in (*out[:3], out[3][0])] == [tf.int32, tf.float32, tf.string, tf.float64]
    assert out[2].numpy() == b"s"


def test_the_argument_itself_returned() -> None:
    f = tf.function(lambda x: x)
    x = c([1.0, 2.0])
    y = f(x)
    assert y is not x
    assert y.numpy().tolist() == [1.0, 2.0]
    changed = y.numpy()
    changed[0] = 99.0
    assert x.numpy().tolist() == [1.0, 2.0]


def test_string_tensors() -> None:
    f = tf.function(lambda x, y: (tf.strings.join([x, y]), x))
    joined, same = f(c("a"), c("b"))
    assert joined.numpy() == b"ab"
    assert same.numpy() == b"a"


def test_sparse_tensors_and_slices() -> None:
    @tf.function
    def double(x: Any) -> Any:
        assert x.shape.as_list() == [2, 3]
        return tf.SparseTensor(x.indices, x.values * 2.0, x.dense_shape)

    s = tf.SparseTensor([[0, 1], [1, 2]], [1.0, 2.0], [2, 3])
    out = double(s)
    assert isinstance(out, tf.SparseTensor)
    assert out.values.numpy().tolist() == [2.0, 4.0]
    double(tf.SparseTensor([[0, 0]], [5.0], [2, 3]))
    assert double.experimental_get_tracing_count() == 1

    slices = tf.IndexedSlices(c([[1.0]]), c([3]), c([5, 1]))
    back = tf.function(lambda x: x)(slices)
    assert back.indices.numpy().tolist() == [3]


def test_hashable_objects_by_value_others_by_identity() -> None:
    class Plain:
        pass

    @tf.function
    def f(x: Any, how: Any) -> Any:
        return x + 1

    f(c(1), (1, frozenset([2])))
    f(c(1), (1, frozenset([2])))
    assert f.experimental_get_tracing_count() == 1
    a, b = Plain(), Plain()
    f(c(1), a)
    f(c(1), a)
    f(c(1), b)
    with pytest.raises(TypeError, match="hashable: 'set' is not"):
        f(c(1), {1, 2})  # as in TensorFlow: it may change unseen
    assert f.experimental_get_tracing_count() == 3
    gone = weakref.ref(b)
    del b
    gc.collect()
    assert gone() is None or f.experimental_get_tracing_count() == 3


def test_captures_are_read_when_tracing() -> None:
    k = 3
    w = c([1.0, 2.0])
    array = np.array([10.0, 20.0], np.float32)
    f = tf.function(lambda x: x * w + array * k)
    assert f(c([1.0, 1.0])).numpy().tolist() == [31.0, 62.0]
    concrete = f.get_concrete_function(c([1.0, 1.0]))
    assert concrete.captured_inputs[0] is w


def test_a_captured_tensor_tells_its_value() -> None:
    shape = c([2, 3])
    f = tf.function(lambda x: tf.reshape(x, shape))
    out = f.get_concrete_function(TensorSpec([6], tf.float32)).structured_outputs
    assert out.shape.as_list() == [2, 3]


def test_functions_in_functions_are_one_graph() -> None:
    @tf.function
    def inner(x: Any) -> Any:
        if x > 0:
            return x * 2
        return x - 1

    @tf.function
    def outer(x: Any) -> Any:
        total = inner(x)
        for _ in tf.range(2):
            total = inner(total)
        return total + inner(-x)

    assert int(outer(c(3))) == 24 - 4
    graph = outer.get_concrete_function(c(3)).graph
    assert not [op for op in graph.get_operations() if "Call" in op.type]


def test_recursion_over_python_values() -> None:
    @tf.function
    def power(x: Any, n: int) -> Any:
        return c(1.0) if n == 0 else x * power(x, n - 1)

    assert float(power(c(2.0), 5)) == 32.0


def test_endless_recursion_is_an_error() -> None:
    @tf.function
    def f(x: Any) -> Any:
        return f(x)

    with pytest.raises(RecursionError):
        f(c(1.0))


# signatures -------------------------------------------------------------------------------------


def test_wrong_arguments() -> None:
    @tf.function
    def f(x: Any, y: int = 2) -> Any:
        return x

    with pytest.raises(TypeError, match=r"missing a required argument: 'x'.*Received args: \(\)"):
        f()
    with pytest.raises(TypeError, match="too many positional arguments"):
        f(1, 2, 3)
    with pytest.raises(
        TypeError, match=r"unexpected keyword argument 'z'.*y=<captured_default_value>"
    ):
        f(1, z=3)
    with pytest.raises(TypeError, match="is not a callable object"):
        tf.function(3)
    with pytest.raises(TypeError, match="bogus"):
        tf.function(lambda: 1, bogus=1)


def test_an_input_signature() -> None:
    @tf.function(input_signature=[TensorSpec([None], tf.float32)])
    def f(x: Any) -> Any:
        return x * 2

    for value in ([1.0], [1, 2], np.ones(3, np.float32), c([1.0, 2.0])):
        assert f(value).shape.as_list() == [len(value)]
    assert f.experimental_get_tracing_count() == 1
    with pytest.raises(
        TypeError, match=r"Can not cast TensorSpec\(shape=\(1, 2\).*to TensorSpec\(shape=\(None,\)"
    ):
        f(c([[1.0, 2.0]]))
    with pytest.raises(TypeError, match="Can not cast TensorSpec"):
        f(c([1, 2]))
    with pytest.raises(TypeError, match="Cannot convert 'a' to EagerTensor of dtype float"):
        f("a")
    with pytest.raises(TypeError, match="too many positional arguments"):
        f(c([1.0]), 3)
    assert f.get_concrete_function().inputs[0].shape.as_list() == [None]
    with pytest.raises(TypeError, match="Can not cast"):
        f.get_concrete_function(TensorSpec([2], tf.int32))


def test_an_input_signature_that_does_not_fit_the_function() -> None:
    with pytest.raises(TypeError, match="input_signature missing type constraint for y"):
        tf.function(lambda x, y: x, input_signature=[TensorSpec([])])
    with pytest.raises(TypeError, match="possibly nested sequence of TensorSpec"):
        tf.function(lambda x: x, input_signature=[3])
    f = tf.function(lambda x, n=2: x * n, input_signature=[TensorSpec([], tf.int32)])
    assert int(f(c(3))) == 6


def test_a_nested_input_signature() -> None:
    @tf.function(input_signature=[{"a": TensorSpec([None]), "b": [TensorSpec([], tf.int32)]}])
    def f(d: Any) -> Any:
        return d["a"] * tf.cast(d["b"][0], tf.float32)

    assert f({"a": [1.0, 2.0], "b": [3]}).numpy().tolist() == [3.0, 6.0]
    with pytest.raises(TypeError):
        f({"a": [1.0]})


# traces that are shared -------------------------------------------------------------------------


def test_shapes_are_relaxed_on_request() -> None:
    f = tf.function(lambda x: tf.reduce_sum(x), reduce_retracing=True)
    assert [float(f(c([1.0] * n))) for n in range(1, 8)] == [1, 2, 3, 4, 5, 6, 7]
    assert f.experimental_get_tracing_count() == 2
    assert "shape=(None,)" in f.pretty_printed_concrete_signatures()
    old = tf.function(lambda x: x, experimental_relax_shapes=True)
    for n in range(1, 5):
        old(c([1.0] * n))
    assert old.experimental_get_tracing_count() == 2


def test_a_wider_trace_serves_narrower_calls() -> None:
    f = tf.function(lambda x: x + 1)
    f.get_concrete_function(TensorSpec([None], tf.int32))
    assert f(c([1, 2])).numpy().tolist() == [2, 3]
    assert f(c([1, 2, 3])).shape.as_list() == [3]
    assert f.experimental_get_tracing_count() == 1


def test_a_new_trace_says_why() -> None:
    heard: list[dict[str, Any]] = []
    stop = events.listen(lambda name, data: heard.append(data) if name == "trace" else None)
    f = tf.function(lambda x, n: x * n)
    f(c(1), 2)
    f(c(1), 3)
    f(c([1]), 3)
    stop()
    text = f.explain_retracing()
    assert "n: was Literal[2], is Literal[3]" in text
    assert (
        "x: was TensorSpec(shape=(), dtype=tf.int32, name=None), is TensorSpec(shape=(1,)" in text
    )
    assert [h["count"] for h in heard] == [1, 2, 3]


def test_many_traces_are_warned_about_once(caplog: pytest.LogCaptureFixture) -> None:
    f = tf.function(lambda x, n: x * n)
    with caplog.at_level(logging.WARNING, "tensorflow"):
        for n in range(12):
            f(c(1), n)
    texts = [
        r.getMessage()
        for r in caplog.records
        if "triggered tf.function retracing" in r.getMessage()
    ]
    assert len(texts) == 1
    assert "pass tensors instead of Python numbers" in texts[0]


def test_functions_made_in_a_loop_are_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tensorflow"):
        for _ in range(8):
            tf.function(lambda x: x + 41)(c(1))
    texts = [
        r.getMessage()
        for r in caplog.records
        if "triggered tf.function retracing" in r.getMessage()
    ]
    assert len(texts) == 1
    assert "define your @tf.function outside of the loop" in texts[0]


def test_traces_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_module, "_MAX_TRACES", 3)
    f = tf.function(lambda x, n: x * n)
    for n in [*range(10), 0, 9]:
        assert int(f(c(2), n)) == 2 * n
    assert len(f._traces) == len(f._exact) == 3
    assert f.experimental_get_tracing_count() == 11


# concrete functions -----------------------------------------------------------------------------


def test_a_concrete_function() -> None:
    v = tf.Variable(2.0)
    fixed = tf.Variable(1.0, trainable=False)

    @tf.function
    def f(x: Any, y: float) -> Any:
        return {"out": x * v + y + fixed}

    concrete = f.get_concrete_function(TensorSpec([2], tf.float32, name="q"), 3.0)
    args, kwargs = concrete.structured_input_signature
    assert args == (TensorSpec([2], tf.float32, name="q"), 3.0)
    assert kwargs == {}
    assert concrete.structured_outputs["out"].shape.as_list() == [2]
    assert [t.name for t in concrete.inputs] == ["q:0"]
    assert concrete.outputs[0].graph is concrete.graph
    assert concrete.variables == (v, fixed)
    assert concrete.trainable_variables == (v,)
    assert len(concrete.captured_inputs) == 2
    x = c([1.0, 2.0])
    for call in (concrete(x), concrete(q=x), concrete(x, 3.0)):
        assert call["out"].numpy().tolist() == [6.0, 8.0]
    assert f.get_concrete_function(TensorSpec([2], tf.float32, name="q"), 3.0) is concrete
    assert "x (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(2,), dtype=tf.float32, name='q')" in str(
        concrete
    )
    assert repr(concrete).startswith("<ConcreteFunction (x: TensorSpec(shape=(2,)")


def test_wrong_arguments_of_a_concrete_function() -> None:
    concrete = tf.function(lambda x, y: x).get_concrete_function(TensorSpec([2], tf.float32), 3.0)
    with pytest.raises(TypeError, match=r"Can not cast 4.0 to Literal\[3.0\]"):
        concrete(c([1.0, 2.0]), 4.0)
    with pytest.raises(TypeError, match="missing required arguments: x"):
        concrete()
    with pytest.raises(TypeError, match="to be a Tensor; got list"):
        concrete([1.0, 2.0])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="expected to be a float32 tensor but is a int32"
    ):
        concrete(c([1, 2]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"expected to be of shape \(2,\)"):
        concrete(c([1.0, 2.0, 3.0]))


def test_pretty_printed_signatures() -> None:
    f = tf.function(lambda x, y=2: x + y)
    f(c(1))
    assert f.pretty_printed_concrete_signatures() == (
        "Input Parameters:\n"
        "  x (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(), dtype=tf.int32, name=None)\n"
        "  y (POSITIONAL_OR_KEYWORD): Literal[2]\n"
        "Output Type:\n"
        "  TensorSpec(shape=(), dtype=tf.int32, name=None)\n"
        "Captures:\n"
        "  None"
    )


# methods ----------------------------------------------------------------------------------------


class Counter:
    def __init__(self, start: float) -> None:
        self.v = tf.Variable(start)
        self.traces = 0

    @tf.function
    def add(self, x: Any) -> Any:
        self.traces += 1
        if x > 0.0:
            self.v.assign_add(x)
        return self.v + 0.0


def test_methods_have_traces_of_their_own() -> None:
    a, b = Counter(1.0), Counter(100.0)
    assert float(a.add(c(1.0))) == 2.0
    assert float(b.add(c(1.0))) == 101.0
    assert float(a.add(c(2.0))) == 4.0
    assert (a.traces, b.traces) == (1, 1)
    assert a.add == a.add
    assert a.add.__self__ is a
    assert float(Counter(5.0).add(c(1.0))) == 6.0
    held = Counter(7.0).add
    gc.collect()
    assert float(held(c(1.0))) == 8.0
    assert float(Counter.add(a, c(1.0))) == 5.0


def test_methods_call_methods() -> None:
    class Net:
        def __init__(self) -> None:
            self.w = tf.Variable(2.0)

        @tf.function
        def inner(self, x: Any) -> Any:
            if x > 0.0:
                return x * self.w
            return x

        @tf.function
        def outer(self, x: Any) -> Any:
            total = 0.0
            for _ in tf.range(2):
                total += self.inner(x)
            return total

    assert float(Net().outer(c(3.0))) == 12.0
    assert float(Net().outer(c(-3.0))) == -6.0


def test_a_function_does_not_keep_the_object_alive() -> None:
    a = Counter(1.0)
    a.add(c(1.0))
    gone = weakref.ref(a)
    del a
    gc.collect()
    assert gone() is None


def test_methods_of_objects_without_hash() -> None:
    class Odd:
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            return True

        @tf.function
        def f(self, x: Any) -> Any:
            return x + 1

    assert int(Odd().f(c(1))) == 2


# variables --------------------------------------------------------------------------------------


def test_variables_are_made_by_the_first_call() -> None:
    class Model:
        v = None

        @tf.function
        def __call__(self, x: Any) -> Any:
            if self.v is None:
                self.v = tf.Variable(tf.zeros([2]) + 1.0, name="made")
            return self.v.assign_add(x)

    m = Model()
    assert m(c([1.0, 2.0])).numpy().tolist() == [2.0, 3.0]
    assert m(c([1.0, 2.0])).numpy().tolist() == [3.0, 5.0]
    assert m.v.name == "made:0"
    assert Model.__call__.__get__(m).experimental_get_tracing_count() == 2


def test_an_initial_value_may_depend_on_an_argument() -> None:
    box: list[Any] = []

    @tf.function
    def f(x: Any) -> Any:
        if not box:
            box.append(tf.Variable(x * 10.0))
        return box[0] + 0.0

    assert float(f(c(2.0))) == 20.0
    assert float(f(c(3.0))) == 20.0


def test_variables_made_again_and_again_are_refused() -> None:
    @tf.function
    def f(x: Any) -> Any:
        return tf.Variable(1.0) * x

    with pytest.raises(
        ValueError,
        match=r"tf\.function only supports singleton tf.Variables created on the first call",
    ):
        f(c(1.0))


def test_variables_made_by_a_later_trace_are_refused() -> None:
    made: list[Any] = []

    @tf.function
    def f(x: Any, n: int) -> Any:
        while len(made) < n:
            made.append(tf.Variable(1.0))
        return made[0] * x

    f(c(1.0), 1)
    with pytest.raises(ValueError, match="singleton"):
        f(c(1.0), 2)


def test_a_variable_as_argument() -> None:
    @tf.function
    def f(v: Any, x: Any) -> Any:
        return v.assign_add(x)

    a, b = tf.Variable(1.0), tf.Variable(10.0)
    assert float(f(a, c(1.0))) == 2.0
    assert float(f(b, c(1.0))) == 11.0
    assert float(f(a, c(1.0))) == 3.0


def test_a_function_keeps_the_variables_it_uses_alive() -> None:
    def make() -> Any:
        v = tf.Variable(5.0)
        f = tf.function(lambda x: v + x)
        f(c(1.0))
        return f.get_concrete_function(c(1.0))

    concrete = make()
    gc.collect()
    assert float(concrete(c(1.0))) == 6.0


def test_init_scope_leaves_the_function() -> None:
    seen: list[Any] = []

    @tf.function
    def f(x: Any) -> Any:
        with tf.init_scope():
            seen.append(c(1.0) + 1.0)
        return x + seen[0]

    assert float(f(c(1.0))) == 3.0
    assert isinstance(seen[0], EagerTensor)


# ways to run ------------------------------------------------------------------------------------


def test_functions_may_run_as_plain_python() -> None:
    seen: list[Any] = []

    @tf.function
    def f(x: Any) -> Any:
        seen.append(x)
        return x + 1

    f(c(1))
    tf.config.run_functions_eagerly(True)
    try:
        assert tf.config.functions_run_eagerly()
        f(c(2))
    finally:
        tf.config.run_functions_eagerly(False)
    assert not tf.config.functions_run_eagerly()
    assert not isinstance(seen[0], EagerTensor)
    assert int(seen[1]) == 2


def test_inside_function() -> None:
    assert not inside_function()
    assert bool(tf.function(lambda: c(inside_function()))())


def test_control_flow_functions_inside() -> None:
    @tf.function(autograph=False)
    def f(x: Any) -> Any:
        y = tf.cond(x > 0, lambda: x * 2, lambda: -x)
        return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + y), [0, y])[1]

    assert int(f(c(2))) == 16
    assert tf.function(lambda p: tf.cond(p, lambda: None, lambda: None))(c(True)) is None


def test_py_function_and_numpy_function_inside() -> None:
    @tf.function
    def f(x: Any) -> Any:
        a = tf.numpy_function(lambda v: v + 1.0, [x], tf.float32)
        b = tf.py_function(lambda t: t.numpy() * 2.0, [x], tf.float32)
        return a + b

    assert float(f(c(3.0))) == 10.0


def test_seeded_numbers_are_tensorflows() -> None:
    tf.set_random_seed(1234)
    f = tf.function(lambda: tf.random_uniform([2], seed=7))
    same = tf.function(lambda: tf.random_uniform([2], seed=7))
    free = tf.function(lambda: (tf.random_uniform([2]), tf.random_normal([2])))
    first, second = [0.79702616, 0.05996668], [0.16996491, 0.96266687]
    np.testing.assert_allclose(f().numpy(), first, rtol=1e-6)
    np.testing.assert_allclose(f().numpy(), second, rtol=1e-6)
    np.testing.assert_allclose(same().numpy(), first, rtol=1e-6)
    a, b = free()
    np.testing.assert_allclose(a.numpy(), [0.13047123, 0.9760946], rtol=1e-6)
    np.testing.assert_allclose(b.numpy(), [-0.32364845, 1.8577391], rtol=1e-6)
    twice = tf.function(lambda: (f(), f()))
    for numbers in twice():
        np.testing.assert_allclose(numbers.numpy(), first, rtol=1e-6)
    tf.set_random_seed(1234)
    np.testing.assert_allclose(f().numpy(), first, rtol=1e-6)
    x = c(1.0)
    with GradientTape() as tape:
        tape.watch(x)
        np.testing.assert_allclose((f() * x).numpy(), second, rtol=1e-6)


# errors -----------------------------------------------------------------------------------------


def test_a_tensor_that_leaves_its_function() -> None:
    kept: list[Any] = []

    @tf.function
    def f(x: Any) -> Any:
        kept.append(x + 1.0)
        return x

    f(c(1.0))
    for use in (
        lambda: kept[0] + 1.0,
        lambda: tf.add(kept[0], 1.0),
        lambda: tf.function(lambda x: x + kept[0])(c(1.0)),
    ):
        with pytest.raises(
            TypeError, match=r"is out of scope and cannot be used here[\s\S]*test_function.py"
        ):
            use()


def test_what_is_no_tensor_cannot_be_returned() -> None:
    with pytest.raises(TypeError, match="found return value of type object, which is not a Tensor"):
        tf.function(lambda: object())()


def test_errors_while_running_show_the_line() -> None:
    @tf.function
    def f(i: Any) -> Any:
        table = c([1, 2, 3])
        return tf.gather(table, i)  # the line

    assert int(f(c(1))) == 2
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"7 is not in \[0, 3\)[\s\S]*# the line"
    ):
        f(c(7))
    assert int(f(c(2))) == 3


def test_an_error_while_tracing_leaves_the_function_usable() -> None:
    @tf.function
    def f(x: Any) -> Any:
        return tf.reshape(x, [3, -1])

    with pytest.raises(ValueError, match="Dimension size must be evenly divisible by 3 but is 2"):
        f(c([1.0, 2.0]))
    assert f(c([1.0, 2.0, 3.0])).shape.as_list() == [3, 1]


def test_inlined_errors_show_the_line_of_the_inner_function() -> None:
    @tf.function
    def inner(i: Any) -> Any:
        return tf.gather(c([1, 2, 3]), i)  # inside

    outer = tf.function(lambda i: inner(i) + 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="# inside"):
        outer(c(5))


# threads ----------------------------------------------------------------------------------------


def test_many_threads_trace_and_call() -> None:
    traces = []

    @tf.function
    def f(x: Any, n: int) -> Any:
        traces.append(n)
        return x * n

    failed: list[Any] = []

    def work() -> None:
        for turn in range(40):
            if int(f(c(2), turn % 4)) != 2 * (turn % 4):
                failed.append(turn)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed
    assert sorted(traces) == [0, 1, 2, 3]


def test_no_update_is_lost_between_threads() -> None:
    v = tf.Variable(0)

    @tf.function
    def f() -> None:
        v.assign_add(1)

    def work() -> None:
        for _ in range(200):
            f()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert int(v) == 800


def test_numbers_beside_specs_with_names() -> None:
    @tf.function
    def f(x: Any, y: Any = 3.0) -> Any:
        return x + y

    named = [tf.TensorSpec([], tf.float32, name=n) for n in ("a", "b")]
    both = f.get_concrete_function(*named)
    one = f.get_concrete_function(named[0], 4.0)
    assert float(both(tf.constant(1.0), tf.constant(2.0))) == 3.0
    assert float(one(tf.constant(1.0))) == 5.0
    assert [t.op.get_attr("_user_specified_name") for t in both.inputs] == [b"a", b"b"]
