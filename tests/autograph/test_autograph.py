"""AutoGraph: converted functions against plain Python, TensorFlow's messages, and what is left
alone.
"""

from __future__ import annotations

import functools
import gc
import logging
import textwrap
import traceback
import types
import weakref
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace import autograph
from headrace.autograph import convert, experimental, to_code, to_graph
from headrace.core.specs import TensorSpec
from headrace.core.tensor import Tensor
from headrace.functions.tracing import trace
from headrace.lower.session_state import State
from tests.autograph import autograph_table


def run(function: Any, *values: Any, static: bool = True) -> Any:
    """The converted function on placeholders, and its results for the values."""
    with tf.Graph().as_default(), tf.Session() as session:
        arrays = [np.asarray(v, _dtype(v)) for v in values]
        shapes = [a.shape if static else [None] * a.ndim for a in arrays]
        inputs = [tf.placeholder(a.dtype, shape) for a, shape in zip(arrays, shapes)]
        results = tf.convert_to_tensor(convert(function)(*inputs))
        return session.run(results, dict(zip(inputs, arrays)))


def _dtype(value: Any) -> Any:
    kind = np.asarray(value).dtype.kind
    return {"i": np.int32, "f": np.float32}.get(kind)


@pytest.mark.parametrize(
    "function, calls", autograph_table.CASES, ids=lambda p: getattr(p, "__name__", "")
)
def test_table(function: Any, calls: Any) -> None:
    for values in calls:
        expected = function(*values)
        np.testing.assert_allclose(run(function, *values), expected, rtol=1e-6)
        # on numbers, the converted function is the function
        assert convert(function)(*values) == expected


@pytest.mark.parametrize(
    "function, calls", autograph_table.CASES, ids=lambda p: getattr(p, "__name__", "")
)
def test_table_as_function_graphs(function: Any, calls: Any) -> None:
    for values in calls:
        arrays = [np.asarray(v, _dtype(v)) for v in values]
        specs = [TensorSpec(a.shape, tf.as_dtype(a.dtype)) for a in arrays]
        results = trace(function, specs).bind(State())(*arrays)
        np.testing.assert_allclose(results[0], function(*values), rtol=1e-6)


@pytest.mark.parametrize("static", [True, False])
def test_unknown_shapes(static: bool) -> None:
    assert run(autograph_table.for_tensor, [1, 2, 3], static=static) == 14
    assert run(autograph_table.for_tensor, np.zeros(0, np.int32), static=static) == 0


# staged or not ----------------------------------------------------------------------------------


def test_python_condition_traces_one_branch() -> None:
    seen = []

    def f(x: Any, training: bool) -> Any:
        if training:
            seen.append("yes")
            x = x + 1
        else:
            seen.append("no")
        return x

    with tf.Graph().as_default() as graph:
        convert(f)(tf.placeholder(tf.int32, []), True)
        assert seen == ["yes"]
        assert "Switch" not in {op.type for op in graph.get_operations()}


def test_tensor_condition_traces_both() -> None:
    seen = []

    def f(x: Any) -> Any:
        if x > 0:
            seen.append("main")
        else:
            seen.append("else")
        return x

    assert run(f, 1) == 1
    assert seen == ["main", "else"]


def test_range_is_not_made() -> None:
    def f(n: Any) -> Any:
        s = 0
        for i in tf.range(n):
            s += i
        return s

    with tf.Graph().as_default() as graph, tf.Session() as session:
        n = tf.placeholder(tf.int32, [])
        out = convert(f)(n)
        needed, pending = set(), [out.op]
        while pending:
            op = pending.pop()
            if op not in needed:
                needed.add(op)
                pending.extend(t.op for t in op.inputs)
        assert "Range" not in {op.type for op in needed}
        assert "TensorArrayV3" not in {op.type for op in graph.get_operations()}
        assert session.run(out, {n: 5}) == 10


