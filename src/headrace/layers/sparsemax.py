"""``tf.contrib.sparsemax``: the projection of logits onto the simplex, and its loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.scopes import name_scope
from headrace.layers import layer_ops as ops

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike


__all__ = ["sparsemax", "sparsemax_loss"]


def sparsemax(logits: TensorLike, name: str | None = None) -> Any:
    """Probabilities (rows of a matrix) of which many are exactly zero.

    Rows with a NaN, or with nothing but -inf, give NaN.
    """
    with name_scope(name, "sparsemax", [logits]):
        z = ops.convert_to_tensor(logits, name="logits")
        rows, columns = ops.shape(z)[0], ops.shape(z)[1]
        ordered, _ = ops.top_k(z, k=columns)
        sums = ops.cumsum(ordered, axis=1)
        k = ops.range(1, ops.cast(columns, z.dtype) + 1, dtype=z.dtype)
        support = ops.reduce_sum(ops.cast(1 + k * ordered > sums, dtypes.int32), axis=1)
        at = ops.stack([ops.range(0, rows), ops.maximum(support, 1) - 1], axis=1)
        threshold = (ops.gather_nd(sums, at) - 1) / ops.cast(support, z.dtype)
        p = ops.maximum(ops.cast(0, z.dtype), z - ops.expand_dims(threshold, 1))
        bad = ops.logical_or(ops.equal(support, 0), ops.is_nan(sums[:, -1]))
        return ops.where(bad, ops.fill([rows, columns], ops.cast(float("nan"), z.dtype)), p)


def sparsemax_loss(
    logits: TensorLike, sparsemax: TensorLike, labels: TensorLike, name: str | None = None
) -> Any:
    """A loss per row for labels that are probabilities; ``sparsemax`` is that of the logits.

    All three are [batch, classes], the result is [batch]. Its gradient is ``sparsemax - labels``.

        logits, sparsemax = tf.constant([[1.0, 3.0]]), tf.contrib.sparsemax
        sparsemax.sparsemax_loss(logits, sparsemax.sparsemax(logits), [[0.0, 1.0]])  # [0.0]
    """
    with name_scope(name, "sparsemax_loss", [logits, sparsemax, labels]):
        z = ops.convert_to_tensor(logits, name="logits")
        p = ops.convert_to_tensor(sparsemax, name="sparsemax")
        q = ops.convert_to_tensor(labels, name="labels")
        inside = ops.logical_or(p > 0, ops.is_nan(p))
        own = ops.where(inside, p * (z - 0.5 * p), ops.zeros_like(p))
        nothing = ops.logical_and(ops.equal(q, 0), ops.is_inf(z))  # 0 * inf
        target = ops.where(nothing, ops.zeros_like(z), q * (0.5 * q - z))
        return ops.reduce_sum(own + target, axis=1)
