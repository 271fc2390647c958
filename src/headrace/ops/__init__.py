"""The ops, a package per family. ``load_all`` imports every module, which defines every op."""

from __future__ import annotations

import importlib
import pkgutil

from headrace.core.opdef import LOADERS

__all__ = ["load_all"]


def load_all() -> None:
    """Define every op (for tables and tests; programs import what they use)."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)


LOADERS.append(load_all)
