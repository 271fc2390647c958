"""What is known of shapes when a program is rewritten.

A dimension is an int or, where it is not known before the run, a name ``Dim(value, axis)``: the
length of that axis of that value. Two dimensions with the same name are equal whatever is fed.
``dims_of`` gives a value's shape in these terms, ``parts_of`` the elements of an integer vector (or
scalar) that was computed from shapes. Both look a few producers back and remember what they found.

    tf.reshape(x, [tf.shape(x)[0], 8])   # x: [?, 8]; parts (Dim(x, 0), 8) = dims of x, so it is x
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from headrace.core import dtypes
from headrace.program.constants import one_integer
from headrace.program.nodes import Node
from headrace.rewrite.rewrite_state import RewriteState

__all__ = [
    "MAX_DEPTH",
    "DIMS",
    "INDEX",
    "PARTS",
    "Dim",
    "Dims",
    "Times",
    "dims_after",
    "dims_of",
    "parts_of",
    "product_of",
    "quotient",
    "same_shape",
]

#: How many producers back shapes are followed.
MAX_DEPTH = 48

INDEX = frozenset([dtypes.int32, dtypes.int64])


class Dim(NamedTuple):
    """The length of one axis of a value, not known before the run."""

    value: int
    axis: int


class Times(NamedTuple):
    """A product of names and a number: what a -1 in a shape comes to."""

    number: int
    names: tuple[Dim, ...]


Dims = tuple[Any, ...]


def product_of(dims: Dims) -> Times:
    """How many elements a shape has."""
    number = 1
    names: list[Dim] = []
    for d in dims:
        if isinstance(d, Dim):
            names.append(d)
        elif isinstance(d, Times):
            number *= d.number
            names.extend(d.names)
        else:
            number *= d
    return Times(number, tuple(sorted(names)))


def quotient(dims: Dims, parts: Dims) -> Dim | Times | int | None:
    """What the -1 among ``parts`` is, if it is certainly a whole number; else None."""
    have, given = product_of(dims), product_of(tuple([p for p in parts if p != -1]))
    names = list(have.names)
    for n in given.names:
        if n not in names:
            return None
        names.remove(n)
    if given.number == 0 or have.number % given.number:
        return None
    number = have.number // given.number
    if not names:
        return number
    return names[0] if number == 1 and len(names) == 1 else Times(number, tuple(names))


def same_shape(a: int, b: int, state: RewriteState) -> bool:
    """Both values certainly have the same shape."""
    if a == b:
        return True
    x, y = dims_of(a, state), dims_of(b, state)
    return x is not None and x == y


# shapes -----------------------------------------------------------------------------------------


def dims_of(value: int, state: RewriteState, depth: int = MAX_DEPTH) -> Dims | None:
    """The shape of a value in ints and names; None if not even the rank is known."""
    shape = state.values[value].shape
    if shape is not None and None not in shape:
        return shape
    if value in state.dims:
        return state.dims[value]
    found = _traced_dims(value, state, depth) if depth else None
    if found is None and shape is not None:
        found = tuple([Dim(value, i) if d is None else d for i, d in enumerate(shape)])
    elif found is not None and shape is not None:
        found = tuple([f if d is None else d for f, d in zip(found, shape)])
    if depth:
        state.dims[value] = found
    return found


def _traced_dims(value: int, state: RewriteState, depth: int) -> Dims | None:
    node = state.producers.get(value)
    if node is None:
        return None
    if node.opdef.traits.elementwise and node.opdef.name not in DIMS:
        return _broadcast_dims(node, value, state, depth - 1)
    return _dims_by_rule(node, value, state, depth - 1)


def dims_after(node: Node, state: RewriteState) -> Dims | None:
    """The shape of the first output of a node that is being rewritten, and has no place in the
    program yet.
    """
    out = node.outputs[0]
    shape = state.values[out].shape
    if shape is not None and None not in shape:
        return shape
    return _dims_by_rule(node, out, state, MAX_DEPTH - 1)


def _dims_by_rule(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    given = node.opdef.traits.shape_input
    if given is not None:
        return parts_of(node.inputs[given], state, depth)
    rule = DIMS.get(node.opdef.name)
    return None if rule is None else rule(node, value, state, depth)


def _broadcast_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    """An axis that all inputs but one certainly have with length 1 (or not at all) is that
    input's.
    """
    given = [dims_of(i, state, depth) for i in dict.fromkeys(node.inputs)]
    if any(g is None for g in given):
        return None
    rank = max(len(g) for g in given if g is not None)
    out: list[Any] = []
    for axis in range(-rank, 0):
        found = {g[axis] for g in given if g is not None and len(g) >= -axis} - {1}
        if not found:
            out.append(1)
            continue
        if len(found) > 1:  # a name may stand for 1: only a known length decides
            found = {d for d in found if type(d) is int}
        if len(found) > 1:
            return None
        named = found.pop() if found else None
        out.append(Dim(value, axis + rank) if named is None else named)
    return tuple(out)


def _dims_of_first_input(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    return dims_of(node.inputs[0], state, depth)


def _matmul_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    a, b = dims_of(node.inputs[0], state, depth), dims_of(node.inputs[1], state, depth)
    if a is None or b is None or len(a) != 2 or len(b) != 2:
        return None
    return a[1 if node.attrs["transpose_a"] else 0], b[0 if node.attrs["transpose_b"] else 1]


def _transpose_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    dims, perm = dims_of(node.inputs[0], state, depth), state.constants.get(node.inputs[1])
    if dims is None or perm is None or perm.size != len(dims):
        return None
    return tuple([dims[int(p)] for p in perm])


def _reshape_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    parts = parts_of(node.inputs[1], state, depth)
    if parts is None:
        return None
    if -1 not in parts:
        return parts
    dims = dims_of(node.inputs[0], state, depth)
    left = None if dims is None or parts.count(-1) != 1 else quotient(dims, parts)
    if left is None:
        return tuple([Dim(value, i) if p == -1 else p for i, p in enumerate(parts)])
    return tuple([left if p == -1 else p for p in parts])


def _cross_entropy_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    dims = dims_of(node.inputs[0], state, depth)
    if dims is None or len(dims) != 2:
        return None
    return dims[:1] if value == node.outputs[0] else dims


def _expand_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    dims, axis = dims_of(node.inputs[0], state, depth), state.constants.get(node.inputs[1])
    if dims is None or axis is None or axis.size != 1:
        return None
    at = int(axis.reshape(-1)[0])
    at = at + len(dims) + 1 if at < 0 else at
    return (*dims[:at], 1, *dims[at:])


def _squeezed_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    dims, axes = dims_of(node.inputs[0], state, depth), node.attrs["squeeze_dims"]
    if dims is None or (not axes and any(type(d) is not int for d in dims)):
        return None
    gone = {a % len(dims) for a in axes} if axes else {i for i, d in enumerate(dims) if d == 1}
    return tuple([d for i, d in enumerate(dims) if i not in gone])


def _reduced_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    dims, axes = dims_of(node.inputs[0], state, depth), state.constants.get(node.inputs[1])
    if dims is None or axes is None:
        return None
    gone = {int(a) % len(dims) for a in axes.reshape(-1)} if dims else set()
    if node.attrs["keep_dims"]:
        return tuple([1 if i in gone else d for i, d in enumerate(dims)])
    return tuple([d for i, d in enumerate(dims) if i not in gone])


def _batch_matmul_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    a, b = dims_of(node.inputs[0], state, depth), dims_of(node.inputs[1], state, depth)
    if a is None or b is None or len(a) < 2 or len(b) < 2:
        return None
    if a[:-2] != b[:-2] and len(b) != 2:
        return None  # one of them may be stretched
    return (*a[:-2], a[-1 if node.attrs["adj_x"] else -2], b[-2 if node.attrs["adj_y"] else -1])


def _attention_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    q, v = dims_of(node.inputs[0], state, depth), dims_of(node.inputs[2], state, depth)
    return None if q is None or v is None or q[:-2] != v[:-2] else (*q[:-1], v[-1])


def _split_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    whole, axis = node.inputs[1], one_integer(state.constants, node.inputs[0])
    dims = dims_of(whole, state, depth)
    if dims is None or axis is None or not -len(dims) <= axis < len(dims):
        return None
    at = axis % len(dims)
    return tuple([Dim(value, i) if i == at else d for i, d in enumerate(dims)])


def _concat_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    """All parts have the first one's lengths but along the axis."""
    dims, axis = (
        dims_of(node.inputs[0], state, depth),
        one_integer(state.constants, node.inputs[-1]),
    )
    if dims is None or axis is None or not -len(dims) <= axis < len(dims):
        return None
    at = axis % len(dims)
    return tuple([Dim(value, i) if i == at else d for i, d in enumerate(dims)])


