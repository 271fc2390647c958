"""Batch normalization with moving averages: ``gamma * (x - mean) / sqrt(variance + epsilon) +
beta``.

While training, mean and variance are the batch's, and updates of ``moving_mean`` and
``moving_variance`` are added (in ``tf.layers`` to the collection UPDATE_OPS: run them with each
step). Otherwise the moving averages are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.core.tensor import Tensor
from headrace.layers.base import Layer, call_layer, constructor_arguments
from headrace.layers.batch_norm_core import BatchNormalizationCore
from headrace.variables.initializers import ones_initializer, zeros_initializer

if TYPE_CHECKING:
    from headrace.core.annotations import AxisLike, TensorLike

__all__ = [
    "BatchNorm",
    "BatchNormalization",
    "batch_norm",
    "batch_normalization",
]


class BatchNormalization(BatchNormalizationCore, Layer):
    """Batch normalization over the ``axis`` of channels (-1, the last, by default).

    With ``training=True`` the batch's own mean and variance are used and the moving averages get
    updates in ``tf.GraphKeys.UPDATE_OPS``: run them with the training step. Otherwise the moving
    averages are used.

    ``momentum`` is the decay of the moving averages, ``epsilon`` is added to the variance.
    ``center`` adds ``beta``, ``scale`` multiplies by ``gamma``. ``renorm`` is batch renormalization
    (https://arxiv.org/abs/1702.03275) with ``renorm_clipping`` (a dict of rmax, rmin, dmax) and
    ``renorm_momentum``. ``virtual_batch_size`` normalizes parts of the batch by themselves;
    ``fused=False`` uses plain operations.

        update = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        with tf.control_dependencies(update):
            train = optimizer.minimize(loss)
    """

    def __init__(
        self,
        axis: TensorLike = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: object = zeros_initializer(),
        gamma_initializer: object = ones_initializer(),
        moving_mean_initializer: object = zeros_initializer(),
        moving_variance_initializer: object = ones_initializer(),
        beta_regularizer: object = None,
        gamma_regularizer: object = None,
        beta_constraint: object = None,
        gamma_constraint: object = None,
        renorm: bool = False,
        renorm_clipping: object = None,
        renorm_momentum: float = 0.99,
        fused: bool | None = None,
        trainable: bool = True,
        virtual_batch_size: int | None = None,
        adjustment: object = None,
        name: str | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(**constructor_arguments(locals()))


def batch_normalization(
    inputs: TensorLike,
    axis: AxisLike = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: object = zeros_initializer(),
    gamma_initializer: object = ones_initializer(),
    moving_mean_initializer: object = zeros_initializer(),
    moving_variance_initializer: object = ones_initializer(),
    beta_regularizer: object = None,
    gamma_regularizer: object = None,
    beta_constraint: object = None,
    gamma_constraint: object = None,
    training: TensorLike = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: object = None,
    renorm: bool = False,
    renorm_clipping: object = None,
    renorm_momentum: float = 0.99,
    fused: bool | None = None,
    virtual_batch_size: int | None = None,
    adjustment: object = None,
) -> Tensor:
    """Normalize over all axes but ``axis``; run the UPDATE_OPS with the training step.

    ``momentum`` is the decay of the moving averages, ``epsilon`` is added to the variance.
    ``center`` adds ``beta``, ``scale`` multiplies by ``gamma``. ``renorm`` is batch renormalization
    (https://arxiv.org/abs/1702.03275) with ``renorm_clipping`` (a dict of rmax, rmin, dmax) and
    ``renorm_momentum``. ``virtual_batch_size`` normalizes parts of the batch by themselves;
    ``fused=False`` uses plain operations.

    Example::

        h = tf.layers.batch_normalization(h, training=is_training)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = optimizer.minimize(loss)
    """
    return call_layer(BatchNormalization, locals(), "training")


BatchNorm = BatchNormalization
batch_norm = batch_normalization
