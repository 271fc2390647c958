"""How often each number comes in a row, as TF 2's bincount ops and Keras' text layers ask.

``DenseBincount`` has rows of equal length, ``RaggedBincount`` rows of any, ``SparseBincount`` those
of a sparse tensor. Numbers from ``size`` on are left out; ``weights``, if there are any, are summed
up instead of ones; with ``binary_output`` a number counts once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace import errors
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace

__all__ = ["DENSE_BINCOUNT", "RAGGED_BINCOUNT", "SPARSE_BINCOUNT"]


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def _counted(
    rows: int, row: Array, values: Array, size: Array, weights: Array, binary_output: bool
) -> Array:
    """A row of counts for each row; ``row`` says where a value belongs."""
    n = int(size)
    if n < 0:
        raise _invalid(f"size ({n}) must be non-negative")
    if values.size and values.min() < 0:
        raise _invalid("Input arr must be non-negative!")
    if weights.size and weights.shape != values.shape:
        raise _invalid(
            "weights must be the same shape as arr or a length-0 Tensor, in which case it acts "
            f"as all weights equal to 1. Received {list(weights.shape)}"
        )
    out = np.zeros((rows, n), weights.dtype)
    inside = values < n
    if binary_output:
        out[row[inside], values[inside]] = 1
    else:
        parts = weights[inside] if weights.size else weights.dtype.type(1)
        np.add.at(out, (row[inside], values[inside]), parts)
    return out


def _row_shape(c: Inference, rows: int | None, is_vector: bool = False) -> list[Shape]:
    size = c.value(c.n_inputs - 2)
    n = None if size is None else int(size)
    return [(n,) if is_vector else (rows, n)]


# rows of equal length ---------------------------------------------------------------------------


def _dense_bincount_kernel(
    xp: ArrayNamespace, given: Array, size: Array, weights: Array, *, binary_output: bool
) -> Array:
    values, is_vector = np.asarray(given), np.ndim(given) < 2
    rows = 1 if is_vector else len(values)
    row = np.repeat(np.arange(rows), values.size // max(rows, 1)).reshape(values.shape)
    out = _counted(rows, row, values, size, weights, binary_output)
    return out[0] if is_vector else out


def _dense_bincount_shape(c: Inference) -> list[Shape]:
    c.require_rank(1, 0)
    shape = c.shape(0)
    return [None] if shape is None else _row_shape(c, shape[0] if shape else 1, len(shape) < 2)


DENSE_BINCOUNT = define(
    "DenseBincount",
    "input: Tidx, size: Tidx, weights: T -> output: T; Tidx: type(index), T: type(countable), "
    "binary_output: bool=False",
    shape=_dense_bincount_shape,
    kernel=_dense_bincount_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(1,),
    host_only=True,
)


# rows of any length -----------------------------------------------------------------------------


def _ragged_bincount_kernel(
    xp: ArrayNamespace,
    splits: Array,
    values: Array,
    size: Array,
    weights: Array,
    *,
    binary_output: bool,
) -> Array:
    if not splits.size or splits[0] != 0:
        raise _invalid("Splits must start with 0")
    if splits[-1] != values.size:
        raise _invalid(
            f"Splits must end with the number of values, got {splits[-1]} instead of {values.size}"
        )
    lengths = np.diff(splits)
    if np.any(lengths < 0):
        raise _invalid("Splits must be non-decreasing")
    row = np.repeat(np.arange(len(lengths)), lengths)
    return _counted(len(lengths), row, values, size, weights, binary_output)


def _ragged_bincount_shape(c: Inference) -> list[Shape]:
    (splits,) = c.require_rank(0, 1)
    return _row_shape(c, None if splits is None else splits - 1)


RAGGED_BINCOUNT = define(
    "RaggedBincount",
    "splits: int64, values: Tidx, size: Tidx, weights: T -> output: T; Tidx: type(index), "
    "T: type(countable), binary_output: bool=False",
    shape=_ragged_bincount_shape,
    kernel=_ragged_bincount_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(2,),
    host_only=True,
)


# rows of a sparse tensor ------------------------------------------------------------------------


def _sparse_bincount_kernel(
    xp: ArrayNamespace,
    indices: Array,
    values: Array,
    dense_shape: Array,
    size: Array,
    weights: Array,
    *,
    binary_output: bool,
) -> Array:
    if indices.ndim != 2 or len(indices) != values.size or indices.shape[1] != dense_shape.size:
        raise _invalid(
            f"indices of shape {list(indices.shape)} do not fit {values.size} values and a dense "
            f"shape of {dense_shape.size} dimensions"
        )
    is_vector = dense_shape.size == 1
    rows = 1 if is_vector else int(dense_shape[0])
    row = np.zeros(len(indices), np.int64) if is_vector else indices[:, 0]
    if row.size and (row.min() < 0 or row.max() >= rows):
        raise _invalid(f"Index out of bound: a row is {row.max()}, there are {rows} rows")
    out = _counted(rows, row, values, size, weights, binary_output)
    return out[0] if is_vector else out


def _sparse_bincount_shape(c: Inference) -> list[Shape]:
    (rank,) = c.require_rank(2, 1)
    shape = c.value(2)
    if rank is None:
        return [None]
    return _row_shape(c, None if shape is None else int(shape[0]), rank == 1)


SPARSE_BINCOUNT = define(
    "SparseBincount",
    "indices: int64, values: Tidx, dense_shape: int64, size: Tidx, weights: T -> output: T; "
    "Tidx: type(index), T: type(countable), binary_output: bool=False",
    shape=_sparse_bincount_shape,
    kernel=_sparse_bincount_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(3,),
    host_only=True,
)
