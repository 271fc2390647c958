"""Defines the dataset ops, for whoever looks an op up by its name (an imported graph, the table of ops)."""

from __future__ import annotations

import importlib

__all__ = ["load_ops"]


def load_ops() -> None:
    """Import every module that defines ops."""
    for name in ("ops", "ops_files", "ops_functions", "ops_iterators", "ops_later", "ops_sparse"):
        importlib.import_module(f"headrace.data.{name}")
