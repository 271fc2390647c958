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

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.core.dtypes import DType

__all__ = ["DenseTableResource"]


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
        rows = self._rows(keys, values)
        with self.lock:
            self.buckets = len(flat)
            self.left = [v for k, v in zip(flat, rows) if k == self.deleted]
            self.entries = {k: v for k, v in zip(flat, rows) if k not in self.refused}

    def export(self) -> tuple[Array, Array]:
        with self.lock:
            entries, left, buckets = dict(self.entries), list(self.left), self.buckets
        free = max(buckets - len(entries) - len(left), 0)
        keys = [*entries, *[self.deleted] * len(left), *[self.empty] * free]
        zero = np.zeros(self.value_shape, self.value_dtype)
        nothing: Any = zero if self.value_shape else zero.item()
        if self.value_dtype is np.object_:
            nothing = b""
        return self._exported(keys, [*entries.values(), *left, *[nothing] * free])
