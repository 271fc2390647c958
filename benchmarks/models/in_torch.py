"""The models in PyTorch: modules as a PyTorch user writes them, its fused kernels (``nn.LSTM``,
attention, fused Adam) where it has them, images channels last, which its convolutions are faster
with. ``compiled`` puts ``torch.compile`` around the model; the optimizer's own fused step stays
outside, as in PyTorch's examples.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from benchmarks.models.lenet import LeNet
from benchmarks.models.lstm import LSTM
from benchmarks.models.mlp import MLP
from benchmarks.models.resnet import DECAY, EPSILON, Conv, ResNet
from benchmarks.models.spec import Model, Optimizer, Weights
from benchmarks.models.transformer import EPSILON as LAYER_NORM_EPSILON
from benchmarks.models.transformer import GPT

__all__ = ["inference", "training"]

Text = Callable[[Any, Any, Weights, Any, bool], Any]


def training(torch: Any, model: Model, compiled: bool = False) -> Callable[[], float]:
    weights = _parameters(torch, model)
    text = _TEXTS[type(model)]

    def loss_of(x: Any, labels: Any) -> Any:
        logits = text(torch, model, weights, x, True)
        return torch.nn.functional.cross_entropy(
            logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)
        )

    call = _compiled(torch, loss_of, f"train_{model.name}") if compiled else loss_of
    trained = [value for value in weights.values() if value.requires_grad]
    optimizer = _optimizer(torch, model.optimizer, trained)
    x, labels = model.examples(model.batch)
    inputs, targets = _tensor(torch, x), torch.from_numpy(labels.astype(np.int64))

    def train() -> float:
        optimizer.zero_grad(set_to_none=True)
        loss = call(inputs, targets)
        loss.backward()
        if model.optimizer.clip is not None:
            torch.nn.utils.clip_grad_norm_(trained, model.optimizer.clip)
        optimizer.step()
        value: float = loss.item()
        return value

    return train


def inference(torch: Any, model: Model, batch: int, compiled: bool = False) -> Callable[[], Any]:
    weights = _parameters(torch, model)
    text = _TEXTS[type(model)]

    def logits_of(x: Any) -> Any:
        return text(torch, model, weights, x, False)

    call = _compiled(torch, logits_of, f"{model.name}_{batch}") if compiled else logits_of
    x = _tensor(torch, model.examples(batch)[0])

    def run() -> Any:
        with torch.inference_mode():
            return call(x).numpy()

    return run


def _compiled(torch: Any, function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """For the shapes that it will see. The compiler remembers by code and name how often something
    was compiled anew, and gives up in the end: models must not count as one another.
    """
    code = function.__code__.replace(co_name=name, co_qualname=name)
    own = FunctionType(code, function.__globals__, name, None, function.__closure__)
    call: Callable[..., Any] = torch.compile(own, dynamic=False)
    return call


def _tensor(torch: Any, x: Any) -> Any:
    """Images are seen as NCHW over the same memory: that is PyTorch's ``channels_last``."""
    tensor = torch.from_numpy(x)
    return tensor.permute(0, 3, 1, 2) if x.ndim == 4 else tensor


def _parameters(torch: Any, model: Model) -> Weights:
    """In PyTorch's layouts.

    OIHW convolutions, ``[outputs, inputs]`` matrices, an LSTM's kernel in its two parts.
    """
    values: Weights = {}
    for name, value in model.parameters().items():
        tensor = torch.from_numpy(value.copy())
        if tensor.ndim == 4:
            tensor = tensor.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        elif name == "dense0/weights" and isinstance(model, LeNet):
            tensor = _rows_by_channel(model, tensor)
        if name.endswith("/kernel"):
            parts = zip(("of_input", "of_state"), tensor.chunk(2))
        else:
            parts = zip(("",), (tensor.squeeze(0) if tensor.ndim == 3 else tensor,))
        for part, of_part in parts:
            if of_part.ndim == 2 and "/" in name:  # not an embedding
                of_part = of_part.t().contiguous()
            values[name.removesuffix("kernel") + part] = of_part.requires_grad_(model.trains(name))
    return values


def _rows_by_channel(model: LeNet, weights: Any) -> Any:
    """PyTorch flattens an image channel by channel."""
    side = model.side // 4
    rows = weights.reshape(side, side, model.filters[1], -1)
    return rows.permute(2, 0, 1, 3).reshape(model.flat, -1)


def _optimizer(torch: Any, optimizer: Optimizer, trained: list[Any]) -> Any:
    if optimizer.kind == "adam":
        return torch.optim.Adam(trained, optimizer.rate, fused=True)
    momentum = 0.9 if optimizer.kind == "momentum" else 0.0
    return torch.optim.SGD(trained, optimizer.rate, momentum=momentum, fused=True)


