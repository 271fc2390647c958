"""Ragged tensors: rows of different lengths.

A ragged tensor is a tensor of values and where each row begins and ends in it (``row_splits``).
Its values may be ragged themselves.

    >>> words = tf.RaggedTensor.from_row_lengths(["a", "b", "c"], [2, 0, 1])
    >>> sess.run(words).to_list()
    [[b'a', b'b'], [], [b'c']]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import convert, dtypes, shapes
from headrace.core.build import apply_many, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import DType
from headrace.core.infer import static_value
from headrace.core.scopes import name_scope
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import const, shape
from headrace.ops.control.assertions import assert_equal
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.ragged.ragged_ops import RAGGED_TENSOR_TO_SPARSE
from headrace.ops.ragged.ragged_value import RaggedTensorValue
from headrace.ops.sparse.sparse_tensor import SparseTensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array, DTypeLike, FeedDict, TensorLike
    from headrace.core.specs import TypeSpec

__all__ = ["RaggedTensor", "convert_to_tensor_or_ragged_tensor", "is_ragged"]

#: Only this module and its neighbours make ragged tensors directly.
_OWN = object()


def is_ragged(value: object) -> bool:
    """Whether it is a ragged tensor or the value of one."""
    return isinstance(value, (RaggedTensor, RaggedTensorValue))


def convert_to_tensor_or_ragged_tensor(
    value: object, dtype: DTypeLike | None = None, name: str | None = None
) -> Any:
    """A ragged tensor as it is, the value of one as a constant, everything else as a tensor."""
    if isinstance(value, RaggedTensor):
        wanted = None if dtype is None else dtypes.as_dtype(dtype)
        if wanted is not None and wanted.base_dtype is not value.dtype.base_dtype:
            raise ValueError(
                f"Tensor conversion requested dtype {wanted.name} for RaggedTensor with dtype "
                f"{value.dtype.name}: {value!r}"
            )
        return value
    if isinstance(value, RaggedTensorValue):
        with name_scope(name, "ConvertToTensorOrRaggedTensor", []):
            made: Any = convert_to_tensor(value.flat_values, dtype, "flat_values")
            for splits in reversed(value.nested_row_splits):
                made = RaggedTensor(made, convert_to_tensor(splits, name="row_splits"), _OWN)
            return made
    return convert_to_tensor(value, dtype, name)


def _values(values: object) -> Any:
    found = convert_to_tensor_or_ragged_tensor(values, name="values")
    if isinstance(found, Tensor):
        found.shape.with_rank_at_least(1)
    return found


def _index_tensor(value: object, name: str) -> Tensor:
    """Row numbers as int32 or int64; Python's are int64."""
    if isinstance(value, Tensor) or hasattr(value, "dtype"):
        found = convert_to_tensor(value, name=name)
    else:
        found = convert_to_tensor(value, dtypes.int64, name)
    if found.dtype.base_dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"{name} must have dtype int32 or int64")
    found.shape.assert_has_rank(1)
    return found


def _count(values: TensorLike, dtype: DType) -> Tensor:
    """How many rows `values` has."""
    if isinstance(values, RaggedTensor):
        return values.nrows(dtype)
    return shape(values, out_type=dtype)[0]


def _with_zero(ends: Tensor) -> Tensor:
    return apply_op("ConcatV2", [const([0], ends.dtype.base_dtype), ends], const(0), name="concat")


def _assert_sorted(x: Tensor, message: str) -> Operation:
    steps = apply_op("LessEqual", x[:-1], x[1:])
    check: Operation = assert_equal(steps, convert_to_tensor(True), message=message)
    return check


