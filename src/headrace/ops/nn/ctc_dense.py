"""CTC with dense labels: ``tf.nn.ctc_loss_v2`` and what prepares labels for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import reshape, transpose
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.casting import cast
from headrace.ops.array.filling import ones_like
from headrace.ops.array.gathering import gather_nd, scatter_nd
from headrace.ops.array.joining import concat
from headrace.ops.array.masking import boolean_mask, sequence_mask
from headrace.ops.array.padding import pad
from headrace.ops.array.ranges import range as range_of
from headrace.ops.array.selecting import where, where_v2
from headrace.ops.array.uniques import unique as unique_of
from headrace.ops.control.functional import map_fn
from headrace.ops.math.comparison import less, logical_and, not_equal
from headrace.ops.math.reductions import reduce_max, reduce_sum
from headrace.ops.nn.ctc import ctc_loss
from headrace.ops.sparse.sparse_tensor import SparseTensor

if TYPE_CHECKING:
    from headrace.core.annotations import SparseLike, TensorLike

__all__ = ["collapse_repeated", "ctc_loss_v2", "ctc_unique_labels"]


def ctc_loss_v2(
    labels: TensorLike | SparseLike,
    logits: TensorLike,
    label_length: TensorLike | None,
    logit_length: TensorLike,
    logits_time_major: bool = True,
    unique: Sequence[TensorLike] | None = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """-log p(labels | logits) for labels [batch, length] of ``label_length``, or sparse ones.

    ``blank_index``: which class is the blank: the first one by default, and to be said with sparse
    labels. ``unique`` (of `ctc_unique_labels`) helps TensorFlow on a TPU; the loss is the same.
    """
    with name_scope(name, "ctc_loss_dense", [logits, labels, label_length, logit_length]):
        scores: Any = convert_to_tensor(logits, name="logits")
        if not logits_time_major:
            scores = transpose(scores, [1, 0, 2])
        if isinstance(labels, SparseTensor):
            if blank_index is None:
                raise ValueError("blank_index must be given when using SparseTensor labels.")
            sparse = labels
        else:
            blank_index = 0 if blank_index is None else blank_index
            sparse = _sparse_labels(labels, label_length)
        if unique is not None and len(unique) != 2:
            raise ValueError("unique must be the pair that ctc_unique_labels returns")
        classes = scores.shape.as_list()[2]
        classes = shape_of(scores)[2] if classes is None else classes
        blank: Any = blank_index + classes if blank_index < 0 else blank_index
        if not isinstance(blank, int) or blank != classes - 1:
            parts = [
                scores[:, :, :blank],
                scores[:, :, blank + 1 :],
                scores[:, :, blank : blank + 1],
            ]
            scores = concat(parts, 2)
            values: Any = sparse.values
            moved = where_v2(less(values, cast(blank, values.dtype)), values, values - 1)
            sparse = SparseTensor(sparse.indices, moved, sparse.dense_shape)
        return ctc_loss(labels=sparse, inputs=scores, sequence_length=logit_length)


def _sparse_labels(labels: Any, label_length: Any) -> SparseTensor:
    """The first ``label_length`` labels of every row."""
    dense = convert_to_tensor(labels, name="labels")
    size = shape_of(dense, out_type=dtypes.int64)
    kept = where(sequence_mask(label_length, maxlen=size[1]))
    return SparseTensor(kept, cast(gather_nd(dense, kept), dtypes.int32), size)


def ctc_unique_labels(labels: TensorLike, name: str | None = None) -> Any:
    """The different labels of every row, filled with zeros, and for each label which it is."""
    with name_scope(name, "ctc_unique_labels", [labels]):
        rows = convert_to_tensor(labels, name="labels")

        def row(x: Any) -> list[Any]:
            found = unique_of(x)
            missing = shape_of(found.idx)[0] - shape_of(found.y)[0]
            return [cast(pad(found.y, [[0, missing]]), dtypes.int64), found.idx]

        kinds: Any = [dtypes.int64, dtypes.int32]
        return map_fn(row, rows, dtype=kinds)


def collapse_repeated(
    labels: TensorLike, seq_length: TensorLike, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Rows of labels without repetitions in a row, and their lengths."""
    with name_scope(name, "collapse_repeated_labels", [labels, seq_length]):
        rows: Any = convert_to_tensor(labels, name="labels")
        lengths = convert_to_tensor(seq_length, name="seq_length")
        differs = concat(
            [ones_like(rows[:, :1], dtypes.bool), not_equal(rows[:, 1:], rows[:, :-1])], 1
        )
        inside = sequence_mask(lengths, maxlen=shape_of(rows)[1])
        kept = logical_and(differs, inside)
        count = reduce_sum(cast(kept, dtypes.int32), 1)
        longest = reduce_max(count)
        places = reshape(sequence_mask(count, maxlen=longest), [-1])
        where_to = boolean_mask(range_of(shape_of(places)[0]), places)
        values = boolean_mask(reshape(rows, [-1]), reshape(kept, [-1]))
        column: Any = where_to
        flat = scatter_nd(column[:, None], values, shape_of(places))
        return reshape(flat, [shape_of(rows)[0], longest]), cast(count, lengths.dtype)
