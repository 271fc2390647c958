"""Names that are unique in a graph: ``dense``, ``dense_1``."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any
from weakref import WeakKeyDictionary

from headrace.core import stacks
from headrace.core.graph import Graph, get_default_graph

__all__ = ["reset_uids", "to_snake_case", "unique_object_name"]

_counters: WeakKeyDictionary[Graph, Counter[tuple[str, str]]] = WeakKeyDictionary()
stacks.forgetters.append(lambda graph: _counters.pop(graph, None))


def to_snake_case(name: str) -> str:
    """The name of a class as a layer's name: ``MaxPooling2D`` gives ``max_pooling2d``."""
    apart = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    snake = re.sub(r"([a-z])([A-Z])", r"\1_\2", apart).lower()
    return "private" + snake if snake.startswith("_") else snake


def unique_object_name(
    name: str,
    name_uid_map: Any = None,
    avoid_names: Any = None,
    namespace: str = "",
    zero_based: bool = False,
) -> str:
    """The next free name: with ``zero_based`` the first one has no number.

    Example: ``unique_object_name("dense")`` gives ``dense_1``, then ``dense_2``.
    """
    counter = (
        _counters.setdefault(get_default_graph(), Counter())
        if name_uid_map is None
        else name_uid_map
    )
    avoid = avoid_names or ()
    key = (namespace, name)
    while True:
        number = counter[key]
        counter[key] += 1
        if zero_based:
            proposed = f"{name}_{number}" if number else name
        else:
            proposed = f"{name}_{number + 1}"
        if proposed not in avoid:
            return proposed


def reset_uids() -> None:
    """Forget all numbers."""
    _counters.clear()
