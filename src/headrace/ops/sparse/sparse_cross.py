"""``tf.sparse.cross`` and ``cross_hashed``: all combinations of the features of each row.

>>> tf.sparse.cross_hashed([["a", "b"], ["x"]], num_buckets=100)   # rows of sparse or dense tensors
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import errors
from headrace.core import dtypes
from headrace.core.annotations import Array, ArrayNamespace
from headrace.core.build import apply_many
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.ops.array.casting import cast
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.ops.strings.string_hash import fingerprint64

__all__ = ["sparse_cross", "sparse_cross_hashed"]

_DEFAULT_HASH_KEY = 0xDECAFCAFFE
_MULTIPLIER = 0xC6A4A7935BD1E995
_MASK = (1 << 64) - 1


def _shift_mix(x: int) -> int:
    return x ^ (x >> 47)


def _joined(first: int, second: int) -> int:
    """TensorFlow's FingerprintCat64: one hash of two."""
    result = first ^ _MULTIPLIER
    result ^= _shift_mix(second * _MULTIPLIER & _MASK) * _MULTIPLIER & _MASK
    result = result * _MULTIPLIER & _MASK
    return _shift_mix(_shift_mix(result) * _MULTIPLIER & _MASK)


def _number(feature: Any) -> int:
    return fingerprint64(feature) if isinstance(feature, bytes) else int(feature) & _MASK


def _text(feature: bytes) -> bytes:
    return feature if isinstance(feature, bytes) else str(int(feature)).encode()


def _sparse_rows(indices: Array, values: Array, shape: Array) -> list[list[Any]]:
    rows: list[list[Any]] = [[] for _ in range(int(shape[0]))]
    for (row, *_), value in zip(indices.tolist(), values.tolist()):
        rows[row].append(value)
    return rows


def _columns(inputs: tuple[Any, ...], n: int, sparse: int) -> list[list[list[Any]]]:
    """Every column as features by row: first the sparse inputs, then the dense ones."""
    indices, values, shapes = (
        inputs[:n],
        inputs[n : n + sparse],
        inputs[n + sparse : 2 * n + sparse],
    )
    found = [_sparse_rows(*parts) for parts in zip(indices, values, shapes)]
    for dense in inputs[2 * n + sparse :]:
        if dense.ndim != 2:
            raise errors.InvalidArgumentError(
                None, None, f"Dense inputs should be a matrix but received shape {dense.shape}"
            )
        found.append(dense.tolist())
    if len({len(column) for column in found}) > 1:
        raise errors.InvalidArgumentError(
            None, None, f"Expected batch sizes to be equal, but they are {[len(c) for c in found]}"
        )
    return found


def _kernel(
    xp: ArrayNamespace,
    *inputs: Array,
    N: int,
    sparse_types: Sequence[Any],
    hashed_output: bool,
    num_buckets: int,
    hash_key: int,
) -> tuple[Array, Array, Array]:
    columns = _columns(inputs, N, len(sparse_types))
    modulus = num_buckets if num_buckets > 0 else (1 << 63) - 1

    def crossed(features: tuple[Any, ...]) -> bytes | int:
        if not hashed_output:
            return b"_X_".join(_text(f) for f in features)
        result = hash_key & _MASK
        for feature in features:
            result = _joined(result, _number(feature))
        return result % modulus

    rows = [[crossed(f) for f in itertools.product(*row)] for row in zip(*columns)]
    indices = [(r, i) for r, row in enumerate(rows) for i in range(len(row))]
    values = np.array([v for row in rows for v in row], np.int64 if hashed_output else object)
    shape = np.array([len(rows), max((len(row) for row in rows), default=0)], np.int64)
    return np.array(indices, np.int64).reshape(-1, 2), values, shape


def _shapes(c: Inference) -> list[Shape]:
    return [(None, 2), (None,), (2,)]


SPARSE_CROSS = define(
    "SparseCross",
    "indices: N*int64, values: *sparse_types, shapes: N*int64, dense_inputs: *dense_types -> "
    "output_indices: int64, output_values: out_type, output_shape: int64; N: int, "
    "hashed_output: bool, num_buckets: int, hash_key: int, sparse_types: list(type), "
    "dense_types: list(type), out_type: type, internal_type: type",
    shape=_shapes,
    kernel=_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    data_dependent_shape=True,
)


def _cross(
    inputs: Sequence[Any], hashed: bool, num_buckets: int, hash_key: int | None, name: str | None
) -> SparseTensor:
    if not isinstance(inputs, (tuple, list)):
        raise TypeError("Inputs must be a list")
    given: list[Any] = [i if isinstance(i, SparseTensor) else convert_to_tensor(i) for i in inputs]
    sparse = [i for i in given if isinstance(i, SparseTensor)]
    dense = [i for i in given if not isinstance(i, SparseTensor)]
    all_text = all(i.dtype == dtypes.string for i in given)
    values, matrices = (
        [t if t.dtype == dtypes.string else cast(t, dtypes.int64) for t in tensors]
        for tensors in ([s.values for s in sparse], dense)
    )
    indices, output, shape = apply_many(
        SPARSE_CROSS,
        [s.indices for s in sparse],
        values,
        [s.dense_shape for s in sparse],
        matrices,
        N=len(sparse),
        hashed_output=hashed,
        num_buckets=num_buckets,
        hash_key=_DEFAULT_HASH_KEY if hash_key is None else hash_key,
        out_type=dtypes.int64 if hashed else dtypes.string,
        internal_type=dtypes.int64 if hashed and not all_text else dtypes.string,
        name=name,
    )
    return SparseTensor(indices, output, shape)


def sparse_cross(inputs: Sequence[Any], name: str | None = None) -> SparseTensor:
    """All combinations of the features of each row, joined by ``_X_``."""
    return _cross(inputs, False, 0, None, name)


def sparse_cross_hashed(
    inputs: Sequence[Any],
    num_buckets: int = 0,
    hash_key: int | None = None,
    name: str | None = None,
) -> SparseTensor:
    """All combinations of the features of each row, as hashes below ``num_buckets``.

    ``num_buckets`` 0 gives hashes of 63 bits; ``hash_key`` is where hashing starts.
    """
    return _cross(inputs, True, num_buckets, hash_key, name)