@pytest.mark.parametrize("n, step, expected", [(7, 2, 12), (-7, -3, -9), (0, 1, 0)])
def test_range_with_a_step_that_is_a_tensor(n: int, step: int, expected: int) -> None:
    def f(n: Any, step: Any) -> Any:
        s = 0
        for i in tf.range(0, n, step):
            s += i
        return s

    assert run(f, n, step) == expected


def test_trial_of_the_condition_leaves_nothing() -> None:
    def f(x: Any) -> Any:
        while x < 100:
            x = x * 2
        return x

    with tf.Graph().as_default() as graph:
        convert(f)(tf.placeholder(tf.int32, []))
        outside = [o for o in graph.get_operations() if o.type == "Less" and o._context is None]
        assert outside == []


def test_variables_as_conditions() -> None:
    def f(flag: Any, n: Any) -> Any:
        if flag:
            return n + 1
        return n * 1

    with tf.Graph().as_default(), tf.Session() as session:
        flag = tf.Variable(True, use_resource=True)
        n = tf.Variable(4, use_resource=True)
        out = convert(f)(flag, n)
        session.run(tf.global_variables_initializer())
        assert session.run(out) == 5
        session.run(flag.assign(False))
        assert session.run(out) == 4


def test_gradient_through_a_converted_loop() -> None:
    def f(x: Any, n: Any) -> Any:
        y = x
        for _ in tf.range(n):
            if y > 5.0:
                y = y * 1.0
            else:
                y = y * x
        return y

    with tf.Graph().as_default(), tf.Session() as session:
        x, n = tf.placeholder(tf.float32, []), tf.placeholder(tf.int32, [])
        y = convert(f)(x, n)
        (dx,) = tf.gradients(y, x)
        value, slope = session.run([y, dx], {x: 2.0, n: 6})
        assert (value, slope) == (8.0, 12.0)


def test_tensor_array_in_a_loop() -> None:
    def f(n: Any) -> Any:
        out = tf.TensorArray(tf.int32, size=n)
        for i in tf.range(n):
            if i > 1:
                out = out.write(i, i * i)
            else:
                out = out.write(i, -i)
        return out.stack()

    np.testing.assert_array_equal(run(f, 4), [0, -1, 4, 9])


def test_for_handlers() -> None:
    class Numbers:
        def __init__(self, *numbers: int) -> None:
            self.numbers = numbers

    def loop(over: Any, extra: Any, body: Any, get: Any, set_: Any, names: Any, opts: Any) -> None:
        assert names == ("s",) and extra is None
        for n in over.numbers:
            body(n * 100)

    def f(x: Any, over: Any) -> Any:
        s = x
        for v in over:
            s = s + v
        return s

    autograph.FOR_HANDLERS.append((lambda v: isinstance(v, Numbers), loop))
    try:
        assert convert(f)(1, Numbers(1, 2)) == 301
    finally:
        autograph.FOR_HANDLERS.pop()


def test_builtin_handlers() -> None:
    class Sized:
        pass

    def f(v: Any) -> Any:
        return len(v)

    handlers = autograph.BUILTIN_HANDLERS["len"]
    handlers.append((lambda v: isinstance(v, Sized), lambda v: 42))
    try:
        assert convert(f)(Sized()) == 42
        assert convert(f)([1]) == 1
    finally:
        handlers.pop()


# TensorFlow's errors ----------------------------------------------------------------------------


def one_branch(x: Any) -> Any:
    if x > 0:
        y = 1
    return y


def one_branch_else(x: Any) -> Any:
    if x > 0:
        pass
    else:
        y = 1
    return y


def one_branch_attribute(x: Any) -> Any:
    box = types.SimpleNamespace()
    if x > 0:
        box.x = x
    return box.x


def none_returned(x: Any) -> Any:
    if x > 0:
        return None
    return x


def only_main_returns(x: Any) -> Any:
    if x > 0:
        return x


def none_in_expression(x: Any) -> Any:
    return x if x > 1 else None


def float_condition(x: Any) -> Any:
    if tf.cast(x, tf.float32):
        return 1
    return 2


def vector_condition(x: Any) -> Any:
    if tf.stack([x, x]) > 0:
        return 1
    return 2


