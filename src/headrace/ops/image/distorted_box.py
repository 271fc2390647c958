"""SampleDistortedBoundingBox: a random crop of an image that keeps enough of at least one of its
objects.

Up to ``max_attempts`` crops are drawn: a shape (width : height), a height such that the area is in
the wanted range, a place. The first that covers enough of a box is taken; if none does, the whole
image is. Random numbers are used in TensorFlow's order, so that seeded programs get TensorFlow's
crops.

    >>> begin, size, box = tf.image.sample_distorted_bounding_box(tf.shape(image), boxes)
    >>> crop = tf.slice(image, begin, size)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.core import shapes
from headrace.core.build import apply_many
from headrace.core.infer import Inference
from headrace.core.kernel_context import Runtime
from headrace.core.opdef import NOT_DIFFERENTIABLE, KernelNode, define
from headrace.core.scopes import name_scope
from headrace.core.seeds import get_seed
from headrace.core.shapes import Shape
from headrace.kernels.numpy import philox
from headrace.ops.array.array_shape import invalid
from headrace.ops.random.random_ops import generator

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.tensor import Tensor

__all__ = ["sample_distorted_bounding_box", "sample_distorted_bounding_box_v2"]

_F4 = np.float32


class _Box(NamedTuple):
    """In pixels."""

    x1: int
    y1: int
    x2: int
    y2: int

    def common(self, other: _Box) -> int:
        """Pixels in both."""
        wide = min(self.x2, other.x2) - max(self.x1, other.x1)
        high = min(self.y2, other.y2) - max(self.y1, other.y1)
        return max(wide, 0) * max(high, 0)

    @property
    def area(self) -> int:
        return (self.x2 - self.x1) * (self.y2 - self.y1)


class _Words:
    """Random words one by one, and the numbers that TensorFlow makes of them."""

    def __init__(self, start: philox.Philox) -> None:
        self._words = self._read(start)

    def _read(self, start: philox.Philox) -> Iterator[int]:
        """Most crops succeed early: words are made a few at a time."""
        at, step = 0, 4
        while True:
            yield from philox.groups(start.skip(at), step).reshape(-1).tolist()
            at += step
            step *= 2

    def unit(self) -> Any:
        """A float32 in [0, 1)."""
        return philox.uniform_float(np.array([next(self._words)], np.uint32))[0]

    def below(self, n: int) -> int:
        """An integer in [0, n)."""
        if n & (n - 1) == 0:
            return next(self._words) & (n - 1) if n else 0
        uneven = 0xFFFFFFFF % n + 1
        while True:
            word = next(self._words)
            if word >= uneven:
                return word % n


def _rounded(x: Array) -> int:
    """To the nearest integer, halves to even."""
    return int(np.rint(x))


def _crop(
    width: int, height: int, areas: tuple[Any, Any], ratio: Array, words: _Words
) -> _Box | None:
    """One attempt; None if no such rectangle fits."""
    least, most = (_F4(a) * _F4(width) * _F4(height) for a in areas)
    high = _rounded(np.sqrt(least / ratio))
    top = _rounded(np.sqrt(most / ratio))
    if _rounded(_F4(top) * ratio) > width:
        top = int((width + 0.5 - 1e-7) / float(ratio))
        if _rounded(_F4(top) * ratio) > width:
            top -= 1
    top = min(top, height)
    high = min(high, top)
    if high < top:
        high += words.below(top - high + 1)
    wide = _rounded(_F4(high) * ratio)
    # rounding may have moved the area out of its range: try one row more, then one less
    if wide * high < least:
        high += 1
        wide = _rounded(_F4(high) * ratio)
    if wide * high > most:
        high -= 1
        wide = _rounded(_F4(high) * ratio)
    fits = least <= wide * high <= most and 0 < wide <= width and 0 < high <= height
    if not fits:
        return None
    y = words.below(height - high) if high < height else 0
    x = words.below(width - wide) if wide < width else 0
    return _Box(x, y, x + wide, y + high)


def _covers(crop: _Box, boxes: list[_Box], least: float) -> bool:
    """Whether enough of some box is in the crop."""
    return any(b.area and _F4(crop.common(b)) / _F4(b.area) >= _F4(least) for b in boxes)


def _pixel_boxes(boxes: Array, width: int, height: int) -> list[_Box]:
    out = []
    for y1, x1, y2, x2 in boxes.reshape(-1, 4).tolist():
        if not all(0 <= v <= 1 for v in (y1, x1, y2, x2)):
            raise invalid(
                f"All bounding box coordinates must be in [0.0, 1.0]: [{y1}, {x1}, {y2}, {x2}]"
            )
        if y1 >= y2 or x1 >= x2:
            raise invalid(
                f"Bounding boxes must have x_min < x_max and y_min < y_max: [{y1}, {x1}, "
                f"{y2}, {x2}]"
            )
        scaled = (
            _F4(x1) * _F4(width),
            _F4(y1) * _F4(height),
            _F4(x2) * _F4(width),
            _F4(y2) * _F4(height),
        )
        out.append(_Box(*(int(v) for v in scaled)))
    return out


def _sample(
    image_size: Array, bounding_boxes: Array, covered: Any, node: KernelNode, rt: Runtime
) -> tuple[Any, Any, Any]:
    attrs = node.attrs
    if image_size.shape != (3,):
        raise invalid(
            "image_size must be 1-dimensional and of length 3, got shape "
            f"{shapes.show(image_size.shape)}"
        )
    if bounding_boxes.ndim != 3 or bounding_boxes.shape[-1] != 4:
        raise invalid(
            "input boxes must be 3-dimensional [batch, num_boxes, coords], got shape "
            f"{shapes.show(bounding_boxes.shape)}"
        )
    if not float(covered) >= 0:
        raise invalid(f"Minimum object covered must be non-negative: {float(covered)}")
    height, width = int(image_size[0]), int(image_size[1])
    whole = _Box(0, 0, width, height)
    boxes = _pixel_boxes(bounding_boxes, width, height)
    if not boxes:
        if not attrs["use_image_if_no_bounding_boxes"]:
            raise invalid(
                "No bounding boxes provided as input. One must enable "
                "use_image_if_no_bounding_boxes if you wish to "
                "not provide any bounding boxes."
            )
        boxes = [whole]
    crop = _first_good(whole, boxes, float(covered), attrs, rt, node) or whole
    kind = image_size.dtype
    begin = np.array([crop.y1, crop.x1, 0], kind)
    size = np.array([crop.y2 - crop.y1, crop.x2 - crop.x1, -1], kind)
    units = np.array([crop.y1, crop.x1, crop.y2, crop.x2], _F4) / np.array([height, width] * 2, _F4)
    return begin, size, units.reshape(1, 1, 4)


def _first_good(
    whole: _Box,
    boxes: list[_Box],
    covered: float,
    attrs: dict[str, Any],
    rt: Runtime,
    node: KernelNode,
) -> _Box | None:
    attempts = attrs["max_attempts"]
    # TensorFlow sets four words, one group, aside for each attempt
    words = _Words(generator(rt, node).reserve(attempts))
    low, high = (_F4(r) for r in attrs["aspect_ratio_range"])
    for _ in range(attempts):
        ratio = words.unit() * (high - low) + low
        crop = _crop(whole.x2, whole.y2, attrs["area_range"], ratio, words)
        if crop is not None and _covers(crop, boxes, covered):
            return crop
    return None


def _kernel(
    xp: ArrayNamespace,
    image_size: Array,
    boxes: Array,
    *,
    min_object_covered: float,
    node: KernelNode,
    rt: Runtime,
) -> tuple[Array, Array, Array]:
    return _sample(image_size, boxes, min_object_covered, node, rt)


def _v2_kernel(
    xp: ArrayNamespace,
    image_size: Array,
    boxes: Array,
    covered: Array,
    *,
    node: KernelNode,
    rt: Runtime,
) -> tuple[Array, Array, Array]:
    return _sample(image_size, boxes, covered, node, rt)


def _shape(c: Inference) -> list[Shape]:
    shapes.merge(c.shape(0), (3,))
    c.require_rank(1, 3)
    return [(3,), (3,), (1, 1, 4)]


_OUT = "begin: T, size: T, bboxes: float32"
_SEEDS = "T: type(int), seed: int=0, seed2: int=0"
_ATTRS = (
    "aspect_ratio_range: list(float)=[0.75, 1.33], "
    "area_range: list(float)=[0.05, 1.0], max_attempts: int=100, "
    "use_image_if_no_bounding_boxes: bool=False"
)
SAMPLE = define(
    "SampleDistortedBoundingBox",
    f"image_size: T, bounding_boxes: float32 -> {_OUT}; {_SEEDS}, "
    f"min_object_covered: float=0.1, {_ATTRS}",
    shape=_shape,
    kernel=_kernel,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    random=True,
    host_only=True,
)
SAMPLE_V2 = define(
    "SampleDistortedBoundingBoxV2",
    f"image_size: T, bounding_boxes: float32, min_object_covered: float32 -> {_OUT}; "
    f"{_SEEDS}, {_ATTRS}",
    shape=_shape,
    kernel=_v2_kernel,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    random=True,
    host_only=True,
)


def sample_distorted_bounding_box(
    image_size: TensorLike,
    bounding_boxes: TensorLike,
    seed: int | None = None,
    seed2: int | None = None,
    min_object_covered: TensorLike = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """A random crop: (begin, size) for ``tf.slice`` and its box, 1 x 1 x 4.

    ``image_size`` is [height, width, channels], ``bounding_boxes`` [1, n, 4] with [y min, x min, y
    max, x max] in parts of the size. The crop covers at least ``min_object_covered`` of one box,
    with an aspect ratio in ``aspect_ratio_range`` (default 0.75 to 1.33) and an area in
    ``area_range`` (0.05 to 1). After ``max_attempts`` (100) the whole image is taken.
    ``use_image_if_no_bounding_boxes`` lets the whole image stand for a box where there is none.
    """
    given = {
        "aspect_ratio_range": aspect_ratio_range,
        "area_range": area_range,
        "max_attempts": max_attempts,
        "use_image_if_no_bounding_boxes": use_image_if_no_bounding_boxes,
        "seed": seed,
        "seed2": seed2,
    }
    attrs = {k: v for k, v in given.items() if v is not None}
    with name_scope(name, "sample_distorted_bounding_box"):
        return apply_many(SAMPLE_V2, image_size, bounding_boxes, min_object_covered, **attrs)


def sample_distorted_bounding_box_v2(
    image_size: TensorLike,
    bounding_boxes: TensorLike,
    seed: int = 0,
    min_object_covered: TensorLike = 0.1,
    aspect_ratio_range: TensorLike | None = None,
    area_range: TensorLike | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """A random box that covers enough of one of the given ones; see v1.

    ``seed=0`` gives different boxes in every run.
    """
    seeds = get_seed(seed) if seed else (0, 0)
    return sample_distorted_bounding_box(
        image_size,
        bounding_boxes,
        seeds[0],
        seeds[1],
        min_object_covered,
        aspect_ratio_range,
        area_range,
        max_attempts,
        use_image_if_no_bounding_boxes,
        name,
    )
