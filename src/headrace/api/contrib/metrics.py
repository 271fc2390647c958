"""``tf.contrib.metrics``: tf_slim's (see ``headrace.api.hosting``), and sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.api.hosting import hosted_getattr
from headrace.api.v1.sets import set_difference, set_intersection, set_size, set_union
from headrace.ops.array.ranges import confusion_matrix as _matrix

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.tensor import Tensor

__all__ = ["confusion_matrix", "set_difference", "set_intersection", "set_size", "set_union"]


def confusion_matrix(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: TensorLike | None = None,
    dtype: DTypeLike = "int32",
    name: str | None = None,
    weights: TensorLike | None = None,
) -> Tensor:
    """``tf.math.confusion_matrix`` with the older order of arguments.

    Row i, column j counts the predictions j of examples whose label is i. ``num_classes`` (default:
    the largest number + 1) is the size of the matrix; ``weights`` count examples by more or less
    than one.

        tf.contrib.metrics.confusion_matrix([0, 1, 1], [0, 1, 0])  # [[1, 0], [1, 1]]
    """
    return _matrix(labels, predictions, num_classes, weights=weights, dtype=dtype, name=name)


__getattr__ = hosted_getattr("contrib.metrics", __name__, ["tf_slim.metrics"])