def python_for_break(x: Any) -> Any:
    for k in range(10):
        if k > x:
            break
    return k


def python_while_break(x: Any) -> Any:
    k = 0
    while True:
        k += 1
        if k > x:
            break
    return k


def loop_dtype(x: Any) -> Any:
    s = 0
    while x > 0:
        s = tf.cast(s, tf.float32) + 1.5
        x -= 1
    return s


def loop_shape(x: Any) -> Any:
    s = tf.zeros([1])
    while x > 0:
        s = tf.concat([s, s], 0)
        x -= 1
    return s


def loop_structure(x: Any) -> Any:
    s = x
    while x > 0:
        s = (s, s)
        x -= 1
    return s


def branch_dtype(x: Any) -> Any:
    if x > 0:
        a = 1
    else:
        a = 1.5
    return a


def branch_structure(x: Any) -> Any:
    if x > 0:
        a = (x, x)
    else:
        a = x
    return a


def none_before_loop(x: Any) -> Any:
    s = None
    while x > 0:
        x -= 1
        if s is None:
            x -= 1
        else:
            s = None
    return s


def raising_branch(x: Any) -> Any:
    if x > 5:
        raise ValueError("bad value")
    return x


def not_of_a_number(x: Any) -> Any:
    return not x


def unbound_later(x: Any) -> Any:
    if x is None:
        y = 1
    return y


def tensor_in_a_list(x: Any) -> Any:
    return x in [1, 3]


ERRORS = [
    (one_branch, ValueError, "'y' must also be initialized in the else branch"),
    (one_branch_else, ValueError, "'y' must also be initialized in the main branch"),
    (one_branch_attribute, ValueError, "'box.x' must also be initialized in the else branch"),
    (none_returned, ValueError, "'retval_' is None at the end of the main branch."),
    (only_main_returns, ValueError, "the else branch must also have a return statement."),
    (none_in_expression, ValueError, "'x > 1' is None at the end of the else branch."),
    (
        float_condition,
        ValueError,
        "condition of if statement expected to be `tf.bool` scalar, got Tensor",
    ),
    (
        vector_condition,
        ValueError,
        "condition of if statement expected to be `tf.bool` scalar, got Tensor",
    ),
    (
        python_for_break,
        NotImplementedError,
        "break and return statements which depend on a TF condition",
    ),
    (python_while_break, NotImplementedError, "The condition of while loop started as non-Tensor"),
    (
        loop_dtype,
        TypeError,
        "'s' has dtype int32 before the loop, but dtype float32 after one iteration",
    ),
    (
        loop_shape,
        ValueError,
        r"'s' has shape \(1,\) before the loop, but shape \(2,\) after one iteration",
    ),
    (loop_structure, TypeError, "'s' does not have the same nested structure after one iteration"),
    (
        branch_dtype,
        TypeError,
        "'a' has dtype int32 in the main branch, but dtype float32 in the else branch",
    ),
    (
        branch_structure,
        TypeError,
        "'a' must have the same nested structure in the main and else branches",
    ),
    (none_before_loop, ValueError, "'s' is not allowed to be None before the loop"),
    (raising_branch, ValueError, "bad value"),
    (not_of_a_number, TypeError, "LogicalNot"),
    (unbound_later, UnboundLocalError, "y"),
    (tensor_in_a_list, TypeError, "Python `bool`"),
]


@pytest.mark.parametrize(
    "function, kind, message", ERRORS, ids=lambda p: getattr(p, "__name__", "")
)
def test_errors(function: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        run(function, 3)


def test_loop_that_must_run_once() -> None:
    assert run(autograph_table.defined_in_loop, 3) == 4
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="loop must iterate at least once to initialize last"
    ):
        run(autograph_table.defined_in_loop, 0)


def test_empty_range_leaves_the_start() -> None:
    assert run(autograph_table.loop_variable_afterwards, 0) == 0


