"""The ops, a package per family. ``load_all`` imports every module, which defines every op."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from headrace.core.opdef import LOADERS

__all__ = ["load_all"]

#: Families in the order in which an op is looked for that no imported module defines: those of
#: networks first.
_ORDER = (
    "nn",
    "math",
    "array",
    "control",
    "state",
    "random",
    "linalg",
    "image",
    "strings",
    "io",
    "sparse",
    "training",
    "internal",
)


def load_all() -> None:
    """Define every op (for tables and tests; programs import what they use)."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)


def _load_family(name: str) -> None:
    package = importlib.import_module(f"{__name__}.{name}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)


LOADERS.append(load_all)
LOADERS.extend(functools.partial(_load_family, name) for name in reversed(_ORDER))
