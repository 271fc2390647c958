"""``tf.contrib.metrics``: tf_slim's (see ``headrace.api.hosting``), and sets."""

from __future__ import annotations

from typing import Any

from headrace.api.hosting import hosted_getattr
from headrace.api.v1.sets import set_difference, set_intersection, set_size, set_union
from headrace.ops.array.ranges import confusion_matrix as _matrix

__all__ = ["confusion_matrix", "set_difference", "set_intersection", "set_size", "set_union"]


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    dtype: Any = "int32",
    name: str | None = None,
    weights: Any = None,
) -> Any:
    """``tf.math.confusion_matrix`` with the older order of arguments."""
    return _matrix(labels, predictions, num_classes, weights=weights, dtype=dtype, name=name)


__getattr__ = hosted_getattr("contrib.metrics", __name__, ["tf_slim.metrics"])
