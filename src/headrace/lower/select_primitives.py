"""The steps of a bound run that are more than a kernel and a copy, by op.

Each function binds one step, or says why not and leaves it to its kernel. What they compute is
what the kernels compute; the differences are that arguments are in place, and that a product takes
in the sum that follows it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.numpy import gemm
from headrace.kernels.numpy.openblas import hold_blas
from headrace.lower.bound_values import KNOWN
from headrace.lower.fused_code import bound_group, compiled
from headrace.lower.fusion import Fused
from headrace.lower.select_bound import TAKEN, Binder, is_plain
from headrace.lower.select_lstm import bind_lstm
from headrace.lower.select_products import bind_product, take_sum
from headrace.lower.select_rows import (
    bind_attention,
    bind_batch_product,
    bind_cross_entropy,
    bind_layer_norm,
    bind_softmax,
)
from headrace.lower.select_windows import bind_conv, bind_mean, bind_pool
from headrace.ops.array.joining import CONCAT
from headrace.program.nodes import Node

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["bind_step", "is_gradient"]


def bind_step(s: Binder, step: Node | Fused) -> str:
    """Bind a step; why that is not possible, or TAKEN."""
    if isinstance(step, Fused):
        return TAKEN if take_sum(s, step.output) else _fused(s, step)
    if step.opdef.role == "+" and take_sum(s, step.outputs[0]):
        return TAKEN
    binder = _BINDERS.get(step.opdef.name)
    why_not = "the kernel library has nothing for this op" if binder is None else binder(s, step)
    if why_not is TAKEN or _into(s, step) is TAKEN:
        return TAKEN
    return why_not


def is_gradient(node: Node) -> bool:
    """Whether the kernel library has a primitive for this gradient of an activation."""
    return _BINDERS.get(node.opdef.name) is _gradient


def _gradient(s: Binder, node: Node) -> str:
    """The gradient of an activation, from its output (or, for relu, its input) and what comes back
    to it.
    """
    name = node.opdef.name
    inputs = node.inputs[::-1] if name == "ReluGrad" else node.inputs
    arrays = [s.array(v) for v in inputs]
    if any(getattr(a, "dtype", None) != np.float32 or not a.size for a in arrays):
        return "an input is not float32"
    if arrays[0].shape != arrays[1].shape:
        return "the shapes of its inputs differ"
    call = s.library.gradient(name, arrays[0].size)
    places: list[int | None] = [*inputs, None]
    for place, (value, array) in enumerate(zip(inputs, arrays)):
        if not is_plain(array):  # a part of a wider matrix
            places[place] = None
            call.aim(place, _packed_copy(s, value, array))
    s.call(call, places, (2, *s.target(node.outputs[0], arrays[0].shape)))
    return TAKEN


def _packed_copy(s: Binder, value: int, array: Array) -> Array:
    """Memory with a line that copies an array with gaps into it, good for this step."""
    room: Array = s.reserve([], array.shape, array.dtype)
    s.emit(f"{s.param('copyto', np.copyto)}({s.new_param(room)}, {s.name(value)})")
    return room


def _concat(s: Binder, node: Node) -> str:
    """Arrays one after the other, into their place."""
    *parts, axis = node.inputs
    arrays = [s.array(i) for i in parts]
    if s.kind(axis) != KNOWN or any(a.dtype != arrays[0].dtype for a in arrays):
        return "its axis is not known"
    like = s.results(s.function(node), node)[0]
    if like.dtype.kind not in "fiub":
        return "its result is no array of numbers"
    out = s.reserve(node.outputs, like.shape, like.dtype)
    s.place(node.outputs[0], out)
    names = ", ".join([s.name(i) for i in parts])
    call = f"{s.param('concatenate', np.concatenate)}(({names},), {int(s.array(axis))}"
    s.emit(f"{call}, {s.name(node.outputs[0])})")
    return TAKEN


def _sum_of_rows(s: Binder, node: Node) -> str:
    """The sum over the first axis of a matrix, as a product (kernels/numpy/gemm.py)."""
    x, axes = s.array(node.inputs[0]), s.array(node.inputs[1])
    if s.kind(node.inputs[1]) != KNOWN or not is_plain(x) or x.ndim != 2 or node.attrs["keep_dims"]:
        return "the axes are not known, or the input is no float32 matrix"
    if np.ravel(axes).tolist() not in ([0], [-2]):
        return "it is not over the first axis"
    s.place(node.outputs[0], s.reserve(node.outputs, (x.shape[1],), np.float32))
    if x.size >= gemm.HOLD_FROM:
        s.emit(f"{s.param('hold', hold_blas)}()")
    ones = s.new_param(gemm.ones(len(x), x.dtype))
    s.emit(f"{ones}.dot({s.name(node.inputs[0])}, {s.name(node.outputs[0])})")
    return TAKEN


def _gather(s: Binder, node: Node) -> str:
    table, indices, axis = node.inputs
    if node.attrs.get("batch_dims") or s.kind(axis) != KNOWN or s.array(axis).item() != 0:
        return "it is not along the first axis"
    params, at = s.array(table), s.array(indices)
    if not s.is_fixed(indices) or params.ndim < 1 or at.dtype.kind not in "iu":
        return "its indices move or are not whole numbers"
    if s.is_fixed(table) or params.dtype.kind not in "fiub":
        return "its table is made in every run"
    turned = _is_turned(s, node.outputs[0], at.ndim)
    order = at.T if turned else at  # steps first, as what follows wants them
    out = s.reserve(node.outputs, order.shape + params.shape[1:], params.dtype)
    s.place(node.outputs[0], out.swapaxes(0, 1) if turned else out)
    if at.size:  # seen without their sign, negative indices are large
        plain = at.view(f"u{at.itemsize}")
        largest = f"{s.param('largest', np.maximum.reduce)}({s.new_param(plain)}, None)"
        s.emit(f"if {largest} >= {len(params)}: fail()")
    names = s.name(table), s.new_param(order), s.new_param(out)
    s.emit(f"{names[0]}.take({names[1]}, 0, {names[2]}, 'clip')")
    return TAKEN


def _is_turned(s: Binder, value: int, rank: int) -> bool:
    """Whether nothing is done to a value but to exchange its first two axes."""
    users = s.uses.get(value, [])
    if rank != 2 or len(users) != 1 or not isinstance(users[0], Node):
        return False
    if users[0].opdef.role != "transpose" or s.kinds.get(users[0].inputs[1], KNOWN) != KNOWN:
        return False
    order = s.program.constants.get(users[0].inputs[1])
    return order is not None and order.tolist() == [1, 0, *range(2, order.size)]


def _fused(s: Binder, step: Fused) -> str:
    """An element-wise chain, into its place."""
    if step.reduces:
        return "it ends in a reduction"
    arrays = [s.array(i) for i in step.inputs]
    like = compiled(step, s.program, None)[0](*arrays)
    if (
        not isinstance(like, np.ndarray)
        or like.dtype != s.program.values[step.output].dtype.np_dtype
    ):
        return "its result has another type than planned"
    out = s.reserve([step.output], like.shape, like.dtype)
    s.place(step.output, out)
    names = [s.name(v) for v in (*step.inputs, step.output)]
    s.emit(f"{s.new_param(bound_group(step, s.program, arrays, out))}({', '.join(names)})")
    return TAKEN


def _into(s: Binder, node: Node) -> str:
    """A NumPy function that can write where it is told."""
    form = node.opdef.traits.into
    if form is None or len(node.outputs) != 1 or node.opdef.name == "BiasAdd":
        return "NumPy has no function that writes its result where it is told"
    info = s.program.values[node.outputs[0]]
    like = s.function(node)(*[s.array(i) for i in node.inputs])
    if info.dtype._kind not in "fiuc" or not isinstance(like, np.ndarray) or not like.ndim:
        return "its result is no array of numbers"
    if like.dtype != info.dtype.np_dtype:
        return "its result has another type than planned"
    s.place(node.outputs[0], s.reserve(node.outputs, like.shape, like.dtype))
    names = [s.name(i) for i in node.inputs]
    s.emit(form.format(*names, out=s.name(node.outputs[0])))
    return TAKEN


_BINDERS: dict[str, Callable[[Binder, Node], str]] = {
    "MatMul": bind_product,
    "_FusedMatMul": bind_product,
    "_PackedMatMul": bind_product,
    "_PackedConv2D": bind_conv,
    "MaxPool": partial(bind_pool, "max"),
    "AvgPool": partial(bind_pool, "avg"),
    "Mean": bind_mean,
    "_LayerNorm": bind_layer_norm,
    "Softmax": bind_softmax,
    "_Attention": bind_attention,
    "BatchMatMul": bind_batch_product,
    "BatchMatMulV2": bind_batch_product,
    "ReluGrad": _gradient,
    "TanhGrad": _gradient,
    "SigmoidGrad": _gradient,
    "Sum": _sum_of_rows,
    "SparseSoftmaxCrossEntropyWithLogits": bind_cross_entropy,
    "_PackedLSTMLayer": bind_lstm,
    CONCAT.name: _concat,
    "GatherV2": _gather,
}
