"""What a lookup table holds in a session: the entries, and how they are found and changed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors

if TYPE_CHECKING:
    from headrace.core.annotations import Array


__all__ = ["TableResource"]


def _failed(message: str) -> errors.FailedPreconditionError:
    return errors.FailedPreconditionError(None, None, message)


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class TableResource:
    """Keys and values of one table; ``static`` tables take entries once, before any lookup."""

    def __init__(
        self,
        key_type: Any,
        value_type: Any,
        value_shape: tuple[int, ...] = (),
        static: bool = False,
    ) -> None:
        self.key_dtype, self.value_dtype = key_type.as_numpy_dtype, value_type.as_numpy_dtype
        self.value_shape, self.static = value_shape, static
        self.key_shape: tuple[int, ...] = ()
        self.refused: dict[Any, str] = {}
        self.entries: dict[Any, Any] = {}
        self.ready = not static
        self.lock = threading.Lock()

    def _flat_keys(self, keys: Array) -> list[Any]:
        keys = np.asarray(keys)
        if not self.key_shape:
            flat: list[Any] = keys.reshape(-1).tolist()
            return flat
        return [tuple(row) for row in keys.reshape(-1, *self.key_shape).tolist()]

    def _keys(self, keys: Array) -> list[Any]:
        return self._flat_keys(keys)

    def _checked(self, keys: Array) -> list[Any]:
        flat = self._keys(keys)
        for key, what in self.refused.items():
            if key in flat:
                raise _invalid(f"Using the {what} as a table key is not allowed")
        return flat

    def _pairs(self, keys: Array, values: Array) -> list[tuple[Any, Any]]:
        return list(zip(self._checked(keys), self._rows(keys, values), strict=True))

    def _rows(self, keys: Any, values: Array) -> list[Any]:
        """The values of the keys, one after the other."""
        values = np.asarray(values)
        lead = np.asarray(keys).shape[: np.ndim(keys) - len(self.key_shape)]
        if values.shape != (*lead, *self.value_shape):
            raise _invalid(
                f"Expected shape {[*lead, *self.value_shape]} for value, got {list(values.shape)}"
            )
        if not self.value_shape:
            flat: list[Any] = values.reshape(-1).tolist()
            return flat
        return list(values.reshape(-1, *self.value_shape).copy())

    def fill_once(self, pairs: list[tuple[Any, Any]]) -> None:
        """The entries of a static table.

        Filling it again with as many entries does nothing, as in TensorFlow.
        """
        with self.lock:
            if self.ready:
                if len(pairs) != len(self.entries):
                    raise _failed("Table was already initialized with different data.")
                return
            entries: dict[Any, Any] = {}
            for key, value in pairs:
                before = entries.setdefault(key, value)
                if before != value:
                    raise _failed(
                        f"HashTable has different value for same key. Key {_text(key)} "
                        f"has {_text(before)} and trying "
                        f"to add value {_text(value)}"
                    )
            self.entries, self.ready = entries, True

    def replace(self, keys: Array, values: Array) -> None:
        pairs = self._pairs(keys, values)
        if self.static:
            if not pairs:
                raise _invalid("keys and values cannot be empty tensors")
            self.fill_once(pairs)
            return
        with self.lock:
            self.entries = dict(pairs)

    def insert(self, keys: Array, values: Array) -> None:
        if self.static:
            raise errors.UnimplementedError(None, None, "Insert not supported by HashTable")
        pairs = self._pairs(keys, values)
        with self.lock:
            self.entries.update(pairs)

    def remove(self, keys: Any) -> None:
        if self.static:
            raise errors.UnimplementedError(None, None, "Remove not supported by HashTable")
        flat = self._checked(keys)
        with self.lock:
            for key in flat:
                self.entries.pop(key, None)

    def find(self, keys: Array, default: Array) -> np.ndarray:
        if not self.ready:
            raise _failed("Table not initialized.")
        flat = self._checked(keys)
        default = np.asarray(default)
        if default.shape != self.value_shape:
            raise _invalid(
                f"Expected shape {list(self.value_shape)} for default value, got "
                f"{list(default.shape)}"
            )
        lead = np.asarray(keys).shape[: np.ndim(keys) - len(self.key_shape)]
        missing = default if self.value_shape else default.item()
        with self.lock:
            found = [self.entries.get(key, missing) for key in flat]
        return self._array(found, (*lead, *self.value_shape), self.value_dtype)

    def _array(self, items: list[Any], shape: tuple[int, ...], kind: type[Any]) -> np.ndarray:
        out = np.empty(shape, kind)
        if not items:
            return out
        if self.value_shape and kind is self.value_dtype:
            out.reshape(len(items), *self.value_shape)[...] = np.stack(items)
        else:
            out.reshape(-1)[:] = items
        return out

    def export(self) -> tuple[np.ndarray, np.ndarray]:
        if not self.ready:
            raise _failed("Table is not initialized.")
        with self.lock:
            keys, values = list(self.entries), list(self.entries.values())
        return self._exported(keys, values)

    def _exported(self, keys: list[Any], values: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        if self.key_shape:
            key_array = np.array(keys, self.key_dtype).reshape(len(keys), *self.key_shape)
        else:
            key_array = np.empty(len(keys), self.key_dtype)
            key_array[:] = keys
        return key_array, self._array(values, (len(keys), *self.value_shape), self.value_dtype)
