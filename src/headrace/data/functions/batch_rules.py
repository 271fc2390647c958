"""What an operation of a mapped function becomes when its arguments have one dimension more, in
front.

A rule is given the operation and makes, in the new graph, the operation that does the same for all
elements of a batch at once and gives the same bits; it raises :class:`Unfit` where there is none.
Operations without a rule make the whole function unfit.

    RULES["Transpose"]      perm=[1, 0] becomes perm=[0, 2, 1]

Operations that compute something else for an array of another length (sums, products, exponentials
by blocks of a vector) have no rule, nor have those with effects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.build import apply_any, apply_op
from headrace.core.func_graph import FuncGraph
from headrace.core.infer import static_value
from headrace.core.opdef import lookup
from headrace.core.shapes import ranked
from headrace.core.tensor import Operation, Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array


__all__ = ["Builder", "Unfit", "is_sure", "rule_of"]

_NUMBERS = "biuf"


class Unfit(Exception):
    """The function cannot be made for batches."""


class Builder:
    """The new graph as far as it is made."""

    def __init__(self, graph: FuncGraph, depends: Callable[[Tensor], bool]) -> None:
        self.graph = graph
        self.depends = depends  # whether a tensor differs from element to element
        self.new: dict[int, Tensor] = {}
        self._count: Any = None

    def again(
        self, op: Operation, inputs: Sequence[Tensor] | None = None, **changed: object
    ) -> list[Tensor]:
        """The same operation, of other inputs and attributes."""
        found = self.all(op._inputs) if inputs is None else inputs
        attrs = {**op._attrs, **changed}
        return list(
            self.graph._add_op(op._opdef, tuple(found), attrs, self.graph._unique(op.name))._outputs
        )

    def all(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        return [self.new[id(t)] for t in tensors]

    def count(self) -> Any:
        """The number of elements of a batch, as a vector."""
        if self._count is None:
            whole: Any = apply_op("Shape", self.graph.inputs[0])
            self._count = whole[:1]
        return self._count

    def result(self, tensor: Tensor) -> Tensor:
        """A result of the function.

        One that is the same for all elements is there for each of them.
        """
        found = self.new[id(tensor)]
        if self.depends(tensor):
            return found
        if tensor._shape is None:
            raise Unfit
        shape = apply_op("ConcatV2", [self.count(), apply_op("Shape", found)], np.int32(0))
        return apply_op("BroadcastTo", found, shape)

    def value(self, tensor: Tensor) -> np.ndarray[Any, Any]:
        """A known value, which is the same for all elements."""
        found = None if self.depends(tensor) else static_value(tensor)
        if found is None:
            raise Unfit
        return found

    def needs(self, *tensors: Tensor) -> None:
        """These differ from element to element; their number of dimensions is known."""
        for t in tensors:
            if not self.depends(t) or t._shape is None:
                raise Unfit

    def raised(self, tensor: Tensor, rank: int) -> Tensor:
        """With dimensions of size one between the batch's and its own, so that it has ``rank``
        beside the batch's.
        """
        found = self.new[id(tensor)]
        for _ in range(rank - len(ranked(tensor._shape))):
            found = apply_op("ExpandDims", found, np.int32(1))
        return found


Rule = Callable[[Builder, Operation], Sequence[Tensor]]


def _shifted(axis: int) -> int:
    """Negative ones count from the end, which is where it was."""
    return axis + 1 if axis >= 0 else axis


# element by element -------------------------------------------------------------------------------


def _elementwise(b: Builder, op: Operation) -> Sequence[Tensor]:
    kinds = [t._dtype._kind for t in (*op._inputs, op._outputs[0])]
    texts = op.type in ("Equal", "NotEqual") and op._inputs[0]._dtype is dtypes.string
    if not texts and not all(k in _NUMBERS for k in kinds):
        raise Unfit
    return _broadcast(b, op)


def _broadcast(b: Builder, op: Operation) -> Sequence[Tensor]:
    out = op._outputs[0]._shape
    unknown = any(t._shape is None or None in t._shape for t in op._inputs)
    tolerant = not op._attrs.get("incompatible_shape_error", True)  # then there is another result
    if out is None or (tolerant and unknown):
        raise Unfit
    inputs = []
    for t in op._inputs:
        if t._shape is None or len(t._shape) > len(out):
            raise Unfit
        inputs.append(b.raised(t, len(out)) if b.depends(t) else b.new[id(t)])
    return b.again(op, inputs)


def _cast(b: Builder, op: Operation) -> Sequence[Tensor]:
    """A float that is no integer's value becomes another one in another loop."""
    if op._inputs[0]._dtype._kind == "f" and op._outputs[0]._dtype._kind != "f":
        raise Unfit
    return _elementwise(b, op)


