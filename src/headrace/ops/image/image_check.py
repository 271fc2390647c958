"""What the image functions check of their images before they build anything.

Shapes that are known are checked here, with TensorFlow's words; what is unknown shows itself when it runs.

    >>> image = at_least_3d(image)  # ValueError if it cannot be an image
"""

from __future__ import annotations

from typing import Any

from headrace.core import shapes
from headrace.core.build import apply_op
from headrace.core.seeds import count_more
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor

__all__ = ["at_least_3d", "check_3d"]

#: Operations of TensorFlow's checks at run time, which are not made here; seeds count them.
_DYNAMIC_CHECKS = 22


def check_3d(shape: Shape, what: str = "image", exactly: bool = False) -> None:
    if shape is None:
        return
    if len(shape) < 3 or (exactly and len(shape) != 3):
        least = "three-dimensional" if exactly else "at least three-dimensional"
        raise ValueError(f"'{what}' (shape {shapes.show(shape)}) must be {least}.")
    if any(d == 0 for d in shape[-3:]):
        raise ValueError(f"inner 3 dims of '{what}.shape' must be > 0: {shapes.show(shape)}")


def at_least_3d(image: Any, what: str = "image", exactly: bool = False) -> Tensor:
    """The image after the checks; an operation of its own, as in TensorFlow."""
    check_3d(image._shape, what, exactly)
    out: Tensor = apply_op("Identity", image, name="control_dependency")
    if shapes.known(image._shape) is None:
        count_more(image.graph, _DYNAMIC_CHECKS)
    return out
