"""Embedding lookup: rows of a table, or of a table in several parts, by number.

A single table is gathered from directly, so that its gradient stays a few rows (IndexedSlices).
With several parts the ids are sent to their parts, looked up there, and the rows put back in order.

    >>> vectors = embedding_lookup(table, word_ids)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.build import apply_list, apply_many, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.opdef import lookup
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more
from headrace.core.tensor import Tensor
from headrace.ops.nn.nn_common import (
    add,
    cast,
    cond_where,
    expand_last,
    mul,
    rank_of,
    reshape,
    shape_of,
    sub,
)

if TYPE_CHECKING:
    from headrace.core.annotations import SparseLike, TensorLike
    from headrace.ops.sparse.sparse_tensor import SparseTensor

__all__ = [
    "embedding_lookup",
    "embedding_lookup_sparse",
    "embedding_lookup_sparse_v2",
    "embedding_lookup_v2",
    "safe_embedding_lookup_sparse",
    "safe_embedding_lookup_sparse_v2",
]


def _parts(params: Any) -> list[Any]:
    """The parts of a table: a list, a partitioned variable, or one table."""
    if params is None:
        raise ValueError("params must be specified")
    if isinstance(params, (list, tuple)):
        if not params:
            raise ValueError("Need at least one param")
        return list(params)
    if hasattr(params, "_variable_list"):
        return list(params)
    return [params]


def _rows(params: TensorLike, ids: Tensor, name: str | None = None) -> Tensor:
    """Gather, through the variable's own method where it has one."""
    sparse_read: Callable[..., Tensor] | None = getattr(params, "sparse_read", None)
    if sparse_read is not None:
        return sparse_read(ids, name=name)
    return apply_op("GatherV2", params, ids, 0, name=name)


def embedding_lookup(
    params: object,
    ids: object,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: object = None,
) -> Tensor:
    """The rows of ``params`` with the numbers ``ids``.

    With ``max_norm`` longer rows are shortened.
    """
    parts = _parts(params)
    with name_scope(name, "embedding_lookup", [*parts, ids]) as scope:
        ids = convert_to_tensor(ids, name="ids")
        if len(parts) == 1:
            found = _clipped(_rows(parts[0], ids, scope), ids, max_norm)
            return apply_op("Identity", found)
        return _clipped(_from_parts(parts, ids, partition_strategy, scope), ids, max_norm)


def embedding_lookup_v2(
    params: TensorLike, ids: TensorLike, max_norm: object = None, name: str | None = None
) -> Tensor:
    """The rows ``ids`` of a table or of its parts; parts are cut as "div" does.

    ``params`` is one tensor, or a list of parts of its first dimension; ``max_norm`` scales longer
    rows down to this length. TF 1 has ``partition_strategy`` ("mod" by default), and ``name`` after
    it.
    """
    return embedding_lookup(params, ids, "div", name, max_norm=max_norm)


def _clipped(rows: Tensor, ids: Tensor, max_norm: object) -> Tensor:
    if max_norm is None:
        return rows
    from headrace.ops.math.clip import clip_by_norm

    first, rank = rank_of(ids), rank_of(rows)
    if first is None or rank is None:
        raise ValueError("max_norm needs ids and params of known rank.")
    clipped: Tensor = clip_by_norm(rows, max_norm, axes=list(range(first, rank)))
    return clipped


def _from_parts(parts: list[Any], ids: Tensor, strategy: str, name: str) -> Tensor:
    flat = reshape(ids, [-1])
    order = apply_op("Range", 0, apply_op("Size", flat), 1)
    assignments, new_ids = _assign(parts, flat, strategy)
    assignments = cast(assignments, dtypes.int32)
    wanted = apply_list(lookup("DynamicPartition"), new_ids, assignments, num_partitions=len(parts))
    places = apply_list(lookup("DynamicPartition"), order, assignments, num_partitions=len(parts))
    found = [_rows(p, w) for p, w in zip(parts, wanted)]
    rows = apply_op("ParallelDynamicStitch", places, found, name=name)
    element: shapes.Shape = None
    for p in found:
        element = shapes.merge(element, None if p._shape is None else p._shape[1:])
    tail: Any = shapes.known(element)
    tail = (
        apply_op("Slice", shape_of(rows), [1], [-1]) if tail is None else np.array(tail, np.int32)
    )
    result = reshape(rows, apply_op("ConcatV2", [shape_of(ids), tail], 0))
    if ids._shape is not None and element is not None:
        result.set_shape((*ids._shape, *element))
    return result