def _select(b: Builder, op: Operation) -> Sequence[Tensor]:
    """Select demands equal shapes, or picks rows: with a batch dimension SelectV2 does both."""
    out = op._outputs[0]._shape
    if out is None or any(t._shape is None for t in op._inputs):
        raise Unfit
    if len(ranked(op._inputs[0]._shape)) not in (0, len(out)):
        raise Unfit
    inputs = [b.raised(t, len(out)) if b.depends(t) else b.new[id(t)] for t in op._inputs]
    return [apply_op("SelectV2", *inputs)]


def _same(b: Builder, op: Operation) -> Sequence[Tensor]:
    b.needs(op._inputs[0])
    for t in op._inputs[1:]:
        if b.depends(t):
            raise Unfit
    return b.again(op)


# shapes -------------------------------------------------------------------------------------------


def _ensure_shape(b: Builder, op: Operation) -> Sequence[Tensor]:
    shape = op._attrs["shape"]
    if shape is None:
        raise Unfit
    return b.again(op, shape=(None, *shape))


def _reshape(b: Builder, op: Operation) -> Sequence[Tensor]:
    """A row that does not have the right number of values may not take some of the next row's.

    The batch size is given.
    """
    tensor, shape = op._inputs
    b.needs(tensor)
    dims = b.value(shape).astype(np.int32)
    before, after = ranked(tensor._shape), op._outputs[0]._shape
    if after is not None and all((*before, *after)):
        wanted: Any = np.array([-1, *after], np.int32)
    else:
        wanted = apply_op("ConcatV2", [b.count(), dims], np.int32(0))
    return [apply_op("Reshape", b.new[id(tensor)], wanted)]


def _expand_dims(b: Builder, op: Operation) -> Sequence[Tensor]:
    b.needs(op._inputs[0])
    axis = _shifted(int(b.value(op._inputs[1]).reshape(())))
    return [apply_op("ExpandDims", b.new[id(op._inputs[0])], np.int32(axis))]


def _squeeze(b: Builder, op: Operation) -> Sequence[Tensor]:
    b.needs(op._inputs[0])
    shape, dims = ranked(op._inputs[0]._shape), list(op._attrs["squeeze_dims"])
    if not dims:
        if None in shape:
            raise Unfit
        dims = [i for i, size in enumerate(shape) if size == 1]
    found = b.new[id(op._inputs[0])]
    if not dims:
        return [apply_op("Identity", found)]
    return [apply_op("Squeeze", found, squeeze_dims=[_shifted(d) for d in dims])]


def _transpose(b: Builder, op: Operation) -> Sequence[Tensor]:
    b.needs(op._inputs[0])
    perm = np.concatenate([[0], b.value(op._inputs[1]) + 1]).astype(np.int32)
    return [apply_op("Transpose", b.new[id(op._inputs[0])], perm)]


def _reverse(b: Builder, op: Operation) -> Sequence[Tensor]:
    b.needs(op._inputs[0])
    axes = np.array([_shifted(int(a)) for a in b.value(op._inputs[1])], np.int32)
    return [apply_op("ReverseV2", b.new[id(op._inputs[0])], axes)]


def _first_row(b: Builder, op: Operation, row: int | Sequence[int]) -> Sequence[Tensor]:
    """Numbers for each dimension, with those for the batch's dimension in front."""
    b.needs(op._inputs[0])
    own = b.value(op._inputs[1])
    numbers = np.concatenate([np.array([row], own.dtype), own])
    return b.again(op, [b.new[id(op._inputs[0])], _constant(numbers), *b.all(op._inputs[2:])])


def _constant(value: Array) -> Tensor:
    return apply_op("Const", value=value, dtype=dtypes.as_dtype(value.dtype))


def _pad(b: Builder, op: Operation) -> Sequence[Tensor]:
    if any(b.depends(t) for t in op._inputs[2:]):
        raise Unfit
    return _first_row(b, op, [0, 0])


# parts --------------------------------------------------------------------------------------------


def _slice(b: Builder, op: Operation) -> Sequence[Tensor]:
    tensor, begin, size = op._inputs
    b.needs(tensor)
    first, sizes = b.value(begin), b.value(size)
    return b.again(
        op,
        [
            b.new[id(tensor)],
            _constant(np.concatenate([np.zeros(1, first.dtype), first])),
            _constant(np.concatenate([np.full(1, -1, sizes.dtype), sizes])),
        ],
    )


