"""``tensorflow.python.util.lazy_loader``: a module that is imported when it is first used."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

__all__ = ["LazyLoader"]


class LazyLoader(ModuleType):
    """Stands for the module `name` under `local_name` in `parent_module_globals` until an
    attribute is wanted; then the module takes its place.
    """

    def __init__(
        self, local_name: str, parent_module_globals: dict[str, Any], name: str, warning: str = ""
    ) -> None:
        super().__init__(name)
        self._local_name = local_name
        self._parent_module_globals = parent_module_globals
        self._warning = warning

    def _load(self) -> ModuleType:
        module = importlib.import_module(self.__name__)
        self._parent_module_globals[self._local_name] = module
        if self._warning:
            from headrace.api.platform import tf_logging

            tf_logging.warning(self._warning)
            self._warning = ""
        self.__dict__.update(module.__dict__)
        return module

    def __getattr__(self, item: str) -> Any:
        return getattr(self._load(), item)

    def __dir__(self) -> list[str]:
        return dir(self._load())
