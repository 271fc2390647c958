"""Derivatives of functions.

Called under tapes, with tapes inside, of any order; numbers as TensorFlow 2.21 gives them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.core.specs import TensorSpec
from headrace.eager import eager_context as context
from headrace.eager import equality
from headrace.eager.tape import GradientTape


@pytest.fixture(autouse=True, params=["identity", "value"])
def eager(request: pytest.FixtureRequest) -> Iterator[None]:
    """Eager execution, with tensors compared as in TF 1 and as in TF 2."""
    context.enable()
    if request.param == "value":
        equality.enable()
    yield
    equality.disable()
    context.disable()


def c(value: Any, dtype: Any = None) -> Any:
    return tf.constant(value, dtype)


def gradient(f: Any, *xs: Any) -> list[Any]:
    with GradientTape() as tape:
        for x in xs:
            tape.watch(x)
        y = f(*xs)
    return tape.gradient(y, list(xs))  # type: ignore[no-any-return]


# first order ------------------------------------------------------------------------------------


def test_arguments_and_variables() -> None:
    v = tf.Variable([2.0, 3.0])

    @tf.function
    def f(x: Any) -> Any:
        return tf.reduce_sum(v * x * x)

    x = c([1.0, 2.0])
    with GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    gx, gv = tape.gradient(y, [x, v])
    assert gx.numpy().tolist() == [4.0, 12.0]
    assert gv.numpy().tolist() == [1.0, 4.0]
    assert tape.watched_variables() == (v,)


def test_only_what_is_watched_is_prepared() -> None:
    w = tf.Variable(3.0)
    f = tf.function(lambda x: x * w)
    with GradientTape() as tape:
        y = f(c(2.0))
    assert float(tape.gradient(y, w)) == 2.0
    fixed = tf.Variable(3.0, trainable=False)
    g = tf.function(lambda x: x * fixed)
    with GradientTape() as tape:
        y = g(c(2.0))
    assert tape.gradient(y, fixed) is None


def test_captured_tensors() -> None:
    w = c(5.0)
    f = tf.function(lambda x: x * w * w)
    x = c(2.0)
    with GradientTape() as tape:
        tape.watch([x, w])
        y = f(x)
    assert [float(g) for g in tape.gradient(y, [x, w])] == [25.0, 20.0]


def test_several_results_and_those_without_gradients() -> None:
    @tf.function
    def f(x: Any) -> Any:
        return x * x, {"count": tf.size(x), "other": x * 3.0}

    x = c([1.0, 2.0])
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        square, rest = f(x)
    assert tape.gradient(square, x).numpy().tolist() == [2.0, 4.0]
    assert tape.gradient(rest["other"], x).numpy().tolist() == [3.0, 3.0]
    assert tape.gradient([square, rest["other"]], x).numpy().tolist() == [5.0, 7.0]
    assert tape.gradient(rest["count"], x) is None


def test_between_other_operations() -> None:
    f = tf.function(lambda x: tf.sin(x))
    x = c(0.5)
    (g,) = gradient(lambda x: f(x * 2.0) * f(f(x)), x)
    h = 1e-3

    def exact(a: float) -> Any:
        return np.sin(2 * a) * np.sin(np.sin(a))

    np.testing.assert_allclose(float(g), (exact(0.5 + h) - exact(0.5 - h)) / (2 * h), rtol=1e-4)


def test_output_gradients() -> None:
    f = tf.function(lambda x: x * x)
    x = c([1.0, 2.0])
    with GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.gradient(y, x, output_gradients=c([10.0, 100.0])).numpy().tolist() == [20.0, 400.0]


def test_rows_of_a_table() -> None:
    table = tf.Variable(np.ones((5, 2), np.float32))
    f = tf.function(lambda i: tf.reduce_sum(tf.gather(table, i) * 2.0))
    with GradientTape() as tape:
        y = f(c([1, 3, 1]))
    g = tape.gradient(y, table)
    assert isinstance(g, tf.IndexedSlices)
    assert g.indices.numpy().tolist() == [1, 3, 1]
    assert g.values.numpy().tolist() == [[2.0, 2.0]] * 3


def test_no_path_gives_none() -> None:
    f = tf.function(lambda x, y: tf.stop_gradient(x) + y)
    x, y = c(1.0), c(2.0)
    gx, gy = gradient(f, x, y)
    assert gx is None
    assert float(gy) == 1.0


def test_random_numbers_are_drawn_once() -> None:
    @tf.function
    def f(x: Any) -> Any:
        noise = tf.random_uniform([50])
        return x * noise

    x = c(1.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(float(tape.gradient(y, x)), float(tf.reduce_sum(y)), rtol=1e-5)


def test_a_variable_changed_after_the_call() -> None:
    v = tf.Variable(2.0)
    f = tf.function(lambda x: x * v * v)
    x = c(3.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    v.assign(100.0)
    gx, gv = tape.gradient(y, [x, v])
    assert (float(gx), float(gv)) == (4.0, 12.0)


def test_effects_happen_once(capfd: pytest.CaptureFixture[str]) -> None:
    v = tf.Variable(1.0)

    @tf.function
    def f(x: Any) -> Any:
        v.assign_add(1.0)
        tf.print("called")
        return x * v

    x = c(3.0)
    (g,) = gradient(f, x)
    assert float(g) == 2.0
    assert float(v) == 2.0
    assert capfd.readouterr().err == "called\n"


# control flow -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flag", "x", "wanted"),
    [
        (True, 2.0, 2 * np.cos(2) + np.sin(2)),
        (False, 2.0, 12.0),
        (False, 0.5, -1.0),
    ],
)
def test_branches(flag: bool, x: float, wanted: float) -> None:
    @tf.function
    def f(x: Any, flag: Any) -> Any:
        if flag:
            y = tf.sin(x) * x
        elif x > 1.0:
            y = x * x * x
        else:
            y = -x
        return y

    (g, _) = gradient(f, c(x), c(flag))
    np.testing.assert_allclose(float(g), wanted, rtol=1e-5)


def test_loops() -> None:
    @tf.function
    def power(x: Any, n: Any) -> Any:
        y = x
        for _ in tf.range(n):
            y = y * x
        return y

    x = c(2.0)
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = power(x, c(3))
    assert float(y) == 16.0
    assert float(tape.gradient(y, x)) == 32.0
    assert float(tape.gradient(y, x)) == 32.0
    assert float(gradient(lambda t: power(t, c(0)), x)[0]) == 1.0


def test_a_loop_in_a_branch_and_a_branch_in_a_loop() -> None:
    @tf.function
    def f(x: Any) -> Any:
        y = x
        if x > 0.0:
            for i in tf.range(3):
                if tf.equal(i % 2, 0):
                    y = y * x
                else:
                    y = y + x
        return y

    # y = ((x*x) + x) * x
    assert float(gradient(f, c(2.0))[0]) == 3 * 4 + 2 * 2
    assert float(gradient(f, c(-2.0))[0]) == 1.0


def test_map_and_scan() -> None:
    @tf.function
    def f(x: Any) -> Any:
        return tf.reduce_sum(tf.map_fn(lambda a: a * a * a, x))

    assert gradient(f, c([1.0, 2.0]))[0].numpy().tolist() == [3.0, 12.0]


# higher orders ----------------------------------------------------------------------------------


def test_derivatives_of_derivatives() -> None:
    cube = tf.function(lambda x: x * x * x)
    x = c(2.0)
    with GradientTape() as third:
        third.watch(x)
        with GradientTape() as second:
            second.watch(x)
            with GradientTape() as first:
                first.watch(x)
                y = cube(x)
            g = first.gradient(y, x)
        h = second.gradient(g, x)
    assert [float(v) for v in (y, g, h, third.gradient(h, x))] == [8.0, 12.0, 12.0, 6.0]


def test_mixed_second_derivatives() -> None:
    v = tf.Variable([2.0, 3.0])
    f = tf.function(lambda x: tf.reduce_sum(v * x * x))
    x = c([1.0, 2.0])
    with GradientTape() as outer:
        outer.watch(x)
        with GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        g = inner.gradient(y, x)
    gx, gv = outer.gradient(g, [x, v])
    assert gx.numpy().tolist() == [4.0, 6.0]
    assert gv.numpy().tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("flag", "x", "wanted"),
    [
        (True, 2.0, 2 * np.cos(2) - 2 * np.sin(2)),
        (False, 2.0, 12.0),
        (False, 0.5, 0.0),
    ],
)
def test_second_derivatives_through_branches(flag: bool, x: float, wanted: float) -> None:
    @tf.function
    def f(x: Any, flag: Any) -> Any:
        if flag:
            y = tf.sin(x) * x
        elif x > 1.0:
            y = x * x * x
        else:
            y = -x
        return y

    t = c(x)
    with GradientTape() as outer:
        outer.watch(t)
        with GradientTape() as inner:
            inner.watch(t)
            y = f(t, c(flag))
        g = inner.gradient(y, t)
    np.testing.assert_allclose(float(outer.gradient(g, t)), wanted, rtol=1e-5, atol=1e-6)


def test_jacobian_of_a_function() -> None:
    f = tf.function(lambda x: x * x)
    x = c([1.0, 2.0, 3.0])
    with GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(tape.jacobian(y, x).numpy(), np.diag([2.0, 4.0, 6.0]))


def test_what_has_no_derivative_fails_only_if_asked() -> None:
    @tf.function
    def power(x: Any) -> Any:
        y = x
        for _ in tf.range(2):
            y = y * x
        return y

    x, z = c(2.0), c(5.0)
    with GradientTape(persistent=True) as outer:
        outer.watch([x, z])
        with GradientTape() as inner:
            inner.watch(x)
            y = power(x)
        g = inner.gradient(y, x)
        total = z * z
    assert float(g) == 12.0
    assert float(outer.gradient(total, z)) == 10.0
    assert float(outer.gradient(y, x)) == 12.0
    with pytest.raises(TypeError, match="Second-order gradient for while loops"):
        outer.gradient(g, x)


# tapes inside -----------------------------------------------------------------------------------


def test_a_tape_inside() -> None:
    w = tf.Variable(3.0)

    @tf.function
    def f(x: Any) -> Any:
        with GradientTape() as tape:
            tape.watch(x)
            y = x * x * w
        return tape.gradient(y, [x, w])

    assert [float(g) for g in f(c(2.0))] == [12.0, 4.0]


def test_a_function_under_a_tape_inside() -> None:
    inner = tf.function(lambda x: x * x * x)

    @tf.function
    def f(x: Any) -> Any:
        with GradientTape() as tape:
            tape.watch(x)
            y = inner(x)
        return tape.gradient(y, x)

    assert float(f(c(2.0))) == 12.0
    assert float(gradient(f, c(2.0))[0]) == 12.0


def test_training_in_a_function() -> None:
    w, b = tf.Variable([[0.0], [0.0]]), tf.Variable(0.0)
    rng = np.random.default_rng(0)
    xs = rng.normal(size=(64, 2)).astype(np.float32)
    ys = xs @ np.array([[2.0], [-3.0]], np.float32) + 0.5

    @tf.function
    def step(x: Any, y: Any) -> Any:
        with GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ w + b - y))
        for v, g in zip([w, b], tape.gradient(loss, [w, b])):
            v.assign_sub(0.1 * g)
        return loss

    losses = [float(step(c(xs), c(ys))) for _ in range(100)]
    assert losses[-1] < 1e-6 < losses[0]
    np.testing.assert_allclose(w.numpy(), [[2.0], [-3.0]], atol=1e-3)
    assert step.experimental_get_tracing_count() == 1


def test_unknown_batch_sizes() -> None:
    w = tf.Variable([[1.0], [2.0]])

    @tf.function(input_signature=[TensorSpec([None, 2], tf.float32)])
    def f(x: Any) -> Any:
        return tf.reduce_sum(tf.tanh(x @ w))

    for n in (1, 4):
        with GradientTape() as tape:
            y = f(c(np.ones((n, 2), np.float32)))
        np.testing.assert_allclose(
            tape.gradient(y, w).numpy(), n * (1 - np.tanh(3) ** 2) * np.ones((2, 1)), rtol=1e-4
        )


def test_py_function_has_a_gradient() -> None:
    f = tf.function(lambda x: tf.py_function(lambda t: t * t * t, [x], tf.float32) * 2.0)
    assert float(gradient(f, c(3.0))[0]) == 54.0


def test_custom_gradients() -> None:
    @tf.custom_gradient
    def clipped(x: Any) -> Any:
        return tf.identity(x), lambda dy: tf.clip_by_value(dy, -1.0, 1.0)

    f = tf.function(lambda x: clipped(x) * 5.0)
    assert float(gradient(f, c(1.0))[0]) == 1.0


# one persistent tape that records its own gradients ----------------------------------------------


@pytest.mark.parametrize("decorate", [tf.function, lambda f: f], ids=["function", "eager"])
def test_a_persistent_tape_differentiates_its_own_gradients(decorate: Any) -> None:
    """Also through what the function computed on the way, and through variables that it reads."""
    v = tf.Variable(0.7)
    f = decorate(lambda a: tf.exp(tf.sin(a) * v))
    with GradientTape(persistent=True) as tape:
        a = c(0.3)
        tape.watch(a)
        ga, gv = tape.gradient(f(a), [a, v])
        gaa, gav = tape.gradient(ga, [a, v])
        gva, gvv = tape.gradient(gv, [a, v])
        third, _ = tape.gradient(gaa, [a, v])
        fourth = tape.gradient(third, v)
    s, k = np.sin(0.3), np.cos(0.3)
    y = np.exp(s * 0.7)
    expected = [y * k * 0.7, y * s, y * ((k * 0.7) ** 2 - s * 0.7)]
    np.testing.assert_allclose([ga, gv, gaa], expected, rtol=1e-5)
    np.testing.assert_allclose(
        [gav, gva, gvv], [y * k * (1 + s * 0.7)] * 2 + [y * s * s], rtol=1e-5
    )

    def third_derivative(w: float) -> float:
        return float(np.exp(s * w) * ((k * w) ** 3 - 3 * s * k * w * w - k * w))

    np.testing.assert_allclose(third, third_derivative(0.7), rtol=1e-4)
    slope = (third_derivative(0.7 + 1e-5) - third_derivative(0.7 - 1e-5)) / 2e-5
    np.testing.assert_allclose(fourth, slope, rtol=1e-4)


def test_a_persistent_tape_and_a_function_without_arguments() -> None:
    v = tf.Variable(1.0)
    f = tf.function(lambda: tf.cos(v))
    with GradientTape(persistent=True) as tape:
        x = f()
        for expected in (-np.sin(1), -np.cos(1), np.sin(1), np.cos(1)):
            x = tape.gradient(x, v)
            np.testing.assert_allclose(x, expected, rtol=1e-5)
