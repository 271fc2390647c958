"""Results that are the user's own: copies of what a plan still holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["copy_unknown", "own_string", "own_unknown"]


def own_string(value: bytes | Array) -> bytes | Array:
    if not isinstance(value, np.ndarray):
        return value
    return value[()] if value.ndim == 0 else np.array(value)


def own_unknown(value: Any) -> Any:
    return value[()] if value.ndim == 0 else value


def copy_unknown(value: Any) -> Array | np.generic:
    return value[()] if value.ndim == 0 else np.array(value)
