"""Small graph-building helpers that the modules of ``train`` share."""

from __future__ import annotations

from typing import Any

from headrace.core.dtypes import DType
from headrace.ops import casting

__all__ = ["cast"]


def cast(value: Any, dtype: DType) -> Any:
    """``value`` (tensor, variable or number) in a type; a resource variable that has it is read where it is used."""
    if getattr(value, "handle", None) is not None and value.dtype.base_dtype is dtype:
        return value
    return casting.cast(value, dtype)
