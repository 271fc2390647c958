"""Defines the dataset ops, for lookups of an op by its name (an imported graph, the table of
ops).
"""

from __future__ import annotations

import importlib
import pkgutil

from headrace.data import ops

__all__ = ["load_ops"]


def load_ops() -> None:
    """Import every module that defines ops."""
    for module in pkgutil.iter_modules(ops.__path__, f"{ops.__name__}."):
        importlib.import_module(module.name)
