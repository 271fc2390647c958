"""The SavedModel message, which tensorboard's set of TensorFlow's messages lacks.

A version and MetaGraphDefs.
"""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["saved_model_class"]

_INT64, _MESSAGE, _REPEATED = 3, 11, 3


@functools.cache
def saved_model_class() -> type[Any]:
    """The class; its fields are numbered as TensorFlow's."""
    from google.protobuf import descriptor_pool, message_factory
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from tensorboard.compat.proto import meta_graph_pb2

    known = meta_graph_pb2.MetaGraphDef.DESCRIPTOR
    file = FileDescriptorProto(
        name="headrace/wire/saved_model.proto",
        package="headrace",
        syntax="proto3",
        dependency=[known.file.name],
    )
    message = file.message_type.add(name="SavedModel")
    message.field.add(name="saved_model_schema_version", number=1, type=_INT64, label=1)
    message.field.add(
        name="meta_graphs",
        number=2,
        type=_MESSAGE,
        label=_REPEATED,
        type_name=f".{known.full_name}",
    )
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("headrace.SavedModel"))


def __getattr__(name: str) -> Any:
    if name == "SavedModel":
        return saved_model_class()
    raise AttributeError(name)