def _unpack_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    dims, at = dims_of(node.inputs[0], state, depth), int(node.attrs["axis"])
    if dims is None or not -len(dims) <= at < len(dims):
        return None
    at %= len(dims)
    return (*dims[:at], *dims[at + 1 :])


def _stacked_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    """All parts have the first one's lengths."""
    dims, at = dims_of(node.inputs[0], state, depth), int(node.attrs["axis"])
    if dims is None or not -len(dims) - 1 <= at <= len(dims):
        return None
    at %= len(dims) + 1
    return (*dims[:at], len(node.inputs), *dims[at:])


def _cut_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    """Of a strided slice: axes that are taken whole, and single elements, of which none is left."""
    a, dims = node.attrs, dims_of(node.inputs[0], state, depth)
    bounds = [state.constants.get(i) for i in node.inputs[1:]]
    if dims is None or a["ellipsis_mask"] or a["new_axis_mask"] or any(b is None for b in bounds):
        return None
    begin, _, step = bounds
    out: list[Any] = []
    for i, d in enumerate(dims):
        bit = 1 << i
        if i >= begin.size:  # type: ignore[union-attr]
            out.append(d)
        elif a["shrink_axis_mask"] & bit:
            continue
        else:
            start = 0 if a["begin_mask"] & bit else int(begin[i])  # type: ignore[index]
            whole = start == 0 and a["end_mask"] & bit and int(step[i]) == 1  # type: ignore[index]
            out.append(d if whole else Dim(value, len(out)))
    return tuple(out)


