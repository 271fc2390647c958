"""Weights against values: the checks and broadcasts that losses and metrics share.

>>> weights = broadcast_weights(tf.constant([[1.0], [0.5]]), values)  # values: (2, 3)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.array_shape import rank, squeeze
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.basic import no_op
from headrace.ops.array.filling import ones_like
from headrace.ops.control.assertions import Assert
from headrace.ops.control.control_flow import cond
from headrace.ops.math.binary import multiply
from headrace.ops.math.comparison import equal, logical_or
from headrace.ops.math.reductions import reduce_all

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["assert_broadcastable", "broadcast_weights", "remove_squeezable_dimensions"]

_PREFIX = "weights can not be broadcast to values."


def remove_squeezable_dimensions(
    labels: object, predictions: object, expected_rank_diff: int = 0, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Both, the one whose rank is too high by one without its last dimension (of size 1).

    ``expected_rank_diff`` is the expected rank of the predictions minus that of the labels.
    """
    with name_scope(name, "remove_squeezable_dimensions", [labels, predictions]):
        predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
        ranks = predictions.shape.ndims, labels.shape.ndims
        if ranks[0] is not None and ranks[1] is not None:
            difference = ranks[0] - ranks[1] - expected_rank_diff
            if difference == 1:
                predictions = squeeze(predictions, [-1])
            elif difference == -1:
                labels = squeeze(labels, [-1])
            return labels, predictions
        wide, wide_labels = predictions, labels
        more = rank(predictions) - rank(labels)
        if ranks[0] is None or predictions.shape[-1:].is_compatible_with([1]):
            is_wide = equal(expected_rank_diff + 1, more)
            predictions = cond(is_wide, lambda: squeeze(wide, [-1]), lambda: wide)
        if ranks[1] is None or labels.shape[-1:].is_compatible_with([1]):
            is_wide = equal(expected_rank_diff - 1, more)
            labels = cond(is_wide, lambda: squeeze(wide_labels, [-1]), lambda: wide_labels)
        return labels, predictions


def _check_known(weights: Tensor, values: Tensor) -> Operation | None:
    """The check that needs no run.

    Raises, gives the operation that stands for it, or None if a run must tell.
    """
    if weights.shape.ndims is None or values.shape.ndims is None:
        return None
    if weights.shape.ndims == 0:
        return no_op(name="static_scalar_check_success")
    if weights.shape.ndims != values.shape.ndims:
        raise ValueError(
            f"{_PREFIX} values.rank={values.shape.ndims}. weights.rank={weights.shape.ndims}. "
            f"values.shape={values.shape}. weights.shape={weights.shape}."
        )
    if not (weights.shape.is_fully_defined() and values.shape.is_fully_defined()):
        return None
    have, want = weights.shape.as_list(), values.shape.as_list()
    for i, (mine, other) in enumerate(zip(have, want, strict=True)):
        if mine not in (1, other):
            raise ValueError(
                f"{_PREFIX} Mismatch at dim {i}. values.shape={want} weights.shape={have}."
            )
    return no_op(name="static_dims_check_success")


def assert_broadcastable(weights: TensorLike, values: TensorLike) -> Operation:
    """An operation that fails unless weights are a scalar, or of the rank of values with
    dimensions 1 or equal.
    """
    with name_scope(None, "assert_broadcastable", (weights, values)) as scope:
        with name_scope(None, "weights", (weights,)) as inner:
            weights = convert_to_tensor(weights, name=inner)
            weights_shape, weights_rank = (
                shape_of(weights, name="shape"),
                rank(weights, name="rank"),
            )
        with name_scope(None, "values", (values,)) as inner:
            values = convert_to_tensor(values, name=inner)
            values_shape, values_rank = shape_of(values, name="shape"), rank(values, name="rank")
        known = _check_known(weights, values)
        if known is not None:
            return known
        is_scalar = equal(0, weights_rank, name="is_scalar")

        def same_or_one() -> Tensor:
            fits = logical_or(equal(weights_shape, values_shape), equal(weights_shape, 1))
            return reduce_all(fits)

        def checked() -> Tensor:
            same = equal(values_rank, weights_rank, name="is_same_rank")
            return cond(same, same_or_one, lambda: same)

        valid = cond(is_scalar, lambda: is_scalar, checked, name="is_valid_shape")
        data = (
            _PREFIX,
            "weights.shape=",
            weights.name,
            weights_shape,
            "values.shape=",
            values.name,
            values_shape,
            "is_scalar=",
            is_scalar,
        )
        return Assert(valid, data, name=scope)


def broadcast_weights(weights: TensorLike, values: TensorLike) -> Tensor:
    """Weights in the shape of values; weights that are known to have it come back as they are."""
    with name_scope(None, "broadcast_weights", (weights, values)) as scope:
        target = convert_to_tensor(values, name="values")
        given = convert_to_tensor(weights, dtype=target.dtype.base_dtype, name="weights")
        if _known_to_have_one_shape(given, target):
            return given
        fits = assert_broadcastable(given, target)
        with control_dependencies([fits]):
            return multiply(given, ones_like(target), name=scope)


def _known_to_have_one_shape(a: Tensor, b: Tensor) -> bool:
    known = a.shape.is_fully_defined() and b.shape.is_fully_defined()
    return known and a.shape.as_list() == b.shape.as_list()
