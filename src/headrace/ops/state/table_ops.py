"""Lookup tables: the resource of a session and its ops. The value of a table's handle is the table
itself.

A table maps scalars (or, in a dense hash table, vectors) to values of one shape. A static table is
filled once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, KernelNode, define
from headrace.core.shapes import Shape
from headrace.ops.io.file_ops import read_bytes

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.lower.session_state import RunContext

__all__ = ["TableResource"]

WHOLE_LINE, LINE_NUMBER = -2, -1


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

    def _keys(self, keys: Any) -> list[Any]:
        keys = np.asarray(keys)
        if not self.key_shape:
            return keys.reshape(-1).tolist()  # type: ignore[no-any-return]
        if keys.shape[-1:] != self.key_shape:
            raise _invalid(f"Expected key shape {list(self.key_shape)} got {list(keys.shape)}")
        return [tuple(row) for row in keys.reshape(-1, *self.key_shape).tolist()]

    def _checked(self, keys: Any) -> list[Any]:
        flat = self._keys(keys)
        for key, what in self.refused.items():
            if key in flat:
                raise _invalid(f"Using the {what} as a table key is not allowed")
        return flat

    def _pairs(self, keys: Any, values: Any, importing: bool = False) -> list[tuple[Any, Any]]:
        """Entries; imported ones may hold the keys that mark empty and deleted places."""
        flat = self._keys(keys) if importing else self._checked(keys)
        values = np.asarray(values)
        lead = np.asarray(keys).shape[: np.ndim(keys) - len(self.key_shape)]
        if values.shape != (*lead, *self.value_shape):
            raise _invalid(
                f"Expected shape {[*lead, *self.value_shape]} for value, got {list(values.shape)}"
            )
        if not self.value_shape:
            return list(zip(flat, values.reshape(-1).tolist(), strict=True))
        return list(zip(flat, values.reshape(-1, *self.value_shape).copy(), strict=True))

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

    def replace(self, keys: TensorLike, values: TensorLike) -> None:
        pairs = self._pairs(keys, values, importing=True)
        if self.static:
            self.fill_once(pairs)
            return
        with self.lock:
            self.entries = {k: v for k, v in pairs if k not in self.refused}

    def insert(self, keys: Any, values: Any) -> None:
        if self.static:
            raise errors.UnimplementedError(None, None, "Insert not supported by HashTable")
        pairs = self._pairs(keys, values)
        with self.lock:
            self.entries.update(pairs)

    def remove(self, keys: TensorLike) -> None:
        if self.static:
            raise errors.UnimplementedError(None, None, "Remove not supported by HashTable")
        flat = self._checked(keys)
        with self.lock:
            for key in flat:
                self.entries.pop(key, None)

    def find(self, keys: Any, default: Any) -> np.ndarray:
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
        if self.key_shape:
            key_array = np.array(keys, self.key_dtype).reshape(len(keys), *self.key_shape)
        else:
            key_array = np.empty(len(keys), self.key_dtype)
            key_array[:] = keys
        return key_array, self._array(values, (len(keys), *self.value_shape), self.value_dtype)


# text files -------------------------------------------------------------------------------------


def _field(
    line: bytes, number: int, index: int, delimiter: bytes, kind: np.dtype[Any], path: str
) -> Any:
    if index == LINE_NUMBER:
        return number
    text = line
    if index != WHOLE_LINE:
        columns = line.split(delimiter)
        if len(columns) <= index:
            raise _invalid(
                f"Invalid number of columns in {path} line {number} ({_text(line)}) : "
                f"expected at least {index + 1} "
                f"got {len(columns)}"
            )
        text = columns[index]
    if kind == np.dtype(object):
        return text
    try:
        return float(text) if np.issubdtype(kind, np.floating) else int(text)
    except ValueError:
        raise _invalid(
            f"Field {_text(text)} in line {number} is not a valid {np.dtype(kind)}."
        ) from None


def _from_file(
    xp: ArrayNamespace,
    table: TableResource,
    filename: Array,
    *,
    key_index: int,
    value_index: int,
    vocab_size: int,
    delimiter: Any,
) -> tuple[Any, ...]:
    place = np.asarray(filename, object).item()
    path = _text(place)
    lines = read_bytes(place).replace(b"\r", b"").split(b"\n")
    if not lines[-1]:
        lines.pop()
    if vocab_size != -1 and len(lines) < vocab_size:
        raise _invalid(f"Invalid vocab_size in {path}: expected {vocab_size} but got {len(lines)}")
    separator = delimiter if isinstance(delimiter, bytes) else delimiter.encode()
    wanted = (key_index, table.key_dtype), (value_index, table.value_dtype)
    pairs = [
        tuple(_field(line, i, index, separator, np.dtype(kind), path) for index, kind in wanted)
        for i, line in enumerate(lines if vocab_size == -1 else lines[:vocab_size])
    ]
    table.fill_once(pairs)
    return ()


# ops --------------------------------------------------------------------------------------------


def _op(name: str, signature: str, kernel: Any, shape: Any) -> None:
    define(
        name,
        signature,
        shape=shape,
        kernel=kernel,
        grad=NOT_DIFFERENTIABLE,
        stateful=True,
        host_only=True,
    )


def _key(node: KernelNode) -> tuple[str, str]:
    name = node.attrs.get("shared_name") or node.name
    return ("table", f"{_text(node.attrs.get('container', ''))}/{_text(name)}")


def _dims(shape: Sequence[int] | None) -> tuple[int, ...]:
    return tuple(int(d) for d in (shape or ()))


def _static(xp: Any, *, node: KernelNode, rt: Any) -> Any:
    kinds = node.attrs["key_dtype"], node.attrs["value_dtype"]
    return rt.session_resource(_key(node), lambda: TableResource(*kinds, static=True))


def _mutable(xp: ArrayNamespace, *, node: KernelNode, rt: RunContext) -> Any:
    kinds = node.attrs["key_dtype"], node.attrs["value_dtype"]
    shape = _dims(node.attrs.get("value_shape"))
    return rt.session_resource(_key(node), lambda: TableResource(*kinds, shape))


def _dense(
    xp: ArrayNamespace, empty_key: Array, deleted_key: Array, *, node: KernelNode, rt: RunContext
) -> Any:
    def make() -> TableResource:
        made = TableResource(
            node.attrs["key_dtype"], node.attrs["value_dtype"], _dims(node.attrs["value_shape"])
        )
        made.key_shape = np.shape(empty_key)
        for key, what in ((empty_key, "empty_key"), (deleted_key, "deleted_key")):
            made.refused[made._keys(key)[0]] = what
        if len(made.refused) == 1:
            raise _invalid("Empty and deleted keys cannot be equal")
        return made

    return rt.session_resource(_key(node), make)


_NAMED = "container: str='', shared_name: str='', use_node_name_sharing: bool=False"
_TYPED = f"{_NAMED}, key_dtype: type, value_dtype: type"
_SCALAR = lambda c: [()]
_op("HashTableV2", f"-> table_handle: resource; {_TYPED}", _static, _SCALAR)
_op("MutableHashTableV2", f"-> table_handle: resource; {_TYPED}", _mutable, _SCALAR)
_op(
    "MutableHashTableOfTensorsV2",
    f"-> table_handle: resource; {_TYPED}, value_shape: shape=()",
    _mutable,
    _SCALAR,
)
_op(
    "MutableDenseHashTableV2",
    "empty_key: key_dtype, deleted_key: key_dtype -> table_handle: resource; "
    f"{_NAMED}, key_dtype: type, value_dtype: type, value_shape: shape=(), "
    "initial_num_buckets: int=131072, "
    "max_load_factor: float=0.8",
    _dense,
    _SCALAR,
)


def _nothing(method: str) -> Callable[..., Any]:
    def kernel(xp: Any, table: TableResource, *arrays: Any) -> Any:
        getattr(table, method)(*arrays)
        return ()

    return kernel


def _find_shape(c: Inference) -> list[Shape]:
    """A scalar default: the shape of the keys. Vector keys or values make it unknown."""
    return [c.shape(1) if c.shape(2) == () else None]


_NONE: Any = lambda c: []
_op(
    "LookupTableFindV2",
    "table_handle: resource, keys: Tin, default_value: Tout -> values: Tout",
    lambda xp, table, keys, default: table.find(keys, default),
    _find_shape,
)
_op(
    "LookupTableSizeV2",
    "table_handle: resource -> size: int64",
    lambda xp, table: np.int64(len(table.entries)),
    _SCALAR,
)
_op(
    "LookupTableExportV2",
    "table_handle: resource -> keys: Tkeys, values: Tvalues; Tkeys: type, Tvalues: type",
    lambda xp, table: table.export(),
    lambda c: [(None,), None],
)
for _name, _method in (("LookupTableInsertV2", "insert"), ("LookupTableImportV2", "replace")):
    _op(
        _name,
        "table_handle: resource, keys: Tin, values: Tout -> ",
        _nothing(_method),
        _NONE,
    )
_op(
    "InitializeTableV2",
    "table_handle: resource, keys: Tkey, values: Tval -> ",
    _nothing("replace"),
    _NONE,
)
_op("LookupTableRemoveV2", "table_handle: resource, keys: Tin -> ", _nothing("remove"), _NONE)
_op(
    "InitializeTableFromTextFileV2",
    "table_handle: resource, filename: string -> ; key_index: int, value_index: int, "
    "vocab_size: int=-1, "
    "delimiter: str='\\t'",
    _from_file,
    _NONE,
)
