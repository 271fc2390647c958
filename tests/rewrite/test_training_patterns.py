"""Layer norm, gelu and softmax with their gradients.

Found in training, in all spellings, and only where it is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.api.v1.context import disable_v2_behavior, enable_v2_behavior
from headrace.kernels import accel
from headrace.kernels.numpy import row_gradients
from headrace.program.nodes import walk
from tests.rewrite.rewriting import program_of, same
from tests.rewrite.test_model_patterns import GELU, NORMS, X, variable

RNG = np.random.RandomState(1)
OWN = ("_LayerNormGrad", "_GeluGrad", "_SoftmaxGrad")


def spelled_out(x: Any) -> Any:
    e = tf.exp(x - tf.reduce_max(x, axis=-1, keepdims=True))
    return e / tf.reduce_sum(e, axis=-1, keepdims=True)


def ops(fetches: Any, feeds: list[Any], **how: Any) -> list[str]:
    return [n.opdef.name for n in walk(program_of(fetches, feeds, **how).body)]


def uneven(y: Any) -> Any:
    """A loss whose gradient is another one for every element."""
    weights = tf.constant(RNG.randn(*y.shape[1:].as_list()).astype(np.float32))
    return tf.reduce_sum(tf.sin(y) * weights)


def check(rule: str, fetches: list[Any], feed: dict[Any, Any], tolerance: float = 2e-5) -> Any:
    """The rule fires, and not without it or where bits may not change.

    The numbers are the reference's.
    """
    program = program_of(fetches, list(feed))
    assert program.notes.get(rule) == 1, (program.notes, program.near_misses)
    left = [n.opdef.name for n in walk(program.body)]
    assert sum(op in OWN for op in left) == 1
    assert not any(op in OWN for op in ops(fetches, list(feed), without=rule))
    assert not any(op in OWN for op in ops(fetches, list(feed), exact=True))
    same(fetches, feed, tolerance)
    return left


def batch() -> Any:
    return tf.placeholder(tf.float32, [None, 5, 8])


@pytest.mark.parametrize("spelling", GELU)
def test_gelu(spelling: str) -> None:
    x = batch()
    y = GELU[spelling](x)
    left = check("gelu in training", [y, tf.gradients(uneven(y), x)[0]], {x: X * 3})
    assert "Tanh" not in left and "Erf" not in left


@pytest.mark.parametrize("spelling", NORMS)
def test_layer_norm(spelling: str) -> None:
    x, g, b = batch(), variable(8), variable(8)
    y = NORMS[spelling](x, g, b)
    left = check("layer norm in training", [y, *tf.gradients(uneven(y), [x, g, b])], {x: X})
    assert "Rsqrt" not in left and "Mean" not in left


def test_layer_norm_in_a_residual_block() -> None:
    """What the normalisation gives to x is one part of its gradient among others."""
    x, g, b = batch(), variable(8), variable(8)
    h = tf.tanh(x)
    y = h + tf.sin(NORMS["gpt2"](h, g, b)) + tf.cos(h)
    check("layer norm in training", [y, *tf.gradients(uneven(y), [x, g, b])], {x: X})


def test_norms_one_after_another() -> None:
    x = batch()
    h, variables = x, []
    for _ in range(3):
        variables += [variable(8), variable(8)]
        h = NORMS["gpt2"](h, *variables[-2:])
    fetches = [h, *tf.gradients(uneven(h), [x, *variables])]
    program = program_of(fetches, [x])
    assert program.notes["layer norm in training"] == 3
    same(fetches, {x: X}, 5e-5)


def test_shared_scale() -> None:
    x, g, b = batch(), variable(8), variable(8)
    y = NORMS["gpt2"](tf.sin(NORMS["gpt2"](x, g, b)), g, b)
    fetches = tf.gradients(uneven(y), [x, g, b])
    assert program_of(fetches, [x]).notes["layer norm in training"] == 2
    same(fetches, {x: X}, 5e-5)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_gradient_of_one_input_only(which: int) -> None:
    x, g, b = batch(), variable(8), variable(8)
    y = NORMS["gpt2"](x, g, b)
    fetches = [y, tf.gradients(uneven(y), [x, g, b][which])[0]]
    program = program_of(fetches, [x])
    assert program.notes.get("layer norm in training", 0) == (which == 0), program.notes
    same(fetches, {x: X}, 2e-5)


def test_softmax() -> None:
    x = batch()
    y = tf.nn.softmax(x)
    left = check("softmax in training", [y, tf.gradients(uneven(y), x)[0]], {x: X})
    assert left.count("Sum") == 0


def test_softmax_spelled_out() -> None:
    x = batch()
    y = spelled_out(tf.sin(x))
    left = check("softmax in training", [y, tf.gradients(uneven(y), x)[0]], {x: X})
    assert "Exp" not in left and "Equal" not in left and "Softmax" in left


def test_training_with_them() -> None:
    """Attention, norm and gelu in one block, trained: the same losses as the reference's."""

    def losses(**options: Any) -> list[float]:
        with tf.Graph().as_default():
            tf.set_random_seed(1)
            x = batch()
            w = tf.Variable(tf.random_normal((8, 8), stddev=0.3, seed=1))
            norm = NORMS["gpt2"](x, tf.Variable(tf.ones(8)), tf.Variable(tf.zeros(8)))
            h = tf.reshape(tf.matmul(tf.reshape(norm, [-1, 8]), w), [-1, 5, 8])
            a = tf.matmul(spelled_out(tf.matmul(h, h, transpose_b=True)), h)
            y = x + GELU["half first"](a)
            loss = tf.reduce_mean(tf.square(y - 1.0))
            step = tf.train.AdamOptimizer(0.05).minimize(loss)
            with tf.Session(**options) as session:
                session.run(tf.global_variables_initializer())
                return [session.run([loss, step], {x: X})[0] for _ in range(10)]

    got, want = losses(), losses(executor="reference")
    np.testing.assert_allclose(got, want, rtol=1e-4)
    assert got[-1] < got[0]


