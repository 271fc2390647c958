"""Ragged tensors as variants, which stack and slice like numbers: what datasets carry.

encoded = to_variant(ragged)                     # a scalar
rows = to_variant(ragged, batched=True)          # a vector, one for each row
from_variant(rows, ragged.dtype, ragged.ragged_rank)         # the ragged tensor again
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.core.build import apply_any, apply_op
from headrace.core.dtypes import DType, int64
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define, lookup
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import invalid
from headrace.ops.ragged.ragged_tensor import _OWN, RaggedTensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace

__all__ = ["from_variant", "to_variant"]


class RaggedParts(NamedTuple):
    """Row splits, the outermost first, and flat values; without splits it is a dense tensor."""

    splits: tuple[Any, ...]
    values: Any

    def rows(self) -> list[RaggedParts]:
        if not self.splits:
            return [RaggedParts((), v) for v in self.values]
        ends, rest = self.splits[0], RaggedParts(self.splits[1:], self.values)
        return [rest.between(int(a), int(b)) for a, b in itertools.pairwise(ends)]

    def between(self, start: int, stop: int) -> RaggedParts:
        """Rows ``start`` to ``stop``."""
        splits = []
        for ends in self.splits:
            part = ends[start : stop + 1]
            start, stop = int(part[0]), int(part[-1])
            splits.append(part - part[0])
        return RaggedParts(tuple(splits), self.values[start:stop])

    @property
    def height(self) -> int:
        return len(self.splits[0]) - 1 if self.splits else len(self.values)


def _joined(parts: Sequence[RaggedParts], kind: Any) -> RaggedParts:
    """One more dimension: the parts are its rows."""
    ends = np.cumsum([0, *(p.height for p in parts)]).astype(kind)
    inner = []
    for level in range(len(parts[0].splits)):
        lengths = np.concatenate([np.diff(p.splits[level]) for p in parts])
        inner.append(np.concatenate([[0], np.cumsum(lengths)]).astype(kind))
    return RaggedParts((ends, *inner), np.concatenate([p.values for p in parts]))


def _to_variant(xp: ArrayNamespace, *inputs: Array, RAGGED_RANK: int, batched_input: bool) -> Array:
    whole = RaggedParts(tuple(inputs[:RAGGED_RANK]), inputs[RAGGED_RANK])
    if batched_input and whole.values.ndim == 0:
        raise invalid("a ragged tensor that is taken apart needs rows")
    rows = whole.rows() if batched_input else [whole]
    out = np.empty(len(rows), object)
    for i, row in enumerate(rows):
        out[i] = row
    return out if batched_input else out.reshape(())


def _from_variant(
    xp: ArrayNamespace,
    encoded: Array,
    *,
    input_ragged_rank: int,
    output_ragged_rank: int,
    Tvalues: DType,
    Tsplits: DType,
) -> Array | tuple[Array, ...]:
    kind = Tsplits.as_numpy_dtype
    found = _decoded(np.asarray(encoded, object), kind)
    if found is None:
        empty = (np.zeros(1, kind),) * output_ragged_rank
        found = RaggedParts(empty, np.zeros(0, Tvalues.as_numpy_dtype))
    if len(found.splits) != output_ragged_rank:
        raise invalid(
            f"output_ragged_rank must be {len(found.splits)} here, but is {output_ragged_rank}"
        )
    if found.values.dtype != np.dtype(Tvalues.as_numpy_dtype):
        raise invalid(f"Expected values of type {Tvalues.name}, found {found.values.dtype}")
    values = np.asarray(found.values)
    return (*(s.astype(kind) for s in found.splits), values) if found.splits else values


def _decoded(encoded: Array, kind: Any) -> RaggedParts | None:
    if encoded.ndim == 0:
        part = encoded[()]
        if not isinstance(part, RaggedParts):
            raise invalid("Input Variant element doesn't hold a RaggedTensor")
        return part
    rows = [p for p in (_decoded(e, kind) for e in _elements(encoded)) if p is not None]
    return _joined(rows, kind) if rows else None


def _elements(encoded: Array) -> list[Any]:
    """The entries along the first axis as arrays."""
    if encoded.ndim > 1:
        return list(encoded)
    made = []
    for part in encoded:
        one = np.empty((), object)
        one[()] = part
        made.append(one)
    return made


def _encoded_shape(c: Inference) -> list[Shape]:
    if not c.attr("batched_input"):
        return [()]
    rank = c.attr("RAGGED_RANK")
    first = c.shape(0)
    if first is None or not first or first[0] is None:
        return [(None,)]
    return [(first[0] - 1 if rank else first[0],)]


def _decoded_shapes(c: Inference) -> list[Shape]:
    rank = c.attr("output_ragged_rank")
    return [*([(None,)] * rank), None]


define(
    "RaggedTensorToVariant",
    "rt_nested_splits: RAGGED_RANK*Tsplits, rt_dense_values: Tvalues -> encoded_ragged: variant; "
    "RAGGED_RANK: int, Tvalues: type, Tsplits: type(index), batched_input: bool",
    shape=_encoded_shape,
    kernel=_to_variant,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
define(
    "RaggedTensorFromVariant",
    "encoded_ragged: variant -> output_nested_splits: output_ragged_rank*Tsplits, "
    "output_dense_values: Tvalues; input_ragged_rank: int, output_ragged_rank: int, "
    "Tvalues: type, Tsplits: type(index)",
    shape=_decoded_shapes,
    kernel=_from_variant,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)


def to_variant(value: Any, batched: bool = False) -> Tensor:
    """A ragged or dense tensor as a variant, or its rows as a vector of them."""
    ragged = isinstance(value, RaggedTensor)
    splits = list(value.nested_row_splits) if ragged else []
    kind = splits[0].dtype.base_dtype if splits else int64
    return apply_op(
        "RaggedTensorToVariant",
        splits,
        value.flat_values if ragged else value,
        RAGGED_RANK=len(splits),
        Tsplits=kind,
        batched_input=batched,
    )


def from_variant(encoded: Tensor, dtype: DType, rank: int, splits_dtype: DType = int64) -> Any:
    """The tensor with ``rank`` ragged dimensions that a variant, or several, hold."""
    found: Any = apply_any(
        lookup("RaggedTensorFromVariant"),
        encoded,
        input_ragged_rank=-1,
        output_ragged_rank=rank,
        Tvalues=dtype,
        Tsplits=splits_dtype,
    )
    splits, values = found
    made = values
    for ends in reversed(list(splits)):
        made = RaggedTensor(made, ends, _OWN)
    return made