def _slice_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    """The sizes that are asked for; -1 is a whole axis if it starts at its beginning."""
    begin, sizes = parts_of(node.inputs[1], state, depth), parts_of(node.inputs[2], state, depth)
    if sizes is None or any(type(s) is int and s < -1 for s in sizes):
        return None
    dims = dims_of(node.inputs[0], state, depth) if -1 in sizes else None
    out: list[Any] = []
    for i, size in enumerate(sizes):
        whole = dims is not None and begin is not None and begin[i : i + 1] == (0,)
        out.append(size if size != -1 else dims[i] if dims and whole else Dim(value, i))
    return tuple(out)


def _merged_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    """Of one of two values: what both have."""
    if value != node.outputs[0]:
        return ()
    a, b = (dims_of(i, state, depth) for i in node.inputs[-2:])
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple([x if x == y else Dim(value, i) for i, (x, y) in enumerate(zip(a, b))])


def _selected_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    """Both values have the same shape; a condition that is a vector chooses rows."""
    a, b = (dims_of(i, state, depth) for i in node.inputs[1:])
    return a if a is not None and b is not None and len(a) == len(b) else None


def _second(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    return dims_of(node.inputs[1], state, depth)


def _cell_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    """Of an LSTM cell: its gates are as its product, all else as its state."""
    return dims_of(node.inputs[0 if value == node.outputs[2] else 1], state, depth)


def _layer_norm_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    dims = dims_of(node.inputs[0], state, depth)
    return dims if dims is None or value == node.outputs[0] else dims[:-1]


def _windowed_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    """Of convolutions and pooling.

    As many images as before; the rest is known, or has names of its own.
    """
    dims, shape = dims_of(node.inputs[0], state, depth), state.values[value].shape
    if dims is None or shape is None or not dims or len(shape) != len(dims):
        return None
    return (dims[0], *(Dim(value, i) for i in range(1, len(dims))))


def _gather_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    params, indices = dims_of(node.inputs[0], state, depth), dims_of(node.inputs[1], state, depth)
    axis = one_integer(state.constants, node.inputs[2]) if len(node.inputs) > 2 else 0
    if params is None or indices is None or axis is None or axis or node.attrs.get("batch_dims"):
        return None
    return (*indices, *params[1:])


DIMS: dict[str, Callable[[Node, int, RewriteState, int], Dims | None]] = {
    **dict.fromkeys(
        [
            "Identity",
            "StopGradient",
            "BiasAdd",
            "Softmax",
            "LogSoftmax",
            "ZerosLike",
            "OnesLike",
            "_Gelu",
            "_LayerNorm",
            "CheckNumerics",
            "Relu",
            "PreventGradient",
            "_GeluGrad",
            "_SoftmaxGrad",
            "Cumsum",
            "Cumprod",
            "Reverse",
            "ReverseV2",
            "ReverseSequence",
        ],
        _dims_of_first_input,
    ),
    **dict.fromkeys(["MatMul", "_FusedMatMul"], _matmul_dims),
    **dict.fromkeys(
        ["SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"],
        _cross_entropy_dims,
    ),
    **dict.fromkeys(["Sum", "Mean", "Max", "Min", "Prod", "All", "Any"], _reduced_dims),
    **dict.fromkeys(["BatchMatMul", "BatchMatMulV2"], _batch_matmul_dims),
    **dict.fromkeys(["Gather", "GatherV2"], _gather_dims),
    **dict.fromkeys(
        [
            "Conv2D",
            "_FusedConv2D",
            "DepthwiseConv2dNative",
            "MaxPool",
            "AvgPool",
            "MaxPoolV2",
            "Conv3D",
            "FusedBatchNorm",
            "FusedBatchNormV2",
            "FusedBatchNormV3",
        ],
        _windowed_dims,
    ),
    "_Attention": _attention_dims,
    "_LayerNormTraining": _layer_norm_dims,
    "_LayerNormGrad": _second,
    "_LSTMCell": _cell_dims,
    "Unpack": _unpack_dims,
    "Pack": _stacked_dims,
    "StridedSlice": _cut_dims,
    "Merge": _merged_dims,
    "Select": _selected_dims,
    "Slice": _slice_dims,
    "Split": _split_dims,
    "ConcatV2": _concat_dims,
    "Transpose": _transpose_dims,
    "Reshape": _reshape_dims,
    "ExpandDims": _expand_dims,
    "Squeeze": _squeezed_dims,
}


# elements of integer vectors ----------------------------------------------------------------------


def parts_of(value: int, state: RewriteState, depth: int = MAX_DEPTH) -> Dims | None:
    """The elements of an integer vector (a scalar is a vector of one) in ints and names.

    None if unknown.
    """
    known = state.constants.get(value)
    info = state.values[value]
    if info.dtype not in INDEX:
        return None
    if known is not None:
        return tuple(known.reshape(-1).tolist()) if known.ndim <= 1 and known.size <= 64 else None
    if value in state.parts:
        return state.parts[value]
    node = state.producers.get(value)
    found = None if node is None or not depth else _traced_parts(node, value, state, depth - 1)
    if depth:
        state.parts[value] = found
    return found


def _traced_parts(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    name = node.opdef.name
    if name in _PARTS_OF_ONE:
        return _PARTS_OF_ONE[name](node, node.outputs.index(value), state, depth)
    rule = PARTS.get(name)
    return None if rule is None else rule(node, state, depth)


def _shape_parts(node: Node, state: RewriteState, depth: int) -> Dims | None:
    return dims_of(node.inputs[0], state, depth)


def _same_parts(node: Node, state: RewriteState, depth: int) -> Dims | None:
    """A cast between index types, and changes of rank between scalars and vectors of one."""
    rank = state.rank(node.outputs[0])
    return parts_of(node.inputs[0], state, depth) if rank is not None and rank <= 1 else None


def _pack_parts(node: Node, state: RewriteState, depth: int) -> Dims | None:
    out: list[Any] = []
    for i in node.inputs:
        if state.shape(i) != ():
            return None
        part = parts_of(i, state, depth)
        if part is None or len(part) != 1:
            return None
        out += part
    return tuple(out)


def _concat_parts(node: Node, state: RewriteState, depth: int) -> Dims | None:
    out: list[Any] = []
    for i in node.inputs[:-1]:
        part = parts_of(i, state, depth) if state.rank(i) == 1 else None
        if part is None:
            return None
        out += part
    return tuple(out)


def _strided_parts(node: Node, state: RewriteState, depth: int) -> Dims | None:
    a = node.attrs
    bounds = [state.constants.get(i) for i in node.inputs[1:]]
    if any(b is None or b.size != 1 for b in bounds) or a["ellipsis_mask"] or a["new_axis_mask"]:
        return None
    source = parts_of(node.inputs[0], state, depth) if state.rank(node.inputs[0]) == 1 else None
    if source is None:
        return None
    begin, end, step = (int(b.reshape(-1)[0]) for b in bounds if b is not None)
    if step == 0 or (a["shrink_axis_mask"] and a["begin_mask"]):
        return None
    if a["shrink_axis_mask"]:
        return (source[begin],) if -len(source) <= begin < len(source) else None
    return source[slice(None if a["begin_mask"] else begin, None if a["end_mask"] else end, step)]


def _slice_parts(node: Node, state: RewriteState, depth: int) -> Dims | None:
    begin, size = (state.constants.get(i) for i in node.inputs[1:])
    if begin is None or size is None or begin.size != 1:
        return None
    source = parts_of(node.inputs[0], state, depth) if state.rank(node.inputs[0]) == 1 else None
    start, count = int(begin[0]), int(size[0])
    if source is None or start > len(source) or start + count > len(source):
        return None
    return source[start : len(source) if count < 0 else start + count]


def _gather_parts(node: Node, state: RewriteState, depth: int) -> Dims | None:
    at = state.constants.get(node.inputs[1])
    source = parts_of(node.inputs[0], state, depth) if state.rank(node.inputs[0]) == 1 else None
    if at is None or at.ndim > 1 or source is None or node.attrs.get("batch_dims"):
        return None
    indices = at.reshape(-1).tolist()
    return (
        tuple([source[i] for i in indices]) if all(0 <= i < len(source) for i in indices) else None
    )


def _prod_parts(node: Node, state: RewriteState, depth: int) -> Dims | None:
    if state.rank(node.inputs[0]) != 1 or state.constants.get(node.inputs[1]) is None:
        return None
    source = parts_of(node.inputs[0], state, depth)
    if source is None or any(type(d) is not int for d in source):
        return source if source is not None and len(source) == 1 else None
    dtype = state.dtype(node.outputs[0]).np_dtype
    return (int(np.prod(np.asarray(source, dtype), dtype=dtype)),)


def _one_of_shapes(node: Node, k: int, state: RewriteState, depth: int) -> Dims | None:
    return dims_of(node.inputs[k], state, depth)


def _offset_parts(node: Node, k: int, state: RewriteState, depth: int) -> Dims | None:
    """Where part k of joined values begins: behind those before it, whose lengths must be known."""
    own = parts_of(node.inputs[k + 1], state, depth)
    axis = one_integer(state.constants, node.inputs[0])
    if own is None or axis is None or not -len(own) <= axis < len(own):
        return None
    at, begin = axis % len(own), 0
    for i in node.inputs[1 : k + 1]:
        before = parts_of(i, state, depth)
        if before is None or len(before) != len(own) or type(before[at]) is not int:
            return None
        begin += before[at]
    return tuple([begin if i == at else 0 for i in range(len(own))])


#: For nodes with several outputs, of which one is asked for.
_PARTS_OF_ONE: dict[str, Callable[[Node, int, RewriteState, int], Dims | None]] = {
    "ShapeN": _one_of_shapes,
    "ConcatOffset": _offset_parts,
}
PARTS: dict[str, Callable[[Node, RewriteState, int], Dims | None]] = {
    "Shape": _shape_parts,
    **dict.fromkeys(["Cast", "Identity", "Squeeze", "ExpandDims"], _same_parts),
    "Pack": _pack_parts,
    "ConcatV2": _concat_parts,
    "StridedSlice": _strided_parts,
    "Slice": _slice_parts,
    **dict.fromkeys(["GatherV2", "Gather"], _gather_parts),
    "Prod": _prod_parts,
}