# where it may not be done -----------------------------------------------------------------------


def not_done(fetches: list[Any], feed: dict[Any, Any], tolerance: float = 1e-5) -> Any:
    program = program_of(fetches, list(feed))
    assert not any(n.opdef.name in OWN for n in walk(program.body))
    same(fetches, feed, tolerance)
    return program


def test_stopped_inside() -> None:
    """The mean is a constant to the gradient: another function."""
    x, g, b = batch(), variable(8), variable(8)
    u = tf.reduce_mean(x, axis=-1, keepdims=True)
    s = tf.reduce_mean(tf.square(x - u), axis=-1, keepdims=True)
    y = (x - u) * tf.rsqrt(s + 1e-5) * g + b
    not_done([y, tf.gradients(uneven(y), x, stop_gradients=[s])[0]], {x: X})


def test_stop_gradient_inside() -> None:
    x = batch()
    e = tf.exp(x - tf.reduce_max(x, axis=-1, keepdims=True))
    y = e / tf.stop_gradient(tf.reduce_sum(e, axis=-1, keepdims=True))
    not_done([y, tf.gradients(uneven(y), x)[0]], {x: X})


def test_inner_value_is_fetched() -> None:
    x = batch()
    e = tf.exp(x - tf.reduce_max(x, axis=-1, keepdims=True))
    y = e / tf.reduce_sum(e, axis=-1, keepdims=True)
    program = not_done([y, e, tf.gradients(uneven(y), x)[0]], {x: X})
    misses = [m for m in program.near_misses if m.rule == "softmax in training"]
    assert misses and "used elsewhere" in misses[0].why_not


def test_inner_value_has_another_part_in_the_loss() -> None:
    x = batch()
    e = tf.exp(x - tf.reduce_max(x, axis=-1, keepdims=True))
    y = e / tf.reduce_sum(e, axis=-1, keepdims=True)
    not_done([tf.gradients(uneven(y) + 0.1 * uneven(e), x)[0]], {x: X})


def test_gradient_of_the_users() -> None:
    x = batch()
    graph = tf.get_default_graph()
    if "TwiceTanh" not in registered():

        @tf.RegisterGradient("TwiceTanh")
        def twice(op: Any, grad: Any) -> Any:
            return 2.0 * grad * (1.0 - tf.square(op.outputs[0]))

    with graph.gradient_override_map({"Tanh": "TwiceTanh"}):
        y = GELU["half first"](x)
    not_done([y, tf.gradients(uneven(y), x)[0]], {x: X})


def registered() -> Any:
    from headrace.autodiff import registry

    return registry._registered


def test_second_derivative() -> None:
    x = batch()
    y = GELU["half first"](x)
    first = tf.gradients(uneven(y), x)[0]
    not_done([first, tf.gradients(uneven(first), x)[0]], {x: X})