def _strided_slice(b: Builder, op: Operation) -> Sequence[Tensor]:
    b.needs(op._inputs[0])
    parts = [b.value(t) for t in op._inputs[1:]]
    numbers = [
        _constant(np.concatenate([np.array([n], p.dtype), p])) for n, p in zip((0, 0, 1), parts)
    ]
    whole = {"begin_mask": 1, "end_mask": 1}  # all of the batch
    masks = {k: 2 * v + whole.get(k, 0) for k, v in op._attrs.items() if k.endswith("_mask")}
    return b.again(op, [b.new[id(op._inputs[0])], *numbers], **masks)


def _gather(b: Builder, op: Operation) -> Sequence[Tensor]:
    params, indices, axis = op._inputs
    at = int(b.value(axis).reshape(()))
    if op._attrs["batch_dims"] or b.depends(params) == b.depends(indices):
        raise Unfit
    if b.depends(params):
        b.needs(params)
        return b.again(
            op,
            [*b.all([params, indices]), _constant(np.array(_shifted(at), np.int32))],
            Taxis=dtypes.int32,
        )
    b.needs(indices)
    if at:
        raise Unfit
    return b.again(op)


def _concat(b: Builder, op: Operation) -> Sequence[Tensor]:
    *values, axis = op._inputs
    b.needs(*values)
    at = _constant(np.array(_shifted(int(b.value(axis).reshape(()))), np.int32))
    return b.again(op, [*b.all(values), at], Tidx=dtypes.int32)


def _along_axis(b: Builder, op: Operation) -> Sequence[Tensor]:
    """Pack, Unpack, OneHot: the axis is an attribute."""
    several = op._inputs if op.type == "Pack" else op._inputs[:1]
    b.needs(*several)
    if any(b.depends(t) for t in op._inputs[len(several) :]):
        raise Unfit
    return b.again(op, axis=_shifted(op._attrs["axis"]))


def _split(b: Builder, op: Operation) -> Sequence[Tensor]:
    axis, value = op._inputs
    b.needs(value)
    at = _constant(np.array(_shifted(int(b.value(axis).reshape(()))), np.int32))
    return b.again(op, [at, b.new[id(value)]])


# records ------------------------------------------------------------------------------------------


def _parse_single_example(b: Builder, op: Operation) -> Sequence[Tensor]:
    """Features with one shape are the same alone and in a batch."""
    shapes = op._attrs["dense_shapes"]
    serialized, *defaults = op._inputs
    if op._attrs["num_sparse"] or any(s is None or None in s for s in shapes):
        raise Unfit
    b.needs(serialized)
    if any(b.depends(t) for t in defaults):
        raise Unfit
    found = apply_any(
        lookup("ParseExample"),
        b.new[id(serialized)],
        _constant(np.empty(0, object)),
        [],
        list(op._attrs["dense_keys"]),
        b.all(defaults),
        sparse_types=[],
        dense_shapes=list(shapes),
    )
    tensor = found
    while not isinstance(tensor, Tensor):
        tensor = next(part for part in tensor if isinstance(part, Tensor) or part)
    return tensor._op._outputs


#: Ops over batches that are not just themselves (``Traits.batching``).
RULES: dict[str, Rule] = {
    "Cast": _cast,
    "ConcatV2": _concat,
    "EnsureShape": _ensure_shape,
    "ExpandDims": _expand_dims,
    "GatherV2": _gather,
    "OneHot": _along_axis,
    "Pack": _along_axis,
    "Pad": _pad,
    "PadV2": _pad,
    "ParseSingleExample": _parse_single_example,
    "Reshape": _reshape,
    "ReverseV2": _reverse,
    "Select": _select,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "Tile": lambda b, op: _first_row(b, op, 1),
    "Transpose": _transpose,
    "Unpack": _along_axis,
}
_BY_TRAIT: dict[str, Rule] = {"elementwise": _elementwise, "same": _same}


def rule_of(op: Operation) -> Rule | None:
    """How an operation is done on a whole batch; None if that is not known."""
    return RULES.get(op.type) or _BY_TRAIT.get(op._opdef.traits.batching)


def is_sure(op: Operation) -> bool:
    """Whether an operation cannot fail where all shapes are known."""
    traits = op._opdef.traits
    return bool(traits.batching) and traits.fails in ("never", "shapes", "known shapes")