def _assign(parts: list[Any], ids: Tensor, strategy: str) -> tuple[Tensor, Tensor]:
    """For each id its part, and its number there."""
    n = len(parts)
    if strategy == "mod":
        return apply_op("FloorMod", ids, n), apply_op("FloorDiv", ids, n)
    if strategy != "div":
        raise ValueError("Unrecognized partition strategy: " + strategy)
    count_more(ids._op.graph, 3)  # TF slices the shape of the ids' remainder
    total = _total_rows(parts, ids)
    per_part = apply_op("FloorDiv", total, n)
    extras = apply_op("FloorMod", total, n)  # the first parts have one row more
    longer = add(per_part, 1)
    beyond = sub(ids, extras)
    assignments = apply_op(
        "Maximum", apply_op("FloorDiv", ids, longer), apply_op("FloorDiv", beyond, per_part)
    )
    in_longer = apply_op("Less", assignments, extras)
    return assignments, cond_where(
        in_longer, apply_op("FloorMod", ids, longer), apply_op("FloorMod", beyond, per_part)
    )


def _total_rows(parts: list[Any], ids: Tensor) -> Tensor:
    sizes = [shapes.to_plain(p.shape) for p in parts]
    rows = [s[0] for s in sizes if s is not None and s[0] is not None]
    if len(rows) == len(parts):
        return convert_to_tensor(sum(rows), ids._dtype._base)
    counts = [apply_op("Slice", apply_op("Shape", p), [0], [1]) for p in parts]
    return apply_op("Sum", cast(apply_op("ConcatV2", counts, 0), ids._dtype), [0], keep_dims=False)


# sparse ids -------------------------------------------------------------------------------------

_COMBINERS = {"sum": "SparseSegmentSum", "mean": "SparseSegmentMean", "sqrtn": "SparseSegmentSqrtN"}


def _is_sparse(value: object) -> bool:
    return hasattr(value, "indices") and hasattr(value, "values") and hasattr(value, "dense_shape")


def embedding_lookup_sparse(
    params: TensorLike,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: TensorLike | None = None,
) -> Tensor:
    """For each row of ids, their embeddings joined to one vector.

    ``sp_ids`` is a SparseTensor [rows, ids], ``sp_weights`` None or a SparseTensor of the same
    shape. ``combiner`` "sum" adds, "mean" divides by the sum of the weights, "sqrtn" by the root of
    the sum of their squares. ``max_norm`` limits the length of each embedding. Every row needs an
    id (see ``safe_embedding_lookup_sparse``).
    """
    combiner = "mean" if combiner is None else combiner
    if combiner not in _COMBINERS:
        raise ValueError("combiner must be one of 'mean', 'sqrtn' or 'sum'")
    if not _is_sparse(sp_ids):
        raise TypeError("sp_ids must be SparseTensor")
    if sp_weights is not None and not _is_sparse(sp_weights):
        raise TypeError("sp_weights must be either None or SparseTensor")
    parts = _parts(params)
    with name_scope(name, "embedding_lookup_sparse", [*parts, sp_ids.values]) as scope:
        rows = apply_op(
            "StridedSlice",
            sp_ids.indices,
            [0, 0],
            [0, 1],
            [1, 1],
            begin_mask=1,
            end_mask=1,
            shrink_axis_mask=2,
        )
        rows = cast(rows, dtypes.int32)
        ids, where = apply_many(lookup("Unique"), sp_ids.values)
        embeddings = embedding_lookup(parts, ids, partition_strategy, max_norm=max_norm)
        if embeddings._dtype._base in (dtypes.float16, dtypes.bfloat16):
            embeddings = cast(embeddings, dtypes.float32)
        if sp_weights is None:
            return apply_op(_COMBINERS[combiner], embeddings, where, rows, name=scope)
        return _weighted(embeddings, where, rows, sp_weights.values, combiner, scope)


def _weighted(
    embeddings: Tensor, where: Tensor, rows: Tensor, weights: Tensor, combiner: str, name: str
) -> Tensor:
    weights = cast(weights, embeddings._dtype)
    chosen = apply_op("GatherV2", embeddings, where, 0)
    rank = rank_of(chosen)
    if rank is None:
        raise ValueError("Weighted lookup needs params of known rank.")
    count_more(chosen._op.graph, 9)  # TF fills a shape of ones
    for _ in range(rank - 1):
        weights = expand_last(weights)
    total = apply_op(
        "SegmentSum", mul(chosen, weights), rows, name=name if combiner == "sum" else None
    )
    if combiner == "sum":
        return total
    if combiner == "mean":
        return apply_op("RealDiv", total, apply_op("SegmentSum", weights, rows), name=name)
    squares = apply_op("SegmentSum", apply_op("Pow", weights, 2.0), rows)
    return apply_op("RealDiv", total, apply_op("Sqrt", squares), name=name)


