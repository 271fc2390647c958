"""``tf.contrib.layers``' encoders of ids: embeddings of sequences and bags of words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.api.hosting import module
from headrace.core.convert import convert_to_tensor
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import reshape
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.gathering import gather
from headrace.ops.array.joining import concat
from headrace.ops.array.uniques import unique
from headrace.ops.math.reductions import reduce_mean, reduce_prod
from headrace.ops.nn.embedding import embedding_lookup, safe_embedding_lookup_sparse
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.variables.variable_scope import get_variable, variable_scope

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.variables.scope_state import VariableScope

__all__ = [
    "bow_encoder", "embed_sequence", "embedding_lookup_unique", "safe_embedding_lookup_sparse",
]  # fmt: skip


def _embeddings(shape: object, initializer: object, regularizer: object, trainable: bool) -> Any:
    return get_variable(
        "embeddings", shape, initializer=initializer, regularizer=regularizer, trainable=trainable,
        collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES],
    )  # fmt: skip


def bow_encoder(
    ids: TensorLike,
    vocab_size: int,
    embed_dim: int,
    sparse_lookup: bool = True,
    initializer: object = None,
    regularizer: object = None,
    trainable: bool = True,
    scope: VariableScope | str | None = None,
    reuse: bool | None = None,
) -> Tensor:
    """The mean of the embeddings of each row's ids: (batch, ids) gives (batch, embed_dim).

    ``sparse_lookup`` takes each distinct id of a row once and leaves out zeros, as a bag of words
    does; without it the mean is over all positions of a dense ``ids``. The table [``vocab_size``,
    ``embed_dim``] is the variable "embeddings" of ``scope`` (default "bow_encoder").
    """
    if not vocab_size or not embed_dim:
        raise ValueError("Must specify vocab size and embedding dimension")
    with variable_scope(scope, "bow_encoder", [ids], reuse=reuse):
        embeddings = _embeddings([vocab_size, embed_dim], initializer, regularizer, trainable)
        sparse = isinstance(ids, SparseTensor)
        if not sparse_lookup:
            if sparse:
                raise TypeError("ids are expected to be dense Tensor, got: %s", ids)
            return reduce_mean(embedding_lookup(embeddings, ids), axis=1)
        if not sparse:
            ids = module("tf_slim.layers.sparse_ops").dense_to_sparse_tensor(ids)
        return safe_embedding_lookup_sparse([embeddings], ids, combiner="mean", default_id=0)


def embed_sequence(
    ids: TensorLike,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: object = None,
    regularizer: object = None,
    trainable: bool = True,
    scope: str | None = None,
    reuse: bool | None = None,
) -> Tensor:
    """Embeddings of ids: (batch, length) gives (batch, length, embed_dim).

    ``unique`` looks every id up once only.
    """
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError(
            "Must specify vocab size and embedding dimension when not reusing. Got "
            f"vocab_size={vocab_size} and embed_dim={embed_dim}"
        )
    with variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        unknown = (reuse and vocab_size is None) or embed_dim is None
        shape = None if unknown else [vocab_size, embed_dim]
        embeddings = _embeddings(shape, initializer, regularizer, trainable)
        return (embedding_lookup_unique if unique else embedding_lookup)(embeddings, ids)


def embedding_lookup_unique(
    params: object, ids: object, partition_strategy: str = "mod", name: str | None = None
) -> Tensor:
    """``tf.nn.embedding_lookup`` in which every id is looked up once.

    Worth it where ids repeat often. ``ids`` may have any shape; the result has that shape, followed
    by the shape of a row. ``params`` and ``partition_strategy`` are as in
    ``tf.nn.embedding_lookup``.

        rows = tf.constant([[1.0], [2.0]])
        tf.contrib.layers.embedding_lookup_unique(rows, [1, 1])  # [[2.0], [2.0]]
    """
    with name_scope(name, "EmbeddingLookupUnique", [params, ids]):
        ids = convert_to_tensor(ids)
        shape = shape_of(ids)
        flat = reshape(ids, reduce_prod(shape, keepdims=True))
        few, index = unique(flat)
        rows = embedding_lookup(params, few, partition_strategy)
        sizes: Any = shape_of(rows)
        result = reshape(gather(rows, index), concat([shape, sizes[1:]], 0))
        result.set_shape(ids.shape.concatenate(rows.shape[1:]))
        return result
