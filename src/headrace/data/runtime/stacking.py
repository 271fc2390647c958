"""Elements to batches: stacking, padding, joining of columns.

A value of rank 0 is a NumPy scalar or an array of rank 0; strings are object arrays; a dataset in
an element is any other object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.shapes import show
from headrace.data.runtime.stages import Element

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["concatenate", "pad_stack", "stack"]


def stack(elements: Sequence[Element]) -> Element:
    """A batch of elements that have the same shapes."""
    return tuple([_stacked(column, i) for i, column in enumerate(zip(*elements))])


def _stacked(values: tuple[Any, ...], component: int) -> Array:
    first = values[0]
    kinds = set(map(type, values))
    if len(kinds) == 1 and isinstance(first, np.generic):
        return np.array(values, first.dtype)
    if not isinstance(first, (np.ndarray, np.generic)):  # datasets
        out = np.empty(len(values), object)
        out[:] = values
        return out
    shape = first.shape
    for i, value in enumerate(values):
        if value.shape != shape:
            raise _unlike(component, shape, i, value.shape)
    if shape:
        return np.concatenate(values).reshape(len(values), *shape)
    if first.dtype.kind == "O":
        out = np.empty(len(values), object)
        out[:] = [v[()] for v in values]
        return out
    return np.array(values, first.dtype)


def _unlike(
    component: int, first: tuple[int, ...], i: int, shape: tuple[int, ...]
) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(
        None,
        None,
        f"Cannot batch tensors with different shapes in component {component}. First "
        "element had shape "
        f"{_text(first)} and element {i} had shape {_text(shape)}.",
    )


def _text(shape: tuple[int, ...]) -> str:
    return show(shape).replace(" ", "")


def concatenate(parts: Sequence[Any], component: int = 0) -> np.ndarray[Any, Any]:
    """Batches of one component, one after the other."""
    at, shape = 0, parts[0].shape[1:]
    for part in parts:
        if part.shape[1:] != shape:
            raise _unlike(component, shape, at, part.shape[1:])
        at += len(part)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def pad_stack(
    elements: Sequence[Element], shapes: Sequence[Sequence[int]], values: Sequence[Any]
) -> Element:
    """A batch of elements that are padded to one shape.

    -1 in a shape means the longest of the batch.
    """
    return tuple(
        [
            _padded(column, tuple(shape), value, i)
            for i, (column, shape, value) in enumerate(zip(zip(*elements), shapes, values))
        ]
    )


def _padded(
    column: tuple[Any, ...], wanted: tuple[int, ...], value: bytes | np.generic, component: int
) -> Array:
    rank = len(wanted)
    longest = list(wanted)
    for item in column:
        if item.ndim != rank:
            raise errors.InvalidArgumentError(
                None,
                None,
                "All elements in a batch must have the same rank as the padded shape for "
                f"component{component}: "
                f"expected rank {rank} but got element with rank {item.ndim}",
            )
        for d, size in enumerate(item.shape):
            if wanted[d] < 0:
                longest[d] = max(longest[d], size)
            elif size > wanted[d]:
                raise errors.DataLossError(
                    None,
                    None,
                    "Attempted to pad to a smaller size than the input element: "
                    f"dimension {d} of component "
                    f"{component} is {size}, the padded shape has {wanted[d]}.",
                )
    out = np.empty((len(column), *longest), column[0].dtype)
    if any(item.shape != tuple(longest) for item in column):
        out[...] = value
    for i, item in enumerate(column):
        at: Any = (i, *map(slice, item.shape))
        out[at] = item
    return out