def embedding_lookup_sparse_v2(
    params: TensorLike,
    sp_ids: SparseLike,
    sp_weights: SparseLike,
    combiner: str | None = None,
    max_norm: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Rows of a table, combined per row of ``sp_ids``; parts are cut as "div" does.

    See ``tf.nn.embedding_lookup_sparse``. The default combiner is "mean".
    """
    return embedding_lookup_sparse(params, sp_ids, sp_weights, "div", name, combiner, max_norm)


def safe_embedding_lookup_sparse(
    embedding_weights: TensorLike,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: TensorLike | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: TensorLike | None = None,
) -> Tensor:
    """Like embedding_lookup_sparse, but negative ids are dropped and empty rows give zeros (or
    ``default_id``).
    """
    if embedding_weights is None:
        raise ValueError(f"Missing embedding_weights {embedding_weights}.")
    parts = _parts(embedding_weights)
    if sparse_weights is not None:  # ValueError for tensors of another type
        kind = sparse_weights.values.dtype.base_dtype
        parts = [
            w if hasattr(w, "handle") and w.dtype.base_dtype is kind else convert_to_tensor(w, kind)
            for w in parts
        ]
    with name_scope(name, "embedding_lookup", [*parts, sparse_ids.values]) as scope:
        outer, ids, weights = _as_rows(sparse_ids, sparse_weights)
        keep = apply_op("GreaterEqual", ids.values, 0)
        if weights is not None and combiner != "sum":
            keep = apply_op("LogicalAnd", keep, apply_op("Greater", weights.values, 0.0))
        ids, empty = _kept_and_filled(ids, keep, default_id or 0)
        if weights is not None:
            weights, _ = _kept_and_filled(weights, keep, 1.0)
        result = embedding_lookup_sparse(
            parts, ids, weights, partition_strategy, None, combiner, max_norm
        )
        _count_filling(result, sparse_ids, weights is not None, combiner, default_id is None)
        if default_id is None:
            result = cond_where(empty, apply_op("ZerosLike", result), result)
        tail = apply_op("Slice", shape_of(result), [1], [-1])
        whole = reshape(
            result, apply_op("ConcatV2", [cast(outer, dtypes.int32), tail], 0), name=scope
        )
        rank = sparse_ids.dense_shape._shape  # of one number: how many there are
        if rank and rank[0] is not None and result._shape is not None:
            whole.set_shape([*[None] * (rank[0] - 1), *result._shape[1:]])
        return whole


def _count_filling(result: Tensor, ids: Any, weighted: bool, combiner: str, zeros: bool) -> None:
    """Operations that TF makes more for masks, rows to fill and shapes, see op_counts.json."""
    ops = 14 if zeros else 4
    if ids.get_shape().ndims is None:
        ops += 4
    if weighted:
        ops += 5 if combiner == "sum" else 20
    count_more(result._op.graph, ops)


class _Sparse:
    """The three tensors of a sparse tensor."""

    def __init__(self, indices: Tensor, values: Tensor, dense_shape: Tensor) -> None:
        self.indices, self.values, self.dense_shape = indices, values, dense_shape


def _as_rows(
    ids: SparseTensor, weights: SparseTensor | None
) -> tuple[Tensor, _Sparse, _Sparse | None]:
    """All dimensions but the last made one; returns their sizes, and ids and weights as
    matrices.
    """
    shape = convert_to_tensor(ids.dense_shape)
    rank = shape._shape[0] if shape._shape is not None else None
    last = sub(apply_op("Size", shape), 1) if rank is None else convert_to_tensor(rank - 1)
    outer = apply_op("Slice", shape, [0], expand_last(last))
    inner = apply_op("GatherV2", shape, last, 0)
    matrix = apply_op("Pack", [apply_op("Prod", outer, [0], keep_dims=False), inner])
    indices, new_shape = apply_many(lookup("SparseReshape"), ids.indices, shape, matrix)
    flat = _Sparse(indices, ids.values, new_shape)
    return outer, flat, None if weights is None else _Sparse(indices, weights.values, new_shape)


def _kept_and_filled(x: _Sparse, keep: Tensor, default: TensorLike) -> tuple[_Sparse, Tensor]:
    """Only the entries to keep; rows without any get the default value and are reported."""
    where = reshape(apply_op("Where", keep), [-1])
    indices, values = (
        apply_op("GatherV2", x.indices, where, 0),
        apply_op("GatherV2", x.values, where, 0),
    )
    default = convert_to_tensor(default, values._dtype._base)
    indices, values, empty, _ = apply_many(
        lookup("SparseFillEmptyRows"), indices, values, x.dense_shape, default
    )
    return _Sparse(indices, values, x.dense_shape), empty


def safe_embedding_lookup_sparse_v2(
    embedding_weights: TensorLike,
    sparse_ids: TensorLike,
    sparse_weights: TensorLike | None = None,
    combiner: str = "mean",
    default_id: TensorLike | None = None,
    max_norm: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """As ``embedding_lookup_sparse``, with rows without (valid) ids allowed.

    They give the row ``default_id``, or zeros. Parts are cut as "div" does.
    """
    return safe_embedding_lookup_sparse(
        embedding_weights, sparse_ids, sparse_weights, combiner, default_id, name, "div", max_norm
    )
