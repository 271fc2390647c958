"""The meta-path finder and loader behind :mod:`headrace.dropin`."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

from headrace.api import facades
from headrace.api.missing import explain

__all__ = ["CORE", "ROOT", "Finder"]

ROOT = "tensorflow"
#: Where TensorFlow 1.15 really is: editors write this name into imports.
CORE = "tensorflow_core"


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers for ``tensorflow`` and all modules below it."""

    def __init__(self) -> None:
        self.switch: ModuleType | None = None

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        root, _, below = fullname.partition(".")
        if root == CORE:
            return importlib.machinery.ModuleSpec(fullname, _CoreLoader(), is_package=True)
        if root != ROOT:
            return None
        if not facades.exists(below):
            # without a name: the import system hides the message of `from tensorflow import x`
            # otherwise
            raise ModuleNotFoundError(f"No module named {fullname!r}: {_reason(below)}")
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return facades.facade(spec.name[len(ROOT) + 1 :], ROOT)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: facades come complete."""


class _CoreLoader(importlib.abc.Loader):
    """Makes ``tensorflow_core.x`` the module ``tensorflow.x``."""

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(
            ROOT + module.__name__.removeprefix(CORE)
        )


def _reason(path: str) -> str:
    namespace, _, name = path.rpartition(".")
    available = facades.children(namespace)
    if namespace and not path.startswith(("python", "core")):
        return explain(namespace, name, [*available, *dir(facades.facade(namespace, ROOT))])
    return explain(namespace, name, available)
