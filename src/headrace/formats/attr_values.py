"""Attributes of operations as AttrValue messages and back.

An attribute's kind (``type``, ``list(int)``, …) is on the op's definition; attributes that no
definition lists (names with an underscore: ``_class``, ``_output_shapes``) are told by their value.
In a graph attributes are plain Python values (DType, tuple, array, str); see core/tensor.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.core.call_records import AttrScalar
from headrace.core.dtypes import _ALL, DType, as_dtype
from headrace.core.shapes import TensorShape
from headrace.formats.tensor_proto import to_array, to_message, to_shape

if TYPE_CHECKING:
    from headrace.core.annotations import Array


__all__ = ["FunctionName", "decode", "decode_any", "dtypes_by_number", "encode", "encode_shape"]


class FunctionName(NamedTuple):
    """A function that an attribute names, with the attributes that it is instantiated with."""

    name: str
    attrs: tuple[tuple[str, Any], ...] = ()


def _text(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")


def _string(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


# writing ------------------------------------------------------------------------------------------


def encode_shape(shape: Any, message: Any) -> None:
    """Fill in a TensorShapeProto."""
    if isinstance(shape, TensorShape):
        shape = shape._plain
    message.SetInParent()
    if shape is None:
        message.unknown_rank = True
        return
    for size in shape:
        message.dim.add().size = -1 if size is None else int(size)


def _encode_tensor(value: Array, message: object) -> None:
    to_message(value, None, message)


def _encode_function(value: FunctionName, message: Any) -> None:
    message.name = value if isinstance(value, str) else value.name
    for key, attr in getattr(value, "attrs", ()):
        message.attr[key].CopyFrom(attr)


_SCALARS: dict[str, Callable[[Any, Any], None]] = {
    "bool": lambda v, m: setattr(m, "b", bool(v)),
    "int": lambda v, m: setattr(m, "i", int(v)),
    "float": lambda v, m: setattr(m, "f", float(v)),
    "str": lambda v, m: setattr(m, "s", _text(v)),
    "type": lambda v, m: setattr(m, "type", as_dtype(v)._enum),
    "shape": lambda v, m: encode_shape(v, m.shape),
    "tensor": lambda v, m: _encode_tensor(v, m.tensor),
    "func": lambda v, m: _encode_function(v, m.func),
}
#: kind -> how an element is added to a field of AttrValue.ListValue
_ELEMENTS: dict[str, Callable[[Any, Any], None]] = {
    "bool": lambda v, m: m.b.append(bool(v)),
    "int": lambda v, m: m.i.append(int(v)),
    "float": lambda v, m: m.f.append(float(v)),
    "str": lambda v, m: m.s.append(_text(v)),
    "type": lambda v, m: m.type.append(as_dtype(v)._enum),
    "shape": lambda v, m: encode_shape(v, m.shape.add()),
    "tensor": lambda v, m: _encode_tensor(v, m.tensor.add()),
    "func": lambda v, m: _encode_function(v, m.func.add()),
}


def encode_scalars(attrs: Iterable[tuple[str, AttrScalar]], messages: Any) -> None:
    """Numbers and strings as AttrValues, by their Python types."""
    for name, value in attrs:
        if isinstance(value, bool):
            messages[name].b = value
        elif isinstance(value, int):
            messages[name].i = value
        elif isinstance(value, float):
            messages[name].f = value
        else:
            messages[name].s = value.encode()


def encode(value: Any, kind: str, message: Any) -> None:
    """Fill in an AttrValue; ``kind`` "" is told by the value."""
    if not kind:
        kind = _kind_of(value)
    if kind == "message":
        message.CopyFrom(value)
    elif kind[:5] == "list(":
        message.list.SetInParent()
        add = _ELEMENTS[kind[5:-1]]
        for element in value:
            add(element, message.list)
    else:
        _SCALARS[kind](value, message)


def _kind_of(value: object) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    for types, kind in _BY_TYPE:
        if isinstance(value, types):
            return kind
    if isinstance(value, (list, tuple)):
        inner = _kind_of(value[0]) if value else "int"
        return f"list({'shape' if inner.startswith('list') else inner})"
    if value is None:
        return "shape"
    if hasattr(value, "WhichOneof"):
        return "message"
    raise TypeError(f"{value!r} ({type(value).__name__}) cannot be an attribute of a NodeDef")


_BY_TYPE: tuple[tuple[Any, str], ...] = (
    ((int, np.integer), "int"),
    ((float, np.floating), "float"),
    ((str, bytes), "str"),
    (DType, "type"),
    (TensorShape, "shape"),
    (np.ndarray, "tensor"),
    (FunctionName, "func"),
)


# reading ------------------------------------------------------------------------------------------


def _dtype(number: int) -> DType:
    try:
        return as_dtype(number)._base
    except TypeError:
        raise ValueError(f"type number {number}, which Headrace does not have") from None


#: By number, references as what they refer to.
_DTYPES = {d._enum: d._base for d in _ALL}


def dtypes_by_number(allowed: frozenset[DType] | None) -> dict[int, DType]:
    """The types that an attribute may hold (None: any), by their numbers in messages."""
    return {n: d for n, d in _DTYPES.items() if allowed is None or d in allowed}


def _function(message: Any) -> FunctionName:
    return FunctionName(message.name, tuple(message.attr.items()))


#: kind -> (field of AttrValue, how its value is read)
_FIELDS: dict[str, tuple[str, Callable[[Any], Any] | None]] = {
    "bool": ("b", None),
    "int": ("i", None),
    "float": ("f", None),
    "str": ("s", _string),
    "type": ("type", _dtype),
    "shape": ("shape", to_shape),
    "tensor": ("tensor", to_array),
    "func": ("func", _function),
}
_KINDS = {field: kind for kind, (field, _) in _FIELDS.items()}


def decode(message: Any, kind: str) -> Any:
    """The value of an AttrValue of this kind; ValueError if it holds something else."""
    if kind == "type":  # the commonest; what is not a type gives 0 here, which is none
        found = _DTYPES.get(message.type)
        if found is not None:
            return found
    have = message.WhichOneof("value")
    if kind[:5] == "list(":
        if have != "list":
            raise ValueError(f"expected a {kind}, the message holds {_named(have)}")
        return _decode_list(message.list, kind[5:-1])
    field, read = _FIELDS[kind]
    if have != field:
        raise ValueError(f"expected a {kind}, the message holds {_named(have)}")
    value = getattr(message, field)
    return value if read is None else read(value)


def _named(field: str | None) -> str:
    return "nothing" if field is None else f"a {_KINDS.get(field, field)}"


def _decode_list(message: object, kind: str) -> tuple[Any, ...]:
    field, read = _FIELDS[kind]
    values = getattr(message, field)
    return tuple(values) if read is None else tuple([read(v) for v in values])


def decode_any(message: Any) -> Any:
    """The value of an attribute that no definition describes."""
    have = message.WhichOneof("value")
    if have == "list":
        for field, kind in _KINDS.items():
            if len(getattr(message.list, field)):
                found = _decode_list(message.list, kind)
                return list(message.list.s) if kind == "str" else found
        return ()
    if have is None or have == "placeholder":
        return message
    if have == "s":
        return _string(message.s)
    return decode(message, _KINDS[have])
