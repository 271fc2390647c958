"""Lookup tables: the resource of a session and its ops. The value of a table's handle is the table
itself.

A table maps scalars (or, in a dense hash table, vectors) to values of one shape. A static table is
filled once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, KernelNode, define
from headrace.core.shapes import Shape, merge, show
from headrace.ops.io.file_ops import read_bytes
from headrace.ops.state.dense_table import DenseTableResource
from headrace.ops.state.table_resource import TableResource

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.lower.session_state import RunContext

__all__ = ["LINE_NUMBER", "WHOLE_LINE"]

WHOLE_LINE, LINE_NUMBER = -2, -1


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


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


def _empty_line(path: str, content: bytes) -> errors.InvalidArgumentError:
    position = 0
    for line in content.split(b"\n"):
        position += len(line) + 1
        if line in (b"", b"\r"):
            break
    return _invalid(f"Invalid content in {path}: empty line found at position {position}.")


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
    content = read_bytes(place)
    lines = content.replace(b"\r\n", b"\n").removesuffix(b"\r").split(b"\n")
    if not lines[-1]:
        lines.pop()
    if b"" in lines[: None if vocab_size == -1 else vocab_size]:
        raise _empty_line(path, content)
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


def _op(name: str, signature: str, kernel: Callable[..., Any], shape: Callable[..., Any]) -> None:
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


def _pairs(text: str) -> frozenset[tuple[str, str]]:
    """The types of keys with the types of values, ``int32:float32,int32 …``."""
    rows = [row.split(":") for row in text.split()]
    return frozenset((key, value) for key, values in rows for value in values.split(","))


_NUMBERS = "float64,float32,int32"
#: What TensorFlow has kernels for.
_TYPES = {
    "HashTableV2": _pairs(
        f"int32:{_NUMBERS},string int64:{_NUMBERS},int64,string string:bool,{_NUMBERS},int64,string"
    ),
    "MutableHashTableV2": _pairs(
        f"int32:{_NUMBERS} int64:{_NUMBERS},int64,string,variant string:bool,{_NUMBERS},int64"
    ),
    "MutableHashTableOfTensorsV2": _pairs(
        f"int32:{_NUMBERS} int64:{_NUMBERS},int64,string string:bool,{_NUMBERS},int64"
    ),
    "MutableDenseHashTableV2": _pairs(
        f"int32:{_NUMBERS} int64:bool,{_NUMBERS},int64,variant string:bool,{_NUMBERS},int64"
    ),
}


def _kinds(node: KernelNode, op_type: str) -> tuple[Any, Any]:
    """The types of keys and values; an error for those that TensorFlow has no kernel for."""
    kinds = node.attrs["key_dtype"], node.attrs["value_dtype"]
    if (kinds[0].name, kinds[1].name) not in _TYPES[op_type]:
        raise _invalid(
            f"No OpKernel was registered to support Op '{op_type}' with key_dtype {kinds[0].name} "
            f"and value_dtype {kinds[1].name}."
        )
    return kinds


def _static(xp: ArrayNamespace, *, node: KernelNode, rt: RunContext) -> Any:
    kinds = _kinds(node, "HashTableV2")
    return rt.session_resource(_key(node), lambda: TableResource(*kinds, static=True))


def _mutable(xp: ArrayNamespace, *, node: KernelNode, rt: RunContext) -> TableResource:
    kinds = _kinds(node, "MutableHashTableV2")
    return rt.session_resource(_key(node), lambda: TableResource(*kinds))


def _of_tensors(xp: ArrayNamespace, *, node: KernelNode, rt: RunContext) -> TableResource:
    kinds = _kinds(node, "MutableHashTableOfTensorsV2")
    shape = _dims(node.attrs["value_shape"])
    if len(shape) != 1:
        raise _invalid(f"Default value must be a vector, got shape {show(shape)}")
    return rt.session_resource(_key(node), lambda: TableResource(*kinds, shape))


def _dense(
    xp: ArrayNamespace, empty_key: Array, deleted_key: Array, *, node: KernelNode, rt: RunContext
) -> DenseTableResource:
    attrs = node.attrs
    kinds = _kinds(node, "MutableDenseHashTableV2")
    shape = _dims(attrs["value_shape"])
    buckets = attrs["initial_num_buckets"], attrs["max_load_factor"]
    return rt.session_resource(
        _key(node), lambda: DenseTableResource(*kinds, shape, empty_key, deleted_key, *buckets)
    )


_NAMED = "container: str='', shared_name: str='', use_node_name_sharing: bool=False"
_TYPED = f"{_NAMED}, key_dtype: type, value_dtype: type"
_SCALAR = lambda c: [()]
_op("HashTableV2", f"-> table_handle: resource; {_TYPED}", _static, _SCALAR)
_op("MutableHashTableV2", f"-> table_handle: resource; {_TYPED}", _mutable, _SCALAR)
_op(
    "MutableHashTableOfTensorsV2",
    f"-> table_handle: resource; {_TYPED}, value_shape: shape=()",
    _of_tensors,
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
    def kernel(xp: ArrayNamespace, table: TableResource, *arrays: object) -> Any:
        getattr(table, method)(*arrays)
        return ()

    return kernel


def _find_shape(c: Inference) -> list[Shape]:
    """The shape of the keys if keys and values are scalars; who makes others sets the shape."""
    scalars = c.op._inputs[0]._op.type != "MutableDenseHashTableV2" and c.shape(2) == ()
    return [c.shape(1) if scalars else None]


_NONE: Any = lambda c: []


def _same_vectors(c: Inference) -> list[Shape]:
    keys = c.shape(1)
    if keys is not None and len(keys) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(keys)}")
    merge(keys, c.shape(2))
    return []


def _scalar_filename(c: Inference) -> list[Shape]:
    if c.shape(1) not in (None, ()):
        raise ValueError(f"Shape must be rank 0 but is rank {len(c.shape(1) or ())}")
    return []


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


def _same_rows(c: Inference) -> list[Shape]:
    keys, values = c.shape(1), c.shape(2)
    if keys and values:
        merge(keys[:1], values[:1])
    return []


for _name, _method in (("LookupTableInsertV2", "insert"), ("LookupTableImportV2", "replace")):
    _op(
        _name,
        "table_handle: resource, keys: Tin, values: Tout -> ",
        _nothing(_method),
        _NONE if _method == "insert" else _same_rows,
    )
_op(
    "InitializeTableV2",
    "table_handle: resource, keys: Tkey, values: Tval -> ",
    _nothing("replace"),
    _same_vectors,
)
_op("LookupTableRemoveV2", "table_handle: resource, keys: Tin -> ", _nothing("remove"), _NONE)
_op(
    "InitializeTableFromTextFileV2",
    "table_handle: resource, filename: string -> ; key_index: int, value_index: int, "
    "vocab_size: int=-1, "
    "delimiter: str='\\t'",
    _from_file,
    _scalar_filename,
)
