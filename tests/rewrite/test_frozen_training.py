"""Gradients in frozen graphs: what nobody fetched is pruned, and composites are found all the same.

Each program is built with its gradient, frozen (``convert_variables_to_constants``) and imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf

WIDTH = 16
#: Passes a use of the input on, or stops gradients there.
Use = Callable[[tf.Tensor], tf.Tensor]


def _weights(name: str, *shape: int) -> tf.Variable:
    values = np.random.RandomState(len(name)).normal(0.3, 1.0, shape).astype(np.float32)
    return tf.get_variable(name, initializer=values)


def _softmax(x: tf.Tensor, use: list[Use]) -> tf.Tensor:
    e = tf.exp(use[0](x) - tf.reduce_max(use[1](x), -1, keepdims=True))
    return use[2](e) / tf.reduce_sum(use[3](e), -1, keepdims=True)


def _layer_norm(x: tf.Tensor, use: list[Use]) -> tf.Tensor:
    mean = tf.reduce_mean(use[0](x), -1, keepdims=True)
    variance = tf.reduce_mean(tf.square(use[1](x) - mean), -1, keepdims=True)
    normal = (use[2](x) - mean) * tf.rsqrt(use[3](variance) + 1e-5)
    return normal * _weights("scale", WIDTH) + _weights("offset", WIDTH)


def _gelu(x: tf.Tensor, use: list[Use]) -> tf.Tensor:
    inner = use[0](x) + 0.044715 * tf.pow(use[1](x), 3)
    return 0.5 * use[2](x) * (1 + tf.tanh(0.7978846 * use[3](inner)))


def _gelu_with_erf(x: tf.Tensor, use: list[Use]) -> tf.Tensor:
    return 0.5 * use[0](x) * (1 + tf.erf(use[1](x) / np.float32(np.sqrt(2))))


def _lstm(x: tf.Tensor, use: list[Use]) -> tf.Tensor:
    kernel, bias = _weights("kernel", 2 * WIDTH, 4 * WIDTH), _weights("bias", 4 * WIDTH)
    h = c = tf.zeros_like(x)
    for n in range(4):
        product = tf.matmul(tf.concat([use[n](x), h], 1), kernel)
        i, j, f, o = tf.split(tf.nn.bias_add(product, bias), 4, 1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
    return h


PROGRAMS = {
    "softmax in training": _softmax,
    "layer norm in training": _layer_norm,
    "gelu in training": _gelu,
    "gelu in training, with erf": _gelu_with_erf,
    "LSTM layer": _lstm,
}
FEED = np.random.RandomState(7).normal(size=(5, WIDTH)).astype(np.float32)


def _frozen(program: Any, stopped: int | None) -> tf.GraphDef:
    use: list[Use] = [lambda x: x] * 4
    if stopped is not None:
        use[stopped] = tf.stop_gradient
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, (None, WIDTH), name="x")
        loss = tf.reduce_sum(tf.square(program(x, use)), name="loss")
        tf.identity(tf.gradients(loss, x)[0], name="gradient")
        session.run(tf.global_variables_initializer())
        definition = graph.as_graph_def()
        return tf.graph_util.convert_variables_to_constants(
            session, definition, ["loss", "gradient"]
        )


def _run(definition: tf.GraphDef, executor: str) -> tuple[list[Any], dict[str, int]]:
    names = ["loss:0", "gradient:0"]
    with tf.Graph().as_default(), tf.Session(executor=executor) as session:
        tf.import_graph_def(definition, name="")
        found = session.run(names, {"x:0": FEED})
        return found, session.explain(names, ["x:0"]).rewrites


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("stopped", [None, 0, 1, 2, 3])
def test_composites_of_frozen_graphs(name: str, stopped: int | None) -> None:
    definition = _frozen(PROGRAMS[name], stopped)
    found, rewrites = _run(definition, "numpy")
    expected, _ = _run(definition, "reference")
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)
    if stopped is None:
        assert rewrites.get(name.partition(",")[0]) == 1
