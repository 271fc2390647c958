"""The models in jax: pure functions of the weights under ``jax.jit``, the state of a training step
donated.

A result counts as there when it is ready, without making it a NumPy array as a session does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.models.lenet import LeNet
from benchmarks.models.lstm import LSTM
from benchmarks.models.mlp import MLP
from benchmarks.models.resnet import DECAY, Conv, ResNet
from benchmarks.models.resnet import EPSILON as BATCH_NORM_EPSILON
from benchmarks.models.spec import Model, Optimizer, Weights
from benchmarks.models.transformer import EPSILON as LAYER_NORM_EPSILON
from benchmarks.models.transformer import GPT

__all__ = ["inference", "training"]

Text = Callable[[Any, Any, Weights, Any, bool], tuple[Any, dict[str, Any]]]


def training(jax: Any, model: Model) -> Callable[[], Any]:
    text = _TEXTS[type(model)]

    def loss_of(trained: Weights, kept: Weights, x: Any, labels: Any) -> tuple[Any, Any]:
        logits, averages = text(jax, model, trained | kept, x, True)
        logs = jax.nn.log_softmax(logits)
        return -jax.numpy.take_along_axis(logs, labels[..., None], axis=-1).mean(), averages

    def step(state: Any, x: Any, labels: Any) -> tuple[Any, Any]:
        trained, kept, slots = state
        slope_of = jax.value_and_grad(loss_of, has_aux=True)
        (loss, averages), slopes = slope_of(trained, kept, x, labels)
        trained, slots = _updated(jax, model.optimizer, trained, slots, slopes)
        return (trained, averages, slots), loss

    weights = model.parameters()
    trained = {name: value for name, value in weights.items() if model.trains(name)}
    kept = {name: value for name, value in weights.items() if not model.trains(name)}
    state = [jax.device_put((trained, kept, _slots(jax, model.optimizer, trained)))]
    jitted = jax.jit(step, donate_argnums=(0,))
    x, labels = model.examples(model.batch)

    def train() -> Any:
        state[0], loss = jax.block_until_ready(jitted(state[0], x, labels))
        return loss

    return train


def inference(jax: Any, model: Model, batch: int) -> Callable[[], Any]:
    text = _TEXTS[type(model)]
    weights = jax.device_put(model.parameters())
    run = jax.jit(lambda weights, x: text(jax, model, weights, x, False)[0])
    x, _ = model.examples(batch)
    return lambda: run(weights, x).block_until_ready()


def _slots(jax: Any, optimizer: Optimizer, trained: Weights) -> list[Any]:
    def zeros() -> Any:
        return jax.tree.map(jax.numpy.zeros_like, trained)

    if optimizer.kind == "adam":
        return [zeros(), zeros(), jax.numpy.zeros(())]
    return [zeros()] if optimizer.kind == "momentum" else []


def _updated(
    jax: Any, optimizer: Optimizer, trained: Weights, slots: list[Any], slopes: Weights
) -> tuple[Weights, list[Any]]:
    each = jax.tree.map
    root = jax.numpy.sqrt
    if optimizer.clip is not None:
        norm = root(sum((slope**2).sum() for slope in slopes.values()))
        slopes = each(
            lambda g: g * (optimizer.clip / jax.numpy.maximum(norm, optimizer.clip)), slopes
        )
    if optimizer.kind == "descent":
        return each(lambda p, g: p - optimizer.rate * g, trained, slopes), []
    if optimizer.kind == "momentum":
        speeds = each(lambda v, g: 0.9 * v + g, slots[0], slopes)
        return each(lambda p, v: p - optimizer.rate * v, trained, speeds), [speeds]
    means = each(lambda m, g: 0.9 * m + 0.1 * g, slots[0], slopes)
    squares = each(lambda v, g: 0.999 * v + 0.001 * g * g, slots[1], slopes)
    count = slots[2] + 1
    rate = optimizer.rate * root(1 - 0.999**count) / (1 - 0.9**count)
    trained = each(lambda p, m, v: p - rate * m / (root(v) + 1e-8), trained, means, squares)
    return trained, [means, squares, count]


# the texts --------------------------------------------------------------------------------------


def _mlp(jax: Any, model: MLP, w: Weights, x: Any, training: bool) -> tuple[Any, dict[str, Any]]:
    y = x
    for i in range(model.layers):
        y = jax.nn.relu(y) if i else y
        y = y @ w[f"dense{i}/weights"] + w[f"dense{i}/biases"]
    return y, {}


def _conv(jax: Any, x: Any, weights: Any, stride: int) -> Any:
    around = weights.shape[0] // 2
    return jax.lax.conv_general_dilated(
        x,
        weights,
        (stride, stride),
        [(around, around)] * 2,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def _lenet(
    jax: Any, model: LeNet, w: Weights, x: Any, training: bool
) -> tuple[Any, dict[str, Any]]:
    y = x
    for layer in ("conv0", "conv1"):
        y = jax.nn.relu(_conv(jax, y, w[f"{layer}/weights"], 1) + w[f"{layer}/biases"])
        window = (1, 2, 2, 1)
        y = jax.lax.reduce_window(y, -jax.numpy.inf, jax.lax.max, window, window, "SAME")
    y = y.reshape(-1, model.flat)
    y = jax.nn.relu(y @ w["dense0/weights"] + w["dense0/biases"])
    return y @ w["dense1/weights"] + w["dense1/biases"], {}


def _resnet(
    jax: Any, model: ResNet, w: Weights, x: Any, training: bool
) -> tuple[Any, dict[str, Any]]:
    averages: dict[str, Any] = {}

    def conv(x: Any, conv: Conv) -> Any:
        name = conv.name
        y = _conv(jax, x, w[f"{name}/weights"], conv.stride)
        mean, variance = w[f"{name}/mean"], w[f"{name}/variance"]
        if training:
            old, count = (mean, variance), y.size // y.shape[-1]
            mean, variance = y.mean((0, 1, 2)), y.var((0, 1, 2))
            unbiased = variance * (count / (count - 1))
            averages[f"{name}/mean"] = old[0] + (1 - DECAY) * (mean - old[0])
            averages[f"{name}/variance"] = old[1] + (1 - DECAY) * (unbiased - old[1])
        scale = w[f"{name}/scale"] * jax.lax.rsqrt(variance + BATCH_NORM_EPSILON)
        return (y - mean) * scale + w[f"{name}/offset"]

    y = jax.nn.relu(conv(x, model.stem))
    for block in model.blocks:
        shortcut = y if block.shortcut is None else conv(y, block.shortcut)
        inner = jax.nn.relu(conv(y, block.first))
        y = jax.nn.relu(conv(inner, block.second) + shortcut)
    return y.mean((1, 2)) @ w["dense/weights"] + w["dense/biases"], averages


def _lstm(jax: Any, model: LSTM, w: Weights, x: Any, training: bool) -> tuple[Any, dict[str, Any]]:
    np = jax.numpy
    words = w["embedding"][x].transpose(1, 0, 2)
    zeros = np.zeros((x.shape[0], model.hidden))
    state = [(zeros, zeros)] * model.layers

    def step(state: Any, word: Any) -> tuple[Any, Any]:
        y, after = word, []
        for i, (h, c) in enumerate(state):
            gates = np.concatenate([y, h], 1) @ w[f"cell{i}/kernel"] + w[f"cell{i}/biases"]
            in_gate, forget_gate, new, out_gate = np.split(gates, 4, axis=1)
            c = jax.nn.sigmoid(forget_gate) * c + jax.nn.sigmoid(in_gate) * np.tanh(new)
            y = jax.nn.sigmoid(out_gate) * np.tanh(c)
            after.append((y, c))
        return after, y

    _, outputs = jax.lax.scan(step, state, words, unroll=1 if model.loop else model.steps)
    outputs = outputs.transpose(1, 0, 2) if training else outputs[-1]
    return outputs @ w["softmax/weights"] + w["softmax/biases"], {}


def _gpt(jax: Any, model: GPT, w: Weights, x: Any, training: bool) -> tuple[Any, dict[str, Any]]:
    np = jax.numpy

    def norm(x: Any, name: str) -> Any:
        x = x - x.mean(-1, keepdims=True)
        x = x * jax.lax.rsqrt((x**2).mean(-1, keepdims=True) + LAYER_NORM_EPSILON)
        return x * w[f"{name}/g"] + w[f"{name}/b"]

    def dense(x: Any, name: str) -> Any:
        return x @ w[f"{name}/w"][0] + w[f"{name}/b"]

    def attention(x: Any, block: str) -> Any:
        batch, length, width = x.shape
        split = (batch, length, model.heads, width // model.heads)
        q, k, v = (part.reshape(split) for part in np.split(dense(x, f"{block}/attn"), 3, axis=2))
        scores = np.einsum("bqhd,bkhd->bhqk", q, k) * split[-1] ** -0.5
        scores = np.where(np.tri(length, dtype=bool), scores, -1e10)
        mixed = np.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
        return dense(mixed.reshape(batch, length, width), f"{block}/attn_proj")

    h = w["wte"][x] + w["wpe"][: x.shape[1]]
    for i in range(model.layers):
        h = h + attention(norm(h, f"h{i}/ln_1"), f"h{i}")
        y = jax.nn.gelu(dense(norm(h, f"h{i}/ln_2"), f"h{i}/mlp"))
        h = h + dense(y, f"h{i}/mlp_proj")
    h = norm(h, "ln_f")
    return (h if training else h[:, -1]) @ w["wte"].T, {}


_TEXTS: dict[type, Text] = {MLP: _mlp, LeNet: _lenet, ResNet: _resnet, LSTM: _lstm, GPT: _gpt}
