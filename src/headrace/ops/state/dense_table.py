"""The resource of a dense hash table: its entries, and the buckets that TensorFlow keeps them in.

Buckets show: an export has one row for each, with the empty key where there is no entry and the
deleted key (beside the old value) where there was one. Their number doubles when they are too full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.shapes import show
from headrace.ops.state.table_resource import TableResource
from headrace.ops.strings.string_hash import hash64

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.core.dtypes import DType

__all__ = ["DenseTableResource"]

_MASK = 2**64 - 1


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


class DenseTableResource(TableResource):
    """Keys are scalars or vectors like ``empty_key``; it and ``deleted_key`` are no keys."""

    def __init__(
        self,
        key_type: DType,
        value_type: DType,
        value_shape: tuple[int, ...],
        empty_key: Array,
        deleted_key: Array,
        buckets: int,
        max_load_factor: float,
    ) -> None:
        super().__init__(key_type, value_type, value_shape)
        shapes = np.shape(empty_key), np.shape(deleted_key)
        if shapes[0] != shapes[1]:
            raise _invalid(
                f"Empty and deleted keys must have same shape, got shapes: {show(shapes[0])} and "
                f"{show(shapes[1])}"
            )
        if buckets < 4 or buckets & (buckets - 1):
            raise _invalid(
                f"Number of buckets must be at least 4 and a power of 2, but was: {buckets}"
            )
        self.key_shape = shapes[0]
        self.empty, self.deleted = (self._flat_keys(k)[0] for k in (empty_key, deleted_key))
        if self.empty == self.deleted:
            raise _invalid("Empty and deleted keys cannot be equal")
        self.refused = {self.empty: "empty_key", self.deleted: "deleted_key"}
        self.buckets, self.max_load_factor = buckets, max_load_factor
        self.left: list[Any] = []  # the values of removed entries that still lie in buckets

    def _keys(self, keys: Array) -> list[Any]:
        shape = np.shape(keys)
        expected = (*(shape[:1] or (1,)), *self.key_shape)
        if np.size(keys) != int(np.prod(expected)):
            raise _invalid(f"Expected key shape {show(expected)} got {show(shape)}")
        return self._flat_keys(keys)

    def insert(self, keys: Array, values: Array) -> None:
        pairs = self._pairs(keys, values)
        with self.lock:
            wanted = len(self.entries) + len(pairs)
            if wanted > self.buckets * self.max_load_factor:
                while wanted > self.buckets * self.max_load_factor:
                    self.buckets *= 2
                self.left.clear()
            for key, value in pairs:
                if key not in self.entries and self.left:
                    self.left.pop()
                self.entries[key] = value

    def remove(self, keys: Array) -> None:
        flat = self._checked(keys)
        with self.lock:
            for key in flat:
                if key in self.entries:
                    self.left.append(self.entries.pop(key))

    def replace(self, keys: Array, values: Array) -> None:
        """The entries of an export, which has the buckets of the table that it was made of."""
        flat = self._flat_keys(keys)
        wanted = (len(flat), *self.value_shape)
        if np.size(values) != int(np.prod(wanted)):
            raise _invalid(f"Expected shape {show(wanted)} for value, got {show(np.shape(values))}")
        rows = self._rows(np.empty((len(flat), *self.key_shape)), np.reshape(values, wanted))
        with self.lock:
            self.buckets = len(flat)
            self.left = [v for k, v in zip(flat, rows) if k == self.deleted]
            self.entries = {k: v for k, v in zip(flat, rows) if k not in self.refused}

    def export(self) -> tuple[Array, Array]:
        """All buckets, one row each, with the entries where TensorFlow's hash looks for them."""
        with self.lock:
            entries, left, buckets = dict(self.entries), list(self.left), self.buckets
        keys, values = [self.empty] * buckets, [self._no_value()] * buckets
        taken = bytearray(buckets)
        for key, value in entries.items():
            at = _free_bucket(_hash_of(key), taken)
            taken[at], keys[at], values[at] = 1, key, value
        free = (i for i in range(buckets) if not taken[i])
        for value, at in zip(left, free):
            keys[at], values[at] = self.deleted, value
        key_array, value_array = self._exported(keys, values)
        return key_array.reshape(buckets, -1), value_array.reshape(buckets, -1)

    def _no_value(self) -> Any:
        if self.value_dtype is np.object_:
            return b""
        zero = np.zeros(self.value_shape, self.value_dtype)
        return zero if self.value_shape else zero.item()


def _free_bucket(hashed: int, taken: bytearray) -> int:
    """The first free bucket on the way that a lookup of this hash takes."""
    mask, probes = len(taken) - 1, 0
    at = hashed & mask
    while taken[at]:
        probes += 1
        at = (at + probes) & mask
    return at


def _hash_of(key: str) -> int:
    """TensorFlow's hash of a key: numbers are their own, those of a vector are combined."""
    if not isinstance(key, tuple):
        return _scalar_hash(key)
    if len(key) == 1:
        return _scalar_hash(key[0])
    combined = 0
    for part in key:
        mixed = _scalar_hash(part) + 0x9E3779B97F4A7800 + (combined << 10) + (combined >> 4)
        combined ^= mixed & _MASK
        combined &= _MASK
    return combined


def _scalar_hash(key: str) -> int:
    return hash64(key) if isinstance(key, bytes) else int(key) & _MASK
