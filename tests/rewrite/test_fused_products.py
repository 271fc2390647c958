"""Rules that make products and convolutions one step with bias, scale and activation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.kernels.numpy import activation_kernels as activations
from headrace.program.nodes import walk
from tests.rewrite.rewriting import check, ops_of, program_of, same

RNG = np.random.RandomState(0)


def variable(*shape: int) -> Any:
    return tf.Variable(RNG.randn(*shape).astype(np.float32) * 0.5)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3))))


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "Relu": tf.nn.relu,
    "Relu6": tf.nn.relu6,
    "Tanh": tf.tanh,
    "Sigmoid": tf.sigmoid,
    "GeluApproximate": gelu,
    "maximum": lambda x: tf.maximum(x, 0.0),
}


@pytest.mark.parametrize("rows", [4, 400])
@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_product_and_activation(kind: str, rows: int) -> None:
    x = tf.placeholder(tf.float32, [None, 5])
    y = ACTIVATIONS[kind](tf.matmul(x, variable(5, 300)) + variable(300))
    program = check("product and activation", y, {x: RNG.randn(rows, 5)}, ["_FusedMatMul"], 1e-5)
    name = "Relu" if kind == "maximum" else kind
    assert program.body[0].attrs["fused_ops"] == ("BiasAdd", name)  # type: ignore[union-attr]


def test_product_and_activation_through_a_reshape() -> None:
    x = tf.placeholder(tf.float32, [None, 5])
    y = tf.nn.relu(tf.reshape(tf.matmul(x, variable(5, 6)) + variable(6), [-1, 2, 3]))
    check("product and activation", y, {x: RNG.randn(4, 5)}, ["_FusedMatMul", "Reshape"], 1e-6)


def test_bias_before_reshape() -> None:
    x = tf.placeholder(tf.float32, [None, 5])
    product = tf.reshape(tf.matmul(x, variable(5, 6)), [-1, 2, 6])
    check(
        "bias before reshape",
        product + variable(6),
        {x: RNG.randn(4, 5)},
        ["_FusedMatMul", "Reshape"],
        1e-6,
    )
    y = tf.nn.relu(tf.reshape(tf.matmul(x, variable(5, 6)), [-1, 2, 6]) + variable(6))
    check("bias before reshape", y, {x: RNG.randn(4, 5)}, ["_FusedMatMul", "Reshape"], 1e-6)
    other = tf.reshape(tf.matmul(x, variable(5, 6)), [-1, 3]) + variable(3)
    assert "_FusedMatMul" not in ops_of(other, [x])
    same(other, {x: RNG.randn(4, 5)}, 1e-6)


def test_the_backward_part_may_use_the_activation() -> None:
    x = tf.placeholder(tf.float32, [None, 5])
    w, b = variable(5, 3), variable(3)
    y = tf.nn.relu(tf.matmul(x, w) + b)
    fetches = [y, *tf.gradients(tf.reduce_sum(y * y), [w, b])]
    program = program_of(fetches, [x])
    assert program.notes["product and activation"] == 1
    same(fetches, {x: RNG.randn(4, 5)}, 1e-5)


def test_a_value_before_the_activation_that_is_used_stays() -> None:
    x = tf.placeholder(tf.float32, [None, 5])
    before = tf.matmul(x, variable(5, 3)) + variable(3)
    fetches = [tf.nn.relu(before), tf.reduce_sum(before)]
    program = program_of(fetches, [x])
    assert "Relu" in [n.opdef.name for n in walk(program.body)]
    why = {m.rule: m.why_not for m in program.near_misses}
    assert "used elsewhere" in why["product and activation"]
    same(fetches, {x: RNG.randn(4, 5)}, 1e-6)


def test_a_product_before_a_loop_is_not_moved_into_it() -> None:
    x = tf.placeholder(tf.float32, [2, 2])
    product = tf.matmul(x, x)
    out = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + (product + a[0])), [0, x])[1]
    assert "_FusedMatMul" not in ops_of(out, [x])
    same(out, {x: RNG.randn(2, 2)}, 1e-6)


def test_nan_and_infinity_pass_through_activations() -> None:
    given = np.array([np.nan, np.inf, -np.inf, 0.0, -3.0, 7.0], np.float32)
    for name in ("Relu", "Relu6", "Tanh", "Sigmoid"):
        x = tf.placeholder(tf.float32, [6])
        want = tf.Session(executor="reference").run(ACTIVATIONS[name](x), {x: given})
        got = given.copy()
        with np.errstate(all="ignore"):
            activations.in_place(name, got)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("approximate", [True, False])
@pytest.mark.parametrize("n", [9, 100001])
def test_gelu_function(dtype: Any, approximate: bool, n: int) -> None:
    from scipy.special import erf

    x = np.linspace(-9, 9, n).astype(dtype)
    wide = x.astype(np.float64)
    inner = np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3))
    want = 0.5 * wide * (1 + (inner if approximate else erf(wide / np.sqrt(2))))
    got = activations.gelu(x, approximate)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, want, rtol=0, atol=1.5e-6 if dtype == np.float32 else 1e-14)
    assert activations.gelu(np.float32([np.inf]), approximate)[0] == np.inf
    assert np.isnan(activations.gelu(np.float32([np.nan]), approximate)[0])
    large = np.zeros(100_000, np.float32)
    large[[3, 5]] = np.inf, np.nan
    found = activations.gelu(large, approximate)
    assert found[3] == np.inf and np.isnan(found[5]) and not found[6:].any()


# convolutions -----------------------------------------------------------------------------------


def conv(x: Any, w: Any) -> Any:
    return tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME")


IMAGES = RNG.randn(2, 6, 6, 3).astype(np.float32)


@pytest.mark.parametrize("first", [True, False])
def test_convolution_and_shortcut(first: bool) -> None:
    x = tf.placeholder(tf.float32, [None, 6, 6, 3])
    w = tf.constant(RNG.randn(3, 3, 3, 3).astype(np.float32))
    y = tf.nn.bias_add(conv(x, w), tf.constant([1.0, -2.0, 0.5]))
    other = tf.tanh(x)
    total = other + y if first else y + other
    for out, left in (
        (total, ["Tanh", "_FusedConv2D"]),
        (tf.nn.relu(total), ["Tanh", "_FusedConv2D"]),
    ):
        program = check("convolution and sum", out, {x: IMAGES}, left, 1e-5)
        assert (
            "Add"
            in next(n for n in walk(program.body) if "Conv" in n.opdef.name).attrs["fused_ops"]
        )
    # one row of pixels for all images is no shortcut
    assert "AddV2" in ops_of(y + tf.ones((1, 6, 6, 3)), [x])


def test_convolution_and_bias_and_relu() -> None:
    x = tf.placeholder(tf.float32, [None, 6, 6, 3])
    w, b = variable(3, 3, 3, 4), variable(4)
    for y in (
        conv(x, w) + b,
        tf.nn.bias_add(conv(x, w), b),
        tf.reshape(b, [1, 1, 1, 4]) + conv(x, w),
    ):
        program = program_of(y, [x])
        assert program.notes["convolution and bias"] == 1
        assert "Conv2D" in ops_of(y, [x], without="convolution and bias")
        same(y, {x: IMAGES}, 1e-5)
    y = tf.nn.relu(conv(x, w) + b)
    check("convolution and relu", y, {x: IMAGES}, ["_FusedConv2D"], 1e-5)


def statistics(n: int) -> tuple[Any, ...]:
    """scale, offset, mean, variance"""
    return (
        variable(n),
        variable(n),
        variable(n),
        tf.Variable(np.abs(RNG.randn(n)).astype(np.float32) + 0.1),
    )


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("fused", [False, True])
def test_batch_norm_after_a_convolution(fused: bool, bias: bool) -> None:
    x = tf.placeholder(tf.float32, [None, 6, 6, 3])
    scale, offset, mean, variance = statistics(4)
    made = conv(x, variable(3, 3, 3, 4))
    if bias:
        made = tf.nn.bias_add(made, variable(4))
    if fused:
        y = tf.nn.fused_batch_norm(made, scale, offset, mean, variance, is_training=False)[0]
    else:
        y = tf.nn.batch_normalization(made, mean, variance, offset, scale, 1e-3)
    program = program_of(tf.nn.relu(y), [x])
    assert program.notes["scaled convolution"] == 1
    assert ("batch norm after a convolution" in program.notes) == fused
    assert list(walk(program.body))[-1].opdef.name == "_FusedConv2D"
    same(tf.nn.relu(y), {x: IMAGES}, 1e-5)
    assert "_FusedConv2D" not in ops_of(tf.nn.relu(y), [x], exact=True)


def test_batch_norm_of_constants_is_folded_into_the_weights() -> None:
    x = tf.placeholder(tf.float32, [None, 6, 6, 3])
    w = tf.constant(RNG.randn(3, 3, 3, 4).astype(np.float32))
    given = [tf.constant(np.abs(RNG.randn(4)).astype(np.float32) + 0.1) for _ in range(4)]
    y = tf.nn.relu(tf.nn.fused_batch_norm(conv(x, w), *given, is_training=False)[0])
    check("batch norm after a convolution", y, {x: IMAGES}, ["_FusedConv2D"], 1e-5)


def test_batch_norm_after_a_depthwise_convolution() -> None:
    x = tf.placeholder(tf.float32, [None, 6, 6, 3])
    scale, offset, mean, variance = statistics(6)
    made = tf.nn.depthwise_conv2d(x, variable(3, 3, 3, 2), [1, 1, 1, 1], "SAME")
    y = tf.nn.relu6(
        tf.nn.fused_batch_norm(made, scale, offset, mean, variance, is_training=False)[0]
    )
    program = program_of(y, [x])
    assert program.notes["scaled convolution"] == 1
    assert not {"FusedBatchNorm", "FusedBatchNormV3"} & {n.opdef.name for n in walk(program.body)}
    same(y, {x: IMAGES}, 1e-5)


def test_batch_norm_in_training_and_used_statistics_stay() -> None:
    x = tf.placeholder(tf.float32, [None, 6, 6, 3])
    scale, offset, mean, variance = statistics(4)
    made = conv(x, variable(3, 3, 3, 4))
    y = tf.nn.fused_batch_norm(made, scale, offset, is_training=True)[0]
    assert "FusedBatchNormV3" in ops_of(y, [x])
    y, used, _ = tf.nn.fused_batch_norm(made, scale, offset, mean, variance, is_training=False)
    program = program_of([y, used], [x])
    assert "its statistics are used, too" in {m.why_not for m in program.near_misses}
    both = [tf.nn.fused_batch_norm(made, scale, offset, mean, variance, is_training=False)[0], made]
    assert "batch norm after a convolution" not in program_of(both, [x]).notes
    same(both, {x: IMAGES}, 1e-5)


def test_even_loss_gradient_of_dense_labels() -> None:
    logits = tf.placeholder(tf.float32, [None, 3])
    labels = tf.placeholder(tf.float32, [None, 3])
    losses = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
    grad = tf.gradients(tf.reduce_mean(losses), logits)[0]
    program = program_of(grad, [logits, labels])
    assert program.notes["even loss gradient"] == 1
    assert "BroadcastTo" not in [n.opdef.name for n in walk(program.body)]
    same(grad, {logits: RNG.randn(2, 3), labels: [[1, 0, 0], [0, 0, 1]]}, 1e-6)


def test_log_of_softmax_keeps_its_meaning() -> None:
    """As it is written it is infinite for an impossible class; a fused loss would not be."""
    x = tf.placeholder(tf.float32, [1, 2])
    loss = -tf.reduce_sum([[1.0, 0.0]] * tf.log(tf.nn.softmax(x)))
    got = tf.Session().run(loss, {x: [[-200.0, 0.0]]})
    assert got == np.inf
    same(loss, {x: [[-200.0, 0.0]]})


def unrolled(rows: int | None, extra: bool) -> tuple[Any, Any, Any]:
    """A weight that is used at four steps; its gradient, and the penalty's if ``extra``."""
    x = tf.placeholder(tf.float32, [4, rows, 6])
    w = tf.Variable(np.linspace(-1, 1, 36, dtype=np.float32).reshape(6, 6))
    h = tf.zeros([tf.shape(x)[1], 6])
    for t in range(4):
        h = tf.tanh(tf.matmul(x[t] + h, w))
    loss = tf.reduce_sum(tf.square(h)) + (tf.nn.l2_loss(w) if extra else 0.0)
    return x, w, tf.gradients(loss, w)[0]


@pytest.mark.parametrize("rows", [None, 3])
@pytest.mark.parametrize("extra", [False, True])
def test_sum_of_products(rows: int | None, extra: bool) -> None:
    x, _, gradient = unrolled(rows, extra)
    ops, before = ops_of(gradient, [x]), ops_of(gradient, [x], without="sum of products")
    assert before.count("AddN") == 1 and before.count("MatMul") == ops.count("MatMul") + 3
    assert ops.count("AddN") == int(extra)
    same(gradient, {x: np.random.default_rng(0).normal(size=(4, 3, 6))}, 1e-5)


def test_a_product_that_is_fetched_stays_in_a_sum() -> None:
    a = [tf.placeholder(tf.float32, [2, 5]) for _ in range(3)]
    each = [tf.matmul(v, v, transpose_a=True) for v in a]
    fetches = [tf.add_n(each), each[1]]
    assert ops_of(fetches, a).count("MatMul") == 3
    same(fetches, {v: np.random.default_rng(i).normal(size=(2, 5)) for i, v in enumerate(a)}, 1e-6)
