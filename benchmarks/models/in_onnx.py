"""The models as ONNX graphs, frozen: weights are initializers. Run by ONNX Runtime or OpenVINO.

Made with ``onnx.helper`` from the same weights, with ONNX's own operators (``Gemm``, ``LSTM``,
``LayerNormalization``, …), as an export would give them; images are NCHW, as both libraries want
them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.models.lenet import LeNet
from benchmarks.models.lstm import LSTM
from benchmarks.models.mlp import MLP
from benchmarks.models.resnet import EPSILON, Conv, ResNet
from benchmarks.models.spec import Array, Model
from benchmarks.models.transformer import EPSILON as LAYER_NORM_EPSILON
from benchmarks.models.transformer import GPT

__all__ = ["inference", "onnx_bytes"]

OPSET = 20


def inference(module: Any, model: Model, batch: int) -> Callable[[], Any]:
    """``module`` is onnxruntime or openvino."""
    x = _own_layout(model.examples(batch)[0])
    start = _in_openvino if module.__name__ == "openvino" else _in_onnxruntime
    return start(module, onnx_bytes(model), x, len(os.sched_getaffinity(0)))


def _in_onnxruntime(runtime: Any, graph: bytes, x: Array, threads: int) -> Callable[[], Any]:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    session = runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": x})[0]


def _in_openvino(openvino: Any, graph: bytes, x: Array, threads: int) -> Callable[[], Any]:
    """For the given shape, with the hint "latency": one request over all threads."""
    core = openvino.Core()
    model = core.read_model(graph, b"")
    model.reshape(x.shape)
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    request = core.compile_model(model, "CPU", settings).create_infer_request()
    return lambda: request.infer([x], share_inputs=True)[0]


def _own_layout(x: Array) -> Array:
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if x.ndim == 4 else x


def onnx_bytes(model: Model) -> bytes:
    """The model for any batch size."""
    import onnx
    from onnx import TensorProto, helper

    graph = _Graph(model.parameters())
    last = _TEXTS[type(model)](model, graph)
    x = _own_layout(model.examples(1)[0])
    kind = TensorProto.FLOAT if x.dtype == np.float32 else TensorProto.INT32
    inputs = [helper.make_tensor_value_info("x", kind, ["batch", *x.shape[1:]])]
    outputs = [helper.make_tensor_value_info(last, TensorProto.FLOAT, ["batch", "classes"])]
    made = helper.make_graph(graph.nodes, model.name, inputs, outputs, graph.initializers)
    versions = [helper.make_opsetid("", OPSET)]
    proto = helper.make_model(made, opset_imports=versions, ir_version=10)
    onnx.checker.check_model(proto)
    data: bytes = proto.SerializeToString()
    return data


class _Graph:
    """Nodes and initializers in the making; tensors are names."""

    def __init__(self, weights: dict[str, Array]) -> None:
        self.weights = weights
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def const(self, value: Any) -> str:
        from onnx import numpy_helper

        name = f"c{len(self.initializers)}"
        array = np.asarray(value, order="C")
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, name: str) -> str:
        return self.const(self.weights[name])

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        from onnx import helper

        names = [f"n{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def dense(self, x: str, name: str) -> str:
        made: str = self.op(
            "Gemm", x, self.weight(f"{name}/weights"), self.weight(f"{name}/biases")
        )
        return made

    def conv(self, x: str, weights: Array, *bias: str, stride: int = 1) -> str:
        around = weights.shape[0] // 2
        kernel = self.const(weights.transpose(3, 2, 0, 1))
        pads, strides = [around] * 4, [stride] * 2
        made: str = self.op("Conv", x, kernel, *bias, pads=pads, strides=strides)
        return made


# the texts --------------------------------------------------------------------------------------


def _mlp(model: MLP, g: _Graph) -> str:
    y = "x"
    for i in range(model.layers):
        y = g.op("Relu", y) if i else y
        y = g.dense(y, f"dense{i}")
    return y


def _lenet(model: LeNet, g: _Graph) -> str:
    y = "x"
    for layer in ("conv0", "conv1"):
        y = g.conv(y, g.weights[f"{layer}/weights"], g.weight(f"{layer}/biases"))
        y = g.op("MaxPool", g.op("Relu", y), kernel_shape=[2, 2], strides=[2, 2])
    side, channels = model.side // 4, model.filters[1]
    rows = g.weights["dense0/weights"].reshape(side, side, channels, -1).transpose(2, 0, 1, 3)
    weights = g.const(rows.reshape(model.flat, -1))
    y = g.op("Gemm", g.op("Flatten", y), weights, g.weight("dense0/biases"))
    return g.dense(g.op("Relu", y), "dense1")


def _resnet(model: ResNet, g: _Graph) -> str:
    def conv(x: str, conv: Conv) -> str:
        y = g.conv(x, g.weights[f"{conv.name}/weights"], stride=conv.stride)
        parts = (g.weight(f"{conv.name}/{k}") for k in ("scale", "offset", "mean", "variance"))
        made: str = g.op("BatchNormalization", y, *parts, epsilon=EPSILON)
        return made

    y = g.op("Relu", conv("x", model.stem))
    for block in model.blocks:
        shortcut = y if block.shortcut is None else conv(y, block.shortcut)
        inner = g.op("Relu", conv(y, block.first))
        y = g.op("Relu", g.op("Add", conv(inner, block.second), shortcut))
    return g.dense(g.op("Flatten", g.op("GlobalAveragePool", y)), "dense")


def _lstm(model: LSTM, g: _Graph) -> str:
    """ONNX has the gates in the order i, o, f, c."""
    y = g.op("Transpose", g.op("Gather", g.weight("embedding"), "x"), perm=[1, 0, 2])
    for i in range(model.layers):
        kernel = _gates_in_order(g.weights[f"cell{i}/kernel"].T)
        biases = _gates_in_order(g.weights[f"cell{i}/biases"])
        of_input, of_state = np.split(kernel, 2, axis=1)
        both = np.concatenate([biases, np.zeros_like(biases)])
        parts = (g.const(array[None]) for array in (of_input, of_state, both))
        y, last, _ = g.op("LSTM", y, *parts, outputs=3, hidden_size=model.hidden)
        y = g.op("Squeeze", y, g.const(np.array([1])))
    return g.dense(g.op("Squeeze", last, g.const(np.array([0]))), "softmax")


def _gates_in_order(rows: Array) -> Array:
    in_gate, forget_gate, new, out_gate = np.split(rows, 4)
    return np.concatenate([in_gate, out_gate, forget_gate, new])


def _gpt(model: GPT, g: _Graph) -> str:
    head = model.width // model.heads

    def norm(x: str, name: str) -> str:
        parts = (g.weight(f"{name}/{k}") for k in "gb")
        made: str = g.op("LayerNormalization", x, *parts, epsilon=LAYER_NORM_EPSILON)
        return made

    def dense(x: str, name: str) -> str:
        product = g.op("MatMul", x, g.const(g.weights[f"{name}/w"][0]))
        made: str = g.op("Add", product, g.weight(f"{name}/b"))
        return made

    def heads(x: str, perm: list[int]) -> str:
        split = g.op("Reshape", x, g.const(np.array([0, 0, model.heads, head])))
        made: str = g.op("Transpose", split, perm=perm)
        return made

    mask = g.const(np.triu(np.full((model.tokens, model.tokens), -1e10, np.float32), 1))

    def attention(x: str, block: str) -> str:
        q, k, v = g.op("Split", dense(x, f"{block}/attn"), outputs=3, axis=2, num_outputs=3)
        scores = g.op("MatMul", heads(q, [0, 2, 1, 3]), heads(k, [0, 2, 3, 1]))
        scores = g.op("Mul", scores, g.const(np.float32(head**-0.5)))
        shares = g.op("Softmax", g.op("Add", scores, mask), axis=-1)
        mixed = g.op("MatMul", shares, heads(v, [0, 2, 1, 3]))
        mixed = g.op("Transpose", mixed, perm=[0, 2, 1, 3])
        mixed = g.op("Reshape", mixed, g.const(np.array([0, 0, model.width])))
        return dense(mixed, f"{block}/attn_proj")

    h = g.op("Add", g.op("Gather", g.weight("wte"), "x"), g.weight("wpe"))
    for i in range(model.layers):
        h = g.op("Add", h, attention(norm(h, f"h{i}/ln_1"), f"h{i}"))
        y = g.op("Gelu", dense(norm(h, f"h{i}/ln_2"), f"h{i}/mlp"), approximate="tanh")
        h = g.op("Add", h, dense(y, f"h{i}/mlp_proj"))
    last = g.op("Gather", norm(h, "ln_f"), g.const(np.array(model.tokens - 1)), axis=1)
    made: str = g.op("MatMul", last, g.const(g.weights["wte"].T))
    return made


_TEXTS: dict[type, Callable[[Any, _Graph], str]] = {
    MLP: _mlp,
    LeNet: _lenet,
    ResNet: _resnet,
    LSTM: _lstm,
    GPT: _gpt,
}
