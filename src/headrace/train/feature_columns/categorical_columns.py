"""Columns of ids: from hashes, vocabularies, numbers, and crosses of other columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.dtypes import DType, as_dtype
from headrace.core.scopes import control_dependencies
from headrace.layers import layer_ops as ops
from headrace.ops.io.parsing_features import VarLenFeature
from headrace.ops.sparse.sparse_cross import sparse_cross_hashed
from headrace.ops.sparse.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from headrace.ops.state.vocabulary_tables import index_table_from_file, index_table_from_tensor
from headrace.ops.strings.string_encoding import string_to_hash_bucket_fast
from headrace.ops.strings.string_numbers import as_string
from headrace.train.feature_columns.column_base import (
    Builder,
    CategoricalColumn,
    IdWeightPair,
    as_sparse,
    check_key,
    check_string_or_int,
)

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike
    from headrace.core.tensor import Tensor


__all__ = [
    "CrossedColumn", "HashedCategoricalColumn", "IdentityCategoricalColumn",
    "VocabularyFileCategoricalColumn", "VocabularyListCategoricalColumn",
    "WeightedCategoricalColumn", "categorical_column_with_hash_bucket",
    "categorical_column_with_identity", "categorical_column_with_vocabulary_file",
    "categorical_column_with_vocabulary_list", "crossed_column", "weighted_categorical_column",
]  # fmt: skip


@dataclass(frozen=True)
class _KeyedColumn(CategoricalColumn):
    """Ids from one raw feature."""

    key: str

    @property
    def name(self) -> str:
        return self.key

    @property
    def _feature_type(self) -> DType:
        raise NotImplementedError

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: VarLenFeature(self._feature_type)}

    def _transform_feature(self, inputs: Builder) -> SparseTensor:
        return self._ids(as_sparse(inputs.get(self.key)))

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        raise NotImplementedError

    def _check_type(self, tensor: SparseTensor) -> None:
        kind = self._feature_type
        if kind.is_integer != tensor.dtype.is_integer:
            raise ValueError(
                "Column dtype and SparseTensors dtype must be compatible. "
                f"key: {self.key}, column dtype: {kind}, tensor dtype: {tensor.dtype}"
            )
        check_string_or_int(tensor.dtype, f"column_name: {self.key} input_tensor")


@dataclass(frozen=True)
class HashedCategoricalColumn(_KeyedColumn):
    """Ids that are hashes of the values."""

    hash_bucket_size: int
    dtype: DType

    @property
    def _feature_type(self) -> DType:
        return self.dtype

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        self._check_type(tensor)
        texts = tensor.values if self.dtype == dtypes.string else as_string(tensor.values)
        ids = string_to_hash_bucket_fast(texts, self.hash_bucket_size, name="lookup")
        return SparseTensor(tensor.indices, ids, tensor.dense_shape)

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size


@dataclass(frozen=True)
class _VocabularyColumn(_KeyedColumn):
    """Ids that are places in a vocabulary."""

    def _table(self, key_dtype: DType) -> Any:
        raise NotImplementedError

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        self._check_type(tensor)
        kind = self._feature_type
        given: Any = tensor
        if tensor.dtype.is_integer:
            kind = dtypes.int64
            values = ops.cast(tensor.values, dtypes.int64)
            given = SparseTensor(tensor.indices, values, tensor.dense_shape)
        found: SparseTensor = self._table(kind).lookup(given)
        return found


@dataclass(frozen=True)
class VocabularyFileCategoricalColumn(_VocabularyColumn):
    """Ids that are lines of a file."""

    vocabulary_file: str
    vocabulary_size: int
    num_oov_buckets: int
    dtype: DType
    default_value: int

    @property
    def _feature_type(self) -> DType:
        return self.dtype

    def _table(self, key_dtype: DType) -> Any:
        return index_table_from_file(
            vocabulary_file=self.vocabulary_file,
            num_oov_buckets=self.num_oov_buckets,
            vocab_size=self.vocabulary_size,
            default_value=self.default_value,
            key_dtype=key_dtype,
            name=f"{self.key}_lookup",
        )

    @property
    def num_buckets(self) -> int:
        return self.vocabulary_size + self.num_oov_buckets


@dataclass(frozen=True)
class VocabularyListCategoricalColumn(_VocabularyColumn):
    """Ids that are places in a list."""

    vocabulary_list: tuple[Any, ...]
    dtype: DType
    default_value: int
    num_oov_buckets: int

    @property
    def _feature_type(self) -> DType:
        return self.dtype

    def _table(self, key_dtype: DType) -> Any:
        return index_table_from_tensor(
            vocabulary_list=self.vocabulary_list,
            default_value=self.default_value,
            num_oov_buckets=self.num_oov_buckets,
            dtype=key_dtype,
            name=f"{self.key}_lookup",
        )

    @property
    def num_buckets(self) -> int:
        return len(self.vocabulary_list) + self.num_oov_buckets


@dataclass(frozen=True)
class IdentityCategoricalColumn(_KeyedColumn):
    """Whole numbers as ids."""

    number_buckets: int
    default_value: int | None

    @property
    def _feature_type(self) -> DType:
        return dtypes.int64

    @property
    def num_buckets(self) -> int:
        return self.number_buckets

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        if not tensor.dtype.is_integer:
            raise ValueError(f"Invalid input, not integer. key: {self.key} dtype: {tensor.dtype}")
        values = ops.cast(tensor.values, dtypes.int64, name="values")
        limit = ops.cast(self.num_buckets, dtypes.int64, name="num_buckets")
        zero = ops.cast(0, dtypes.int64, name="zero")
        if self.default_value is None:
            values = self._asserted(values, limit, zero)
        else:
            outside = ops.logical_or(values < zero, values >= limit, name="out_of_range")
            default = ops.cast(self.default_value, dtypes.int64)
            defaults = ops.fill(ops.shape(values), default, name="default_values")
            values = ops.where(outside, defaults, values)
        return SparseTensor(tensor.indices, values, tensor.dense_shape)

    def _asserted(self, values: Tensor, limit: Tensor, zero: Tensor) -> Tensor:
        less = ops.assert_less(
            values,
            limit,
            data=(values, limit),
            message=f'Bucket index for categorical column "{self.name}" exceeds number of buckets',
            name="assert_less_than_num_buckets",
        )
        positive = ops.assert_greater_equal(
            values,
            zero,
            data=(values,),
            message=f'Negative bucket index for categorical column "{self.name}"',
            name="assert_greater_or_equal_0",
        )
        with control_dependencies([less, positive]):
            return ops.identity(values)


@dataclass(frozen=True)
class WeightedCategoricalColumn(CategoricalColumn):
    """A categorical column whose ids have weights of another feature."""

    categorical_column: CategoricalColumn
    weight_feature_key: str
    dtype: DType

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        spec = self.categorical_column.parse_example_spec
        if self.weight_feature_key in spec:
            raise ValueError(
                f"Parse config {spec[self.weight_feature_key]} already exists for "
                f"{self.weight_feature_key}."
            )
        spec[self.weight_feature_key] = VarLenFeature(self.dtype)
        return spec

    @property
    def num_buckets(self) -> int:
        return self.categorical_column.num_buckets

    def _transform_feature(self, inputs: Builder) -> tuple[Any, ...]:
        weights: Any = convert_to_tensor_or_sparse_tensor(inputs.get(self.weight_feature_key))
        if self.dtype != weights.dtype.base_dtype:
            raise ValueError(f"Bad dtype, expected {self.dtype}, but got {weights.dtype}.")
        weights = as_sparse(weights, 0.0)
        if not weights.dtype.is_floating:
            values = ops.cast(weights.values, dtypes.float32)
            weights = SparseTensor(weights.indices, values, weights.dense_shape)
        return inputs.get(self.categorical_column), weights

    def _get_sparse_tensors(self, inputs: Builder) -> IdWeightPair:
        return IdWeightPair(*inputs.get(self))


@dataclass(frozen=True)
class CrossedColumn(CategoricalColumn):
    """Ids that are hashes of combinations of features."""

    keys: tuple[Any, ...]
    hash_bucket_size: int
    hash_key: int | None

    def _leaves(self) -> list[Any]:
        found: list[Any] = []
        for key in self.keys:
            found += key._leaves() if isinstance(key, CrossedColumn) else [key]
        return found

    @property
    def name(self) -> str:
        return "_X_".join(sorted(k if isinstance(k, str) else k.name for k in self._leaves()))

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {}
        for key in self.keys:
            text = isinstance(key, str)
            spec.update({key: VarLenFeature(dtypes.string)} if text else key.parse_example_spec)
        return spec

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    def _transform_feature(self, inputs: Builder) -> SparseTensor:
        tensors = []
        for key in self._leaves():
            if isinstance(key, str):
                tensors.append(inputs.get(key))
                continue
            pair = key._get_sparse_tensors(inputs)
            if pair.weight_tensor is not None:
                raise ValueError(
                    "crossed_column does not support weight_tensor, but the given column "
                    f"populates weight_tensor. Given column: {key.name}"
                )
            tensors.append(pair.id_tensor)
        return sparse_cross_hashed(tensors, self.hash_bucket_size, self.hash_key)


def categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: DTypeLike = dtypes.string
) -> HashedCategoricalColumn:
    """Ids from hashes of texts or whole numbers: no vocabulary is needed, values may collide.

    ``key`` is the name of the feature, ``hash_bucket_size`` the number of ids and ``dtype`` string
    or an integer type. Empty strings and -1 count as missing.

        words = tf.feature_column.categorical_column_with_hash_bucket("word", 100)
        column = tf.feature_column.indicator_column(words)
    """
    if hash_bucket_size is None:
        raise ValueError(f"hash_bucket_size must be set. key: {key}")
    if hash_bucket_size < 1:
        raise ValueError(
            f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}"
        )
    check_key(key)
    kind = as_dtype(dtype)
    check_string_or_int(kind, f"column_name: {key}")
    return HashedCategoricalColumn(key, hash_bucket_size, kind)


def _check_oov(num_oov_buckets: int, has_default: bool, key: str) -> None:
    if num_oov_buckets and has_default:
        raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
    if num_oov_buckets and num_oov_buckets < 0:
        raise ValueError(f"Invalid num_oov_buckets {num_oov_buckets} in {key}.")


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: DTypeLike = dtypes.string,
) -> VocabularyFileCategoricalColumn:
    """Ids that are lines of a file.

    ``vocabulary_size``: how many lines count (default: all). What is not in the file gets one of
    ``num_oov_buckets`` ids after the vocabulary, or ``default_value`` (default: it is ignored).
    """
    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    if vocabulary_size is None:
        try:
            with open(vocabulary_file, "rb") as file:
                vocabulary_size = sum(1 for _ in file)
        except FileNotFoundError:
            raise ValueError(f"vocabulary_file in {key} does not exist.") from None
    if vocabulary_size < 1:
        raise ValueError(f"Invalid vocabulary_size in {key}.")
    _check_oov(num_oov_buckets, default_value is not None, key)
    kind = as_dtype(dtype)
    check_string_or_int(kind, f"column_name: {key}")
    check_key(key)
    return VocabularyFileCategoricalColumn(
        key,
        vocabulary_file,
        vocabulary_size,
        num_oov_buckets or 0,
        kind,
        -1 if default_value is None else default_value,
    )


def categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[Any],
    dtype: DTypeLike | None = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> VocabularyListCategoricalColumn:
    """Ids that are places in ``vocabulary_list``.

    The rest as of ``categorical_column_with_vocabulary_file``.
    """
    if vocabulary_list is None or len(vocabulary_list) < 1:
        raise ValueError(f"vocabulary_list {vocabulary_list} must be non-empty, column_name: {key}")
    if len(set(vocabulary_list)) != len(vocabulary_list):
        raise ValueError(f"Duplicate keys in vocabulary_list {vocabulary_list}, column_name: {key}")
    listed = as_dtype(np.array(vocabulary_list).dtype)
    _check_oov(num_oov_buckets, default_value != -1, key)
    check_string_or_int(listed, f"column_name: {key} vocabulary")
    kind = listed if dtype is None else as_dtype(dtype)
    if kind.is_integer != listed.is_integer:
        raise ValueError(
            f"dtype {kind} and vocabulary dtype {listed} do not match, column_name: {key}"
        )
    check_string_or_int(kind, f"column_name: {key}")
    check_key(key)
    return VocabularyListCategoricalColumn(
        key, tuple(vocabulary_list), kind, default_value, num_oov_buckets
    )


def categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> IdentityCategoricalColumn:
    """Whole numbers in [0, num_buckets) as ids; others become ``default_value`` or are an error.

    ``key`` is the name of the feature, a tensor or a sparse tensor of integers; -1 counts as
    missing.

        hours = tf.feature_column.categorical_column_with_identity("hour", 24)
        tf.feature_column.input_layer({"hour": [[23]]}, tf.feature_column.indicator_column(hours))
    """
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(
            f"default_value {default_value} not in range [0, {num_buckets}), column_name {key}"
        )
    check_key(key)
    return IdentityCategoricalColumn(key, num_buckets, default_value)


def weighted_categorical_column(
    categorical_column: CategoricalColumn,
    weight_feature_key: str,
    dtype: DTypeLike = dtypes.float32,
) -> WeightedCategoricalColumn:
    """``categorical_column`` with weights from the feature ``weight_feature_key``.

    Both features have a value at the same places. ``dtype`` is the type of the weights, a number
    type. In an embedding or a linear model each id counts by its weight.
    """
    kind = None if dtype is None else as_dtype(dtype)
    if kind is None or not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype {dtype} is not convertible to float.")
    return WeightedCategoricalColumn(categorical_column, weight_feature_key, kind)


def crossed_column(
    keys: Sequence[Any], hash_bucket_size: int, hash_key: int | None = None
) -> CrossedColumn:
    """Combinations of features (names or categorical columns) as hashes.

    ``hash_bucket_size`` is the number of ids; ``hash_key`` changes the hash. An example with m and
    n values of two features has m * n combinations. Name a feature instead of giving a column with
    hash buckets.
    """
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    for key in keys:
        if not isinstance(key, (str, CategoricalColumn)):
            raise ValueError(
                "Unsupported key type. All keys must be either string, or categorical column "
                f"except HashedCategoricalColumn. Given: {key}"
            )
        if isinstance(key, HashedCategoricalColumn):
            raise ValueError(
                "categorical_column_with_hash_bucket is not supported for crossing. Hashing before "
                "crossing will increase probability of collision. Instead, use the feature name as "
                f"a string. Given: {key}"
            )
    return CrossedColumn(tuple(keys), hash_bucket_size, hash_key)
