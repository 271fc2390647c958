"""Columns of sequences: a row has one value (or several) for each of its steps.

A raw feature is a SparseTensor [rows, steps] (or [rows, steps, values]). ``sequence_input_layer``
gives a dense tensor [rows, steps, numbers] and how many steps each row has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core import dtypes
from headrace.core.dtypes import as_dtype
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.seeds import count_more
from headrace.layers import layer_ops as ops
from headrace.ops.io.parsing_features import VarLenFeature
from headrace.ops.math.segments import segment_max
from headrace.ops.sparse.sparse_arranging import sparse_reshape
from headrace.ops.sparse.sparse_tensor import SparseTensor, sparse_tensor_to_dense
from headrace.train.feature_columns import categorical_columns as categorical
from headrace.train.feature_columns.column_base import (
    Builder,
    CategoricalColumn,
    IdWeightPair,
    check_key,
    sorted_columns,
)
from headrace.train.feature_columns.column_models import check_batches
from headrace.train.feature_columns.dense_columns import (
    EmbeddingColumn,
    IndicatorColumn,
    SharedEmbeddingColumn,
)
from headrace.train.feature_columns.numeric_columns import Numbers, checked_shape
from headrace.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, ShapeLike
    from headrace.core.tensor import Tensor


__all__ = [
    "SequenceCategoricalColumn", "SequenceNumericColumn",
    "sequence_categorical_column_with_hash_bucket", "sequence_categorical_column_with_identity",
    "sequence_categorical_column_with_vocabulary_file",
    "sequence_categorical_column_with_vocabulary_list", "sequence_input_layer",
    "sequence_numeric_column",
]  # fmt: skip


class _Steps(NamedTuple):
    """What a column gives: [rows, steps, …], and the number of steps of each row."""

    dense_tensor: Tensor
    sequence_length: Tensor


@dataclass(frozen=True)
class SequenceCategoricalColumn(CategoricalColumn):
    """A column of ids for each step."""

    categorical_column: CategoricalColumn
    is_sequence = True

    @property
    def name(self) -> str:
        return self.categorical_column.name

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    @property
    def num_buckets(self) -> int:
        return self.categorical_column.num_buckets

    def _transform_feature(self, inputs: Builder) -> Any:
        return self.categorical_column._transform_feature(inputs)

    def _get_sparse_tensors(self, inputs: Builder) -> IdWeightPair:
        """Ids (and weights) as [rows, steps, ids of a step]."""
        ids, weights = self.categorical_column._get_sparse_tensors(inputs)
        given = ops.shape(ids)
        wanted = ops.cast(ops.stack([given[0], given[1], ops.reduce_prod(given[2:])]), dtypes.int64)
        ids = sparse_reshape(ids, wanted)
        return IdWeightPair(ids, None if weights is None else sparse_reshape(weights, wanted))


def sequence_length_of(ids: SparseTensor, num_elements: int = 1) -> Tensor:
    """How many steps each row has: one more than its last step; rows without any have none."""
    with name_scope(None, "sequence_length"):
        rows, columns = ids.indices[:, 0], ids.indices[:, 1]
        # a row without steps has the maximum 0
        numbers = segment_max(columns + 1, rows)
        lengths = ops.floor_div(numbers + (num_elements - 1), num_elements)
        # the maximum is over rows up to the last that has steps
        batch = ids.dense_shape[:1]
        missing = batch - ops.shape(lengths, out_type=dtypes.int64)
        padding = ops.zeros(missing, dtype=dtypes.int64)
        count_more(lengths.graph, 8)  # TF divides floats and slices with constants
        found: Tensor = ops.concat([lengths, padding], axis=0, name="sequence_length")
        return found


@dataclass(frozen=True)
class SequenceNumericColumn(Numbers):
    """Numbers for each step; steps that a row does not have are ``default_value``."""

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: VarLenFeature(self.dtype)}

    def _transform_feature(self, inputs: Builder) -> Any:
        return self._normalized(inputs.get(self.key))

    def _steps(self, inputs: Builder, collections: list[str], trainable: bool) -> _Steps:
        sparse = inputs.get(self)
        if not isinstance(sparse, SparseTensor):
            raise TypeError(
                f"Input must be a SparseTensor. The sequence column {self.key!r} got {sparse}."
            )
        dense = sparse_tensor_to_dense(sparse, default_value=self.default_value)
        shape = ops.concat([[ops.shape(dense)[0]], [-1], self.variable_shape], axis=0)
        dense = ops.reshape(dense, shape=shape)
        count_more(dense.graph, -1)
        flat = sparse.shape.ndims == 2
        numbers = int(self.variable_shape.num_elements() or 1) if flat else 1
        return _Steps(dense, sequence_length_of(sparse, numbers))


def _steps_of(column: object, builder: Builder, collections: list[str], trainable: bool) -> _Steps:
    """[rows, steps, …] of a column, or ValueError if it has no steps."""
    if isinstance(column, SequenceNumericColumn):
        return column._steps(builder, collections, trainable)
    if not isinstance(column, (EmbeddingColumn, SharedEmbeddingColumn, IndicatorColumn)):
        raise ValueError(
            "All feature_columns must be of type _SequenceDenseColumn. You can wrap a "
            "sequence_categorical_column with an embedding_column or indicator_column. "
            f"Given (type {type(column)}): {column}"
        )
    source = column.categorical_column
    if not isinstance(source, SequenceCategoricalColumn):
        kind = "indicator_column" if isinstance(column, IndicatorColumn) else "embedding_column"
        raise ValueError(
            f"In {kind}: {column.name}. categorical_column must be of type "
            "SequenceCategoricalColumn to use SequenceFeatures. Suggested fix: Use one of "
            f"sequence_categorical_column_with_*. Given (type {type(source)}): {source}"
        )
    pair = source._get_sparse_tensors(builder)
    dense = column._dense_of(pair, collections, trainable)
    if isinstance(column, IndicatorColumn):
        count_more(dense.graph, 19)  # TF reshapes the ids twice
    return _Steps(dense, sequence_length_of(pair.id_tensor))


def _all_equal(lengths: list[Tensor]) -> Tensor:
    """The lengths, which must be those of all columns."""
    with name_scope(None, "assert_all_equal", values=lengths):
        checks = [ops.assert_equal(lengths[0], other) for other in lengths[1:]]
        if checks:
            count_more(lengths[0].graph, 1 + len(checks))  # TF makes the texts again
        with control_dependencies(checks):
            found: Tensor = ops.identity(lengths[0])
            return found


def sequence_input_layer(
    features: dict[str, Any],
    feature_columns: Sequence[Any],
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
) -> tuple[Tensor, Tensor]:
    """The columns side by side, [rows, steps, numbers], and how many steps each row has.

    All columns must have the same steps. ``features``: name -> SparseTensor.
    """
    columns = sorted_columns(feature_columns)
    # unlike input_layer, no collection of model variables
    collections = [*(weight_collections or []), GraphKeys.GLOBAL_VARIABLES]
    outputs: list[Tensor] = []
    lengths: list[Tensor] = []
    with variable_scope(None, default_name="sequence_input_layer", values=list(features.values())):
        builder = Builder(features)
        for column in columns:
            with variable_scope(None, default_name=column._var_scope_name):
                dense, length = _steps_of(column, builder, collections, trainable)
                size = ops.shape(dense)
                numbers = column.variable_shape.num_elements()
                outputs.append(ops.reshape(dense, ops.stack([size[0], size[1], numbers])))
                lengths.append(length)
        check_batches(outputs, columns)
        return ops.concat(outputs, axis=-1), _all_equal(lengths)


def sequence_categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> SequenceCategoricalColumn:
    """Whole numbers for each step; see ``categorical_column_with_identity``.

    For ``sequence_input_layer``, inside of an embedding or indicator column: the feature is a
    sparse tensor [batch, time], or [batch, time, values].
    """
    return SequenceCategoricalColumn(
        categorical.categorical_column_with_identity(key, num_buckets, default_value)
    )


def sequence_categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: DTypeLike = dtypes.string
) -> SequenceCategoricalColumn:
    """Hashes for each step; see ``categorical_column_with_hash_bucket``.

    For ``sequence_input_layer``, inside of an embedding or indicator column: the feature is a
    sparse tensor [batch, time], or [batch, time, values].
    """
    return SequenceCategoricalColumn(
        categorical.categorical_column_with_hash_bucket(key, hash_bucket_size, dtype)
    )


def sequence_categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: DTypeLike = dtypes.string,
) -> SequenceCategoricalColumn:
    """Lines of a file for each step; see ``categorical_column_with_vocabulary_file``.

    For ``sequence_input_layer``, inside of an embedding or indicator column: the feature is a
    sparse tensor [batch, time], or [batch, time, values].
    """
    return SequenceCategoricalColumn(
        categorical.categorical_column_with_vocabulary_file(
            key, vocabulary_file, vocabulary_size, num_oov_buckets, default_value, dtype
        )
    )


def sequence_categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[Any],
    dtype: DTypeLike | None = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> SequenceCategoricalColumn:
    """Places in a list for each step; see ``categorical_column_with_vocabulary_list``.

    For ``sequence_input_layer``, inside of an embedding or indicator column: the feature is a
    sparse tensor [batch, time], or [batch, time, values].
    """
    return SequenceCategoricalColumn(
        categorical.categorical_column_with_vocabulary_list(
            key, vocabulary_list, dtype, default_value, num_oov_buckets
        )
    )


def sequence_numeric_column(
    key: str,
    shape: ShapeLike = (1,),
    default_value: float = 0.0,
    dtype: DTypeLike = dtypes.float32,
    normalizer_fn: Callable[[Any], Any] | None = None,
) -> SequenceNumericColumn:
    """Numbers of ``shape`` for each step.

    ``default_value`` fills the steps that a row does not have. ``normalizer_fn`` is called with
    the SparseTensor.
    """
    dims = checked_shape(shape, key)
    kind = as_dtype(dtype)
    if not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {kind}, key: {key}")
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")
    check_key(key)
    return SequenceNumericColumn(key, dims, default_value, kind, normalizer_fn)