class RaggedTensor:
    """Rows of different lengths: ``values`` holds them one after the other, ``row_splits`` where
    each begins.

    Made by ``tf.ragged.constant`` or ``RaggedTensor.from_row_lengths`` and its like. ``values`` may
    be ragged itself. Element-wise functions of ``tf`` take ragged tensors.

        tf.ragged.constant([[1, 2], [], [3]]).row_lengths()     # [2, 0, 1]
    """

    def __init__(self, values: Any, row_splits: Tensor, internal: object = False) -> None:
        if internal is not _OWN:
            raise ValueError(
                "RaggedTensor constructor is private; please use one of the factory methods "
                "instead (e.g., RaggedTensor.from_row_lengths())"
            )
        self._values_part, self._row_splits = values, row_splits

    # making ---------------------------------------------------------------------------------

    @classmethod
    def from_row_splits(
        cls, values: object, row_splits: TensorLike, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Row i is ``values[row_splits[i]:row_splits[i + 1]]``."""
        with name_scope(name, "RaggedFromRowSplits", [values, row_splits]):
            found, splits = _values(values), _index_tensor(row_splits, "row_splits")
            if validate:
                splits = with_dependencies(_checks_of_splits(splits, found), splits)
            return cls(found, splits, _OWN)

    @classmethod
    def from_row_lengths(
        cls, values: object, row_lengths: TensorLike, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Row i has ``row_lengths[i]`` values."""
        with name_scope(name, "RaggedFromRowLengths", [values, row_lengths]):
            found, lengths = _values(values), _index_tensor(row_lengths, "row_lengths")
            splits = _with_zero(apply_op("Cumsum", lengths, const(0)))
            if validate:
                splits = with_dependencies(_checks_of_splits(splits, found), splits)
            return cls(found, splits, _OWN)

    @classmethod
    def from_row_starts(
        cls, values: object, row_starts: TensorLike, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Row i begins at ``row_starts[i]``."""
        with name_scope(name, "RaggedFromRowStarts", [values, row_starts]):
            found, starts = _values(values), _index_tensor(row_starts, "row_starts")
            end = apply_op("Pack", [_count(found, starts.dtype.base_dtype)])
            splits = apply_op("ConcatV2", [starts, end], const(0))
            if validate:
                splits = with_dependencies(_checks_of_splits(splits, found), splits)
            return cls(found, splits, _OWN)

    @classmethod
    def from_row_limits(
        cls, values: object, row_limits: TensorLike, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Row i ends before ``row_limits[i]``."""
        with name_scope(name, "RaggedFromRowLimits", [values, row_limits]):
            found, limits = _values(values), _index_tensor(row_limits, "row_limits")
            splits = _with_zero(limits)
            if validate:
                splits = with_dependencies(_checks_of_splits(splits, found), splits)
            return cls(found, splits, _OWN)

    @classmethod
    def from_value_rowids(
        cls,
        values: object,
        value_rowids: TensorLike,
        nrows: TensorLike | None = None,
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """``values[i]`` is in row ``value_rowids[i]``; row numbers are in ascending order."""
        with name_scope(name, "RaggedFromValueRowIds", [values, value_rowids, nrows]):
            found, ids = _values(values), _index_tensor(value_rowids, "value_rowids")
            kind = ids.dtype.base_dtype
            if nrows is None:
                last = apply_op("Max", ids, const([0]), keep_dims=False)
                rows = apply_op("Maximum", last + 1, const(0, kind))
            else:
                rows = convert_to_tensor(nrows, kind, "nrows")
                known = static_value(rows)
                if known is not None and int(known) < 0:
                    raise ValueError(f"Expected nrows >= 0; got {int(known)}")
            checks = []
            if validate:
                checks = [
                    assert_equal(shape(ids, out_type=kind)[0], _count(found, kind)),
                    _assert_sorted(ids, "value_rowids must be sorted"),
                ]
            small = ids if kind is dtypes.int32 else apply_op("Cast", ids, DstT=dtypes.int32)
            count = rows if kind is dtypes.int32 else apply_op("Cast", rows, DstT=dtypes.int32)
            lengths = apply_op("Bincount", small, count, const([], kind))
            splits = _with_zero(apply_op("Cumsum", lengths, const(0)))
            if checks:
                splits = with_dependencies(checks, splits)
            return cls(found, splits, _OWN)

    @classmethod
    def _nested(
        cls,
        make: Callable[..., RaggedTensor],
        flat_values: object,
        parts: Sequence[Any],
        more: Sequence[Any],
    ) -> Any:
        made = convert_to_tensor_or_ragged_tensor(flat_values, name="flat_values")
        for part, extra in reversed(list(zip(parts, more))):
            made = make(made, part, *extra)
        return made

    @classmethod
    def from_nested_row_splits(
        cls,
        flat_values: object,
        nested_row_splits: Sequence[Any],
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Several ragged dimensions, the outermost first."""
        if isinstance(nested_row_splits, Tensor):
            raise TypeError("nested_row_splits must be a list of Tensors")
        more = [(None, validate)] * len(nested_row_splits)
        with name_scope(name, "RaggedFromNestedRowSplits", [flat_values, *nested_row_splits]):
            return cls._nested(cls.from_row_splits, flat_values, nested_row_splits, more)

    @classmethod
    def from_nested_row_lengths(
        cls,
        flat_values: object,
        nested_row_lengths: Sequence[Any],
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Several ragged dimensions by the lengths of their rows, the outermost first."""
        if isinstance(nested_row_lengths, Tensor):
            raise TypeError("nested_row_lengths must be a list of Tensors")
        more = [(None, validate)] * len(nested_row_lengths)
        with name_scope(name, "RaggedFromNestedRowlengths", [flat_values, *nested_row_lengths]):
            return cls._nested(cls.from_row_lengths, flat_values, nested_row_lengths, more)

    @classmethod
    def from_nested_value_rowids(
        cls,
        flat_values: object,
        nested_value_rowids: Sequence[Any],
        nested_nrows: Sequence[Any] | None = None,
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Several ragged dimensions by the rows of their values, the outermost first."""
        if isinstance(nested_value_rowids, Tensor):
            raise TypeError("nested_value_rowids must be a list of Tensors")
        rows = [None] * len(nested_value_rowids) if nested_nrows is None else list(nested_nrows)
        if len(rows) != len(nested_value_rowids):
            raise ValueError("nested_nrows must have the same length as nested_value_rowids")
        more = [(n, None, validate) for n in rows]
        with name_scope(name, "RaggedFromNestedValueRowIds", [flat_values, *nested_value_rowids]):
            return cls._nested(cls.from_value_rowids, flat_values, nested_value_rowids, more)

    @classmethod
    def from_tensor(
        cls,
        tensor: TensorLike,
        lengths: TensorLike | None = None,
        padding: TensorLike | None = None,
        ragged_rank: int = 1,
        name: str | None = None,
        row_splits_dtype: DTypeLike = dtypes.int64,
    ) -> Any:
        """The rows of a tensor: whole, cut to `lengths`, or without the `padding` at their ends."""
        from headrace.ops.ragged.ragged_conversions import from_tensor

        return from_tensor(tensor, lengths, padding, ragged_rank, name, row_splits_dtype)

    @classmethod
    def from_sparse(
        cls,
        st_input: Any,
        name: str | None = None,
        row_splits_dtype: DTypeLike = dtypes.int64,
    ) -> RaggedTensor:
        """The entries of each row of a sparse matrix, whose rows have no gaps."""
        from headrace.ops.ragged.ragged_conversions import from_sparse

        return from_sparse(st_input, name, row_splits_dtype)

    # parts ----------------------------------------------------------------------------------

    @property
    def values(self) -> Any:
        """All rows one after the other."""
        return self._values_part

    @property
    def row_splits(self) -> Tensor:
        """Row i is ``values[row_splits[i]:row_splits[i + 1]]``."""
        return self._row_splits

    @property
    def flat_values(self) -> Tensor:
        """The values inside of all ragged dimensions."""
        inner: Any = self._values_part
        while isinstance(inner, RaggedTensor):
            inner = inner.values
        found: Tensor = inner
        return found

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The row splits of every ragged dimension, from outside to inside."""
        return tuple(level.row_splits for level in self._levels())

    def _levels(self) -> list[RaggedTensor]:
        found, inner = [], self
        while isinstance(inner, RaggedTensor):
            found.append(inner)
            inner = inner.values
        return found

    @property
    def dtype(self) -> DType:
        """The type of the values."""
        return self.flat_values.dtype

    @property
    def ragged_rank(self) -> int:
        """How many dimensions are ragged."""
        return len(self._levels())

    @property
    def shape(self) -> shapes.TensorShape:
        """What is known of the shape; a ragged dimension is None."""
        splits = self._row_splits._shape
        rows = None if splits is None or splits[0] is None else splits[0] - 1
        inner = self._values_part.shape
        return shapes.TensorShape([rows, None]).concatenate(inner[1:])

    def get_shape(self) -> shapes.TensorShape:
        """What is known of the shape."""
        return self.shape

    @property
    def _type_spec(self) -> TypeSpec:
        from headrace.ops.ragged.ragged_spec import RaggedTensorSpec

        return RaggedTensorSpec.from_value(self)

    @property
    def _is_graph_tensor(self) -> bool:
        return hasattr(self.flat_values, "graph")

    @property
    def _graph_anchor(self) -> Tensor:
        return self.flat_values

    def consumers(self) -> list[Operation]:
        """The operations that take the values or the row splits."""
        found: list[Operation] = []
        for part in self._to_components():
            found += [c for c in part.consumers() if c not in found]
        return found

    def nrows(self, out_type: DTypeLike | None = None, name: str | None = None) -> Tensor:
        """The number of rows."""
        kind = self._row_splits.dtype.base_dtype if out_type is None else dtypes.as_dtype(out_type)
        with name_scope(name, "RaggedNRows", [self]):
            return shape(self._row_splits, out_type=kind)[0] - 1

    def row_starts(self, name: str | None = None) -> Tensor:
        """Where each row begins."""
        with name_scope(name, "RaggedRowStarts", [self]):
            return self._row_splits[:-1]

    def row_limits(self, name: str | None = None) -> Tensor:
        """Where each row ends."""
        with name_scope(name, "RaggedRowLimits", [self]):
            return self._row_splits[1:]

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """The length of each row of a ragged dimension."""
        if axis < 1 or (self.shape.ndims is not None and axis >= self.shape.ndims):
            raise ValueError(f"axis={axis} out of bounds: expected 1<=axis<{self.shape.ndims}")
        with name_scope(name, "RaggedRowLengths", [self]):
            splits = self._row_splits
            if axis == 1:
                return splits[1:] - splits[:-1]
            inner = self._values_part
            if isinstance(inner, RaggedTensor):
                return self.with_values(inner.row_lengths(axis - 1))
            dims = shape(inner, out_type=splits.dtype.base_dtype)
            ones = apply_op("Fill", dims[: axis - 1], const(1, splits.dtype.base_dtype))
            return self.with_values(ones * dims[axis - 1])

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        """The lengths of the rows of every ragged dimension."""
        with name_scope(name, "RaggedNestedRowLengths", [self]):
            return tuple(level.row_lengths() for level in self._levels())

    def value_rowids(self, name: str | None = None) -> Tensor:
        """The row of each value."""
        with name_scope(name, "RaggedValueRowIds", [self]):
            kind = self._row_splits.dtype.base_dtype
            rows = apply_op("Range", const(0, kind), self.nrows(), const(1, kind))
            from headrace.ops.array.padding import repeat

            return repeat(rows, self.row_lengths(), axis=0)

    def nested_value_rowids(self, name: str | None = None) -> tuple[Tensor, ...]:
        """The rows of the values of every ragged dimension."""
        with name_scope(name, "RaggedNestedValueRowIds", [self]):
            return tuple(level.value_rowids() for level in self._levels())

    def bounding_shape(
        self, axis: Any = None, name: str | None = None, out_type: DTypeLike | None = None
    ) -> Tensor:
        """The smallest shape that holds every row."""
        from headrace.ops.ragged.ragged_conversions import bounding_shape

        return bounding_shape(self, axis, name, out_type)

    # others of the same rows ----------------------------------------------------------------

    def with_values(self, new_values: Any) -> RaggedTensor:
        """The same rows with other values."""
        made = _values(new_values)
        rows = self._values_part.shape[:1].merge_with(made.shape[:1])
        if isinstance(made, Tensor):
            made.shape.with_rank_at_least(1)
        assert rows is not None
        return RaggedTensor(made, self._row_splits, _OWN)

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """The same rows of all ragged dimensions with other flat values."""
        inner = self._values_part
        if isinstance(inner, RaggedTensor):
            return self.with_values(inner.with_flat_values(new_values))
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype: DTypeLike) -> RaggedTensor:
        """The same rows with splits of another type."""
        kind = dtypes.as_dtype(dtype)
        if kind not in (dtypes.int32, dtypes.int64):
            raise ValueError("dtype must be int32 or int64")
        splits, inner = self._row_splits, self._values_part
        if isinstance(inner, RaggedTensor):
            inner = inner.with_row_splits_dtype(kind)
        if splits.dtype.base_dtype is not kind:
            splits = apply_op("Cast", splits, DstT=kind)
        return RaggedTensor(inner, splits, _OWN)

    # to dense and sparse ----------------------------------------------------------------------

    def to_tensor(self, default_value: object = None, name: str | None = None) -> Tensor:
        """All rows as long as the longest, filled with `default_value` (0)."""
        from headrace.ops.ragged.ragged_conversions import to_tensor

        return to_tensor(self, default_value, name)

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """A sparse tensor with an entry for each value."""
        with name_scope(name, "RaggedToSparse", [self]):
            made = apply_many(
                RAGGED_TENSOR_TO_SPARSE, list(self.nested_row_splits), self.flat_values
            )
            return SparseTensor(*made)

    def _is_eager(self) -> bool:
        return all(hasattr(part, "numpy") for part in self._to_components())

    def _eager_value(self, method: str) -> RaggedTensorValue:
        if not self._is_eager():
            raise ValueError(f"RaggedTensor.{method}() is only supported in eager mode; in graph "
                             "mode, evaluate the RaggedTensor first and then use "
                             "RaggedTensorValue.to_list().")  # fmt: skip
        return self._from_arrays([part.numpy() for part in self._to_components()])

    def to_list(self) -> list[Any]:
        """Nested Python lists, with eager execution."""
        return self._eager_value("to_list").to_list()

    def numpy(self) -> Array:
        """An array, with eager execution: of the rows as objects where their lengths differ.

        >>> tf.ragged.constant([[1, 2], [3]]).numpy()
        array([array([1, 2], dtype=int32), array([3], dtype=int32)], dtype=object)
        """
        value = self._eager_value("numpy")
        inner = self._values_part.numpy()
        rows = [inner[a:b] for a, b in pairwise(value.row_splits.tolist())]
        if len({len(row) for row in rows}) > 1:
            whole = np.empty(len(rows), object)
            whole[:] = rows
            return whole
        return np.array(rows) if rows else np.empty((0, 0, *inner.shape[1:]), inner.dtype)

    def __iter__(self) -> Iterator[Any]:
        """The rows, with eager execution."""
        if not self._is_eager():
            raise TypeError("A ragged tensor of a graph cannot be iterated: use tf.map_fn")
        return (self[i] for i in range(self._row_splits.numpy().size - 1))

    def eval(self, feed_dict: FeedDict | None = None, session: object = None) -> RaggedTensorValue:
        """The value in a session."""
        from headrace.core.stacks import session_for

        flat = self.flat_values
        found = session_for(session, flat.graph, "evaluate a tensor using `eval()`")
        value: RaggedTensorValue = found.run(self, feed_dict)
        return value

    # as a structure (core/nest.py with expand_composites), a fetch and a feed -----------------

    def _to_components(self) -> tuple[Any, ...]:
        return (self.flat_values, *self.nested_row_splits)

    def _from_components(self, tensors: Sequence[Any]) -> RaggedTensor:
        made: Any = tensors[0]
        for splits in reversed(tensors[1:]):
            made = RaggedTensor(made, splits, _OWN)
        found: RaggedTensor = made
        return found

    def _from_arrays(self, arrays: Sequence[Any]) -> RaggedTensorValue:
        made: Any = arrays[0]
        for splits in reversed(arrays[1:]):
            made = RaggedTensorValue(made, splits)
        value: RaggedTensorValue = made
        return value

    @staticmethod
    def _fed_part(value: TensorLike, index: int) -> Tensor:
        if not isinstance(value, RaggedTensorValue):
            raise ValueError(f"Feed a RaggedTensorValue for a RaggedTensor, not {value!r}.")
        return (value.flat_values, *value.nested_row_splits)[index]

    def __getitem__(self, key: Any) -> Any:
        from headrace.ops.ragged.ragged_getitem import getitem

        return getitem(self, key)

    def __repr__(self) -> str:
        if self._is_eager():
            return f"<tf.RaggedTensor {self.to_list()}>"
        return f"tf.RaggedTensor(values={self._values_part!s}, row_splits={self._row_splits!s})"

    __str__ = __repr__

    @staticmethod
    def _dispatch(
        value: TensorLike, kind: str, function: Callable[..., Any], args: Any, kw: Any
    ) -> Any:
        from headrace.ops.ragged.ragged_dispatch import answer

        return answer(kind, function, args, kw)

    __hash__ = object.__hash__


def _checks_of_splits(splits: Tensor, values: TensorLike) -> list[Operation]:
    kind = splits.dtype.base_dtype
    return [
        assert_equal(
            splits[0], const(0, kind), message="Arguments do not form a valid RaggedTensor"
        ),
        _assert_sorted(splits, "Arguments do not form a valid RaggedTensor"),
        assert_equal(
            splits[-1], _count(values, kind), message="Arguments do not form a valid RaggedTensor"
        ),
    ]


convert.register_tensor_like(RaggedTensor)


def _refuse(
    value: Any, dtype: DTypeLike | None = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    raise TypeError(
        f"Failed to convert object of type {type(value)} to Tensor. Contents: {value}. "
        "Use RaggedTensor.to_tensor or to_sparse."
    )


convert.register_tensor_conversion_function(RaggedTensor, _refuse)