def test_two_losses() -> None:
    """Each backward pass by itself would do; the values inside are needed for the other one."""
    x = batch()
    y = tf.nn.softmax(x)
    fetches = [tf.gradients(uneven(y), x)[0], tf.gradients(tf.reduce_sum(y**3), x)[0]]
    same(fetches, {x: X}, 1e-5)


# the functions ----------------------------------------------------------------------------------


@pytest.fixture(params=["library", "numpy"])
def kernels(request: Any, monkeypatch: Any) -> Iterator[None]:
    if request.param == "numpy":
        monkeypatch.setattr(row_gradients, "ask", lambda *args: None)
    elif accel.library() is None:
        pytest.skip("no kernel library here")
    yield


SHAPES = [(3, 7), (1, 1), (70, 1000), (2, 300, 100), (0, 4)]


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_layer_norm_functions(dtype: Any, shape: tuple[int, ...]) -> None:
    x, dy = RNG.randn(*shape).astype(dtype), RNG.randn(*shape).astype(dtype)
    g, b = RNG.randn(shape[-1]).astype(dtype), RNG.randn(shape[-1]).astype(dtype)
    y, mean, variance = row_gradients.layer_norm_training(x, g, b, 1e-3)
    wide = x.astype(np.float64)
    away = wide - wide.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt((away**2).mean(-1, keepdims=True) + 1e-3)
    tolerance = 1e-3 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(y, away * inverse * g + b, rtol=0, atol=tolerance)
    assert mean.shape == variance.shape == shape[:-1]
    normal, d = away * inverse, dy.astype(np.float64) * g
    want = d - d.mean(-1, keepdims=True) - normal * (d * normal).mean(-1, keepdims=True)
    dx, dg, db = row_gradients.layer_norm_grad(dy, x, g, mean, variance, 1e-3)
    lead = tuple(range(x.ndim - 1))
    np.testing.assert_allclose(dx, want * inverse, rtol=0, atol=tolerance)
    np.testing.assert_allclose(dg, (dy * normal).sum(lead), rtol=1e-3, atol=tolerance)
    np.testing.assert_allclose(db, dy.sum(lead, dtype=np.float64), rtol=1e-3, atol=tolerance)
    assert {a.dtype for a in (y, mean, variance, dx, dg, db)} == {np.dtype(dtype)}


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_softmax_and_gelu_gradients(dtype: Any, shape: tuple[int, ...]) -> None:
    from scipy.special import erf

    x, dy = RNG.randn(*shape).astype(dtype), RNG.randn(*shape).astype(dtype)
    wide = x.astype(np.float64)
    y = np.exp(wide) / np.exp(wide).sum(-1, keepdims=True)
    want = (dy - (dy * y).sum(-1, keepdims=True)) * y
    tolerance = 3e-6 if dtype == np.float32 else 1e-12
    got = row_gradients.softmax_grad(y.astype(dtype), dy)
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)
    root = np.sqrt(2 / np.pi)
    t = np.tanh(root * (wide + 0.044715 * wide**3))
    slope = 0.5 * (1 + t) + 0.5 * wide * (1 - t * t) * root * (1 + 3 * 0.044715 * wide**2)
    np.testing.assert_allclose(
        row_gradients.gelu_grad(dy, x, True), slope * dy, rtol=0, atol=tolerance
    )
    slope = 0.5 * (1 + erf(wide / np.sqrt(2))) + wide * np.exp(-(wide**2) / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(
        row_gradients.gelu_grad(dy, x, False), slope * dy, rtol=0, atol=tolerance
    )


@pytest.fixture
def v2_behavior() -> Iterator[None]:
    enable_v2_behavior()
    yield
    disable_v2_behavior()


def test_in_functions(v2_behavior: None) -> None:
    """A tape inside a function is a backward pass, too; what was rewritten is told to listeners."""
    import headrace.compat.v2 as tf2
    from headrace.session.events import listen

    weights = tf2.Variable(RNG.randn(8, 8).astype(np.float32))

    @tf2.function
    def loss_and_gradient(x: Any) -> Any:
        with tf2.GradientTape() as tape:
            loss = tf2.reduce_sum(tf2.sin(tf2.nn.softmax(tf2.matmul(x, weights))))
        return loss, tape.gradient(loss, weights)

    seen: list[Any] = []
    stop = listen(lambda name, data: seen.append(data.get("rule")) if name == "rewrite" else None)
    try:
        got = loss_and_gradient(X[0])
    finally:
        stop()
    assert "softmax in training" in seen
    want = loss_and_gradient.python_function(X[0])
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, atol=1e-5)
