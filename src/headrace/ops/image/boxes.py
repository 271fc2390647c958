"""Bounding boxes: non-maximum suppression, drawing, and random crops that keep enough of them.

Boxes are [y1, x1, y2, x2], in units of the image's height and width.

    >>> keep = tf.image.non_max_suppression(boxes, scores, max_output_size=10)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import shapes
from headrace.core.build import apply, apply_many
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import invalid

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.opdef import OpDef

__all__ = [
    "kept_boxes",
    "draw_bounding_boxes",
    "draw_bounding_boxes_v2",
    "non_max_suppression",
    "non_max_suppression_overlaps",
    "non_max_suppression_padded",
    "non_max_suppression_with_scores",
]

# non-maximum suppression --------------------------------------------------------------------------


def _overlaps(boxes: Array, i: int) -> Array:
    """Intersection over union of box i with all boxes. Corners may come in either order."""
    y1, y2 = np.minimum(boxes[:, 0], boxes[:, 2]), np.maximum(boxes[:, 0], boxes[:, 2])
    x1, x2 = np.minimum(boxes[:, 1], boxes[:, 3]), np.maximum(boxes[:, 1], boxes[:, 3])
    areas = (y2 - y1) * (x2 - x1)
    height = np.maximum(np.minimum(y2, y2[i]) - np.maximum(y1, y1[i]), 0)
    width = np.maximum(np.minimum(x2, x2[i]) - np.maximum(x1, x1[i]), 0)
    common = height * width
    shared = common / (areas + areas[i] - common)
    return np.where((areas <= 0) | (areas[i] <= 0), 0, shared)


def kept_boxes(
    boxes: Array,
    scores: Array,
    limit: Array | np.generic,
    iou: float | Array | np.generic,
    least: Array | np.generic | None = None,
    suppressed: Callable[[Any, Any], Any] = np.greater_equal,
) -> Array:
    """Indices of the boxes that are kept, best first; of equal scores the earlier box.

    ``suppressed`` compares overlaps with ``iou``: an equal one is suppressed, as in TensorFlow
    1.15, but for its combined suppression.
    """
    _check(boxes, scores, iou)
    return _greedy(lambda i: suppressed(_overlaps(boxes, i), iou), scores, int(limit), least)


def _check(boxes: Array, scores: Array, iou: float | Array | np.generic) -> None:
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise invalid(f"boxes must have 4 columns, got shape {shapes.show(boxes.shape)}")
    if scores.shape != boxes.shape[:1]:
        raise invalid("scores has incompatible shape")
    if not 0 <= float(iou) <= 1:
        raise invalid("iou_threshold must be in [0, 1]")


def _greedy(
    suppressed_by: Callable[..., Any],
    scores: Array,
    limit: int,
    least: Array | np.generic | None,
) -> Array:
    if limit < 0:  # TensorFlow counts up to equality
        limit = len(scores)
    order = np.argsort(-scores.astype(np.float64), kind="stable")
    if least is not None:
        order = order[scores[order] > least]
    alive = np.zeros(len(scores), bool)
    alive[order] = True
    kept: list[int] = []
    for i in order.tolist():
        if len(kept) >= limit:
            break
        if alive[i]:
            kept.append(i)
            alive &= ~suppressed_by(i)
    return np.array(kept, np.int32)


def _nms_kernel(
    xp: ArrayNamespace, boxes: Array, scores: Array, limit: Array, *, iou_threshold: float
) -> Array:
    return kept_boxes(boxes, scores, limit, iou_threshold)


def _nms_v2_kernel(
    xp: ArrayNamespace, boxes: Array, scores: Array, limit: Array, iou: Array
) -> Array:
    return kept_boxes(boxes, scores, limit, iou)


def _nms_v3_kernel(
    xp: ArrayNamespace, boxes: Array, scores: Array, limit: Array, iou: Array, least: Array
) -> Array:
    if np.ndim(least):
        raise invalid(f"score_threshold must be 0-D, got shape {shapes.show(np.shape(least))}")
    return kept_boxes(boxes, scores, limit, iou, least)


def _nms_v4_kernel(
    xp: ArrayNamespace,
    boxes: Array,
    scores: Array,
    limit: Array,
    iou: Array,
    least: Array,
    *,
    pad_to_max_output_size: bool,
) -> tuple[Any, ...]:
    kept = kept_boxes(boxes, scores, limit, iou, least)
    count = np.int32(len(kept))
    return (_padded(kept, int(limit)) if pad_to_max_output_size else kept), count


def _padded(values: Any, size: int) -> Array:
    out = np.zeros(size, values.dtype)
    out[: len(values)] = values
    return out


def _nms_v5_kernel(
    xp: ArrayNamespace,
    boxes: Array,
    scores: Array,
    limit: Array,
    iou: Array,
    least: Array,
    sigma: Array,
    *,
    pad_to_max_output_size: bool,
) -> tuple[Any, ...]:
    _check(boxes, scores, iou)
    if float(sigma) > 0:
        kept, values = _soft(boxes, scores, int(limit), float(iou), float(least), float(sigma))
    else:
        kept = kept_boxes(boxes, scores, limit, iou, least)
        values = scores[kept]
    count = np.int32(len(kept))
    if pad_to_max_output_size:
        kept, values = _padded(kept, int(limit)), _padded(values, int(limit))
    return kept, values, count


def _soft(
    boxes: Array, scores: Array, limit: int, iou: float, least: float, sigma: float
) -> tuple[Any, Any]:
    """Soft suppression.

    A box loses score by its overlap with each better one, exp(-overlap² / (2 sigma)).
    """
    current = scores.astype(np.float64)
    alive = current > least
    kept: list[int] = []
    values: list[float] = []
    while alive.any() and len(kept) < limit:
        best = int(np.where(alive, current, -np.inf).argmax())
        kept.append(best)
        values.append(float(current[best]))
        alive[best] = False
        shared = _overlaps(boxes, best)
        current = current * np.exp(-shared * shared / (2 * sigma))
        alive &= (current > least) & ~(shared >= iou)
    return np.array(kept, np.int32), np.array(values, scores.dtype)


def _nms_overlaps_kernel(
    xp: ArrayNamespace, overlaps: Array, scores: Array, limit: Array, threshold: Array, least: Array
) -> Array:
    return _greedy(lambda i: overlaps[i] >= threshold, scores, int(limit), least)


def _check_boxes(c: Inference, width: int | None = 4) -> None:
    """Boxes are [n, 4] (overlaps [n, n]), their scores [n]."""
    boxes = c.require_rank(0, 2)
    scores = c.require_rank(1, 1)
    assert boxes is not None and scores is not None
    if boxes[0] is not None and scores[0] is not None and boxes[0] != scores[0]:
        raise ValueError(f"Dimensions must be equal, but are {boxes[0]} and {scores[0]}")
    if width is None and None not in boxes and boxes[0] != boxes[1]:
        raise ValueError(f"Dimensions must be equal, but are {boxes[0]} and {boxes[1]}")
    if width is not None and boxes[1] not in (None, width):
        raise ValueError(f"Dimension must be {width} but is {boxes[1]}")


def _kept_shape(n_scalars: int, width: int | None = 4) -> Callable[..., Any]:
    def shape(c: Inference) -> list[Shape]:
        _check_boxes(c, width)
        for i in range(2, 2 + n_scalars):
            c.require_rank(i, 0)
        return [(None,)]

    return shape


def _maybe_padded_shape(n_vectors: int) -> Callable[..., Any]:
    def shape(c: Inference) -> list[Shape]:
        _check_boxes(c)
        for i in range(2, c.n_inputs):
            c.require_rank(i, 0)
        limit = c.value(2) if c.attr("pad_to_max_output_size") else None
        size = None if limit is None else int(limit)
        return [(size,)] * n_vectors + [()]

    return shape


_T = "T: type(float)=float32"
_THRESHOLD = f"{_T}, T_threshold: type(float)=float32"


def _define(
    name: str, signature: str, kernel: Callable[..., Any], shape: Callable[..., Any]
) -> OpDef:
    return define(
        name,
        signature,
        shape=shape,
        kernel=kernel,
        grad=NOT_DIFFERENTIABLE,
        host_only=True,
        data_dependent_shape=True,
    )


NMS = _define(
    "NonMaxSuppression",
    "boxes: float32, scores: float32, max_output_size: int32 -> selected_indices: int32; "
    "iou_threshold: float=0.5",
    _nms_kernel,
    _kept_shape(1),
)
NMS_V2 = _define(
    "NonMaxSuppressionV2",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold -> "
    f"selected_indices: int32; {_THRESHOLD}",
    _nms_v2_kernel,
    _kept_shape(2),
)
NMS_V3 = _define(
    "NonMaxSuppressionV3",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, "
    "score_threshold: T_threshold -> "
    f"selected_indices: int32; {_THRESHOLD}",
    _nms_v3_kernel,
    _kept_shape(3),
)
NMS_V4 = _define(
    "NonMaxSuppressionV4",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, "
    "score_threshold: T_threshold -> "
    f"selected_indices: int32, valid_outputs: int32; {_THRESHOLD}, "
    "pad_to_max_output_size: bool=False",
    _nms_v4_kernel,
    _maybe_padded_shape(1),
)
NMS_V5 = _define(
    "NonMaxSuppressionV5",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T, score_threshold: T, "
    "soft_nms_sigma: T -> "
    f"selected_indices: int32, selected_scores: T, valid_outputs: int32; {_T}, "
    "pad_to_max_output_size: bool=False",
    _nms_v5_kernel,
    _maybe_padded_shape(2),
)
NMS_OVERLAPS = _define(
    "NonMaxSuppressionWithOverlaps",
    "overlaps: float32, scores: float32, max_output_size: int32, overlap_threshold: float32, "
    "score_threshold: float32 -> selected_indices: int32",
    _nms_overlaps_kernel,
    _kept_shape(3, None),
)


def non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = float("-inf"),
    name: str | None = None,
) -> Tensor:
    """Indices (int32) of the best boxes, without those that overlap a better one too much.

    ``boxes`` is [n, 4] as [y1, x1, y2, x2], ``scores`` [n]. At most ``max_output_size`` boxes are
    chosen, by falling score; a box that overlaps a chosen one by ``iou_threshold``
    (intersection over union) or more, or whose score is at most ``score_threshold``, is dropped.

        boxes = [[0.0, 0, 1, 1], [0, 0, 1, 0.9], [0, 2, 1, 3]]
        tf.image.non_max_suppression(boxes, [0.9, 0.8, 0.7], 3)  # [0, 2]
    """
    with name_scope(name, "non_max_suppression"):
        iou = convert_to_tensor(iou_threshold, name="iou_threshold")
        least = convert_to_tensor(score_threshold, name="score_threshold")
        return apply(NMS_V3, boxes, scores, max_output_size, iou, least)


def non_max_suppression_with_scores(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = float("-inf"),
    soft_nms_sigma: TensorLike = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Chosen boxes and their scores: ``non_max_suppression``, also with soft suppression.

    ``soft_nms_sigma`` above 0 lowers the scores of overlapping boxes instead of dropping the boxes.
    ``boxes`` is [n, 4] as [y1, x1, y2, x2].

    ``boxes`` is [n, 4] as [y1, x1, y2, x2], ``scores`` [n]. At most ``max_output_size`` boxes are
    chosen, by falling score; a box that overlaps a chosen one by ``iou_threshold``
    (intersection over union) or more, or whose score is at most ``score_threshold``, is dropped.
    """
    with name_scope(name, "non_max_suppression_with_scores"):
        iou = convert_to_tensor(iou_threshold, name="iou_threshold")
        least = convert_to_tensor(score_threshold, name="score_threshold")
        sigma = convert_to_tensor(soft_nms_sigma, name="soft_nms_sigma")
        found = apply_many(NMS_V5, boxes, scores, max_output_size, iou, least, sigma)
        return found[0], found[1]


