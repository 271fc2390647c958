"""What the image functions check of their images before they build anything.

Shapes that are known are checked here, with TensorFlow's words; what is unknown is checked by
``require`` when it runs.

    >>> image = at_least_3d(image)  # ValueError if it cannot be an image
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headrace.core import shapes
from headrace.core.build import apply_op
from headrace.core.graph import get_default_graph
from headrace.core.scopes import control_dependencies
from headrace.core.seeds import count_as, ops_counted
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.ops.control.assertions import Assert, assert_greater_equal
from headrace.ops.control.dependencies import with_dependencies

__all__ = ["at_least_3d", "check_3d", "not_empty", "require"]

#: Operations of TensorFlow's checks at run time; seeds count them.
_DYNAMIC_CHECKS = 22


def check_3d(shape: Shape, what: str = "image", exactly: bool = False) -> None:
    if shape is None:
        return
    if len(shape) < 3 or (exactly and len(shape) != 3):
        least = "three-dimensional" if exactly else "at least three-dimensional"
        raise ValueError(f"'{what}' (shape {shapes.show(shape)}) must be {least}.")
    if any(d == 0 for d in shape):
        raise ValueError(f"all dims of '{what}.shape' must be > 0: {shapes.from_plain(shape)}")


def at_least_3d(image: Tensor, what: str = "image", exactly: bool = False) -> Tensor:
    """The image after the checks; an operation of its own, as in TensorFlow."""
    check_3d(image._shape, what, exactly)
    if shapes.known(image._shape) is not None:
        return apply_op("Identity", image, name="control_dependency")
    before = ops_counted(image.graph)
    checks = []
    if image._shape is None:
        text = f"'{what}' must be at least three-dimensional."
        checks.append(assert_greater_equal(apply_op("Rank", image), 3, message=text))
    pixels, text = not_empty(image)
    with control_dependencies([*checks, Assert(pixels, [text])]):
        out: Tensor = apply_op("Identity", image, name="control_dependency")
    count_as(image.graph, before, 1 + _DYNAMIC_CHECKS)
    return out


def require(tensor: Tensor, conditions: Callable[[], Iterable[tuple[Any, str]]]) -> Tensor:
    """``tensor`` if all conditions hold: ValueError for a false one that is known, an assertion of
    the run for a tensor.

    What the conditions and assertions add to a graph is not counted by seeds.
    """
    graph = get_default_graph()
    if graph._is_eager:
        return _required(tensor, conditions())
    before = ops_counted(graph)
    out = _required(tensor, conditions())
    count_as(graph, before, 0)
    return out


def _required(tensor: Tensor, conditions: Iterable[tuple[Any, str]]) -> Tensor:
    dynamic = []
    for condition, message in conditions:
        if isinstance(condition, Tensor):
            dynamic.append((condition, message))
        elif not condition:
            raise ValueError(message)
    if not dynamic:
        return tensor
    asserts = [Assert(c, [message]) for c, message in dynamic]
    return with_dependencies(asserts, tensor)


def not_empty(image: Tensor) -> tuple[Any, str]:
    """The condition that an image of unknown size has pixels, for ``require``."""
    if shapes.known(image._shape) is not None:
        return True, ""
    size = apply_op("Prod", apply_op("Shape", image), [0])
    return apply_op("Greater", size, 0), "all dims of 'image.shape' must be > 0."
