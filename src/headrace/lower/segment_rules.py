"""How ops become instructions of a native segment, by op (native_segments.py says what that is).

A rule is called with the :class:`SegmentBinder` and a node whose result depends on data; the values
of ``known`` inputs (shapes, axes) are there, those of the others are not: only where they lie. It
returns a Ref for each output or raises :class:`Refused` with a reason.

Ops that only rearrange elements (Transpose, Slice, Split …) need no rule of their own: their kernel
is run on the numbers of the elements, and what comes out says which element goes where.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.dtypes import DType
from headrace.core.shapes import Shape

if TYPE_CHECKING:
    from headrace.kernels.native.segment_code import Ref
    from headrace.lower.native_segments import SegmentBinder
    from headrace.program.nodes import Node

__all__ = ["RULES", "Refused", "native_attributes"]

Rule = Callable[["SegmentBinder", "Node"], "list[Ref]"]
TooLarge = Callable[[Sequence[Shape], Mapping[str, Any]], bool]

#: Multiplications of a product up to which it is in a segment.
MAX_PRODUCT = 1 << 21
#: Rows of a batch whose size is not declared: so many make a product large.
USUAL_ROWS = 64
RULES: dict[str, Rule] = {}
#: Whether an op is certainly too large for a segment, by op: of the shapes of its inputs.
TOO_LARGE: dict[str, TooLarge] = {}


class Refused(Exception):
    """Why a segment stays with NumPy."""


def _rule(*ops: str, too_large: TooLarge | None = None) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for op in ops:
            RULES[op] = rule
            if too_large is not None:
                TOO_LARGE[op] = too_large
        return rule

    return register


def native_attributes(node: Node) -> tuple[tuple[str, Any], ...]:
    """The attributes that the native code of an element-wise op reads."""
    from headrace.kernels.native.ir_values import ELEMENT_OF_DTYPE

    found = []
    for name in node.opdef.traits.native_attrs:
        value = node.attrs[name]
        found.append((name, ELEMENT_OF_DTYPE[value.name] if isinstance(value, DType) else value))
    return tuple(found)


# reductions ---------------------------------------------------------------------------------------


@_rule("Sum", "Mean", "Max", "Min", "Prod")
def _reduction(b: SegmentBinder, node: Node) -> list[Ref]:
    kind, x = node.opdef.traits.reduces, b.ref(node.inputs[0])
    rank = len(x.shape)
    gone = {int(a) % rank for a in np.ravel(b.known(node.inputs[1]))} if rank else set()
    out = b.shape(node.outputs[0])
    if not gone:
        return [x._replace(shape=out)] if x.is_contiguous else [b.code.contiguous(x)]
    total = _reduce(b, "sum" if kind == "mean" else kind, x, gone)._replace(shape=out)
    if kind == "mean":
        if x.element not in ("f32", "f64"):
            raise Refused("Mean of integers")
        count = b.number(math.prod(x.shape[a] for a in gone), x.element)
        total = b.code.elements("RealDiv", [total, count], x.element, out)
    return [total]


def _reduce(b: SegmentBinder, kind: str, x: Ref, gone: set[int]) -> Ref:
    """Over some axes: as one axis between two others, with the axes put in order if need be."""
    axes = [a for a in range(len(x.shape)) if x.shape[a] != 1]
    flags = [a in gone for a in axes]
    if True not in flags:
        return b.code.contiguous(x)
    first = flags.index(True)
    last = len(flags) - flags[::-1].index(True)
    if not all(flags[first:last]):
        from headrace.kernels.native.segment_code import contiguous_strides

        strides = x.strides or contiguous_strides(x.shape)
        order = [a for a in axes if a not in gone] + [a for a in axes if a in gone]
        turned = x._replace(
            shape=tuple(x.shape[a] for a in order), strides=tuple(strides[a] for a in order)
        )
        return _reduce(b, kind, turned, set(range(len(axes) - sum(flags), len(axes))))
    sizes = [x.shape[a] for a in axes]
    outer, count = math.prod(sizes[:first]), math.prod(sizes[first:last])
    return b.code.reduce(kind, x, outer, count, math.prod(sizes[last:]))


@_rule("BiasAddGrad")
def _bias_grad(b: SegmentBinder, node: Node) -> list[Ref]:
    x = b.ref(node.inputs[0])
    if node.attrs.get("data_format", "NHWC") != "NHWC":
        raise Refused("BiasAddGrad of another layout")
    return [_reduce(b, "sum", x, set(range(len(x.shape) - 1)))._replace(shape=x.shape[-1:])]


@_rule("L2Loss")
def _l2_loss(b: SegmentBinder, node: Node) -> list[Ref]:
    x = b.code.contiguous(b.ref(node.inputs[0]))
    squares = b.code.elements("Square", [x], x.element, x.shape)
    total = b.code.reduce("sum", squares, 1, x.size, 1)._replace(shape=())
    return [b.code.elements("Mul", [total, b.number(0.5, x.element)], x.element, ())]


@_rule("ArgMax", "ArgMin")
def _argmax(b: SegmentBinder, node: Node) -> list[Ref]:
    from headrace.kernels.native.segment_reductions import write_argmax

    x = b.code.contiguous(b.ref(node.inputs[0]))
    axis = int(np.ravel(b.known(node.inputs[1]))[0]) % max(1, len(x.shape))
    if not x.shape or math.prod(x.shape[axis + 1 :]) != 1:
        raise Refused("ArgMax over an axis that is not the last")
    out = b.code.scratch(b.element(node.outputs[0]), b.shape(node.outputs[0]))
    count, smallest = x.shape[axis], node.opdef.name == "ArgMin"
    sizes = x.size // count, count
    b.code.unit([x], [out], lambda code, f: write_argmax(code, f, x, out, sizes, smallest))
    return [out]


# products -----------------------------------------------------------------------------------------


def _is_large_product(given: Sequence[Shape], attrs: Mapping[str, Any]) -> bool:
    """Whether a product of inputs of these shapes is left to a library (a plan does without it
    then, and what stands before and after it are segments).
    """
    left, right = given[:2]
    if left is None or right is None or len(left) != 2 or len(right) != 2:
        return False
    rows, depth = (left[1], left[0]) if attrs["transpose_a"] else left
    inner, columns = (right[1], right[0]) if attrs["transpose_b"] else right
    if columns is None:
        return False
    sizes = [USUAL_ROWS if rows is None else rows, depth if inner is None else inner, columns]
    return math.prod(USUAL_ROWS if d is None else d for d in sizes) > MAX_PRODUCT


@_rule("MatMul", "_FusedMatMul", too_large=_is_large_product)
def _product(b: SegmentBinder, node: Node) -> list[Ref]:
    from headrace.kernels.native.segment_products import multiply

    left, right = b.ref(node.inputs[0]), b.ref(node.inputs[1])
    if left.element not in ("f32", "f64") or len(left.shape) != 2 or len(right.shape) != 2:
        raise Refused("a product of other types")
    out = b.shape(node.outputs[0])
    if left.size * out[1] > MAX_PRODUCT:
        raise Refused("a product that is large enough for a library")
    turns = node.attrs["transpose_a"], node.attrs["transpose_b"]
    made = multiply(b.code, left, right, *turns)
    for step, name in enumerate(node.attrs.get("fused_ops", ())):
        if step == 0:
            made = b.code.elements("Add", [made, b.ref(node.inputs[2])], left.element, out)
        elif name in ("Relu", "Relu6", "Tanh", "Sigmoid"):
            made = b.code.elements(name, [made], left.element, out)
        else:
            raise Refused(f"{name} after a product")
    return [made]


# rows ---------------------------------------------------------------------------------------------


@_rule("Softmax", "LogSoftmax")
def _softmax(b: SegmentBinder, node: Node) -> list[Ref]:
    from headrace.kernels.native import segment_rows

    x = b.ref(node.inputs[0])
    function = segment_rows.softmax if node.opdef.name == "Softmax" else segment_rows.log_softmax
    return [function(b.code, x)]


@_rule("SoftmaxCrossEntropyWithLogits")
def _cross_entropy(b: SegmentBinder, node: Node) -> list[Ref]:
    from headrace.kernels.native.segment_rows import cross_entropy

    x, labels = (b.ref(i) for i in node.inputs)
    if x.shape != labels.shape:
        raise Refused("labels that broadcast")
    return list(cross_entropy(b.code, x, labels))


@_rule("SparseSoftmaxCrossEntropyWithLogits")
def _sparse_cross_entropy(b: SegmentBinder, node: Node) -> list[Ref]:
    from headrace.kernels.native.segment_rows import sparse_cross_entropy

    return list(sparse_cross_entropy(b.code, *(b.ref(i) for i in node.inputs)))


@_rule("GatherV2", "Gather")
def _gather(b: SegmentBinder, node: Node) -> list[Ref]:
    from headrace.kernels.native.segment_rows import gather_rows

    axis = b.known(node.inputs[2]) if len(node.inputs) > 2 else 0
    if int(np.ravel(axis)[0]) != 0 or node.attrs.get("batch_dims"):
        raise Refused("a gather over another axis than the first")
    table, indices = (b.ref(i) for i in node.inputs[:2])
    out = b.code.scratch(table.element, b.shape(node.outputs[0]))
    gather_rows(b.code, table, indices, out)
    return [out]


@_rule("OneHot")
def _one_hot(b: SegmentBinder, node: Node) -> list[Ref]:
    from headrace.kernels.native.segment_rows import one_hot

    indices, _, on, off = node.inputs
    b.known(node.inputs[1])
    if node.attrs.get("axis", -1) != -1:
        raise Refused("one-hot over another axis than the last")
    out = b.code.scratch(b.element(node.outputs[0]), b.shape(node.outputs[0]))
    one_hot(b.code, b.ref(indices), b.ref(on), b.ref(off), out)
    return [out]


@_rule("UnsortedSegmentSum")
def _segment_sum(b: SegmentBinder, node: Node) -> list[Ref]:
    from headrace.kernels.native.segment_rows import segment_sum

    b.known(node.inputs[2])
    data, ids = (b.ref(i) for i in node.inputs[:2])
    out = b.code.scratch(data.element, b.shape(node.outputs[0]))
    segment_sum(b.code, data, ids, out)
    return [out]


# joining ------------------------------------------------------------------------------------------


@_rule("ConcatV2", "Concat", "Pack")
def _concat(b: SegmentBinder, node: Node) -> list[Ref]:
    from headrace.kernels.native.segment_code import contiguous_strides

    shape = b.shape(node.outputs[0])
    out = b.code.scratch(b.element(node.outputs[0]), shape)
    strides = contiguous_strides(shape)
    if node.opdef.role == "pack":
        axis, parts = node.attrs["axis"] % len(shape), node.inputs
    elif node.opdef.role == "concat":
        axis, parts = int(np.ravel(b.known(node.inputs[-1]))[0]) % len(shape), node.inputs[:-1]
    else:
        axis, parts = int(np.ravel(b.known(node.inputs[0]))[0]) % len(shape), node.inputs[1:]
    at = 0
    for value in parts:
        part = b.ref(value)
        if node.opdef.role == "pack":
            part = b.code.contiguous(part)
            part = part._replace(shape=(*part.shape[:axis], 1, *part.shape[axis:]))
        if part.size:
            target = out._replace(shape=part.shape, offset=at * strides[axis], strides=strides)
            b.code.copy(part, target)
        at += part.shape[axis]
    return [out]


@_rule("Pad", "PadV2")
def _pad(b: SegmentBinder, node: Node) -> list[Ref]:
    from headrace.kernels.native.segment_code import contiguous_strides

    x, paddings = b.ref(node.inputs[0]), b.known(node.inputs[1])
    shape = b.shape(node.outputs[0])
    strides = contiguous_strides(shape)
    out = b.code.scratch(x.element, shape)
    number = b.ref(node.inputs[2]) if len(node.inputs) > 2 else b.zero(x.element)
    b.code.copy(number._replace(shape=shape, strides=(0,) * len(shape)), out)
    start = sum(int(before) * s for (before, _), s in zip(paddings.reshape(-1, 2), strides))
    b.code.copy(x, out._replace(shape=x.shape, offset=start, strides=strides))
    return [out]


@_rule("Select")
def _select(b: SegmentBinder, node: Node) -> list[Ref]:
    condition, x, y = (b.ref(i) for i in node.inputs)
    if condition.shape != x.shape:  # a number for each row
        condition = b.code.contiguous(condition)
        condition = condition._replace(shape=condition.shape + (1,) * (len(x.shape) - 1))
    return [b.code.elements("Select", [condition, x, y], x.element, x.shape)]
