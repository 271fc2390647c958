"""``tf.contrib.nn``."""

from headrace.api.missing import module_getattr
from headrace.layers.contrib_nn import (
    alpha_dropout,
    deprecated_flipped_sigmoid_cross_entropy_with_logits,
    deprecated_flipped_softmax_cross_entropy_with_logits,
    deprecated_flipped_sparse_softmax_cross_entropy_with_logits,
    sampled_sparse_softmax_loss,
)
from headrace.ops.array.selecting import nth_element

__all__ = [
    "alpha_dropout",
    "deprecated_flipped_sigmoid_cross_entropy_with_logits",
    "deprecated_flipped_softmax_cross_entropy_with_logits",
    "deprecated_flipped_sparse_softmax_cross_entropy_with_logits",
    "nth_element",
    "sampled_sparse_softmax_loss",
]

__getattr__ = module_getattr("contrib.nn", __name__)