def test_none_before_a_loop_that_sets_it() -> None:
    def f(n: Any) -> Any:
        z = None
        for i in tf.range(n):
            z = i
        return z

    assert run(f, 3) == 2


def test_assertions() -> None:
    def plain(x: Any) -> Any:
        assert x > 5, "too small"
        return x

    def with_values(x: Any) -> Any:
        assert x > 5, ("too small", x)
        return x

    with pytest.raises(AssertionError, match="too small"):
        convert(plain)(3)
    for function in (plain, with_values):
        with tf.Graph().as_default() as graph, tf.Session() as session:
            x = tf.placeholder(tf.int32, [])
            convert(function)(x)
            check = next(op for op in graph.get_operations() if op.type == "Assert")
            session.run(check, {x: 7})
            with pytest.raises(tf.errors.InvalidArgumentError, match="too small"):
                session.run(check, {x: 3})


# options ----------------------------------------------------------------------------------------


def test_shape_invariants() -> None:
    def f(n: Any) -> Any:
        s = tf.zeros([1])
        while n > 0:
            tf_options(shape_invariants=[(s, tf.TensorShape([None]))])
            s = tf.concat([s, s], 0)
            n -= 1
        return s

    tf_options = experimental.set_loop_options  # any name: it is known by the call's own name
    with pytest.raises(ValueError, match="set_loop_options to set shape invariants"):
        run(f, 3)

    def g(n: Any) -> Any:
        s = tf.zeros([1])
        for _ in tf.range(n):
            experimental.set_loop_options(
                shape_invariants=[(s, tf.TensorShape([None]))], parallel_iterations=1
            )
            s = tf.concat([s, s], 0)
        return s

    assert run(g, 3).shape == (8,)


def test_maximum_iterations() -> None:
    def f(n: Any) -> Any:
        s = 0
        while n > 0:
            experimental.set_loop_options(maximum_iterations=3)
            s += 1
        return s

    assert run(f, 100) == 3


def test_wrong_invariant() -> None:
    def f(n: Any) -> Any:
        s = tf.zeros([1, 2])
        while n > 0:
            experimental.set_loop_options(shape_invariants=[(s, tf.TensorShape([None, 2]))])
            s = tf.zeros([1, 3])
            n -= 1
        return s

    with pytest.raises(
        ValueError, match=r"does not conform with the shape invariant \(None, 2\)|\(\?, 2\)"
    ):
        run(f, 3)


def test_loop_options_not_at_the_head(caplog: Any) -> None:
    def f(n: int) -> int:
        while n > 0:
            n -= 1
            experimental.set_loop_options(maximum_iterations=3)
        return n

    with caplog.at_level(logging.WARNING, "tensorflow"):
        assert convert(f)(2) == 0
    assert "must be the first statement in the loop block" in caplog.text


def test_print(capfd: Any) -> None:
    def f(x: Any) -> Any:
        print("value", x)
        return x

    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.int32, [])
        convert(f)(x)
        assert "value Tensor(" in capfd.readouterr().out  # TensorFlow's default: while tracing
        convert(f, optional_features=experimental.Feature.BUILTIN_FUNCTIONS)(x)
        op = next(o for o in graph.get_operations() if o.type == "PrintV2")
        session.run(op, {x: 7})
        assert capfd.readouterr().out == "value 7\n"
    assert convert(f, optional_features=experimental.Feature.ALL)(3) == 3
    with pytest.raises(ValueError, match=r"is not a tf\.autograph\.experimental\.Feature"):
        convert(f, optional_features="print")


def test_features() -> None:
    feature = experimental.Feature
    assert feature.ALL in feature.all()
    assert feature.LISTS not in feature.all_but(feature.LISTS)
    assert feature.ALL not in feature.all_but([feature.LISTS])


# lists ------------------------------------------------------------------------------------------


def test_append_in_a_staged_loop_is_an_error() -> None:
    def f(n: Any) -> Any:
        items: list[Any] = []
        for i in tf.range(n):
            items.append(i)
        return items[0] + 1

    with pytest.raises((ValueError, TypeError, tf.errors.OpError)):
        run(f, 3)


