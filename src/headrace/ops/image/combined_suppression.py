"""``tf.image.combined_non_max_suppression``: the best boxes of every class and image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes
from headrace.core.build import apply_many
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.ops.image.boxes import kept_boxes

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = ["combined_non_max_suppression"]


def _shape(c: Inference) -> list[Shape]:
    boxes, scores = c.require_rank(0, 4), c.require_rank(1, 3)
    batch = boxes[0] if boxes else None
    total, each = c.value(3), c.value(2)
    count = None if total is None else int(total)
    if c.attr("pad_per_class"):
        classes = scores[2] if scores else None
        if count is not None:
            most = None if each is None or classes is None else int(each) * classes
            count = None if most is None else min(count, most)
    return [(batch, count, 4), (batch, count), (batch, count), (batch,)]


def _best(
    boxes: Array, scores: Array, each: int, iou: Array, least: Array
) -> list[tuple[float, int, int]]:
    """(score, class, box) of an image, from the best on; boxes [n, 1 or classes, 4]."""
    found = []
    for label in range(scores.shape[1]):
        own = boxes[:, min(label, boxes.shape[1] - 1)]
        for i in kept_boxes(own, scores[:, label], np.int32(each), iou, least, np.greater).tolist():
            found.append((float(scores[i, label]), label, i))
    return sorted(found, key=lambda entry: -entry[0])


def _check(boxes: Array, scores: Array, iou: Array) -> None:
    if boxes.ndim != 4 or boxes.shape[3] != 4:
        raise errors.InvalidArgumentError(None, None, "boxes must be 4-D")
    if boxes.shape[2] not in (1, scores.shape[2]):
        raise errors.InvalidArgumentError(
            None, None, "third dimension of boxes must be either 1 or num classes"
        )
    if not 0 <= float(iou) <= 1:
        raise errors.InvalidArgumentError(None, None, "iou_threshold must be in [0, 1]")


def _kernel(
    xp: ArrayNamespace,
    boxes: Array,
    scores: Array,
    each: Array,
    total: Array,
    iou: Array,
    least: Array,
    *,
    pad_per_class: bool,
    clip_boxes: bool,
) -> tuple[Any, ...]:
    _check(boxes, scores, iou)
    batch, per_class = len(boxes), int(each)
    count = int(total)
    if pad_per_class:
        count = min(count, per_class * scores.shape[2])
    out = np.zeros((batch, count, 4), np.float32)
    values, labels = np.zeros((batch, count), np.float32), np.zeros((batch, count), np.float32)
    valid = np.zeros(batch, np.int32)
    for b in range(batch):
        best = _best(boxes[b], scores[b], per_class, iou, least)[:count]
        valid[b] = len(best)
        for k, (score, label, i) in enumerate(best):
            out[b, k] = boxes[b, i, min(label, boxes.shape[2] - 1)]
            values[b, k], labels[b, k] = score, label
    return (out.clip(0, 1) if clip_boxes else out), values, labels, valid


COMBINED = define(
    "CombinedNonMaxSuppression",
    "boxes: float32, scores: float32, max_output_size_per_class: int32, max_total_size: int32, "
    "iou_threshold: float32, score_threshold: float32 -> nmsed_boxes: float32, "
    "nmsed_scores: float32, nmsed_classes: float32, valid_detections: int32; "
    "pad_per_class: bool=False, clip_boxes: bool=True",
    shape=_shape,
    kernel=_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(2, 3),
    host_only=True,
)


def combined_non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size_per_class: TensorLike,
    max_total_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = float("-inf"),
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> Any:
    """Boxes, scores and classes of what is left of every class, and how many there are.

    ``boxes`` [batch, n, 1 or classes, 4], ``scores`` [batch, n, classes]. The results have
    ``max_total_size`` rows, filled with zeros; with ``pad_per_class`` at most
    ``max_output_size_per_class`` times the number of classes.
    """
    with name_scope(name, "combined_non_max_suppression"):
        iou = convert_to_tensor(iou_threshold, dtypes.float32, "iou_threshold")
        least = convert_to_tensor(score_threshold, dtypes.float32, "score_threshold")
        return apply_many(
            COMBINED,
            boxes,
            scores,
            max_output_size_per_class,
            max_total_size,
            iou,
            least,
            pad_per_class=pad_per_class,
            clip_boxes=clip_boxes,
        )
