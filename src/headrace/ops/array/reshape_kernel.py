"""Reshape's kernel: NumPy's, with TensorFlow's rules for -1 and for tensors without elements.

reshape_kernel(xp, x, np.array([2, -1]))
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from headrace import errors
from headrace.core import shapes

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace

__all__ = ["reshape_kernel"]


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def reshape_kernel(xp: ArrayNamespace, x: Array, shape: Array) -> Array:
    dims = shape.tolist()
    try:
        if x.size and (not dims or min(dims) >= -1):
            return x.reshape(dims)
        return x.reshape(_empty_sizes(x, dims))
    except (ValueError, TypeError):
        raise _reshape_error(x, shape) from None


def _empty_sizes(x: Array, dims: list[int]) -> list[int]:
    """Sizes for a tensor without elements: beside a 0, TensorFlow takes -1 from those sizes that
    are not 0.

    NumPy would read any negative number as -1 and refuse a -1 beside a 0.
    """
    if any(d < -1 for d in dims) or dims.count(-1) > 1:
        raise ValueError("no such sizes")
    held = math.prod(d for d in x.shape if d or 0 not in dims)
    missing = held // math.prod(d for d in dims if d > 0)
    return [missing if d == -1 else d for d in dims]


def _reshape_error(x: Array, shape: Array) -> Exception:
    if shape.ndim != 1:
        return _invalid(f"sizes input must be 1-D, not {shapes.show(shape.shape)}")
    dims = shape.tolist()
    minus = [i for i, d in enumerate(dims) if d == -1]
    if len(minus) > 1:
        return _invalid(f"Only one input size may be -1, not both {minus[0]} and {minus[1]}")
    low = next((i for i, d in enumerate(dims) if d < -1), None)
    if low is not None:
        return _invalid(f"Size {low} must be non-negative, not {dims[low]}")
    known = 1
    for d in dims:
        known *= d if d != -1 else 1
    if not minus:
        return _invalid(
            f"Input to reshape is a tensor with {x.size} values, but the requested shape "
            f"has {known}"
        )
    if known == 0:
        return _invalid(
            f"Input to reshape is a tensor with {x.size} values, but the requested shape has 0"
        )
    return _invalid(
        f"Input to reshape is a tensor with {x.size} values, but the requested shape "
        f"requires a multiple of {known}"
    )
