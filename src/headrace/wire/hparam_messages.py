"""``HParamDef``, the message of ``contrib.training.HParams``, made when first asked for.

The descriptor is TensorFlow's.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

__all__ = ["hparam_def_class", "read", "write"]

_FLOAT, _INT64, _BOOL, _STRING, _MESSAGE, _BYTES = 2, 3, 8, 9, 11, 12
#: kind -> (name of its list message, field type, field of a value, field of a list)
_KINDS = {
    "int64": ("Int64List", _INT64, 1, 4),
    "float": ("FloatList", _FLOAT, 2, 5),
    "bytes": ("BytesList", _BYTES, 3, 6),
    "bool": ("BoolList", _BOOL, 7, 8),
}
_OPTIONAL, _REPEATED = 1, 3
_ROOT = ".tensorflow.HParamDef"


def _describe() -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    file = FileDescriptorProto(
        name="tensorflow/contrib/training/python/training/hparam.proto",
        package="tensorflow",
        syntax="proto3",
    )
    message = file.message_type.add(name="HParamDef")
    value = message.nested_type.add(name="HParamType")
    value.oneof_decl.add(name="kind")
    for kind, (list_name, field_type, one, many) in _KINDS.items():
        items = message.nested_type.add(name=list_name)
        items.field.add(name="value", number=1, type=field_type, label=_REPEATED)
        value.field.add(
            name=f"{kind}_value", number=one, type=field_type, label=_OPTIONAL, oneof_index=0
        )
        value.field.add(
            name=f"{kind}_list",
            number=many,
            type=_MESSAGE,
            label=_OPTIONAL,
            oneof_index=0,
            type_name=f"{_ROOT}.{list_name}",
        )
    entry = message.nested_type.add(name="HparamEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=_STRING, label=_OPTIONAL)
    entry.field.add(
        name="value",
        number=2,
        type=_MESSAGE,
        label=_OPTIONAL,
        type_name=f"{_ROOT}.HParamType",
    )
    message.field.add(
        name="hparam",
        number=1,
        type=_MESSAGE,
        label=_REPEATED,
        type_name=f"{_ROOT}.HparamEntry",
    )
    return file


@functools.cache
def hparam_def_class() -> type[Any]:
    """The message class."""
    from google.protobuf import descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(_describe().SerializeToString())
    found = message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.HParamDef"))
    found.__module__ = __name__
    return found


def _kind(value_type: type, name: str) -> str:
    if issubclass(value_type, bool):
        return "bool"
    if issubclass(value_type, int):
        return "int64"
    if issubclass(value_type, (str, bytes)):
        return "bytes"
    if issubclass(value_type, float):
        return "float"
    raise ValueError(f"Unsupported parameter type: {value_type} (of {name})")


def write(types: Mapping[str, tuple[type, bool]], values: Mapping[str, Any]) -> Any:
    """A message of ``values``; ``types`` has (type, whether a list) of each."""
    message = hparam_def_class()()
    for name, (value_type, is_list) in types.items():
        kind, value = _kind(value_type, name), values[name]
        if kind == "bytes":
            value = [_encoded(v) for v in value] if is_list else _encoded(value)
        field = message.hparam[name]
        if is_list:
            getattr(field, f"{kind}_list").value.extend(value)
        else:
            setattr(field, f"{kind}_value", value)
    return message


def read(message: Any) -> dict[str, Any]:
    """The values of a message, text decoded as UTF-8."""
    found: dict[str, Any] = {}
    for name, value in message.hparam.items():
        kind = value.WhichOneof("kind")
        content = getattr(value, kind)
        if kind.endswith("_list"):
            found[name] = [_decoded(v) for v in content.value]
        else:
            found[name] = _decoded(content)
    return found


def _encoded(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _decoded(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else value


def __getattr__(name: str) -> Any:
    if name == "HParamDef":
        return hparam_def_class()
    raise AttributeError(name)
