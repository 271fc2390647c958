"""``tf.train.Example``, ``SequenceExample`` and their parts, as protocol messages, made when first
asked for.

The descriptors are TensorFlow's (package ``tensorflow``, same numbers and types), built here in a
pool of their own, so that TensorFlow's own messages may be loaded in the same process.

    >>> feature = Feature(int64_list=Int64List(value=[3]))
    >>> Example(features=Features(feature={"label": feature})).SerializeToString()
    b'\\n\\x0e\\n\\x0c\\n\\x05label\\x12\\x03\\x1a\\x01\\x03'
"""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["MESSAGES", "example_class"]

MESSAGES = (
    "BytesList",
    "Example",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "SequenceExample",
)
_PACKAGE = "tensorflow"
_FOLDER = "tensorflow/core/example"

# Field types of descriptor.proto.
_FLOAT, _INT64, _STRING, _MESSAGE, _BYTES = 2, 3, 9, 11, 12


def example_class(name: str) -> Any:
    """A message class by its name; KeyError if there is none."""
    return _classes()[name]


@functools.cache
def _classes() -> dict[str, Any]:
    from google.protobuf import descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    found: dict[str, Any] = {}
    for file in (_feature_file(), _example_file()):
        pool.AddSerializedFile(file.SerializeToString())
        for message in file.message_type:
            descriptor = pool.FindMessageTypeByName(f"{_PACKAGE}.{message.name}")
            found[message.name] = cls = message_factory.GetMessageClass(descriptor)
            cls.__module__ = __name__  # so that messages can be pickled
    return found


def _new_file(name: str) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    return FileDescriptorProto(name=f"{_FOLDER}/{name}.proto", package=_PACKAGE, syntax="proto3")


def _add(
    message: Any, number: int, name: str, kind: int | str, repeated: bool = False, **more: object
) -> None:
    """A field; a string as ``kind`` names a message."""
    field = message.field.add(name=name, number=number, label=3 if repeated else 1, **more)
    if isinstance(kind, str):
        field.type, field.type_name = _MESSAGE, f".{_PACKAGE}.{kind}"
    else:
        field.type = kind
    if repeated and kind in (_FLOAT, _INT64):
        field.options.packed = True


def _add_map(message: Any, number: int, name: str, kind: str) -> None:
    """A field ``map<string, kind>``: a repeated entry message of its own."""
    title = "".join(part.capitalize() for part in name.split("_")) + "Entry"
    entry = message.nested_type.add(name=title)
    entry.options.map_entry = True
    _add(entry, 1, "key", _STRING)
    _add(entry, 2, "value", kind)
    _add(message, number, name, f"{message.name}.{title}", repeated=True)


def _feature_file() -> Any:
    file = _new_file("feature")
    for name, kind in (("BytesList", _BYTES), ("FloatList", _FLOAT), ("Int64List", _INT64)):
        _add(file.message_type.add(name=name), 1, "value", kind, repeated=True)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    kinds = (("bytes_list", "BytesList"), ("float_list", "FloatList"), ("int64_list", "Int64List"))
    for number, (field, name) in enumerate(kinds, 1):
        _add(feature, number, field, name, oneof_index=0)
    _add_map(file.message_type.add(name="Features"), 1, "feature", "Feature")
    _add(file.message_type.add(name="FeatureList"), 1, "feature", "Feature", repeated=True)
    _add_map(file.message_type.add(name="FeatureLists"), 1, "feature_list", "FeatureList")
    return file


def _example_file() -> Any:
    file = _new_file("example")
    file.dependency.append(f"{_FOLDER}/feature.proto")
    _add(file.message_type.add(name="Example"), 1, "features", "Features")
    sequence = file.message_type.add(name="SequenceExample")
    _add(sequence, 1, "context", "Features")
    _add(sequence, 2, "feature_lists", "FeatureLists")
    return file


def __getattr__(name: str) -> Any:
    if name in MESSAGES:
        return example_class(name)
    raise AttributeError(name)