# what is converted ------------------------------------------------------------------------------


class Model:
    scale = 3

    def __init__(self) -> None:
        self.__private = 5

    def method(self, x: Any) -> Any:
        if x > 0:
            return x * self.scale
        return self.helper(x)

    def helper(self, x: Any) -> Any:
        return x - self.__private if x < -1 else x

    @classmethod
    def of_class(cls, x: Any) -> Any:
        return x if x > 0 else cls.scale * x

    @staticmethod
    def of_none(x: Any) -> Any:
        return x if x > 0 else -x

    def __call__(self, x: Any) -> Any:
        return self.method(x) + Model.of_class(x) + self.of_none(x)


class Derived(Model):
    def method(self, x: Any) -> Any:
        if x > 1:
            return super().method(x) + 1000
        return super().method(x)


def test_methods() -> None:
    for model in (Model(), Derived()):
        for function in (model.method, model.of_class, model.of_none, model):
            for x in (-3, -1, 2):
                assert run(function, x) == function(x)


def test_callable_objects_and_partials() -> None:
    def f(x: Any, model: Any, part: Any) -> Any:
        return model(x) + part(x)

    model = Model()
    part = functools.partial(with_offset, offset=4)
    for x in (-3, 2):
        assert run(lambda v: f(v, model, part), x) == f(x, model, part)
    assert run(part, 3) == 7


def with_offset(x: Any, offset: int) -> Any:
    return x + offset if x > 0 else x


def test_several_lambdas_on_a_line() -> None:
    first, second = lambda x: x if x > 0 else 1, lambda x: x if x > 0 else 2
    assert (run(first, -5), run(second, -5)) == (1, 2)
    nested = lambda x: (lambda y: y if y > 0 else 3)(x)
    assert run(nested, -5) == 3
    over = [lambda x, k=k: x if x > k else k for k in range(3)]
    assert [run(f, 1) for f in over] == [1, 1, 2]


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(x: Any) -> Any:
        if x > 10:
            x = x - 10
        return function(x)

    return wrapper


@decorated
def inner_of_decorator(
    x: Any,
) -> Any:
    return x * 2 if x > 3 else x


def test_decorated_functions() -> None:
    for x in (2, 5, 12, 15):
        assert run(inner_of_decorator, x) == inner_of_decorator(x)


LIMIT = 3


def uses_global(x: Any) -> Any:
    global LIMIT
    if x > LIMIT:
        x = x * 2
    return x


def writes_global(x: Any) -> Any:
    global LIMIT
    if x is not None:
        LIMIT = LIMIT + 1
    return x


def test_globals_are_the_modules_own() -> None:
    global LIMIT
    old = LIMIT
    try:
        f = convert(uses_global)
        assert f(5) == 10
        LIMIT = 100
        assert f(5) == 5
        convert(writes_global)(1)
        assert LIMIT == 101
    finally:
        LIMIT = old


def test_closures_are_the_functions_own() -> None:
    limit = 3

    def f(x: Any) -> Any:
        return 1 if x > limit else 0

    def count() -> Any:
        nonlocal limit
        limit += 1
        return limit

    g = convert(f)
    assert g(5) == 1
    limit = 10
    assert g(5) == 0
    assert convert(count)() == 11 and limit == 11


def test_library_code_is_called_as_it_is() -> None:
    def f(x: Any) -> Any:
        return np.sum([1, 2]) + textwrap.dedent(" 3").count("3") + int(tf.float32.size) + x

    assert convert(f)(1) == 9


def test_generators_run_as_they_are(caplog: Any) -> None:
    def numbers(n: int) -> Any:
        yield from range(n)

    def f(x: Any) -> Any:
        for k in numbers(3):
            x += k
        return x

    def has_generator(x: Any) -> Any:
        def three() -> Any:
            yield 1
            yield 2

        for k in three():
            if k > 1:
                x = x + k if x > 0 else x - k
        return x

    assert run(f, 4) == 7
    assert run(has_generator, 4) == 6
    with caplog.at_level(logging.WARNING, "tensorflow"):
        assert list(convert(numbers)(2)) == [0, 1]
        assert list(convert(numbers)(2)) == [0, 1]
    assert caplog.text.count("generators are not supported") == 1


