"""The base of specs whose values hold elements of one structure: iterators and optionals."""

from __future__ import annotations

from typing import Any

from headrace.core import nest
from headrace.core.specs import TypeSpec

__all__ = ["ElementSpec"]


class ElementSpec(TypeSpec):
    """A spec that is told by the structure of the elements inside."""

    def __init__(self, element_spec: Any) -> None:
        self._element_spec = element_spec

    def _key(self) -> tuple[Any, ...]:
        return (
            str(nest.map_structure(lambda _: 0, self._element_spec)),
            *nest.flatten(self._element_spec),
        )
