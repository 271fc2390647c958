"""Rules about gradients that come back through max pooling.

The structure they make and the numbers they keep.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.program.nodes import walk
from headrace.program.snapshot import snapshot
from headrace.rewrite import rule_table as table
from headrace.rewrite.engine import rewrite

WINDOW_RULES = [r for r in table.RULES if "max pooling's gradient" in r.name]
OWN = {r.name for r in WINDOW_RULES}
RELU, SUM = (r.name for r in WINDOW_RULES)


@pytest.fixture(autouse=True)
def in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules are tried with the others."""
    for name in ("RULES", "VALUE_FREE_RULES"):
        others = [r for r in getattr(table, name) if r.name not in OWN]
        own = [r for r in WINDOW_RULES if name == "RULES" or r.value_free]
        monkeypatch.setattr(table, name, (*own, *others))


def firings(fetches: list[Any], feeds: list[Any]) -> tuple[list[str], dict[str, int]]:
    """The op types that are left, and how often each rule fired."""
    program = rewrite(snapshot(fetches, feeds), table.RULES)
    return [n.opdef.name for n in walk(program.body)], program.notes


def layer(data_format: str = "NHWC", ksize: int = 2, stride: int = 2) -> tuple[Any, Any, Any]:
    """(images, bias, pooled)"""
    first = data_format == "NCHW"
    x = tf.placeholder(tf.float32, [2, 3, 9, 8] if first else [2, 9, 8, 3])
    b = tf.constant(np.linspace(-1, 1, 3).astype(np.float32))
    h = tf.nn.relu(tf.nn.bias_add(x, b, data_format=data_format))
    k, s = ([1, 1, n, n] if first else [1, n, n, 1] for n in (ksize, stride))
    return x, b, tf.nn.max_pool(h, k, s, "SAME", data_format=data_format)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize(("ksize", "stride"), [(2, 2), (3, 2), (3, 1)])
def test_relu_and_bias_on_the_pooled_array(data_format: str, ksize: int, stride: int) -> None:
    x, b, y = layer(data_format, ksize, stride)
    gradients = tf.gradients(tf.reduce_sum(tf.square(y) * tf.constant(0.5)), [x, b])
    ops, notes = firings(gradients, [x])
    assert notes[RELU] == 1 and notes[SUM] == 1
    assert ops.index("ReluGrad") < ops.index("MaxPoolGrad")
    value = np.random.default_rng(0).normal(size=x.shape.as_list()).astype(np.float32)
    with tf.Session() as fast, tf.Session(executor="reference") as slow:
        for a, c in zip(fast.run(gradients, {x: value}), slow.run(gradients, {x: value})):
            np.testing.assert_allclose(a, c, rtol=1e-5, atol=1e-5)


def test_a_sum_over_images_and_places() -> None:
    x = tf.placeholder(tf.float32, [2, 8, 8, 3])
    y = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    g = tf.gradients(tf.reduce_sum(tf.square(y)), x)[0]
    for axes, fires in (
        ([0, 1, 2], True),
        ([-4, -3, -2], True),
        ([1, 2], False),
        ([0, 1, 2, 3], False),
    ):
        _, notes = firings([tf.reduce_sum(g, axes)], [x])
        assert (SUM in notes) is fires


def test_what_does_not_fit() -> None:
    """Relu of other features, and windows over channels."""
    x, _, y = layer()
    pool_grad = tf.gradients(y, y.op.inputs[0])[0]
    other = tf.raw_ops.ReluGrad(gradients=pool_grad, features=tf.exp(y.op.inputs[0]))
    assert RELU not in firings([other], [x])[1]
    wide = tf.nn.max_pool(x, [1, 1, 1, 3], [1, 1, 1, 3], "VALID")
    g = tf.gradients(wide, x)[0]
    assert SUM not in firings([tf.reduce_sum(g, [0, 1, 2])], [x])[1]


def test_a_gradient_that_is_used_elsewhere_stays() -> None:
    x, _, y = layer()
    inner = y.op.inputs[0]
    pool_grad = tf.gradients(y, inner)[0]
    masked = tf.raw_ops.ReluGrad(gradients=pool_grad, features=inner)
    assert RELU not in firings([masked, pool_grad], [x])[1]
