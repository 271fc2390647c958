"""``numeric_column`` and ``bucketized_column``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes, nest
from headrace.core.dtypes import DType, as_dtype
from headrace.core.shapes import TensorShape
from headrace.layers import layer_ops as ops
from headrace.ops.array.ranges import bucketize
from headrace.ops.io.parsing_features import FixedLenFeature
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.train.feature_columns.column_base import (
    Builder,
    CategoricalColumn,
    DenseColumn,
    FeatureColumn,
    IdWeightPair,
    check_key,
)

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, ShapeLike, TensorLike
    from headrace.core.tensor import Tensor
    from headrace.train.feature_columns.categorical_columns import IdentityCategoricalColumn


__all__ = [
    "BucketizedColumn", "Numbers", "NumericColumn", "bucketized_column", "checked_shape",
    "numeric_column",
]  # fmt: skip


@dataclass(frozen=True)
class Numbers(FeatureColumn):
    """Numbers of an example, or of each of its steps, as ``normalizer_fn`` makes them."""

    key: str
    shape: tuple[int, ...]
    default_value: Any
    dtype: DType
    normalizer_fn: Callable[[Any], Any] | None

    @property
    def name(self) -> str:
        return self.key

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape(self.shape)

    def _normalized(self, numbers: object) -> Any:
        return numbers if self.normalizer_fn is None else self.normalizer_fn(numbers)


@dataclass(frozen=True)
class NumericColumn(Numbers, DenseColumn):
    """Numbers as they are, or as ``normalizer_fn`` makes them."""

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: FixedLenFeature(self.shape, self.dtype, self.default_value)}

    def _transform_feature(self, inputs: Builder) -> Any:
        tensor = inputs.get(self.key)
        if isinstance(tensor, SparseTensor):
            raise ValueError(
                "The corresponding Tensor of numerical column must be a Tensor. "
                f"SparseTensor is not supported. key: {self.key}"
            )
        return ops.cast(self._normalized(tensor), dtypes.float32)


@dataclass(frozen=True)
class BucketizedColumn(DenseColumn, CategoricalColumn):
    """A number as the range between ``boundaries`` in which it is."""

    source_column: NumericColumn
    boundaries: tuple[float, ...]

    @property
    def name(self) -> str:
        return f"{self.source_column.name}_bucketized"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.source_column.parse_example_spec

    def _transform_feature(self, inputs: Builder) -> Tensor:
        return bucketize(inputs.get(self.source_column), boundaries=list(self.boundaries))

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([*self.source_column.shape, len(self.boundaries) + 1])

    def _get_dense_tensor(self, inputs: Builder, collections: list[str], trainable: bool) -> Tensor:
        buckets = ops.cast(inputs.get(self), dtypes.int64)
        depth = len(self.boundaries) + 1
        return ops.one_hot(buckets, depth=depth, on_value=1.0, off_value=0.0)

    @property
    def num_buckets(self) -> int:
        return (len(self.boundaries) + 1) * self.source_column.shape[0]

    def _get_sparse_tensors(self, inputs: Builder) -> IdWeightPair:
        buckets = inputs.get(self)
        rows, width = ops.shape(buckets)[0], self.source_column.shape[0]
        row = ops.reshape(ops.tile(ops.expand_dims(ops.range(0, rows), 1), [1, width]), (-1,))
        place = ops.tile(ops.range(0, width), ops.stack([rows]))
        ids = ops.reshape(buckets, (-1,)) + (len(self.boundaries) + 1) * place
        indices = ops.cast(ops.transpose(ops.stack((row, place))), dtypes.int64)
        shape = ops.cast(ops.stack([rows, width]), dtypes.int64)
        return IdWeightPair(SparseTensor(indices, ids, shape), None)


def checked_shape(shape: Any, key: str) -> tuple[int, ...]:
    """``shape`` as numbers above 0."""
    dims = tuple(shape) if nest.is_sequence(shape) else (shape,)
    for d in dims:
        if not isinstance(d, (int, np.integer)):
            raise TypeError(f"shape dimensions must be integer. shape: {shape}, key: {key}")
        if d < 1:
            raise ValueError(f"shape dimensions must be greater than 0. shape: {shape}, key: {key}")
    return tuple(int(d) for d in dims)


def _as_tuples(value: TensorLike) -> Any:
    return tuple(_as_tuples(v) for v in value) if isinstance(value, list) else value


def _checked_default(
    shape: tuple[int, ...], value: TensorLike | None, dtype: DType, key: str
) -> Any:
    """The default for every element of ``shape``, None if there is none."""
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype.kind == "f" and dtype.is_integer:
        raise TypeError(
            f"default_value must be compatible with dtype. default_value: {value}, dtype: {dtype}, "
            f"key: {key}"
        )
    if array.ndim == 0:
        array = np.full(shape, value)
    elif array.shape != shape:
        raise ValueError(
            "The shape of default_value must be equal to given shape. "
            f"default_value: {value}, shape: {shape}, key: {key}"
        )
    return _as_tuples(array.astype(dtype.as_numpy_dtype).tolist())


def numeric_column(
    key: str,
    shape: ShapeLike = (1,),
    default_value: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    normalizer_fn: Callable[[Any], Any] | None = None,
) -> NumericColumn:
    """Numbers of ``shape`` per row.

    ``default_value``: for examples that lack the feature. ``normalizer_fn``: called with the
    tensor, for example ``lambda x: (x - 3.0) / 4.2``.
    """
    kind = as_dtype(dtype)
    dims = checked_shape(shape, key)
    if not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {kind}, key: {key}")
    default = _checked_default(dims, default_value, kind, key)
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")
    check_key(key)
    return NumericColumn(key, dims, default, kind, normalizer_fn)


def bucketized_column(
    source_column: IdentityCategoricalColumn | NumericColumn, boundaries: Sequence[float]
) -> BucketizedColumn:
    """A numeric column as ranges: below the first boundary, between two, from the last on."""
    if not isinstance(source_column, NumericColumn):
        raise ValueError(
            "source_column must be a column generated with numeric_column(). "
            f"Given: {source_column}"
        )
    if len(source_column.shape) > 1:
        raise ValueError(f"source_column must be one-dimensional column. Given: {source_column}")
    if not boundaries:
        raise ValueError("boundaries must not be empty.")
    ordered = isinstance(boundaries, (list, tuple)) and all(a < b for a, b in pairwise(boundaries))
    if not ordered:
        raise ValueError("boundaries must be a sorted list.")
    return BucketizedColumn(source_column, tuple(boundaries))
