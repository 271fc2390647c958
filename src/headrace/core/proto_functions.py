"""How objects in collections become protocol messages and back: ``ops.register_proto_function``.

register_proto_function("queue_runners", QueueRunnerDef, QueueRunner.to_proto,
QueueRunner.from_proto)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["ProtoFunction", "find_proto_function", "register_proto_function"]


class ProtoFunction(NamedTuple):
    """For one collection: the class of the message, and the two ways."""

    message: Any
    to_proto: Callable[..., Any]
    from_proto: Callable[..., Any]


_registry: dict[str, ProtoFunction] = {}


def register_proto_function(
    collection_name: str, proto_type: Any = None, to_proto: Any = None, from_proto: Any = None
) -> None:
    """Register how items of a collection are written to MetaGraphs.

    ``to_proto(item, export_scope=)``, ``from_proto(message, import_scope=)``.
    """
    if to_proto is not None and not callable(to_proto):
        raise TypeError("to_proto must be callable.")
    if from_proto is not None and not callable(from_proto):
        raise TypeError("from_proto must be callable.")
    if collection_name in _registry:
        raise KeyError(f"Registering two proto functions with name '{collection_name}'!")
    _registry[collection_name] = ProtoFunction(proto_type, to_proto, from_proto)


def find_proto_function(collection_name: str) -> ProtoFunction | None:
    return _registry.get(collection_name)
