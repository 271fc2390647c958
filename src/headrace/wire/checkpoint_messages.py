"""``CheckpointState``, the message in a ``checkpoint`` file, made when first asked for.

The descriptor is TensorFlow's.
"""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["checkpoint_state_class"]

_DOUBLE, _STRING = 1, 9
_FIELDS = (
    (1, "model_checkpoint_path", _STRING, False),
    (2, "all_model_checkpoint_paths", _STRING, True),
    (3, "all_model_checkpoint_timestamps", _DOUBLE, True),
    (4, "last_preserved_timestamp", _DOUBLE, False),
)


@functools.cache
def checkpoint_state_class() -> type[Any]:
    """The message class."""
    from google.protobuf import descriptor_pool, message_factory
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    file = FileDescriptorProto(
        name="tensorflow/python/training/checkpoint_state.proto",
        package="tensorflow",
        syntax="proto3",
    )
    message = file.message_type.add(name="CheckpointState")
    for number, name, kind, repeated in _FIELDS:
        message.field.add(name=name, number=number, type=kind, label=3 if repeated else 1)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    found = message_factory.GetMessageClass(
        pool.FindMessageTypeByName("tensorflow.CheckpointState")
    )
    found.__module__ = __name__
    return found


def __getattr__(name: str) -> Any:
    if name == "CheckpointState":
        return checkpoint_state_class()
    raise AttributeError(name)
