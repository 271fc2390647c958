"""What feature columns are: dense ones give a matrix, categorical ones give ids.

A column says which raw features it needs (``parse_example_spec``) and how to transform them. A
:class:`Builder` holds the raw features of one call and transforms each column once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core import dtypes
from headrace.core.dtypes import DType
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.shapes import TensorShape
from headrace.layers import layer_ops as ops
from headrace.ops.sparse.sparse_arranging import sparse_reshape
from headrace.ops.sparse.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor


__all__ = [
    "Builder", "CategoricalColumn", "DenseColumn", "FeatureColumn", "IdWeightPair",
    "as_sparse", "check_key", "check_string_or_int", "sorted_columns",
]  # fmt: skip


class IdWeightPair(NamedTuple):
    """Ids of a categorical column, and a weight for each (None: all 1)."""

    id_tensor: SparseTensor
    weight_tensor: SparseTensor | None


class FeatureColumn:
    """A column; its subclasses are frozen dataclasses, so that columns can be compared and kept."""

    @property
    def name(self) -> str:
        """The column's name, from which its variables are named."""
        raise NotImplementedError

    @property
    def _var_scope_name(self) -> str:
        return self.name

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """What ``tf.parse_example`` needs for the features of this column."""
        raise NotImplementedError

    def _transform_feature(self, inputs: Builder) -> Any:
        raise NotImplementedError


class DenseColumn(FeatureColumn):
    """A column that is part of a dense input."""

    @property
    def variable_shape(self) -> TensorShape:
        """The shape of one row."""
        raise NotImplementedError

    def _get_dense_tensor(self, inputs: Builder, collections: list[str], trainable: bool) -> Any:
        return inputs.get(self)


class CategoricalColumn(FeatureColumn):
    """A column of ids below ``num_buckets``."""

    #: Whether a row has ids for each of its steps (sequence_columns.py).
    is_sequence = False

    @property
    def num_buckets(self) -> int:
        """How many ids there are."""
        raise NotImplementedError

    def _get_sparse_tensors(self, inputs: Builder) -> IdWeightPair:
        return IdWeightPair(inputs.get(self), None)


class Builder:
    """The raw features of one call, and what columns made of them."""

    def __init__(self, features: Mapping[str, Any]) -> None:
        self._features = dict(features)
        self._made: dict[Any, Any] = {}

    def get(self, key: Any) -> Any:
        """The raw feature ``key`` as a tensor of rank 2 or more, or the transformed column."""
        if key in self._made:
            return self._made[key]
        if key in self._features:
            found = self._raw(key)
        elif isinstance(key, str):
            raise ValueError(f"Feature {key} is not in features dictionary.")
        elif isinstance(key, FeatureColumn):
            found = key._transform_feature(self)
        else:
            raise TypeError(f'"key" must be either a "str" or "_FeatureColumn". Provided: {key}')
        self._made[key] = found
        return found

    def _raw(self, key: str) -> Any:
        tensor: Any = convert_to_tensor_or_sparse_tensor(self._features[key])
        rank = tensor.get_shape().ndims
        message = f"Feature (key: {key}) cannot have rank 0. Given: {tensor}"
        if rank == 0:
            raise ValueError(message)
        if rank is not None:
            return tensor if rank != 1 else _as_column(tensor)
        if isinstance(tensor, SparseTensor):
            known_rank = ops.size(tensor.dense_shape)
        else:
            known_rank = ops.rank(tensor)
        with control_dependencies([ops.assert_positive(known_rank, message=message)]):
            return ops.cond(ops.equal(1, known_rank), lambda: _as_column(tensor), lambda: tensor)


def _as_column(tensor: Tensor) -> Tensor:
    if isinstance(tensor, SparseTensor):
        return sparse_reshape(tensor, [tensor.dense_shape[0], 1])
    return ops.expand_dims(tensor, -1)


def as_sparse(given: object, ignored: TensorLike | None = None) -> SparseTensor:
    """A dense feature as a sparse one, without the elements that mean "nothing".

    These are ``ignored``, or the empty string, -1 and 0.0 by default.
    """
    tensor: Any = convert_to_tensor_or_sparse_tensor(given)
    if isinstance(tensor, SparseTensor):
        return tensor
    with name_scope(None, "to_sparse_input", [tensor]):
        if ignored is None:
            if tensor.dtype == dtypes.string:
                ignored = ""
            else:
                ignored = -1 if tensor.dtype.is_integer else 0.0
        nothing = ops.cast(ignored, tensor.dtype, name="ignore_value")
        indices = ops.where(ops.not_equal(tensor, nothing), name="indices")
        return SparseTensor(
            indices,
            ops.gather_nd(tensor, indices, name="values"),
            ops.shape(tensor, out_type=dtypes.int64, name="dense_shape"),
        )


def sorted_columns(feature_columns: Sequence[Any]) -> list[Any]:
    """The columns of a call by name; ValueError if there are none or two have one name."""
    if isinstance(feature_columns, FeatureColumn):
        feature_columns = [feature_columns]
    if isinstance(feature_columns, dict):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    columns = list(feature_columns)
    for column in columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(
                "Items of feature_columns must be a _FeatureColumn. "
                f"Given (type {type(column)}): {column}."
            )
    if not columns:
        raise ValueError("feature_columns must not be empty.")
    by_name: dict[str, Any] = {}
    for column in columns:
        if column.name in by_name:
            raise ValueError(
                f"Duplicate feature column name found for columns: {column} and "
                f"{by_name[column.name]}. This usually means that these columns refer to same base "
                "feature. Either one must be discarded or a duplicated but renamed item must be "
                "inserted in features dict."
            )
        by_name[column.name] = column
    return sorted(columns, key=lambda c: str(c.name))


def check_key(key: object) -> None:
    """ValueError unless ``key`` is a string."""
    if not isinstance(key, str):
        raise ValueError(f"key must be a string. Got: type {type(key)}. Given key: {key}.")


def check_string_or_int(dtype: DType, prefix: str) -> None:
    """ValueError unless ``dtype`` is one of strings or whole numbers."""
    if dtype != dtypes.string and not dtype.is_integer:
        raise ValueError(f"{prefix} dtype must be string or integer. dtype: {dtype}.")
