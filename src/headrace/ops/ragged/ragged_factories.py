"""``tf.ragged``: constants, placeholders, ranges, and functions applied to flat values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply_many, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.ops.array import basic
from headrace.ops.array.array_shape import const
from headrace.ops.control.assertions import assert_equal
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.ragged.ragged_ops import RAGGED_RANGE
from headrace.ops.ragged.ragged_tensor import (
    _OWN,
    RaggedTensor,
    convert_to_tensor_or_ragged_tensor,
    is_ragged,
)
from headrace.ops.ragged.ragged_value import flat_parts

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, ShapeLike, TensorLike

__all__ = [
    "constant",
    "map_flat_values",
    "placeholder",
    "range",
    "row_splits_to_segment_ids",
    "segment_ids_to_row_splits",
]


def constant(
    pylist: object,
    dtype: DTypeLike | None = None,
    ragged_rank: int | None = None,
    inner_shape: tuple[int, ...] | None = None,
    name: str | None = None,
    row_splits_dtype: DTypeLike = dtypes.int64,
) -> Any:
    """A ragged tensor of nested lists; a tensor if no dimension is ragged.

    ``ragged_rank`` is how many dimensions after the first are ragged (default: all but the
    innermost uniform ones), ``inner_shape`` the shape of the uniform ones. ``row_splits_dtype`` is
    int64 or int32.

        tf.ragged.constant([[1, 2], [3]])  # [[1, 2], [3]]
    """
    kind = dtypes.as_dtype(row_splits_dtype)
    with name_scope(name, "RaggedConstant", []):
        if not isinstance(pylist, (list, tuple)) and not hasattr(pylist, "__len__"):
            return basic.constant(pylist, dtype)
        flat, splits, inner = flat_parts(pylist, ragged_rank, inner_shape)
        if not flat and dtype is None:
            dtype = dtypes.float32
        size = (len(flat), *inner)
        made: Any = basic.constant(flat, dtype, size, "values") if flat else basic.constant(
            [], dtype, size, "values"
        )  # fmt: skip
        for ends in reversed(splits):
            made = RaggedTensor(made, const(ends, kind), _OWN)
        return made


def placeholder(
    dtype: DTypeLike,
    ragged_rank: int,
    value_shape: ShapeLike | None = None,
    name: str | None = None,
) -> Any:
    """A ragged tensor that is fed with a RaggedTensorValue.

    ``ragged_rank`` is the number of ragged dimensions (0 gives a plain placeholder),
    ``value_shape`` the shape of one flat value. It is a placeholder for the flat values and one for
    each row_splits.

        x = tf.ragged.placeholder(tf.int32, 1)
        with tf.Session() as session:
            session.run(2 * x, {x: tf.ragged.constant_value([[1, 2], [3]], tf.int32)})
    """
    if ragged_rank == 0:
        return basic.placeholder(dtype, value_shape, name)
    with name_scope(name, "RaggedPlaceholder", []):
        shape = None if value_shape is None else [None, *value_shape]  # type: ignore[misc]
        made: Any = basic.placeholder(dtype, shape, "flat_values")
        for i in reversed([*_numbers(ragged_rank)]):
            splits = basic.placeholder(dtypes.int64, [None], f"row_splits_{i}")
            made = RaggedTensor(made, splits, _OWN)
        return made


def _numbers(count: int) -> list[int]:
    return [i for i, _ in enumerate([None] * count)]


def map_flat_values(op: Callable[..., Any], *args: object, **kwargs: object) -> Any:
    """``op`` of the flat values of ragged tensors with the same rows, others as they are.

    The result has the rows of the ragged arguments, so ``op`` must keep the first dimension of what
    it gets.

        tf.ragged.map_flat_values(tf.square, tf.ragged.constant([[1, 2], [3]]))  # [[1, 4], [9]]
    """
    given = [convert_to_tensor_or_ragged_tensor(a) if is_ragged(a) else a for a in args]
    named = {
        k: convert_to_tensor_or_ragged_tensor(v) if is_ragged(v) else v for k, v in kwargs.items()
    }
    ragged = [a for a in (*given, *named.values()) if isinstance(a, RaggedTensor)]
    if not ragged:
        return op(*args, **kwargs)
    checks = _checks_of_same_rows(ragged)

    def flat(argument: Any) -> Tensor:
        return argument.flat_values if isinstance(argument, RaggedTensor) else argument

    def call() -> Any:
        return op(*map(flat, given), **{k: flat(v) for k, v in named.items()})

    made, first = call(), ragged[0]
    if checks:
        splits = [with_dependencies(checks, s) for s in first.nested_row_splits]
        return first._from_components([convert_to_tensor(made), *splits])
    return first.with_flat_values(made)


def _checks_of_same_rows(ragged: list[RaggedTensor]) -> list[Any]:
    """Assertions that all have the rows of the first; none for those that share its splits."""
    first = ragged[0].nested_row_splits
    checks = []
    for other in ragged[1:]:
        if len(other.nested_row_splits) != len(first):
            raise ValueError(
                "All ragged tensors must have the same ragged_rank: got "
                f"{len(first)} and {len(other.nested_row_splits)}"
            )
        for a, b in zip(first, other.nested_row_splits):
            if a is not b:
                same = "Inputs must have identical ragged splits"
                checks.append(assert_equal(a, b, message=same))
    return checks


def range(
    starts: TensorLike,
    limits: TensorLike | None = None,
    deltas: TensorLike = 1,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    row_splits_dtype: DTypeLike = dtypes.int64,
) -> RaggedTensor:
    """A row of numbers for each start, limit and delta.

    With one argument it is the limits. Each argument is a number or a vector; vectors have one
    length.

        tf.ragged.range([2, 3])  # [[0, 1], [0, 1, 2]]
    """
    if limits is None:
        starts, limits = 0, starts
    with name_scope(name, "RaggedRange", [starts, limits, deltas]) as scope:
        kind = None if dtype is None else dtypes.as_dtype(dtype)
        given = [
            convert_to_tensor(v, kind, n)
            for v, n in zip((starts, limits, deltas), ("starts", "limits", "deltas"))
        ]
        if kind is None:
            order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
            kind = max((g.dtype.base_dtype for g in given), key=order.index)
            given = [
                g if g.dtype.base_dtype is kind else apply_op("Cast", g, DstT=kind) for g in given
            ]
        splits, values = apply_many(
            RAGGED_RANGE, *given, Tsplits=dtypes.as_dtype(row_splits_dtype), name=scope
        )
        return RaggedTensor(values, splits, _OWN)


def row_splits_to_segment_ids(
    splits: TensorLike, name: str | None = None, out_type: DTypeLike | None = None
) -> Tensor:
    """The row of each value of rows that begin at `splits`."""
    with name_scope(name, "RaggedSplitsToSegmentIds", [splits]):
        kind = None if out_type is None else dtypes.as_dtype(out_type)
        if not isinstance(splits, Tensor) and kind is None:
            own = getattr(splits, "dtype", None)
            kind = dtypes.int64 if own is None else dtypes.as_dtype(own)
        ends = convert_to_tensor(splits, None if isinstance(splits, Tensor) else kind, "splits")
        if ends.dtype.base_dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError("splits must have dtype int32 or int64")
        ends.shape.assert_has_rank(1)
        if ends.shape.as_list()[0] == 0:
            raise ValueError("Invalid row_splits: []")
        if kind is not None and ends.dtype.base_dtype is not kind:
            ends = apply_op("Cast", ends, DstT=kind)
        lengths = ends[1:] - ends[:-1]
        rows = RaggedTensor(_rows_of(lengths), ends, _OWN)
        return rows.value_rowids()


def _rows_of(lengths: Tensor) -> Tensor:
    """One value for each place: row numbers need only the splits."""
    total = apply_op("Sum", lengths, const([0]), keep_dims=False)
    return apply_op("Fill", apply_op("Pack", [total]), const(0, lengths.dtype.base_dtype))


def segment_ids_to_row_splits(
    segment_ids: TensorLike,
    num_segments: TensorLike | None = None,
    out_type: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Where the rows begin of values whose rows are ``segment_ids``, in ascending order.

    ``num_segments`` (default: the last row + 1) adds empty rows at the end. ``out_type`` is int64
    or int32.

        tf.ragged.segment_ids_to_row_splits([0, 0, 2])  # [0, 2, 2, 3]
    """
    with name_scope(name, "SegmentIdsToRaggedSplits", [segment_ids]):
        if isinstance(segment_ids, Tensor) or hasattr(segment_ids, "dtype"):
            ids = convert_to_tensor(segment_ids, name="segment_ids")
        else:
            ids = convert_to_tensor(segment_ids, dtypes.int64, "segment_ids")
        ids.shape.assert_has_rank(1)
        made = RaggedTensor.from_value_rowids(ids, ids, num_segments, validate=False).row_splits
        kind = made.dtype.base_dtype if out_type is None else dtypes.as_dtype(out_type)
        return made if made.dtype.base_dtype is kind else apply_op("Cast", made, DstT=kind)
