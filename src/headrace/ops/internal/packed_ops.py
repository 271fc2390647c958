"""Products and convolutions whose weights are kept packed: what the plan makes of them where the
weights stay the same.

They have no gradient and no wrapper, like the ops of ``fused_ops``. ``forms`` is a
:class:`~headrace.kernels.packed_weights.PackedForms`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, KernelNode, OpDef, define
from headrace.core.shapes import Shape, show
from headrace.kernels import packed_weights as packed
from headrace.kernels.numpy import lstm_kernels as lstm
from headrace.kernels.numpy import windowed
from headrace.ops.linalg import matmul as linalg
from headrace.ops.nn import conv_ops as nn_conv
from headrace.ops.nn.conv_shapes import channels_first

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.kernels.packed_weights import PackedForms

__all__ = ["PACKED_WEIGHTS", "PACKED_CONV2D", "PACKED_LSTM_LAYER", "PACKED_MATMUL", "packed_forms"]


def packed_forms(forms: Array | PackedForms) -> packed.PackedForms:
    """A layer's packed_forms, which as a constant lies in an array."""
    return forms[()] if isinstance(forms, np.ndarray) else forms  # type: ignore[return-value]


def _matmul_kernel(
    xp: ArrayNamespace,
    a: Array,
    b: Array,
    forms: Array | PackedForms,
    *args: Array,
    transpose_a: bool,
    transpose_b: bool,
    fused_ops: Sequence[str],
    weights: str,
) -> Any:
    x, y = a.T if transpose_a else a, b.T if transpose_b else b
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[0]:
        text = f"Matrix size-incompatible: In[0]: {show(a.shape)}, In[1]: {show(b.shape)}"
        raise errors.InvalidArgumentError(None, None, text)
    activation = fused_ops[1] if len(fused_ops) > 1 else None
    return packed.product(x, y, packed_forms(forms), args[0] if args else None, activation, weights)


def _conv_kernel(
    xp: ArrayNamespace,
    x: Array,
    w: Array,
    forms: Array | PackedForms,
    *args: Array,
    node: KernelNode,
) -> Array:
    first = channels_first(node.attrs)
    bias, add, relu = nn_conv.fused_parts(node, args, first)
    x = nn_conv.to_last(x, first)
    g = nn_conv.conv_geometry(node, x, w)
    return nn_conv.from_last(
        windowed.conv_fused(x, w, g, bias, add, relu, packed_forms(forms)), first
    )


def _matmul_shape(c: Inference) -> list[Shape]:
    return linalg.MATMUL.shape(c)  # type: ignore[return-value]


PACKED_WEIGHTS = define(
    "_PackedWeights",
    "weights: T -> forms: variant; T: type",
    shape=lambda c: [()],
    kernel=lambda xp, weights: packed.PackedForms(),
    grad=NOT_DIFFERENTIABLE,
)
PACKED_MATMUL = define(
    "_PackedMatMul",
    "a: T, b: T, forms: variant, args: num_args*T -> product: T; transpose_a: bool=False, "
    "transpose_b: bool=False, "
    "T: type(float), fused_ops: list(str)=[], weights: str='float32'",
    shape=_matmul_shape,
    kernel=_matmul_kernel,
    grad=NOT_DIFFERENTIABLE,
    layer=True,
)


def _lstm_kernel(
    xp: ArrayNamespace, *arrays: Array | PackedForms, N: int, order: Any, forget_bias: float
) -> tuple[Array, ...]:
    inputs, (h, c, kernel, bias, forms) = arrays[:N], arrays[N:]
    outputs, last = lstm.packed_layer(
        inputs, h, c, kernel, bias, packed_forms(forms), tuple(order), forget_bias
    )
    return (*outputs, last)


PACKED_LSTM_LAYER = define(
    "_PackedLSTMLayer",
    "inputs: N*T, h: T, c: T, kernel: T, bias: T, forms: variant -> outputs: N*T, last: T; "
    "N: int, order: list(int)=[0, 1, 2, 3], forget_bias: float=0.0, T: type(float)",
    shape=lambda c: [None] * (c.attr("N") + 1),
    kernel=_lstm_kernel,
    grad=NOT_DIFFERENTIABLE,
    layer=True,
)
PACKED_CONV2D = define(
    "_PackedConv2D",
    "input: T, filter: T, forms: variant, args: num_args*T -> output: T; "
    + nn_conv.ATTRS_2D
    + ", fused_ops: list(str)=[]",
    shape=nn_conv.CONV2D.shape,
    kernel=_conv_kernel,
    grad=NOT_DIFFERENTIABLE,
    layer=True,
)


def packed_arguments(
    packed_op: OpDef, inputs: tuple[int, ...], attrs: dict[str, Any], forms: int
) -> tuple[tuple[int, ...], dict[str, Any]]:
    """The inputs and attributes of a node whose weights are packed: ``forms`` comes after the
    weights, or after everything else where the number of inputs is an attribute.
    """
    if packed_op is PACKED_LSTM_LAYER:
        return (*inputs, forms), {k: v for k, v in attrs.items() if k != "training"}
    fused = tuple(attrs.get("fused_ops", ()))
    more = {"fused_ops": fused, "num_args": len(inputs) - 2}
    return (*inputs[:2], forms, *inputs[2:]), {**attrs, **more}