def non_max_suppression_padded(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = float("-inf"),
    pad_to_max_output_size: bool = False,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """``non_max_suppression`` with a result of one size: (indices, how many of them are valid).

    ``boxes`` is [n, 4] as [y1, x1, y2, x2], ``scores`` [n]. At most ``max_output_size`` boxes are
    chosen, by falling score; a box that overlaps a chosen one by ``iou_threshold``
    (intersection over union) or more, or whose score is at most ``score_threshold``, is dropped.
    With ``pad_to_max_output_size`` the indices are filled up with zeros.
    """
    with name_scope(name, "non_max_suppression_padded"):
        iou = convert_to_tensor(iou_threshold, name="iou_threshold")
        least = convert_to_tensor(score_threshold, name="score_threshold")
        return apply_many(
            NMS_V4,
            boxes,
            scores,
            max_output_size,
            iou,
            least,
            pad_to_max_output_size=pad_to_max_output_size,
        )


def non_max_suppression_padded_v2(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = float("-inf"),
    pad_to_max_output_size: bool = False,
    name: str | None = None,
    sorted_input: bool = False,
    canonicalized_coordinates: bool = False,
    tile_size: int = 512,
) -> tuple[Tensor, ...]:
    """TF 2's signature.

    What is known about the boxes only saves TensorFlow work; batches of boxes are not there yet.
    """
    if tile_size <= 0:
        raise ValueError(f"tile_size must be positive, got {tile_size}")
    rank = convert_to_tensor(boxes)._rank()
    if rank is not None and rank > 2:
        raise NotImplementedError(
            "tf.image.non_max_suppression_padded: batches of boxes are not there yet"
        )
    del sorted_input, canonicalized_coordinates
    return non_max_suppression_padded(
        boxes, scores, max_output_size, iou_threshold, score_threshold, pad_to_max_output_size, name
    )


def non_max_suppression_overlaps(
    overlaps: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    overlap_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = float("-inf"),
    name: str | None = None,
) -> Tensor:
    """``non_max_suppression`` from a matrix ``overlaps`` [n, n] instead of boxes.

    ``scores`` is [n]. At most ``max_output_size`` entries are chosen, by falling score; one that
    overlaps a chosen one by ``overlap_threshold`` or more, or whose score is at most
    ``score_threshold``, is dropped.
    """
    with name_scope(name, "non_max_suppression_overlaps"):
        most = convert_to_tensor(overlap_threshold, name="overlap_threshold")
        return apply(NMS_OVERLAPS, overlaps, scores, max_output_size, most, score_threshold)


# drawing ------------------------------------------------------------------------------------------

_COLORS = np.array(
    [
        [1, 1, 0, 1],
        [0, 0, 1, 1],
        [1, 0, 0, 1],
        [0, 1, 0, 1],
        [0.5, 0, 0.5, 1],
        [0.5, 0.5, 0, 1],
        [0.5, 0, 0, 1],
        [0, 0, 0.5, 1],
        [0, 1, 1, 1],
        [1, 0, 1, 1],
    ],
    np.float32,
)


def _draw(images: Array, boxes: Array, colors: Array) -> Array:
    if images.ndim != 4:
        raise invalid("The rank of the images should be 4")
    batch, height, width, depth = images.shape
    if depth not in (1, 3, 4):
        raise invalid("Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)")
    if boxes.ndim != 3:
        raise invalid("The rank of the boxes tensor should be 3")
    if boxes.shape[2] != 4:
        raise invalid("The size of the third dimension of the box must be 4")
    if colors.ndim != 2 or colors.shape[1] < depth:
        raise invalid(
            "colors must be a matrix with at least as many columns as the pictures have channels: "
            f"{shapes.show(colors.shape)}"
        )
    if len(boxes) != batch:
        raise invalid("The batch sizes should be the same")
    out = images.copy()
    if depth == 1:
        colors = np.concatenate([np.ones_like(colors[:, :1]), colors[:, 1:]], axis=1)
    scale = np.array([height - 1, width - 1, height - 1, width - 1], np.float32)
    corners = (boxes * scale).astype(np.int64)
    for b in range(batch):
        for i, (y1, x1, y2, x2) in enumerate(corners[b].tolist()):
            _draw_one(out[b], (y1, x1, y2, x2), colors[i % len(colors), :depth].astype(out.dtype))
    return out


def _draw_one(image: Array, box: tuple[int, int, int, int], color: Array) -> None:
    """The four edges, as far as they lie in the image."""
    height, width, _ = image.shape
    y1, x1, y2, x2 = box
    if y1 > y2 or x1 > x2 or y1 >= height or y2 < 0 or x1 >= width or x2 < 0:
        return
    rows = slice(max(y1, 0), min(y2, height - 1) + 1)
    columns = slice(max(x1, 0), min(x2, width - 1) + 1)
    if y1 >= 0:
        image[y1, columns] = color
    if y2 < height:
        image[y2, columns] = color
    if x1 >= 0:
        image[rows, x1] = color
    if x2 < width:
        image[rows, x2] = color


def _draw_kernel(xp: ArrayNamespace, images: Array, boxes: Array) -> Array:
    return _draw(images, boxes, _COLORS)


def _draw_v2_kernel(xp: ArrayNamespace, images: Array, boxes: Array, colors: Array) -> Array:
    return _draw(images, boxes, colors if colors.size else _COLORS)


def _draw_shape(c: Inference) -> list[Shape]:
    images, boxes = c.require_rank(0, 4), c.require_rank(1, 3)
    if images[3] not in (None, 1, 3, 4):
        raise ValueError("Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)")
    if boxes[2] not in (None, 4):
        raise ValueError(f"Dimension must be 4 but is {boxes[2]}")
    return [images]


DRAW = define(
    "DrawBoundingBoxes",
    "images: T, boxes: float32 -> output: T; T: type(float)=float32",
    shape=_draw_shape,
    kernel=_draw_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
DRAW_V2 = define(
    "DrawBoundingBoxesV2",
    "images: T, boxes: float32, colors: float32 -> output: T; T: type(float)=float32",
    shape=lambda c: [c.require_rank_at_least(0, 3)],
    kernel=_draw_v2_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)


def draw_bounding_boxes(
    images: TensorLike, boxes: TensorLike, name: str | None = None, colors: object = None
) -> Tensor:
    """The images of a batch with their boxes (batch x boxes x 4) drawn in.

    ``images`` is [batch, height, width, 1, 3 or 4] of float32 or float16; a box is [y min, x min, y
    max, x max] in parts of the image's size. ``colors`` is [n, channels] and is used in turn.
    """
    return draw_bounding_boxes_v2(images, boxes, colors, name)


def draw_bounding_boxes_v2(
    images: TensorLike, boxes: TensorLike, colors: object, name: str | None = None
) -> Tensor:
    """Pictures with frames of ``boxes`` [batch, n, 4] drawn into them, in ``colors`` in turn.

    Coordinates are fractions of height and width: [y_min, x_min, y_max, x_max].
    """
    if colors is None:
        return apply(DRAW, images, boxes, name=name)
    return apply(DRAW_V2, images, boxes, colors, name=name)
