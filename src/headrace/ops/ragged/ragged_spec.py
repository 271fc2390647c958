"""What is known of a ragged tensor before it is there: ``tf.RaggedTensorSpec([None, None])``.

Functions, branches and loops take ragged tensors apart with it and put them together again.

    spec = RaggedTensorSpec([2, None], tf.int32)
    spec.from_components(spec.to_components(ragged))    # the same rows again
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from headrace.core import dtypes, specs
from headrace.core.dtypes import as_dtype
from headrace.core.shapes import TensorShape
from headrace.core.specs import TensorSpec
from headrace.ops.ragged.ragged_tensor import RaggedTensor

__all__ = ["RaggedTensorSpec"]


class RaggedTensorSpec(specs.Shaped):
    """Shape, type, number of ragged dimensions and the type of the row splits.

    For the input signatures of functions. ``shape`` has None for ragged and for unknown sizes;
    ``ragged_rank`` defaults to all dimensions but the first and the last one's values: ``rank -
    1``.
    """

    value_type: ClassVar[Any] = RaggedTensor

    def __init__(
        self,
        shape: object = None,
        dtype: object = dtypes.float32,
        ragged_rank: int | None = None,
        row_splits_dtype: object = dtypes.int64,
    ) -> None:
        super().__init__(shape, dtype)
        self._row_splits_dtype = as_dtype(row_splits_dtype)
        if self._row_splits_dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError("row_splits_dtype must be tf.int32 or tf.int64")
        rank = self._shape.rank
        if ragged_rank is None:
            if rank is None:
                raise ValueError("Must specify ragged_rank or a shape with a known rank.")
            ragged_rank = rank - 1
        if not isinstance(ragged_rank, int):
            raise TypeError("ragged_rank must be an int")
        if rank is not None and ragged_rank >= rank:
            raise ValueError("ragged_rank must be less than rank.")
        self._ragged_rank = ragged_rank

    @classmethod
    def from_value(cls, value: Any) -> RaggedTensorSpec:
        splits = value.row_splits.dtype
        return cls(value.shape, value.dtype.base_dtype, value.ragged_rank, splits)

    @property
    def ragged_rank(self) -> int:
        return self._ragged_rank

    @property
    def row_splits_dtype(self) -> dtypes.DType:
        return self._row_splits_dtype

    @property
    def component_specs(self) -> tuple[TensorSpec, ...]:
        """Of the flat values and of the splits of each ragged dimension."""
        if self._ragged_rank == 0:
            return (TensorSpec(self._shape, self._dtype),)
        inner = TensorShape([None]).concatenate(self._shape[self._ragged_rank + 1 :])
        rows = None if self._shape.rank is None else self._shape.as_list()[0]
        outer = TensorSpec([None if rows is None else rows + 1], self._row_splits_dtype)
        rest = [TensorSpec([None], self._row_splits_dtype)] * (self._ragged_rank - 1)
        return (TensorSpec(inner, self._dtype), outer, *rest)

    def to_components(self, value: Any) -> list[Any]:
        if not isinstance(value, RaggedTensor):
            return [value]
        return [value.flat_values, *value.nested_row_splits]

    def from_components(self, tensors: Sequence[Any]) -> Any:
        made = tensors[0]
        for splits in reversed(tensors[1:]):
            made = RaggedTensor.from_row_splits(made, splits, validate=False)
        return made

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self._ragged_rank, self._row_splits_dtype)

    def _like(self, shape: TensorShape) -> RaggedTensorSpec:
        return RaggedTensorSpec(shape, self._dtype, self._ragged_rank, self._row_splits_dtype)

    def _same_kind(self, other: Any) -> bool:
        return super()._same_kind(other) and self._key()[2:] == other._key()[2:]

    def is_compatible_with(self, spec_or_value: object) -> bool:
        other = specs._spec_or_none(spec_or_value)
        return (
            isinstance(other, RaggedTensorSpec)
            and self._key()[2:] == other._key()[2:]
            and super().is_compatible_with(other)
        )

    def __repr__(self) -> str:
        return (
            f"RaggedTensorSpec({self._shape!r}, {self._dtype!r}, {self._ragged_rank!r}, "
            f"{self._row_splits_dtype!r})"
        )