def test_user_functions_given_to_headrace() -> None:
    def clip(x: Any) -> Any:
        if x > 2:
            return x * 10
        return x

    def f(xs: Any) -> Any:
        return tf.map_fn(clip, xs) + tf.map_fn(lambda x: clip(x) + 1, xs)

    np.testing.assert_array_equal(run(f, [1, 2, 3]), [3, 5, 61])


def test_do_not_convert() -> None:
    @experimental.do_not_convert
    def plain(x: Any) -> Any:
        return positive(x)

    def positive(x: Any) -> Any:
        return 1 if x is not None and isinstance(x, Tensor) else 0

    def needs_conversion(x: Any) -> Any:
        return 1 if x > 0 else 0

    @experimental.do_not_convert()
    def fails(x: Any) -> Any:
        return needs_conversion(x)

    assert run(lambda x: plain(x) + 1 * x, 2) == 3
    with pytest.raises(TypeError, match="as a Python `bool` is not allowed"):
        run(lambda x: fails(x), 2)
    assert convert(plain) is plain


def test_control_status() -> None:
    seen = []

    def f() -> None:
        seen.append(autograph.control_status_ctx().status)

    assert autograph.control_status_ctx().status is autograph.Status.UNSPECIFIED
    convert(f)()
    experimental.do_not_convert(f)()
    assert seen == [autograph.Status.ENABLED, autograph.Status.DISABLED]
    assert autograph.control_status_ctx().status is autograph.Status.UNSPECIFIED


def test_tf_convert_follows_the_status() -> None:
    def f(x: Any) -> Any:
        return 1 if x > 0 else 0

    def staged(function: Any) -> bool:
        with tf.Graph().as_default():
            try:
                function(tf.placeholder(tf.int32, []))
            except TypeError:
                return False
            return True

    assert staged(autograph.tf_convert(f))
    off = autograph.ControlStatusCtx(autograph.Status.DISABLED)
    assert not staged(autograph.tf_convert(f, off))
    assert not staged(autograph.tf_convert(f, convert_by_default=False))


def test_not_recursive() -> None:
    def f(x: Any) -> Any:
        return autograph_table.helper(x)

    with pytest.raises(TypeError, match="Python `bool`"), tf.Graph().as_default():
        convert(f, recursive=False)(tf.placeholder(tf.int32, []))


# source -----------------------------------------------------------------------------------------


def test_code_without_source(caplog: Any) -> None:
    names: dict[str, Any] = {}
    exec(compile("def f(x):\n    return 1 if x else 0\n", "<no file>", "exec"), names)
    with caplog.at_level(logging.WARNING, "tensorflow"):
        f = convert(names["f"])
        assert f(True) == 1
        assert convert(names["f"])(False) == 0
    assert caplog.text.count("could not transform") == 1
    with pytest.raises(autograph.ConversionError, match="not available"):
        to_graph(names["f"])


def test_lines_are_the_users() -> None:
    def f(x: Any) -> Any:
        if x > 0:
            for _ in tf.range(x):
                x = x + 1
            y = tf.matmul(x, x)  # line of the error
        else:
            y = x
        return y

    first = f.__code__.co_firstlineno
    with pytest.raises(ValueError) as caught:
        run(f, 3)
    lines = [
        (e.name, e.lineno - first)
        for e in traceback.extract_tb(caught.value.__traceback__)
        if e.filename == __file__ and e.name == "f"
    ]
    assert lines == [("f", 1), ("f", 4)]
    shown = "".join(traceback.format_exception(caught.value))
    assert "headrace/autograph" not in shown
    assert "y = tf.matmul(x, x)  # line of the error" in shown


@decorated
@decorated
def fails_when_decorated(x: Any) -> Any:
    if x > 0:
        return tf.reshape(x, [2])
    return tf.zeros([2], tf.int32)


