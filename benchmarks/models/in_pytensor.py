"""The models in PyTensor (its Numba backend): those without convolutions, which it no longer has
for images.

The LSTM is a ``scan``, PyTensor's loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.models.lstm import LSTM
from benchmarks.models.mlp import MLP
from benchmarks.models.spec import Model, Optimizer, Weights
from benchmarks.models.transformer import EPSILON as LAYER_NORM_EPSILON
from benchmarks.models.transformer import GPT

__all__ = ["inference", "training"]

MODE = "NUMBA"
Text = Callable[[Any, Any, Weights, Any, bool], Any]
Updates = list[tuple[Any, Any]]


def training(pytensor: Any, model: Model) -> Callable[[], Any]:
    pt = pytensor.tensor
    weights = _shared(pytensor, model)
    values = model.examples(model.batch)
    x, labels = (pt.tensor(dtype=str(value.dtype), shape=value.shape) for value in values)
    logits = _TEXTS[type(model)](pytensor, model, weights, x, True)
    flat = logits.reshape((-1, logits.shape[-1]))
    logs = pt.special.log_softmax(flat, axis=-1)
    loss = -logs[pt.arange(flat.shape[0]), labels.flatten()].mean()
    trained = list(weights.values())
    slopes = pt.grad(loss, trained)
    updates = _updates(pytensor, model.optimizer, trained, slopes)
    step = pytensor.function([x, labels], loss, updates=updates, mode=MODE)
    return lambda: step(*values)


def inference(pytensor: Any, model: Model, batch: int) -> Callable[[], Any]:
    value, _ = model.examples(batch)
    x = pytensor.tensor.tensor(dtype=str(value.dtype), shape=(None, *value.shape[1:]))
    logits = _TEXTS[type(model)](pytensor, model, _shared(pytensor, model), x, False)
    run = pytensor.function([x], logits, mode=MODE)
    return lambda: run(value)


def _shared(pytensor: Any, model: Model) -> Weights:
    return {name: pytensor.shared(value) for name, value in model.parameters().items()}


def _updates(pytensor: Any, optimizer: Optimizer, trained: list[Any], slopes: list[Any]) -> Updates:
    pt = pytensor.tensor
    rate = np.float32(optimizer.rate)
    if optimizer.clip is not None:
        norm = pt.sqrt(sum((slope**2).sum() for slope in slopes))
        clip = np.float32(optimizer.clip)
        slopes = [slope * (clip / pt.maximum(norm, clip)) for slope in slopes]
    if optimizer.kind == "descent":
        return [(p, p - rate * g) for p, g in zip(trained, slopes)]
    if optimizer.kind != "adam":
        raise ValueError(f"no {optimizer.kind} here")
    count = pytensor.shared(np.float32(0))
    now = count + np.float32(1)
    one, small = np.float32(1), np.float32(1e-8)
    keep, keep_square = np.float32(0.9), np.float32(0.999)
    rate = rate * pt.sqrt(one - keep_square**now) / (one - keep**now)
    updates: Updates = [(count, now)]
    for p, g in zip(trained, slopes):
        mean, square = (pytensor.shared(np.zeros_like(p.get_value())) for _ in range(2))
        m = keep * mean + (one - keep) * g
        v = keep_square * square + (one - keep_square) * g * g
        updates += [(mean, m), (square, v), (p, p - rate * m / (pt.sqrt(v) + small))]
    return updates


# the texts --------------------------------------------------------------------------------------


def _mlp(pytensor: Any, model: MLP, w: Weights, x: Any, training: bool) -> Any:
    y = x
    for i in range(model.layers):
        y = pytensor.tensor.maximum(y, np.float32(0)) if i else y
        y = y @ w[f"dense{i}/weights"] + w[f"dense{i}/biases"]
    return y


def _lstm(pytensor: Any, model: LSTM, w: Weights, x: Any, training: bool) -> Any:
    pt = pytensor.tensor
    words = w["embedding"][x].transpose(1, 0, 2)
    zeros = pt.zeros((x.shape[0], model.hidden), dtype="float32")
    names = [f"cell{i}/{part}" for i in range(model.layers) for part in ("kernel", "biases")]

    def step(word: Any, *rest: Any) -> list[Any]:
        state, cells = rest[: 2 * model.layers], rest[2 * model.layers :]
        y, after = word, []
        for i in range(model.layers):
            h, c = state[2 * i : 2 * i + 2]
            kernel, biases = cells[2 * i : 2 * i + 2]
            gates = pt.concatenate([y, h], axis=1) @ kernel + biases
            n = model.hidden
            in_gate, forget_gate, new, out_gate = (gates[:, j * n : j * n + n] for j in range(4))
            c = pt.sigmoid(forget_gate) * c + pt.sigmoid(in_gate) * pt.tanh(new)
            y = pt.sigmoid(out_gate) * pt.tanh(c)
            after += [y, c]
        return after

    outputs = pytensor.scan(
        step,
        sequences=[words],
        outputs_info=[zeros] * (2 * model.layers),
        non_sequences=[w[name] for name in names],
        strict=True,
        return_updates=False,
    )
    y = outputs[-2]
    y = y.transpose(1, 0, 2) if training else y[-1]
    return y @ w["softmax/weights"] + w["softmax/biases"]


def _gpt(pytensor: Any, model: GPT, w: Weights, x: Any, training: bool) -> Any:
    pt = pytensor.tensor
    half, cube = np.float32(0.5), np.float32(0.044715)

    def norm(x: Any, name: str) -> Any:
        x = x - x.mean(-1, keepdims=True)
        spread = pt.sqrt((x**2).mean(-1, keepdims=True) + np.float32(LAYER_NORM_EPSILON))
        return x / spread * w[f"{name}/g"] + w[f"{name}/b"]

    def dense(x: Any, name: str) -> Any:
        rows = x.reshape((-1, x.shape[-1])) @ w[f"{name}/w"][0] + w[f"{name}/b"]
        return rows.reshape((*x.shape[:-1], rows.shape[-1]))

    def gelu(x: Any) -> Any:
        inner = np.float32((2 / np.pi) ** 0.5) * (x + cube * x**3)
        return half * x * (1 + pt.tanh(inner))

    mask = np.triu(np.full((model.tokens, model.tokens), -1e10, np.float32), 1)

    def attention(x: Any, block: str) -> Any:
        both = dense(x, f"{block}/attn")
        head = model.width // model.heads
        shape = (x.shape[0], model.tokens, 3, model.heads, head)
        q, k, v = (both.reshape(shape)[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
        scores = q @ k.transpose(0, 1, 3, 2) * np.float32(head**-0.5)
        mixed = pt.special.softmax(scores + mask, axis=-1) @ v
        mixed = mixed.transpose(0, 2, 1, 3).reshape(x.shape)
        return dense(mixed, f"{block}/attn_proj")

    h = w["wte"][x] + w["wpe"]
    for i in range(model.layers):
        h = h + attention(norm(h, f"h{i}/ln_1"), f"h{i}")
        h = h + dense(gelu(dense(norm(h, f"h{i}/ln_2"), f"h{i}/mlp")), f"h{i}/mlp_proj")
    h = norm(h, "ln_f")
    return (h if training else h[:, -1]) @ w["wte"].T


_TEXTS: dict[type, Text] = {MLP: _mlp, LSTM: _lstm, GPT: _gpt}
