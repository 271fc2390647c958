"""Messages that tensorboard's set of TensorFlow's lacks, described by tables of text.

A message's fields are ``number name type``, separated by commas. ``*`` repeats a field, ``|`` makes
it one of the fields of a group, ``{}`` a map from strings to strings. A type that is no scalar is
a message of the table or of an earlier one. Enumerations are int32 (the same bytes).

    >>> made = message_classes({"example": {"Point": "1 x int32, 2 tags *string"}})
    >>> made["Point"](x=3, tags=["a"]).SerializeToString()
    b'\\x08\\x03\\x12\\x01a'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["message_classes"]

_TYPES = {"float": 2, "int64": 3, "int32": 5, "bool": 8, "string": 9}
_MESSAGE, _REPEATED = 11, 3


def message_classes(tables: Mapping[str, Mapping[str, str]], group: str = "kind") -> dict[str, Any]:
    """Classes by name, of packages of messages; their descriptors are in a pool of their own."""
    from google.protobuf import descriptor_pool, message_factory
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    pool = descriptor_pool.DescriptorPool()
    found: dict[str, Any] = {}
    places: dict[str, str] = {}
    for package, table in tables.items():
        file = FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
        file.dependency.extend(f"{earlier}.proto" for earlier in dict.fromkeys(places.values()))
        places |= dict.fromkeys(table, package)
        for name, fields in table.items():
            _fill(file.message_type.add(name=name), fields, places, group)
        pool.AddSerializedFile(file.SerializeToString())
        for name in table:
            descriptor = pool.FindMessageTypeByName(f"{package}.{name}")
            found[name] = message_factory.GetMessageClass(descriptor)
    return found


def _fill(message: Any, fields: str, places: Mapping[str, str], group: str) -> None:
    if "|" in fields:
        message.oneof_decl.add(name=group)
    for text in fields.split(", "):
        number, name, kind = text.split()
        field = message.field.add(name=name, number=int(number), label=1)
        if kind[0] in "*{":
            field.label = _REPEATED
        if kind[0] == "|":
            field.oneof_index = 0
        kind = _map_entry(message, name) if kind == "{}" else kind.lstrip("*|")
        field.type = _TYPES.get(kind, _MESSAGE)
        if kind not in _TYPES:
            at = places[message.name] + f".{message.name}" if kind not in places else places[kind]
            field.type_name = f".{at}.{kind}"


def _map_entry(message: Any, name: str) -> str:
    """The message of a map's entries, named as protocol buffers want it."""
    entry = message.nested_type.add(name="".join(n.title() for n in name.split("_")) + "Entry")
    entry.options.map_entry = True
    for number, part in enumerate(("key", "value"), 1):
        entry.field.add(name=part, number=number, label=1, type=_TYPES["string"])
    return str(entry.name)
