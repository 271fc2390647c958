"""``tf.map_fn`` where rows or results are ragged.

    rows = tf.ragged.constant([[1, 2], [], [3]])
    tf.map_fn(tf.reduce_sum, rows, dtype=tf.int32)                              # [3, 0, 3]
    tf.map_fn(tf.range, [2, 0, 1], dtype=tf.RaggedTensorSpec([None], tf.int32, 0))

A ragged result is collected as its flat values and the lengths of its rows, level by level.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core import dtypes, nest
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import DType
from headrace.core.scopes import name_scope
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import const
from headrace.ops.control.tensor_array import TensorArray
from headrace.ops.control.while_loops import while_loop
from headrace.ops.ragged.ragged_spec import RaggedTensorSpec
from headrace.ops.ragged.ragged_tensor import RaggedTensor

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike

__all__ = ["RaggedTensorType", "map_ragged"]


class RaggedTensorType:
    """The type of a ragged result of ``map_fn`` as a whole."""

    def __init__(
        self, dtype: DTypeLike, ragged_rank: int, row_splits_dtype: DTypeLike = dtypes.int64
    ) -> None:
        self._dtype = dtypes.as_dtype(dtype)
        self._row_splits_dtype = dtypes.as_dtype(row_splits_dtype)
        self._ragged_rank = ragged_rank

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def ragged_rank(self) -> int:
        return self._ragged_rank

    @property
    def row_splits_dtype(self) -> DType:
        return self._row_splits_dtype


class _Result(NamedTuple):
    """What a result of the function is: ``rank`` ragged dimensions once the rows are joined."""

    dtype: DType
    rank: int
    splits: DType
    #: Static shape of one flat value; None if it is unknown.
    inner: TensorShape | None = None

    def arrays(self, n: Any, infer_shape: bool) -> list[TensorArray]:
        if not self.rank:
            return [TensorArray(self.dtype, size=n, infer_shape=infer_shape)]
        some = TensorShape([None])
        of_values = None if self.inner is None else some.concatenate(self.inner)
        inner = [
            TensorArray(self.splits, size=n, infer_shape=False, element_shape=some)
            for _ in range(self.rank - 1)
        ]
        return [
            TensorArray(self.dtype, size=n, infer_shape=False, element_shape=of_values),
            TensorArray(self.splits, size=n, element_shape=[]),
            *inner,
        ]

    def written(self, arrays: list[TensorArray], i: Tensor, value: Any) -> list[TensorArray]:
        """The arrays with a row's value, and its lengths."""
        parts = [value]
        if self.rank:
            parts = self._parts(value)
        elif isinstance(value, RaggedTensor):
            raise ValueError(
                f"The declared ragged rank (0) mismatches the result ({value.ragged_rank + 1})"
            )
        return [a.write(i, p) for a, p in zip(arrays, parts)]

    def _parts(self, value: Any) -> list[Any]:
        ragged = isinstance(value, RaggedTensor)
        rank = (value.ragged_rank if ragged else 0) + 1
        if rank != self.rank:
            raise ValueError(
                f"The declared ragged rank ({self.rank}) mismatches the result ({rank})"
            )
        if not ragged:
            tensor = convert_to_tensor(value, self.dtype)
            sizes = apply_op("Shape", tensor, out_type=self.splits)
            return [tensor, apply_op("GatherV2", sizes, const(0), const(0))]
        same = value.with_row_splits_dtype(self.splits)
        return [same.flat_values, same.nrows(), *same.nested_row_lengths()]

    def joined(self, arrays: list[TensorArray]) -> Any:
        if not self.rank:
            return arrays[0].stack()
        lengths = [arrays[1].stack(), *(a.concat() for a in arrays[2:])]
        return RaggedTensor.from_nested_row_lengths(arrays[0].concat(), lengths, validate=False)


def _result_of(like: Any) -> _Result:
    """Of a type, a spec of one row's result, or the elements themselves."""
    if isinstance(like, RaggedTensorSpec):
        known = like._shape.rank is not None
        inner = like._shape[like.ragged_rank + 1 :] if known else None
        return _Result(like._dtype, like.ragged_rank + 1, like.row_splits_dtype, inner)
    if isinstance(like, RaggedTensorType):
        return _Result(like.dtype, like.ragged_rank, like.row_splits_dtype)
    if isinstance(like, RaggedTensor):
        shape = like.flat_values.shape
        inner = shape[1:] if shape.ndims == 1 else None  # the function may change inner sizes
        return _Result(like.dtype, like.ragged_rank, like.row_splits.dtype.base_dtype, inner)
    kind = like.dtype if hasattr(like, "dtype") else like
    return _Result(dtypes.as_dtype(kind).base_dtype, 0, dtypes.int64)


def map_ragged(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    infer_shape: bool = True,
    name: str | None = None,
    **options: Any,
) -> Any:
    """``map_fn`` of elements of which some are ragged, or with ragged results."""
    flat = nest.flatten(elems)
    with name_scope(name, "map", [t for e in flat for t in _tensors(e)]):
        rows = [e if isinstance(e, RaggedTensor) else convert_to_tensor(e) for e in flat]
        like = _packed(elems, rows) if dtype is None else dtype
        results = [_result_of(x) for x in nest.flatten(like)]
        n = _count(rows[0])

        def body(i: Tensor, groups: list[list[TensorArray]]) -> Any:
            value = fn(_packed(elems, [_row(r, i) for r in rows]))
            nest.assert_same_structure(like, value)
            done = [r.written(a, i, v) for r, a, v in zip(results, groups, nest.flatten(value))]
            return apply_op("AddV2", i, const(1)), done

        start = [r.arrays(n, infer_shape) for r in results]
        _, groups = while_loop(
            lambda i, _: apply_op("Less", i, n), body, [const(0), start], **options
        )
        return _packed(like, [r.joined(a) for r, a in zip(results, groups)])


def _tensors(element: Any) -> list[Any]:
    return [element.flat_values] if isinstance(element, RaggedTensor) else [element]


def _packed(like: Any, flat: list[Any]) -> Any:
    return nest.pack_sequence_as(like, flat) if nest.is_sequence(like) else flat[0]


def _count(rows: Any) -> Tensor:
    """The number of rows, as int32."""
    if isinstance(rows, RaggedTensor):
        return rows.nrows(out_type=dtypes.int32)
    if rows.shape.ndims == 0:
        raise ValueError("elems must be a 1+ dimensional Tensor, not a scalar")
    sizes = apply_op("Shape", rows, out_type=dtypes.int32)
    count: Tensor = apply_op("GatherV2", sizes, const(0), const(0))
    return count


def _row(rows: Any, i: Tensor) -> Any:
    return rows[i] if isinstance(rows, RaggedTensor) else apply_op("GatherV2", rows, i, const(0))
