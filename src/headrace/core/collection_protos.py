"""How the members of a graph's collections become messages in a MetaGraph, and messages members.

``register_proto_function("savers", SaverDef, Saver.to_proto, Saver.from_proto)``; the type may be a
function that loads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = [
    "get_collection_proto_type",
    "get_from_proto_function",
    "get_to_proto_function",
    "register_proto_function",
]


class _Functions(NamedTuple):
    proto_type: Any
    to_proto: Callable[..., Any] | None
    from_proto: Callable[..., Any] | None


_registered: dict[str, _Functions] = {}


def register_proto_function(
    collection_name: str,
    proto_type: Callable[..., Any] | None = None,
    to_proto: Callable[..., Any] | None = None,
    from_proto: Callable[..., Any] | None = None,
) -> None:
    """Say how members of a collection are written and read.

    Registering a collection again is an error.
    """
    if to_proto is not None and not callable(to_proto):
        raise TypeError("to_proto must be callable.")
    if from_proto is not None and not callable(from_proto):
        raise TypeError("from_proto must be callable.")
    if collection_name in _registered:
        raise KeyError(f"Registering two proto functions with name '{collection_name}'!")
    _registered[collection_name] = _Functions(proto_type, to_proto, from_proto)


def get_collection_proto_type(collection_name: str) -> Any:
    """The message class of a collection, or None."""
    found = _registered.get(collection_name)
    if found is None:
        return None
    loaded = found.proto_type
    return loaded if loaded is None or hasattr(loaded, "DESCRIPTOR") else loaded()


def get_to_proto_function(collection_name: str) -> Callable[..., Any] | None:
    found = _registered.get(collection_name)
    return None if found is None else found.to_proto


def get_from_proto_function(collection_name: str) -> Callable[..., Any] | None:
    found = _registered.get(collection_name)
    return None if found is None else found.from_proto
