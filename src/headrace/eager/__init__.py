"""Eager execution: operations computed at once, variables with values, tapes, functions.

``headrace.eager.context`` and ``headrace.eager.tensor`` are earlier names of two modules, which
tools outside of this repository import; they are loaded when something of them is asked for.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

_RENAMED = {"context": "eager_context", "tensor": "eager_tensor"}


class _Renamed(ModuleType):
    """A module under its earlier name."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        now = _RENAMED[self.__name__.rpartition(".")[2]]
        return getattr(import_module(f"{__name__}.{now}"), name)


for _name in _RENAMED:
    sys.modules[f"{__name__}.{_name}"] = _Renamed(f"{__name__}.{_name}")
