"""tf.gradients: what flows where, what adds up, what is refused."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from tests.golden import gradient_overrides

_names = itertools.count()


def run(fetches: Any, feed: Any = None) -> Any:
    s = tf.Session()
    s.run(tf.global_variables_initializer())
    return s.run(fetches, feed)


def unique(prefix: str) -> str:
    return f"{prefix}{next(_names)}"


# basics -----------------------------------------------------------------------------------------


def test_simple_and_several() -> None:
    x, y = tf.constant(2.0), tf.constant(3.0)
    z = x * x * y + tf.sin(y)
    assert np.allclose(run(tf.gradients(z, [x, y])), [12.0, 4.0 + np.cos(3.0)])
    assert isinstance(tf.gradients(z, x), list)


def test_sum_over_ys() -> None:
    x = tf.constant([1.0, 2.0])
    (g,) = tf.gradients([x * 2.0, tf.reduce_sum(x) ** 2], x)
    assert run(g).tolist() == [2 + 6, 2 + 6]


def test_grad_ys() -> None:
    x = tf.constant([1.0, 2.0, 3.0])
    y = x * x
    assert run(tf.gradients(y, x, grad_ys=tf.constant([1.0, 0.0, -1.0]))[0]).tolist() == [2, 0, -6]
    assert run(
        tf.gradients([y, x * 3.0], x, grad_ys=[tf.constant([1.0, 1.0, 1.0]), None])[0]
    ).tolist() == [5, 7, 9]
    assert run(tf.gradients(y, x, [np.float32([2, 2, 2])])[0]).tolist() == [4, 8, 12]
    with pytest.raises(ValueError):
        tf.gradients([y, y], x, grad_ys=[tf.constant([1.0, 1.0, 1.0])])
    with pytest.raises(TypeError):
        tf.gradients(y, x, grad_ys=tf.constant([1.0, 1.0, 1.0], tf.float64))


def test_unconnected() -> None:
    x, y = tf.constant([1.0, 2.0]), tf.constant(1.0)
    assert tf.gradients(y * 2.0, [x, y])[0] is None
    zero, one = run(
        tf.gradients(y * 2.0, [x, y], unconnected_gradients=tf.UnconnectedGradients.ZERO)
    )
    assert zero.tolist() == [0, 0] and one == 2.0
    assert run(tf.gradients(y * 2.0, x, unconnected_gradients="zero"))[0].tolist() == [0, 0]
    with pytest.raises(ValueError):
        tf.gradients(y, x, unconnected_gradients="nonsense")
    v = tf.Variable([1.0], use_resource=True)
    assert run(tf.gradients(y * 2.0, v, unconnected_gradients="zero"))[0].tolist() == [0]


def test_with_respect_to_itself() -> None:
    x = tf.constant([1.0, 2.0])
    y = x * 2.0
    assert run(tf.gradients(y, y)[0]).tolist() == [1, 1]
    assert run(tf.gradients(y, [x, y])[1]).tolist() == [1, 1]
    assert run(tf.gradients([y, y], y)[0]).tolist() == [2, 2]


def test_stop_gradients() -> None:
    a = tf.constant(2.0)
    b = 2.0 * a
    assert run(tf.gradients(a + b, [a, b])) == [3.0, 1.0]
    assert run(tf.gradients(a + b, [a, b], stop_gradients=[a, b])) == [1.0, 1.0]
    assert run(tf.gradients(a * b, [a, b], stop_gradients=[b])) == [4.0, 2.0]
    c = b * b
    assert run(tf.gradients(c + a, a, stop_gradients=b)) == [1.0]
    assert tf.gradients(c, a, stop_gradients=b) == [None]


def test_stop_gradient_op() -> None:
    x = tf.constant(3.0)
    y = tf.stop_gradient(x) * x
    assert run(tf.gradients(y, x)) == [3.0]
    assert tf.gradients(tf.stop_gradient(x * x), x) == [None]


def test_intermediate_tensors() -> None:
    x = tf.constant(2.0)
    h = tf.square(x)
    y = tf.exp(h) * x
    gx, gh = run(tf.gradients(y, [x, h]))
    assert np.isclose(gh, np.exp(4.0) * 2) and np.isclose(gx, np.exp(4.0) * (1 + 2 * 4.0))
    parts = tf.split(tf.constant([1.0, 2.0, 3.0]), 3)
    assert [None if g is None else run(g).tolist() for g in tf.gradients(parts[1] ** 2, parts)] == [
        None,
        [4],
        None,
    ]


def test_integers_have_no_gradient() -> None:
    x = tf.constant(2.0)
    i = tf.cast(x, tf.int32)
    assert tf.gradients(tf.cast(i, tf.float32), x) == [None]
    assert tf.gradients(tf.cast(x, tf.float64) * 2.0, x)[0].dtype == tf.float32


def test_complex() -> None:
    x = tf.constant(1 + 2j, tf.complex64)
    with pytest.raises(TypeError, match=r"[Cc]omplex"):
        tf.gradients(x * x, x)
    assert np.isclose(run(tf.gradients(tf.real(x * tf.conj(x)), x))[0], 2 + 4j)


def test_a_value_that_is_used_many_times() -> None:
    x = tf.constant(1.5)
    y = x
    for _ in range(20):
        y = y * 0.5 + x
    slope = 1.0
    for _ in range(20):
        slope = slope * 0.5 + 1.0
    assert np.isclose(run(tf.gradients(y, x)[0]), slope)


def test_a_long_chain_needs_no_recursion() -> None:
    x = tf.constant(1.0)
    y = x
    for _ in range(3000):
        y = y + 0.0
    assert run(tf.gradients(y, x)) == [1.0]


def test_dead_ends_do_not_matter() -> None:
    """An output nobody uses, an input without gradient, an op without gradient beside the path."""
    x = tf.constant([3.0, 1.0, 2.0])
    values, indices = tf.nn.top_k(x, 2)
    y = tf.reduce_sum(values) + tf.cast(tf.reduce_sum(indices), tf.float32)
    assert run(tf.gradients(y, x)[0]).tolist() == [1, 0, 1]
    _, variance = tf.nn.moments(x, [0])
    assert np.allclose(run(tf.gradients(variance, x)[0]), 2 * (np.array([3, 1, 2]) - 2) / 3)


def test_shapes_that_are_broadcast() -> None:
    x = tf.placeholder(tf.float64, [None, 3])
    b = tf.placeholder(tf.float64, None)
    y = tf.reduce_sum(x * b + b / (x + 10.0))
    gx, gb = tf.gradients(y, [x, b])
    given = np.arange(6.0).reshape(2, 3)
    for bias in (np.float64(2.0), np.array([1.0, 2.0, 3.0]), np.array([[1.0], [2.0]]), given + 1):
        got_x, got_b = run([gx, gb], {x: given, b: bias})
        full = np.broadcast_to(bias, (2, 3))
        want_x = full - full / (given + 10) ** 2
        want_b = given + 1 / (given + 10)
        np.testing.assert_allclose(got_x, want_x)
        assert got_b.shape == bias.shape
        while want_b.ndim > bias.ndim:
            want_b = want_b.sum(0)
        for axis, n in enumerate(bias.shape):
            if n == 1:
                want_b = want_b.sum(axis, keepdims=True)
        np.testing.assert_allclose(got_b, want_b)


# variables --------------------------------------------------------------------------------------


@pytest.mark.parametrize("resource", [False, True])
def test_variables(resource: bool) -> None:
    v = tf.Variable([1.0, 2.0], use_resource=resource)
    y = tf.reduce_sum(v * v) + tf.reduce_sum(v.read_value() * 3.0) + tf.reduce_sum(tf.identity(v))
    (g,) = tf.gradients(y, v)
    assert run(g).tolist() == [2 + 4, 4 + 4]
    assert tf.gradients(tf.constant(1.0), v) == [None]
    (through,) = tf.gradients(y, [v.value()] if not resource else [v])
    assert through is not None


@pytest.mark.parametrize("resource", [False, True])
def test_gather_gives_indexed_slices(resource: bool) -> None:
    v = tf.get_variable(
        "table", initializer=np.float32([[1, 2], [3, 4], [5, 6]]), use_resource=resource
    )
    y = tf.reduce_sum(tf.gather(v, [0, 2, 0]) ** 2)
    (g,) = tf.gradients(y, v)
    assert isinstance(g, tf.IndexedSlices)
    got = run(g)
    np.testing.assert_array_equal(got.indices, [0, 2, 0])
    np.testing.assert_array_equal(got.values, np.float32([[2, 4], [10, 12], [2, 4]]))
    np.testing.assert_array_equal(
        run(tf.convert_to_tensor(g)), np.float32([[4, 8], [0, 0], [10, 12]])
    )


def test_indexed_slices_add_up() -> None:
    v = tf.get_variable("table", initializer=np.ones((4, 2), np.float32), use_resource=False)
    both = tf.reduce_sum(tf.gather(v, [0, 1])) + tf.reduce_sum(tf.gather(v, [1, 3]) * 2.0)
    (g,) = tf.gradients(both, v)
    assert isinstance(g, tf.IndexedSlices)
    assert run(tf.convert_to_tensor(g))[:, 0].tolist() == [1, 3, 0, 2]
    mixed = both + tf.reduce_sum(v * 10.0)
    dense = tf.gradients(mixed, v)[0]
    assert run(tf.convert_to_tensor(dense))[:, 0].tolist() == [11, 13, 10, 12]
    wide = tf.reduce_sum(tf.gather(v, tf.constant([0, 1], tf.int64))) + tf.reduce_sum(
        tf.gather(v, [1])
    )
    assert run(tf.convert_to_tensor(tf.gradients(wide, v)[0]))[:, 0].tolist() == [1, 2, 0, 0]


def test_embedding_and_optimizer_on_slices() -> None:
    v = tf.get_variable("table", initializer=np.ones((4, 2), np.float32))
    loss = tf.reduce_sum(tf.nn.embedding_lookup(v, [1, 1, 3]))
    step = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    s = tf.Session()
    s.run(tf.global_variables_initializer())
    s.run(step)
    assert s.run(v)[:, 0].tolist() == [1, -1, 1, 0]


def test_slices_through_identity_and_reshape() -> None:
    v = tf.get_variable("table", initializer=np.float32([[1, 2], [3, 4]]))
    y = tf.reduce_sum(
        tf.reshape(tf.identity(tf.gather(v, [1, 1])), [-1]) * tf.constant([1.0, 2.0, 3.0, 4.0])
    )
    assert run(tf.convert_to_tensor(tf.gradients(y, v)[0])).tolist() == [[0, 0], [4, 6]]


# higher order -----------------------------------------------------------------------------------


def test_second_and_third_order() -> None:
    x = tf.constant(2.0, tf.float64)
    y = x**5 + tf.sin(x)
    g1 = tf.gradients(y, x)[0]
    g2 = tf.gradients(g1, x)[0]
    g3 = tf.gradients(g2, x)[0]
    want = [5 * 2**4 + np.cos(2.0), 20 * 2**3 - np.sin(2.0), 60 * 2**2 - np.cos(2.0)]
    np.testing.assert_allclose(run([g1, g2, g3]), want, 1e-10)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.reduce_sum(tf.tanh(tf.matmul(x, tf.transpose(x)))),
        lambda x: tf.reduce_sum(tf.nn.softmax(x) ** 2),
        lambda x: tf.reduce_logsumexp(x * x),
        lambda x: tf.reduce_mean(tf.sigmoid(x) * tf.log(tf.exp(x) + 1.0)),
        lambda x: tf.reduce_sum(tf.concat([x, x * x], 1)[:, 1:3] ** 3),
        lambda x: tf.reduce_prod(tf.reshape(x, [-1])),
        lambda x: tf.reduce_sum(tf.gather(x, [0, 0, 1]) ** 3),
        lambda x: tf.norm(x) * tf.reduce_max(tf.abs(x)),
        lambda x: tf.nn.l2_loss(tf.nn.l2_normalize(x, 1) * x),
    ],
)
def test_hessian_against_differences_of_the_gradient(function: Any) -> None:
    x = tf.placeholder(tf.float64, [2, 2])
    y = function(x)
    g = tf.convert_to_tensor(tf.gradients(y, x)[0])
    (h,) = tf.hessians(y, x)
    assert h.shape.as_list() == [2, 2, 2, 2]
    at = np.array([[0.3, -0.8], [1.2, 0.5]])
    s = tf.Session()
    got = s.run(h, {x: at})
    for i in np.ndindex(2, 2):
        up, down = at.copy(), at.copy()
        up[i] += 1e-5
        down[i] -= 1e-5
        numeric = (s.run(g, {x: up}) - s.run(g, {x: down})) / 2e-5
        np.testing.assert_allclose(got[i], numeric, 1e-5, 1e-6)


def test_hessians_of_several() -> None:
    a, b = tf.constant([1.0, 2.0]), tf.constant([3.0])
    y = tf.reduce_sum(a * a) * b[0] ** 2
    ha, hb = run(tf.hessians(y, [a, b]))
    assert ha.tolist() == [[18, 0], [0, 18]] and hb.tolist() == [[10]]
    # several ys mean their sum
    total = run(tf.hessians([tf.reduce_sum(a**2), tf.reduce_sum(a**3)], a))[0]
    assert total.tolist() == [[2 + 6, 0], [0, 2 + 12]]


def test_gradient_penalty() -> None:
    """The gradient of a norm of a gradient, as in a Wasserstein critic."""
    w = tf.get_variable("w", initializer=np.float64([[0.5, -1.0], [2.0, 0.3]]), dtype=tf.float64)
    x = tf.constant(np.float64([[1.0, 2.0]]))
    critic = tf.reduce_sum(tf.tanh(tf.matmul(x, w)))
    penalty = (tf.sqrt(tf.reduce_sum(tf.gradients(critic, x)[0] ** 2)) - 1.0) ** 2
    (g,) = tf.gradients(penalty, w)
    s = tf.Session()
    s.run(tf.global_variables_initializer())
    base, analytic = s.run(w), s.run(g)
    for i in np.ndindex(2, 2):
        values = []
        for sign in (1, -1):
            moved = base.copy()
            moved[i] += sign * 1e-6
            values.append(s.run(penalty, {w.value() if hasattr(w, "value") else w: moved}))
        np.testing.assert_allclose(analytic[i], (values[0] - values[1]) / 2e-6, 1e-4, 1e-7)


# gradients of the user's own ----------------------------------------------------------------------


def test_registered_gradient_through_the_override_map() -> None:
    name = unique("Loud")
    seen: list[Any] = []

    @tf.RegisterGradient(name)
    def loud(op: Any, grad: Any) -> Any:
        seen.append(op.type)
        return grad * 100.0

    x = tf.constant(2.0)
    plain = tf.identity(x)
    with tf.get_default_graph().gradient_override_map({"Identity": name}):
        special = tf.identity(x)
        other = tf.square(x)
    assert run(tf.gradients([plain], x)) == [1.0]
    assert run(tf.gradients([special], x)) == [100.0]
    assert run(tf.gradients(other, x)) == [4.0]
    assert seen == ["Identity"]
    with pytest.raises(KeyError, match="Registering two gradient with name"):
        tf.RegisterGradient(name)(loud)


def test_gradient_of_py_func_through_the_override_map() -> None:
    name = unique("PyCube")

    @tf.RegisterGradient(name)
    def cube_grad(op: Any, grad: Any) -> Any:
        return grad * 3.0 * op.inputs[0] ** 2

    x = tf.constant(2.0)
    with tf.get_default_graph().gradient_override_map({"PyFunc": name, "PyFuncStateless": name}):
        y = tf.py_func(lambda a: np.float32(a**3), [x], tf.float32, stateful=True)
        y.set_shape([])
    assert run([y, tf.gradients(y * 2.0, x)[0]]) == [8.0, 24.0]


def test_override_with_an_unknown_name() -> None:
    x = tf.constant(2.0)
    with tf.get_default_graph().gradient_override_map({"Identity": "NobodyRegisteredThis"}):
        y = tf.identity(x)
    with pytest.raises(LookupError, match="No gradient defined for operation"):
        tf.gradients(y, x)


def test_wrong_number_of_gradients() -> None:
    name = unique("Short")
    tf.RegisterGradient(name)(lambda op, grad: [grad])
    x = tf.constant(2.0)
    with tf.get_default_graph().gradient_override_map({"Mul": name}):
        y = x * tf.constant(3.0)
    with pytest.raises(ValueError, match="Num gradients"):
        tf.gradients(y, x)


def test_override_of_an_op_with_several_outputs_gets_zeros() -> None:
    name = unique("Seen")
    grads: list[Any] = []

    @tf.RegisterGradient(name)
    def seen(op: Any, *given: Any) -> Any:
        grads.extend(given)
        return [tf.concat(given, 0), None]

    x = tf.constant([1.0, 2.0])
    with tf.get_default_graph().gradient_override_map({"SplitV": name, "Split": name}):
        name_of = tf.split(x, 2)
    assert name_of[0].op.type == "Split"
    name2 = unique("Seen")
    tf.RegisterGradient(name2)(lambda op, *given: [None, tf.concat(given, 0)])
    with tf.get_default_graph().gradient_override_map({"Split": name2}):
        a, _ = tf.split(x, 2)
    assert run(tf.gradients(a * 5.0, x)[0]).tolist() == [5, 0]


def test_custom_gradient() -> None:
    @tf.custom_gradient
    def log1pexp(x: Any) -> Any:
        e = tf.exp(x)

        def grad(dy: Any) -> Any:
            return dy * (1 - 1 / (1 + e))

        return tf.log(1 + e), grad

    x = tf.constant(100.0)
    y = log1pexp(x)
    assert run(tf.gradients(y, x)) == [1.0]
    small = tf.constant(0.5)
    assert np.isclose(run(tf.gradients(log1pexp(small) * 2.0, small))[0], 2 / (1 + np.exp(-0.5)))


def test_custom_gradient_with_several_inputs_and_outputs() -> None:
    @tf.custom_gradient
    def f(a: Any, b: Any) -> Any:
        def grad(da: Any, db: Any) -> Any:
            return da * 10.0 + db, db * 1000.0

        return (a * b, a + b), grad

    a, b = tf.constant(2.0), tf.constant(3.0)
    p, q = f(a, b)
    assert run([p, q]) == [6.0, 5.0]
    assert run(tf.gradients(p + q, [a, b])) == [11.0, 1000.0]
    assert run(tf.gradients(p, [a, b])) == [10.0, 0.0]


@pytest.mark.parametrize("resource", [True])
def test_custom_gradient_with_variables(resource: bool) -> None:
    with tf.variable_scope("s", use_resource=resource):
        w = tf.get_variable("w", initializer=3.0)

        @tf.custom_gradient
        def f(x: Any) -> Any:
            def grad(dy: Any, variables: Any = None) -> Any:
                return dy * 7.0, [dy * 11.0 for _ in variables]

            return x * w, grad

        x = tf.constant(2.0)
        y = f(x)
    assert run([y, *tf.gradients(y, [x, w])]) == [6.0, 7.0, 11.0]


def test_second_order_of_a_custom_gradient() -> None:
    @tf.custom_gradient
    def cube(x: Any) -> Any:
        def grad(dy: Any) -> Any:
            return dy * 3.0 * x * x

        return x**3, grad

    x = tf.constant(2.0)
    g = tf.gradients(cube(x), x)[0]
    assert run([g, tf.gradients(g, x)[0]]) == [12.0, 12.0]


# refusals ---------------------------------------------------------------------------------------


def test_python_functions_have_no_gradient() -> None:
    x = tf.constant(2.0)
    y = tf.py_func(lambda a: a, [x], tf.float32, name="mine")
    assert tf.gradients(y, x) == [None]


def test_gradients_of_another_graph() -> None:
    with tf.Graph().as_default() as g:
        x = tf.constant(2.0)
        y = x * x
    (grad,) = tf.gradients(y, x)
    assert grad.graph is g
    with tf.Session(graph=g) as s:
        assert s.run(grad) == 4.0


def test_names_of_gradient_operations() -> None:
    x = tf.constant(2.0)
    y = tf.square(x, name="sq")
    (a,) = tf.gradients(y, x)
    (b,) = tf.gradients(y, x)
    assert a.name.startswith("gradients/sq_grad/")
    assert b.name.startswith("gradients_1/sq_grad/")
    (c,) = tf.gradients(y, x, name="mine")
    assert c.name.startswith("mine/sq_grad/")


def test_gradients_do_not_disturb_scopes_or_dependencies() -> None:
    x = tf.constant(2.0)
    y = tf.square(x)
    with tf.name_scope("outer"), tf.control_dependencies([tf.no_op("first")]):
        tf.gradients(y, x)
        after = tf.identity(x, name="after")
    assert after.op.name == "outer/after"
    assert [c.name for c in after.op.control_inputs] == ["outer/first"] or after.op.control_inputs
    assert tf.identity(x, name="out").op.name == "out"


def test_overrides_that_name_another_op_type_are_tensorflows() -> None:
    """``{"Sign": "Identity"}``: what binary and quantized networks train with."""
    file = Path(__file__).parents[1] / "golden" / "gradient_overrides.json"
    expected = json.loads(file.read_text())
    got = gradient_overrides.answers(tf)
    assert sorted(got) == sorted(expected)
    for name, want in expected.items():
        assert [g is None for g in got[name]] == [g is None for g in want], name
        for a, b in zip(got[name], want, strict=True):
            if b is not None:
                np.testing.assert_allclose(a, b, rtol=1e-6, err_msg=name)


def test_an_integer_has_a_gradient_with_respect_to_itself_only() -> None:
    """As in TF 1.15, where ``tf.gradients(n, n)`` is 1 and ``tf.gradients(2 * n, n)`` None."""
    x = tf.constant([1.5, 2.5])
    n = tf.cast(x, tf.int32)
    with tf.Session() as session:
        assert session.run(tf.gradients(n, n))[0].tolist() == [1, 1]
        assert session.run(tf.gradients([n, 2 * n], n))[0].tolist() == [1, 1]
        own, source = tf.gradients(n, [n, x])
        assert session.run(own).dtype == np.int32 and source is None
        given = tf.gradients(n, n, grad_ys=[tf.constant([3, 4])])
        assert session.run(given)[0].tolist() == [3, 4]
    assert tf.gradients(tf.identity(n), n) == [None]
