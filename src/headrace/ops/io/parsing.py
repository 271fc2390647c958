"""ParseExample and ParseSingleExample: serialized ``tf.train.Example`` messages to tensors.

A *dense* feature has one shape in all examples (or any number of first dimensions, then padded in a
batch); a *sparse* one any number of values. Reading the bytes is
:mod:`headrace.wire.example_reader`'s work; here the values are checked and arranged.

    >>> out = parse_single_example(record, {"label": FixedLenFeature([], tf.int64)})
    # FixedLenFeature: headrace.ops.io.parsing_features
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace import errors
from headrace.core import dtypes, shapes
from headrace.core.dtypes import DType
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.ops.array.array_shape import invalid, one_number
from headrace.wire.example_columns import Column, ColumnReader
from headrace.wire.example_reader import BYTES, FLOAT, INT64, ExampleReader, WireError

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = ["PARSE_EXAMPLE", "PARSE_SINGLE_EXAMPLE"]

KIND_OF = {dtypes.string: BYTES, dtypes.float32: FLOAT, dtypes.int64: INT64}
#: TensorFlow's names of the kinds: as data types, and of values.
TYPE_NAMES = {BYTES: "string", FLOAT: "float", INT64: "int64"}
VALUE_NAMES = {BYTES: "bytes", FLOAT: "float", INT64: "int64"}
NUMPY_TYPES = {BYTES: np.dtype(object), FLOAT: np.dtype(np.float32), INT64: np.dtype(np.int64)}


def could_not_parse(data: bytes) -> errors.InvalidArgumentError:
    text = data[:200].decode("utf-8", "backslashreplace")
    return invalid(f"Could not parse example input, value: '{text}'")


class Sparse(NamedTuple):
    """A feature with any number of values."""

    key: str
    kind: int


class Dense(NamedTuple):
    """A feature of known shape; ``ragged`` says that its first dimension is open."""

    key: str
    kind: int
    shape: tuple[int, ...]  # without an open first dimension
    size: int  # elements in ``shape``
    ragged: bool
    shown: str

    @property
    def missing(self) -> str:
        kind = TYPE_NAMES[self.kind]
        return f"Feature: {self.key} (data type: {kind}) is required but could not be found."


def dense_feature(key: str, dtype: DType, shape: Shape) -> Dense:
    dims = shape or ()
    ragged = bool(dims) and dims[0] is None
    rest = (
        tuple(int(d) for d in dims[1:] if d is not None)
        if ragged
        else tuple(int(d) for d in dims if d is not None)
    )
    return Dense(key, KIND_OF[dtype], rest, math.prod(rest), ragged, shapes.show(shape))


class Parser:
    """What one ParseExample node looks for. Made once for a set of keys, types and shapes."""

    def __init__(self, sparse: Sequence[Sparse], dense: Sequence[Dense]) -> None:
        self.sparse = tuple(sparse)
        self.dense = tuple(dense)
        keys = [f.key.encode() for f in self.sparse] + [f.key.encode() for f in self.dense]
        self.reader = ExampleReader(keys)
        self.columns = ColumnReader(keys)

    def read(self, data: bytes) -> list[Any]:
        try:
            return self.reader.read(data)
        except WireError:
            raise could_not_parse(data) from None


@functools.lru_cache(maxsize=512)
def parser(
    sparse_keys: tuple[Any, ...],
    sparse_types: tuple[DType, ...],
    dense_keys: tuple[Any, ...],
    dense_types: tuple[DType, ...],
    dense_shapes: tuple[Shape, ...],
) -> Parser:
    """Keys may be text or bytes: attributes are text, inputs bytes."""
    return Parser(
        [Sparse(_text(k), KIND_OF[t]) for k, t in zip(sparse_keys, sparse_types)],
        [dense_feature(_text(k), t, s) for k, t, s in zip(dense_keys, dense_types, dense_shapes)],
    )


def _text(key: str | bytes) -> str:
    return key if isinstance(key, str) else key.decode("utf-8", "surrogateescape")


def outputs(values: Sequence[Any]) -> Any:
    """As kernels give them: a tuple only if there are several."""
    return values[0] if len(values) == 1 else tuple(values)


def strings(values: Sequence[bytes]) -> np.ndarray[Any, Any]:
    out = np.empty(len(values), object)
    out[:] = values
    return out


def own(kind: int, values: Any) -> Any:
    """Values as an array that nobody else sees (floats are read in place)."""
    if kind == BYTES:
        return strings(values)
    return values.copy() if kind == FLOAT else values


# one example --------------------------------------------------------------------------------------


def _single_kernel(
    xp: ArrayNamespace,
    serialized: Array,
    *defaults: Array,
    sparse_keys: Sequence[str],
    dense_keys: Sequence[str],
    sparse_types: Sequence[DType],
    Tdense: Sequence[DType],
    dense_shapes: Sequence[Sequence[int | None]],
) -> Any:
    wanted = parser(sparse_keys, sparse_types, dense_keys, Tdense, dense_shapes)
    found = wanted.read(
        one_number(serialized, "Expected serialized to be a scalar, got shape: {shape}")
    )
    n = len(wanted.sparse)
    dense = [_single_dense(f, got, d) for f, got, d in zip(wanted.dense, found[n:], defaults)]
    if not n:
        return outputs(dense)
    columns = [_single_values(f, got) for f, got in zip(wanted.sparse, found)]
    indices = [np.arange(len(c), dtype=np.int64).reshape(-1, 1) for c in columns]
    sizes = [np.array([len(c)], np.int64) for c in columns]
    return outputs([*indices, *columns, *sizes, *dense])


def _single_values(feature: Sparse, found: Any) -> Any:
    if found is None:
        return np.empty(0, NUMPY_TYPES[feature.kind])
    if found[0] != feature.kind:
        have, want = TYPE_NAMES[found[0]], TYPE_NAMES[feature.kind]
        raise invalid(
            f"Key: {feature.key}.  Data types don't match. Expected type: {want}, Actual "
            f"type: {have}"
        )
    return own(*found)


def _single_dense(feature: Dense, found: Any, default: Any) -> Any:
    kind, shape = feature.kind, feature.shape
    if found is None:
        if feature.ragged:
            return np.empty((0, *shape), NUMPY_TYPES[kind])
        if default.size == 0 and feature.size:
            raise invalid(feature.missing)
        return default.reshape(shape)
    if found[0] != kind:
        have, want = TYPE_NAMES[found[0]], TYPE_NAMES[kind]
        raise invalid(
            f"Key: {feature.key}.  Data types don't match. Data type: {have} but expected "
            f"type: {want}"
        )
    values = found[1]
    count = len(values)
    if feature.ragged:
        if feature.size and count % feature.size == 0:
            return own(kind, values).reshape((-1, *shape))
    elif count == feature.size:
        if shape:
            return own(kind, values).reshape(shape)
        return values[0] if kind != BYTES else strings(values).reshape(())
    raise invalid(
        f"Key: {feature.key}.  Can't parse serialized Example. It has {count} "
        f"{VALUE_NAMES[kind]} values, "
        f"the expected shape is {feature.shown}"
    )


def require_equal_lengths(c: Inference, *groups: str) -> None:
    """ValueError unless the attributes of each group, numbers and lists, say the same length.

    >>> require_equal_lengths(c, "num_sparse sparse_keys sparse_types")
    """
    for group in groups:
        names = group.split()
        lengths = [v if isinstance(v, int) else len(v) for v in map(c.attr, names)]
        if len(set(lengths)) > 1:
            said = " and ".join(f"{n} ({k})" for n, k in zip(names, lengths))
            raise ValueError(f"The lengths of {said} must match")


def _single_shape(c: Inference) -> list[Shape]:
    c.require_rank(0, 0)
    require_equal_lengths(
        c, "num_sparse sparse_keys sparse_types", "dense_keys Tdense dense_shapes"
    )
    n = len(c.attr("sparse_types"))
    dense = [None if s is None else tuple(s) for s in c.attr("dense_shapes")]
    return [(None, 1)] * n + [(None,)] * n + [(1,)] * n + dense


PARSE_SINGLE_EXAMPLE = define(
    "ParseSingleExample",
    "serialized: string, dense_defaults: *Tdense -> sparse_indices: num_sparse*int64, "
    "sparse_values: *sparse_types, "
    "sparse_shapes: num_sparse*int64, dense_values: *Tdense; num_sparse: int, "
    "sparse_keys: list(str), "
    "dense_keys: list(str), sparse_types: list(type), dense_shapes: list(shape)",
    shape=_single_shape,
    kernel=_single_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)


# a batch ----------------------------------------------------------------------------------------


def _batch_kernel(
    xp: ArrayNamespace,
    serialized: Array,
    names: Array,
    *rest: Array,
    Nsparse: int,
    Ndense: int,
    sparse_types: Sequence[DType],
    Tdense: Sequence[DType],
    dense_shapes: Sequence[Sequence[int | None]],
) -> Any:
    sparse_keys = tuple(k.item() for k in rest[:Nsparse])
    dense_keys = tuple(k.item() for k in rest[Nsparse : Nsparse + Ndense])
    wanted = parser(sparse_keys, sparse_types, dense_keys, Tdense, dense_shapes)
    return parse_batch(wanted, serialized.tolist(), names, rest[Nsparse + Ndense :])


def parse_batch(wanted: Parser, records: list[bytes], names: Array, defaults: Sequence[Any]) -> Any:
    """The outputs of ParseExample."""
    batch = Batch(len(records), names.reshape(-1).tolist())
    n = len(wanted.sparse)
    together = wanted.reader.read_together(records) if len(records) > 1 else None
    if together is not None:
        columns: Sequence[Any] = together
        sparse = [batch.sparse_column(f, c) for f, c in zip(wanted.sparse, columns)]
        dense = [
            batch.dense_column(f, c, d) for f, c, d in zip(wanted.dense, columns[n:], defaults)
        ]
    elif (flat := wanted.columns.read(records)) is not None:
        sparse = [batch.sparse_flat(f, c) for f, c in zip(wanted.sparse, flat)]
        dense = [batch.dense_flat(f, c, d) for f, c, d in zip(wanted.dense, flat[n:], defaults)]
    else:
        rows = [wanted.read(r) for r in records]
        columns = list(zip(*rows)) if rows else [()] * (n + len(wanted.dense))
        sparse = [batch.sparse_rows(f, c) for f, c in zip(wanted.sparse, columns)]
        dense = [batch.dense_rows(f, c, d) for f, c, d in zip(wanted.dense, columns[n:], defaults)]
    parts = list(zip(*sparse)) if sparse else [(), (), ()]
    return outputs([*parts[0], *parts[1], *parts[2], *dense])


class Batch:
    """Arranges the features of many examples. A *column* is one feature in all of them."""

    def __init__(self, size: int, names: list[bytes]) -> None:
        self.size = size
        self.names = names

    def fail(self, i: int, text: str) -> errors.InvalidArgumentError:
        name = self.names[i].decode("utf-8", "replace") if i < len(self.names) else "<unknown>"
        return invalid(f"Name: {name}, {text}")

    # columns that were read together

    def sparse_column(self, feature: Sparse, column: Any) -> tuple[Any, Any, Any]:
        if column is None:
            return self.sparse_rows(feature, [None] * self.size)
        self._check_sparse_kind(feature, column[0], 0)
        values = column[1]
        width = 1 if feature.kind == BYTES else values.shape[1]
        indices = np.empty((self.size * width, 2), np.int64)
        indices[:, 0] = np.repeat(np.arange(self.size), width)
        indices[:, 1] = np.tile(np.arange(width), self.size)
        flat = strings(values) if feature.kind == BYTES else values.reshape(-1)
        return indices, flat, np.array([self.size, width], np.int64)

    def dense_column(
        self, feature: Dense, column: Any, default: TensorLike
    ) -> np.ndarray[Any, Any]:
        if column is None:
            return self.dense_rows(feature, [None] * self.size, default)
        kind, values = column
        self._check_dense_kind(feature, kind, 0)
        width = 1 if kind == BYTES else values.shape[1]
        length = self._length(feature, width, 0)
        flat = strings(values) if kind == BYTES else values
        return flat.reshape((self.size, *([length] if feature.ragged else ()), *feature.shape))

    # columns of the same keys, with values of any number

    def sparse_flat(self, feature: Sparse, column: Column | None) -> tuple[Any, Any, Any]:
        if column is None:
            return self.sparse_rows(feature, [None] * self.size)
        self._check_sparse_kind(feature, column.kind, 0)
        values = strings(column.values) if column.kind == BYTES else own(column.kind, column.values)
        return self._sparse(values, column.counts)

    def dense_flat(
        self, feature: Dense, column: Column | None, default: TensorLike
    ) -> np.ndarray[Any, Any]:
        if column is None:
            return self.dense_rows(feature, [None] * self.size, default)
        kind, values, counts = column
        self._check_dense_kind(feature, kind, 0)
        values = strings(values) if kind == BYTES else own(kind, values)
        if not feature.ragged:
            wrong = np.flatnonzero(counts != feature.size)
            if len(wrong):
                self._length(feature, int(counts[wrong[0]]), int(wrong[0]))
            return values.reshape((self.size, *feature.shape))
        for i in np.flatnonzero(counts % feature.size) if feature.size else range(self.size):
            self._length(feature, int(counts[i]), int(i))
        longest = int(counts.max(initial=0))
        out = self._filled(feature, longest, default)
        out[np.arange(longest) < counts[:, None]] = values
        return out.reshape((self.size, longest // feature.size, *feature.shape))

    # columns that were read row by row: (kind, values) or None

    def sparse_rows(self, feature: Sparse, rows: Sequence[Any]) -> tuple[Any, Any, Any]:
        for i, row in enumerate(rows):
            if row is not None:
                self._check_sparse_kind(feature, row[0], i)
        counts = np.array([0 if row is None else len(row[1]) for row in rows], np.int64)
        parts = [row[1] for row in rows if row is not None]
        if feature.kind == BYTES:
            values = strings([v for part in parts for v in part])
        else:
            values = np.concatenate(parts) if parts else np.empty(0, NUMPY_TYPES[feature.kind])
        return self._sparse(values, counts)

    def _sparse(self, values: Array, counts: Array) -> tuple[Any, Any, Any]:
        """The parts of a SparseTensor whose rows have so many values."""
        total = len(values)
        indices = np.empty((total, 2), np.int64)
        indices[:, 0] = np.repeat(np.arange(len(counts)), counts)
        indices[:, 1] = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        return indices, values, np.array([len(counts), counts.max(initial=0)], np.int64)

    def dense_rows(self, feature: Dense, rows: Sequence[Any], default: Any) -> Array:
        if feature.ragged:
            return self._ragged_rows(feature, rows, default)
        out = np.empty((self.size, feature.size), NUMPY_TYPES[feature.kind])
        for i, row in enumerate(rows):
            if row is None:
                if default.size == 0 and feature.size:
                    raise self.fail(i, feature.missing)
                out[i] = default.reshape(-1)
                continue
            kind, values = row
            if kind != feature.kind:
                self._check_dense_kind(feature, kind, i)
            if len(values) != feature.size:
                self._length(feature, len(values), i)
            out[i] = values
        return out.reshape((self.size, *feature.shape))

    def _ragged_rows(self, feature: Dense, rows: Sequence[Any], default: TensorLike) -> Array:
        """Padded with the default to the longest."""
        lengths = []
        for i, row in enumerate(rows):
            if row is not None:
                self._check_dense_kind(feature, row[0], i)
            lengths.append(0 if row is None else self._length(feature, len(row[1]), i))
        longest = max(lengths, default=0)
        out = self._filled(feature, longest * feature.size, default)
        for i, row in enumerate(rows):
            if row is not None:
                out[i, : len(row[1])] = row[1]
        return out.reshape((self.size, longest, *feature.shape))

    def _filled(self, feature: Dense, width: int, default: Any) -> Array:
        """Rows of the default."""
        out = np.empty((self.size, width), NUMPY_TYPES[feature.kind])
        out[...] = default.reshape(-1)[0] if default.size else (b"" if feature.kind == BYTES else 0)
        return out

    # checks

    def _check_sparse_kind(self, feature: Sparse, kind: int, i: int) -> None:
        if kind != feature.kind:
            have, want = TYPE_NAMES[kind], TYPE_NAMES[feature.kind]
            text = f"Data types don't match. Expected type: {want}, Actual type: {have}"
            raise self.fail(i, f"Key: {feature.key}, Index: {i}.  {text}")

    def _check_dense_kind(self, feature: Dense, kind: int, i: int) -> None:
        if kind != feature.kind:
            have, want = TYPE_NAMES[kind], TYPE_NAMES[feature.kind]
            text = f"Data types don't match. Data type: {have} but expected type: {want}"
            raise self.fail(i, f"Key: {feature.key}, Index: {i}.  {text}")

    def _length(self, feature: Dense, count: int, i: int) -> int:
        """The length of an open first dimension (1 where there is none)."""
        kind = VALUE_NAMES[feature.kind]
        if not feature.ragged:
            if count == feature.size:
                return 1
            text = (
                f"Number of {kind} values != expected.  Values size: {count} but output "
                f"shape: {feature.shown}"
            )
            raise self.fail(i, f"Key: {feature.key}, Index: {i}.  {text}")
        if feature.size and count % feature.size == 0:
            return count // feature.size
        text = (
            f"Number of {kind} values is not a multiple of stride length. "
            f"Saw {count} values but output shape is: {feature.shown}"
        )
        raise self.fail(i, f"Key: {feature.key}, Index: {i}.  {text}")


def _batch_shape(c: Inference) -> list[Shape]:
    shape = c.require_rank(0, 1)
    assert shape is not None
    require_equal_lengths(c, "Nsparse sparse_types", "Ndense Tdense dense_shapes")
    n = c.attr("Nsparse")
    dense = [None if s is None else (shape[0], *s) for s in c.attr("dense_shapes")]
    return [(None, 2)] * n + [(None,)] * n + [(2,)] * n + dense


PARSE_EXAMPLE = define(
    "ParseExample",
    "serialized: string, names: string, sparse_keys: Nsparse*string, dense_keys: Ndense*string, "
    "dense_defaults: *Tdense -> sparse_indices: Nsparse*int64, sparse_values: *sparse_types, "
    "sparse_shapes: Nsparse*int64, dense_values: *Tdense; sparse_types: list(type), "
    "dense_shapes: list(shape)",
    shape=_batch_shape,
    kernel=_batch_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