def test_lines_of_a_decorated_function() -> None:
    with pytest.raises(ValueError) as caught:
        run(fails_when_decorated, 3)
    entries = traceback.extract_tb(caught.value.__traceback__)
    assert [e.line for e in entries if e.name == "fails_when_decorated"] == [
        "if x > 0:",
        "return tf.reshape(x, [2])",
    ]


def test_ops_know_the_users_line() -> None:
    def f(x: Any) -> Any:
        y = 0
        while y < x:
            y = tf.add(y, 2, name="inside")
        return y

    with tf.Graph().as_default() as graph:
        convert(f)(tf.placeholder(tf.int32, []))
        op = next(o for o in graph.get_operations() if o.name.endswith("inside"))
        file, line, function, text = op.traceback[-1]
    assert (file, line, function) == (__file__, f.__code__.co_firstlineno + 3, "f")
    assert text == 'y = tf.add(y, 2, name="inside")'


def test_error_in_converted_helper_shows_its_line() -> None:
    def helper(x: Any) -> Any:
        if x > 0:
            return tf.reshape(x, [2])
        return tf.zeros([2], tf.int32)

    def f(x: Any) -> Any:
        return helper(x)

    with pytest.raises(ValueError) as caught:
        run(f, 3)
    entries = traceback.extract_tb(caught.value.__traceback__)
    names = [e.name for e in entries if e.filename == __file__]
    assert names[-3:] == ["f", "helper", "helper"]


def test_to_code_and_to_graph() -> None:
    code = to_code(autograph_table.absolute)
    assert code.startswith("def tf__absolute(x):")
    assert "ag__.if_stmt" in code
    compile(code, "<code>", "exec")
    assert "tf__lam" in to_code(lambda x: x if x > 0 else 0)
    g = to_graph(Model.method)
    assert g(Model(), 2) == 6
    assert convert(g) is g
    with pytest.raises(ValueError, match="__code__"):
        to_graph(len)


def test_converted_function_keeps_its_face() -> None:
    f = convert(autograph_table.with_defaults)
    assert f.__name__ == "with_defaults"
    assert f.__wrapped__ is autograph_table.with_defaults
    inner = to_graph(autograph_table.with_defaults)
    assert inner.__kwdefaults__ == {"scale": 3}


def test_conversion_is_kept_and_given_up_with_the_code() -> None:
    from headrace.autograph import conversion

    names: dict[str, Any] = {"__name__": __name__}
    before = len(conversion._cache)
    convert(autograph_table.absolute)(1)
    kept = len(conversion._cache)
    convert(autograph_table.absolute)(2)
    assert len(conversion._cache) == kept

    import linecache

    text = "def g(x):\n    return 1 if x else 0\n"
    linecache.cache["<kept>"] = (len(text), None, text.splitlines(True), "<kept>")
    exec(compile(text, "<kept>", "exec"), names)
    assert convert(names["g"])(1) == 1
    assert len(conversion._cache) == kept + 1 >= before + 1
    code = weakref.ref(names.pop("g").__code__)
    gc.collect()
    assert code() is None
    assert len(conversion._cache) == kept


def test_trace_writes(capsys: Any) -> None:
    autograph.trace("a", 1)
    assert capsys.readouterr().out == "a 1\n"


def test_verbosity(caplog: Any, capsys: Any) -> None:
    autograph.set_verbosity(1, alsologtostdout=True)
    try:
        convert(autograph_table.absolute)
    finally:
        autograph.set_verbosity(0)
    assert "Converting" in capsys.readouterr().out


def test_membership_of_python_values() -> None:
    def f(x: Any, mode: str) -> Any:
        if mode in ("double", "triple"):
            return x * 2 if mode not in ["triple"] else x * 3
        return x

    assert [run(lambda x, m=m: f(x, m), 4) for m in ("double", "triple", "")] == [8, 12, 4]


def test_import_is_lazy() -> None:
    import subprocess
    import sys

    code = "import headrace, sys; print('headrace.autograph' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"
