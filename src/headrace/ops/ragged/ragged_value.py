"""The value of a ragged tensor: what a session gives for one and takes for a placeholder.

>>> constant_value([[1, 2], [], [3]]).to_list()
[[1, 2], [], [3]]
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes

if TYPE_CHECKING:
    from headrace.core.annotations import Array, DTypeLike

__all__ = ["RaggedTensorValue", "constant_value", "flat_parts"]


class RaggedTensorValue:
    """Arrays: ``values`` (or another value of this kind), and where each row begins and ends."""

    def __init__(self, values: object, row_splits: Array) -> None:
        if not isinstance(row_splits, (np.ndarray, np.generic)) or row_splits.dtype not in (
            np.int64,
            np.int32,
        ):
            raise TypeError("row_splits must be a numpy array with dtype int32 or int64.")
        if not isinstance(values, (np.ndarray, np.generic, RaggedTensorValue)):
            raise TypeError("values must be a numpy array or a RaggedTensorValue.")
        self._values, self._row_splits = values, row_splits

    @staticmethod
    def _dispatch(
        value: object, kind: str, function: Callable[..., Any], args: Any, kw: Any
    ) -> Any:
        from headrace.ops.ragged.ragged_dispatch import answer

        return answer(kind, function, args, kw)

    @property
    def values(self) -> Any:
        """All rows one after the other."""
        return self._values

    @property
    def row_splits(self) -> Array:
        """Row i is ``values[row_splits[i]:row_splits[i + 1]]``."""
        return self._row_splits

    @property
    def flat_values(self) -> np.ndarray[Any, Any]:
        """The values inside of all ragged dimensions."""
        return (
            self.values.flat_values if isinstance(self.values, RaggedTensorValue) else self.values
        )

    @property
    def nested_row_splits(self) -> tuple[Array, ...]:
        """The row splits of every ragged dimension, from outside to inside."""
        inner = self.values
        below = inner.nested_row_splits if isinstance(inner, RaggedTensorValue) else ()
        return (self._row_splits, *below)

    @property
    def ragged_rank(self) -> int:
        """How many dimensions are ragged."""
        return len(self.nested_row_splits)

    @property
    def dtype(self) -> Any:
        """The type of the values, as NumPy's."""
        return self.flat_values.dtype

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape; None for a ragged dimension."""
        return (self._row_splits.shape[0] - 1, None, *self.values.shape[1:])

    def to_list(self) -> list[Any]:
        """Nested Python lists."""
        inner = self._values
        values = inner.to_list() if isinstance(inner, RaggedTensorValue) else inner.tolist()
        splits = self._row_splits.tolist()
        return [values[a:b] for a, b in pairwise(splits)]

    def __str__(self) -> str:
        return f"<tf.RaggedTensorValue {self.to_list()}>"

    def __repr__(self) -> str:
        return f"tf.RaggedTensorValue(values={self._values!r}, row_splits={self._row_splits!r})"


def _nested(item: Any) -> Any:
    """Nested lists with arrays in them as lists alone; the numbers keep their types."""
    if isinstance(item, np.ndarray):
        return [_nested(x) for x in item] if item.ndim else item[()]
    return [_nested(x) for x in item] if isinstance(item, (list, tuple)) else item


def _has_arrays(item: Any) -> bool:
    if isinstance(item, np.ndarray):
        return True
    return isinstance(item, (list, tuple)) and any(map(_has_arrays, item))


def _depth(item: object) -> int | None:
    """How deep lists are nested below `item`; None if only empty lists are found."""
    if not isinstance(item, (list, tuple)):
        return 0
    found = {d for d in map(_depth, item) if d is not None}
    if len(found) > 1:
        raise ValueError("all scalar values must have the same nesting depth")
    return found.pop() + 1 if found else None


def _least_depth(item: object) -> int:
    """The deepest nesting, empty lists counted."""
    if not isinstance(item, (list, tuple)):
        return 0
    return 1 + max(map(_least_depth, item), default=0)


def _uniform_shape(item: object) -> tuple[int, ...]:
    """The shape of one innermost value, following the first elements."""
    shape: list[int] = []
    while isinstance(item, (list, tuple)):
        shape.append(len(item))
        if len(item) == 0:
            break
        item = item[0]
    return tuple(shape)


def flat_parts(
    pylist: Any,
    ragged_rank: int | None,
    inner_shape: tuple[int, ...] | None,
) -> tuple[list[Any], list[list[int]], tuple[int, ...]]:
    """The flat values, the row splits of each ragged dimension and the shape of one flat value."""
    if _has_arrays(pylist):
        pylist = _nested(pylist)
    depth = _depth(pylist)
    least = _least_depth(pylist)
    if depth is None:  # nothing but empty lists: as deep as is asked for
        depth = max(least, (ragged_rank or 0) + 1)
    if least > depth:
        raise ValueError("all scalar values must have the same nesting depth")
    if ragged_rank is None:
        ragged_rank = max(0, depth - 1 - len(inner_shape or ()))
    elif ragged_rank >= max(1, depth):
        raise ValueError(
            f"Invalid pylist={pylist}: pylist has scalar values depth {depth}, but "
            f"ragged_rank={ragged_rank} requires scalar value depth greater than {ragged_rank}"
        )
    splits, level, asked = [], pylist, inner_shape
    for _ in range(ragged_rank):
        ends = [0]
        for row in level:
            ends.append(ends[-1] + len(row))
        splits.append(ends)
        level = [x for row in level for x in row]
    if inner_shape is None:
        inner_shape = _uniform_shape(level[0]) if len(level) else ()
    elif ragged_rank == 0:  # of the whole
        if len(inner_shape) == 0 or inner_shape[0] != len(level):
            raise ValueError(f"Invalid pylist={pylist}: incompatible with {inner_shape=}")
        inner_shape = inner_shape[1:]
    for value in level:
        if np.shape(value) != tuple(inner_shape):
            if asked is None:
                raise ValueError(f"Invalid pylist={pylist}: inner values have inconsistent shape")
            raise ValueError(
                f"Invalid pylist={pylist}: incompatible with inner_shape={tuple(inner_shape)}"
            )
    return list(level), splits, tuple(inner_shape)


def constant_value(
    pylist: object,
    dtype: DTypeLike | None = None,
    ragged_rank: int | None = None,
    inner_shape: tuple[int, ...] | None = None,
    row_splits_dtype: DTypeLike = "int64",
) -> Any:
    """A ``RaggedTensorValue`` of nested lists; an array if no dimension is ragged.

    For feeding a ragged placeholder. The arguments are those of ``tf.ragged.constant``; the types
    are NumPy's.
    """
    kind = dtypes.as_dtype(row_splits_dtype).as_numpy_dtype
    wanted: Any = dtype
    if dtype is not None and not isinstance(dtype, np.dtype):
        wanted = dtypes.as_dtype(dtype).as_numpy_dtype
    if not isinstance(pylist, (list, tuple)) and np.asarray(pylist).ndim == 0:
        if ragged_rank:
            raise ValueError(
                f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank}"
            )
        if inner_shape:
            raise ValueError(
                f"Invalid pylist={pylist!r}: incompatible with dim(inner_shape)={len(inner_shape)}"
            )
        return np.array(pylist, wanted)
    flat, splits, inner = flat_parts(pylist, ragged_rank, inner_shape)
    if not flat and wanted is None:
        wanted = np.float64
    value: Any = np.reshape(np.array(flat, wanted), (len(flat), *inner))
    for ends in reversed(splits):
        value = RaggedTensorValue(value, np.array(ends, kind))
    return value
