"""What stands in nested Python lists: the rules by which TensorFlow takes them for tensors.

A graph's constant has the type that NumPy finds for the whole list, with 32 bits where NumPy says
64.
An eager constant has the type of its first number if that is a NumPy float, else 32 bits.

    default_array([np.float64(1), 2], np.array(...), eager=False)   # float32
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.annotations import Array
from headrace.core.dtypes import DType

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike


__all__ = ["check_leaves", "default_array", "ragged_error"]

#: What a Python value has to be for a kind of type; np.bool_ is no number, bool is.
_FITS: dict[str, Any] = {
    "f": numbers.Real,
    "i": numbers.Integral,
    "u": numbers.Integral,
    "c": numbers.Complex,
    "b": (bool, np.bool_),
    "s": (str, bytes),
}


def _leaves(value: object) -> Iterator[Any]:
    """Everything that is no list, from left to right, without recursion."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, (list, tuple)):
            waiting.extend(reversed(item))
        else:
            yield item


def check_leaves(value: object, dtype: DType) -> None:
    """Refuse the first Python value that is not of the kind of the type. Arrays are not looked
    at.
    """
    fits = _FITS.get(dtype._kind)
    if fits is None:
        return
    for leaf in _leaves(value):
        if not isinstance(leaf, fits) and not isinstance(leaf, np.ndarray):
            shown = leaf.item() if isinstance(leaf, np.generic) else leaf
            raise TypeError(
                f"Expected {dtype.name}, got {shown!r} of type '{type(leaf).__name__}' instead."
            )


def default_array(value: object, array: Array, eager: bool) -> Array:
    """An array of what was given, with the type that it has if none is asked for."""
    kind = array.dtype.kind
    first = next(_leaves(value), None)
    is_array = isinstance(first, np.ndarray) and first.ndim > 0
    if eager and kind == "f":
        own = isinstance(first, (np.ndarray, np.generic)) and first.dtype.kind == "f"
        return array.astype(first.dtype if own else np.float32)  # type: ignore[union-attr]
    if is_array and not eager:  # TensorFlow's graphs refuse arrays in lists
        return array
    if array.dtype == np.float64:
        return array.astype(np.float32)
    if array.dtype == np.int64 or (eager and kind in "iu"):
        return _narrow(array)
    return array


def _narrow(array: Array) -> Array:
    """int32 if all numbers fit, else int64."""
    small = array.size == 0 or (array.max() <= 0x7FFFFFFF and array.min() >= -0x80000000)
    return array.astype(np.int32 if small else np.int64)


def ragged_error(value: Any, dtype: DType | None, error: Exception) -> Exception:
    """What TensorFlow says to lists that are no array."""
    if dtype is None and _ragged_shape(value) == _shape_of_firsts(value):
        return TypeError(
            f"Failed to convert object of type {type(value)} to Tensor. Contents: {value!r}. "
            "Consider casting elements to a supported type."
        )
    if dtype is not None and dtype._kind == "c":
        return TypeError(f"Argument must be a dense tensor: {value!r} - a list is no number")
    return ValueError(f"Argument must be a dense tensor: {value!r} - {error}")


def _shape_of_firsts(value: TensorLike) -> list[int]:
    """The lengths of a list, of its first element, and so on."""
    out = []
    while isinstance(value, (list, tuple)):
        out.append(len(value))
        if not value:
            break
        value = value[0]
    return out


def _ragged_shape(value: Any) -> list[int]:
    """The shape as deep as all lists agree."""
    out: list[int] = []
    level = [value]
    while level and all(isinstance(v, (list, tuple)) for v in level):
        lengths = {len(v) for v in level}
        if len(lengths) != 1:
            break
        out.append(lengths.pop())
        level = [x for v in level for x in v]
    return out