# the texts --------------------------------------------------------------------------------------


def _mlp(torch: Any, model: MLP, w: Weights, x: Any, training: bool) -> Any:
    y = x
    for i in range(model.layers):
        y = torch.relu(y) if i else y
        y = torch.nn.functional.linear(y, w[f"dense{i}/weights"], w[f"dense{i}/biases"])
    return y


def _lenet(torch: Any, model: LeNet, w: Weights, x: Any, training: bool) -> Any:
    nn = torch.nn.functional
    y = x
    for layer in ("conv0", "conv1"):
        y = nn.conv2d(y, w[f"{layer}/weights"], w[f"{layer}/biases"], padding=2)
        y = nn.max_pool2d(torch.relu(y), 2)
    y = torch.relu(nn.linear(y.flatten(1), w["dense0/weights"], w["dense0/biases"]))
    return nn.linear(y, w["dense1/weights"], w["dense1/biases"])


def _resnet(torch: Any, model: ResNet, w: Weights, x: Any, training: bool) -> Any:
    nn = torch.nn.functional

    def conv(x: Any, conv: Conv) -> Any:
        name, around = conv.name, conv.window // 2
        y = nn.conv2d(x, w[f"{name}/weights"], stride=conv.stride, padding=around)
        return nn.batch_norm(
            y,
            w[f"{name}/mean"],
            w[f"{name}/variance"],
            w[f"{name}/scale"],
            w[f"{name}/offset"],
            training=training,
            momentum=1 - DECAY,
            eps=EPSILON,
        )

    y = torch.relu(conv(x, model.stem))
    for block in model.blocks:
        shortcut = y if block.shortcut is None else conv(y, block.shortcut)
        inner = torch.relu(conv(y, block.first))
        y = torch.relu(conv(inner, block.second) + shortcut)
    return nn.linear(y.mean((2, 3)), w["dense/weights"], w["dense/biases"])


def _lstm(torch: Any, model: LSTM, w: Weights, x: Any, training: bool) -> Any:
    """PyTorch's own LSTM, whose gates are in our order."""
    words = torch.nn.functional.embedding(x, w["embedding"])
    zeros = words.new_zeros(model.layers, x.shape[0], model.hidden)
    flat: list[Any] = []
    for i in range(model.layers):
        biases = w[f"cell{i}/biases"]  # PyTorch adds two of them
        flat += [w[f"cell{i}/of_input"], w[f"cell{i}/of_state"], biases, torch.zeros_like(biases)]
    outputs, _, _ = torch._VF.lstm(
        words, (zeros, zeros), flat, True, model.layers, 0.0, training, False, True
    )
    outputs = outputs if training else outputs[:, -1]
    return torch.nn.functional.linear(outputs, w["softmax/weights"], w["softmax/biases"])


def _gpt(torch: Any, model: GPT, w: Weights, x: Any, training: bool) -> Any:
    nn = torch.nn.functional

    def norm(x: Any, name: str) -> Any:
        return nn.layer_norm(x, (model.width,), w[f"{name}/g"], w[f"{name}/b"], LAYER_NORM_EPSILON)

    def dense(x: Any, name: str) -> Any:
        return nn.linear(x, w[f"{name}/w"], w[f"{name}/b"])

    def attention(x: Any, block: str) -> Any:
        batch, length, width = x.shape
        parts = dense(x, f"{block}/attn").split(width, dim=2)
        heads = (batch, length, model.heads, width // model.heads)
        q, k, v = (part.view(heads).transpose(1, 2) for part in parts)
        mixed = nn.scaled_dot_product_attention(q, k, v, is_causal=True)
        mixed = mixed.transpose(1, 2).reshape(batch, length, width)
        return dense(mixed, f"{block}/attn_proj")

    h = nn.embedding(x, w["wte"]) + w["wpe"][: x.shape[1]]
    for i in range(model.layers):
        h = h + attention(norm(h, f"h{i}/ln_1"), f"h{i}")
        y = nn.gelu(dense(norm(h, f"h{i}/ln_2"), f"h{i}/mlp"), approximate="tanh")
        h = h + dense(y, f"h{i}/mlp_proj")
    h = norm(h, "ln_f")
    return nn.linear(h if training else h[:, -1], w["wte"])


_TEXTS: dict[type, Text] = {MLP: _mlp, LeNet: _lenet, ResNet: _resnet, LSTM: _lstm, GPT: _gpt}
