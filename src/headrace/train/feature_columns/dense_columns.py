"""Dense columns from categorical ones: embeddings, shared embeddings, indicators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import add_to_collection, get_collection, name_scope
from headrace.core.shapes import TensorShape
from headrace.layers import layer_ops as ops
from headrace.ops.array.gathering import scatter_nd
from headrace.ops.nn.embedding import safe_embedding_lookup_sparse
from headrace.ops.sparse.sparse_arranging import sparse_merge, sparse_slice
from headrace.ops.sparse.sparse_tensor import SparseTensor, sparse_tensor_to_dense
from headrace.train.checkpoint_readers import init_from_checkpoint
from headrace.train.feature_columns.categorical_columns import WeightedCategoricalColumn
from headrace.train.feature_columns.column_base import (
    Builder,
    CategoricalColumn,
    DenseColumn,
    IdWeightPair,
)
from headrace.variables.initializers import truncated_normal_initializer
from headrace.variables.variable_scope import get_variable

if TYPE_CHECKING:
    from headrace.core.annotations import InitializerLike, TensorLike
    from headrace.core.tensor import Tensor


__all__ = [
    "EmbeddingColumn", "IndicatorColumn", "SharedEmbeddingColumn", "embedding_column",
    "indicator_column", "shared_embedding_columns",
]  # fmt: skip


@dataclass(frozen=True)
class _EmbeddingBase(DenseColumn):
    categorical_column: CategoricalColumn
    dimension: int
    combiner: str
    initializer: Any
    ckpt_to_load_from: str | None
    tensor_name_in_ckpt: str | None
    max_norm: float | None
    trainable: bool

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    def _transform_feature(self, inputs: Builder) -> Any:
        return inputs.get(self.categorical_column)

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    def _weights(self, collections: list[str], trainable: bool) -> Any:
        return get_variable(
            "embedding_weights",
            shape=(self.categorical_column.num_buckets, self.dimension),
            dtype=dtypes.float32,
            initializer=self.initializer,
            trainable=self.trainable and trainable,
            collections=collections,
        )

    def _looked_up(self, pair: IdWeightPair, weights: TensorLike) -> Tensor:
        if self.ckpt_to_load_from is not None:
            where = str(self.tensor_name_in_ckpt)
            init_from_checkpoint(self.ckpt_to_load_from, {where: weights})
        return safe_embedding_lookup_sparse(
            embedding_weights=weights,
            sparse_ids=pair.id_tensor,
            sparse_weights=pair.weight_tensor,
            combiner=self.combiner,
            name=f"{self.name}_weights",
            max_norm=self.max_norm,
        )


@dataclass(frozen=True)
class EmbeddingColumn(_EmbeddingBase):
    """Ids as rows of a variable."""

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_embedding"

    def _get_dense_tensor(self, inputs: Builder, collections: list[str], trainable: bool) -> Tensor:
        _refuse_steps("embedding_column", self)
        pair = self.categorical_column._get_sparse_tensors(inputs)
        return self._dense_of(pair, collections, trainable)

    def _dense_of(self, pair: IdWeightPair, collections: list[str], trainable: bool) -> Tensor:
        return self._looked_up(pair, self._weights(collections, trainable))


@dataclass(frozen=True)
class SharedEmbeddingColumn(_EmbeddingBase):
    """Ids as rows of a variable that several columns share."""

    shared_embedding_collection_name: str

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_shared_embedding"

    @property
    def _var_scope_name(self) -> str:
        return self.shared_embedding_collection_name

    def _shared_weights(self, collections: list[str], trainable: bool) -> Any:
        name = self.shared_embedding_collection_name
        found = get_collection(name)
        advice = (
            "Suggested fix A: Choose a unique name for this collection. Suggested fix B: Do not "
            "add any variables to this collection. The feature_column library already adds a "
            "variable under the hood."
        )
        if len(found) > 1:
            raise ValueError(f"Collection {found} can only contain one variable. {advice}")
        shape = (self.categorical_column.num_buckets, self.dimension)
        if found:
            if found[0].get_shape() != shape:
                raise ValueError(
                    f"Shared embedding collection {name} contains variable {found[0].name} of "
                    f"unexpected shape {found[0].get_shape()}. Expected shape is {shape}. {advice}"
                )
            return found[0]
        made = self._weights(collections, trainable)
        add_to_collection(name, made)
        return made

    def _get_dense_tensor(self, inputs: Builder, collections: list[str], trainable: bool) -> Tensor:
        _refuse_steps("embedding_column", self)
        with name_scope(None, default_name=self.name):
            pair = self.categorical_column._get_sparse_tensors(inputs)
            return self._looked_up(pair, self._shared_weights(collections, trainable))

    def _dense_of(self, pair: IdWeightPair, collections: list[str], trainable: bool) -> Tensor:
        with name_scope(None, default_name=self.name):
            return self._looked_up(pair, self._shared_weights(collections, trainable))


def _refuse_steps(kind: str, column: Any) -> None:
    """ValueError if the ids of a dense column are those of steps."""
    if column.categorical_column.is_sequence:
        raise ValueError(
            f"In {kind}: {column.name}. categorical_column must not be of type "
            "_SequenceCategoricalColumn. Suggested fix A: If you wish to use DenseFeatures, use a "
            "non-sequence categorical_column_with_*. Suggested fix B: If you wish to create "
            "sequence input, use sequence_input_layer. "
            f"Given (type {type(column.categorical_column)}): {column.categorical_column}"
        )


@dataclass(frozen=True)
class IndicatorColumn(DenseColumn):
    """How often each id is in a row."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_indicator"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([1, self.categorical_column.num_buckets])

    def _transform_feature(self, inputs: Builder) -> Tensor:
        _refuse_steps("indicator_column", self)
        return self._dense_of(self.categorical_column._get_sparse_tensors(inputs), [], False)

    def _dense_of(self, pair: IdWeightPair, collections: list[str], trainable: bool) -> Tensor:
        ids, weights = pair
        depth = self.categorical_column.num_buckets
        if weights is None:
            dense = sparse_tensor_to_dense(ids, default_value=-1)
            hot = ops.one_hot(dense, depth=depth, on_value=1.0, off_value=0.0)
            return ops.reduce_sum(hot, axis=[-2])
        merged: SparseTensor = sparse_merge(sp_ids=ids, sp_values=weights, vocab_size=depth)
        # ids of -1 are outside of the slice
        kept = sparse_slice(merged, [0, 0], merged.dense_shape)
        return scatter_nd(kept.indices, kept.values, kept.dense_shape)


