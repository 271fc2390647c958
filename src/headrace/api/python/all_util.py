"""``tensorflow.python.util.all_util``."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["make_all", "remove_undocumented"]


def make_all(module_name: str, doc_string_modules: object = None) -> list[str]:
    """The public functions and classes of a module."""
    module = sys.modules[module_name]
    return [
        name
        for name, value in inspect.getmembers(module)
        if not name.startswith("_") and not inspect.ismodule(value)
    ]


def remove_undocumented(
    module_name: str,
    allowed_exception_list: TensorLike | None = None,
    doc_string_modules: object = None,
) -> None:
    """Nothing: all names of a module stay."""
