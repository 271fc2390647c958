"""``tf.losses``: losses with weights and collections."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.ops.nn.losses import (
    absolute_difference, add_loss, compute_weighted_loss, cosine_distance, get_losses,
    get_regularization_loss, get_regularization_losses, get_total_loss, hinge_loss, huber_loss,
    log_loss, mean_pairwise_squared_error, mean_squared_error, Reduction, sigmoid_cross_entropy,
    softmax_cross_entropy, sparse_softmax_cross_entropy,
)

__all__ = [
    "absolute_difference", "add_loss", "compute_weighted_loss", "cosine_distance", "get_losses",
    "get_regularization_loss", "get_regularization_losses", "get_total_loss", "hinge_loss",
    "huber_loss", "log_loss", "mean_pairwise_squared_error", "mean_squared_error", "Reduction",
    "sigmoid_cross_entropy", "softmax_cross_entropy", "sparse_softmax_cross_entropy",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("losses", __name__)