def _checked(
    dimension: int, checkpoint: object, tensor_name: object, initializer: InitializerLike | None
) -> Any:
    """The initializer of embeddings of ``dimension`` numbers."""
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    if (checkpoint is None) != (tensor_name is None):
        raise ValueError(
            "Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them."
        )
    if initializer is not None and not callable(initializer):
        raise ValueError("initializer must be callable if specified.")
    if initializer is None:
        return truncated_normal_initializer(mean=0.0, stddev=1 / math.sqrt(dimension))
    return initializer


def embedding_column(
    categorical_column: CategoricalColumn,
    dimension: int,
    combiner: str = "mean",
    initializer: InitializerLike | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> EmbeddingColumn:
    """Ids as rows of a variable of ``dimension`` columns; several ids of a row are combined.

    ``combiner``: "mean", "sqrtn" or "sum". ``initializer``: a truncated normal of deviation
    1 / sqrt(dimension) by default. ``ckpt_to_load_from``, ``tensor_name_in_ckpt``: a checkpoint and
    the name in it from which the variable is initialized. ``max_norm``: rows are clipped to it.
    """
    made = _checked(dimension, ckpt_to_load_from, tensor_name_in_ckpt, initializer)
    return EmbeddingColumn(
        categorical_column,
        dimension,
        combiner,
        made,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
    )


def _unweighted(column: Any) -> Any:
    weighted = isinstance(column, WeightedCategoricalColumn)
    return column.categorical_column if weighted else column


def _check_alike(columns: list[Any]) -> None:
    first = columns[0]
    if not isinstance(first, CategoricalColumn):
        raise ValueError(
            "All categorical_columns must be subclasses of _CategoricalColumn. "
            f"Given: {first}, of type: {type(first)}"
        )
    one = _unweighted(first)
    for column in columns[1:]:
        other = _unweighted(column)
        if not isinstance(other, type(one)):
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same type, "
                "or be weighted_categorical_column of the same type. "
                f"Given column: {one} of type: {type(one)} does not match given column: {other} of "
                f"type: {type(other)}"
            )
        if first.num_buckets != other.num_buckets:
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same number "
                f"of buckets. Given column: {one} with buckets: {first.num_buckets} does not match "
                f"column: {other} with buckets: {other.num_buckets}"
            )


def shared_embedding_columns(
    categorical_columns: Sequence[CategoricalColumn],
    dimension: int,
    combiner: str = "mean",
    initializer: InitializerLike | None = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> list[SharedEmbeddingColumn]:
    """Embeddings of several columns in one variable; arguments as of ``embedding_column``.

    The columns must be of one kind with one number of ids, such as "words searched" and "words
    bought". ``shared_embedding_collection_name`` (default: made of the columns' names) names the
    variable. The result is a list of one column for each.
    """
    made = _checked(dimension, ckpt_to_load_from, tensor_name_in_ckpt, initializer)
    ordered = sorted(categorical_columns, key=lambda c: c.name)
    _check_alike(ordered)
    name = shared_embedding_collection_name
    name = name or "_".join(c.name for c in ordered) + "_shared_embedding"
    return [
        SharedEmbeddingColumn(
            column,
            dimension,
            combiner,
            made,
            ckpt_to_load_from,
            tensor_name_in_ckpt,
            max_norm,
            trainable,
            name,
        )
        for column in categorical_columns
    ]


def indicator_column(categorical_column: CategoricalColumn) -> IndicatorColumn:
    """Which ids are in a row, and how often, as a vector of ``num_buckets`` numbers."""
    return IndicatorColumn(categorical_column)


def weight_collections(given: Any) -> list[str]:
    """The collections of variables that columns make."""
    collections = list(given or [])
    for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES):
        if key not in collections:
            collections.append(key)
    return collections
