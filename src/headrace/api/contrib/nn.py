"""``tf.contrib.nn``."""

from headrace.api.missing import module_getattr
from headrace.layers.contrib_nn import (
    alpha_dropout,
    deprecated_flipped_sigmoid_cross_entropy_with_logits,
    deprecated_flipped_softmax_cross_entropy_with_logits,
    deprecated_flipped_sparse_softmax_cross_entropy_with_logits,
    rank_sampled_softmax_loss,
    sampled_sparse_softmax_loss,
    scaled_softplus,
)
from headrace.ops.array.selecting import nth_element
from headrace.ops.nn.conv_transposed_functions import conv1d_transpose

__all__ = [
    "alpha_dropout",
    "deprecated_flipped_sigmoid_cross_entropy_with_logits",
    "deprecated_flipped_softmax_cross_entropy_with_logits",
    "deprecated_flipped_sparse_softmax_cross_entropy_with_logits",
    "nth_element",
    "conv1d_transpose",
    "rank_sampled_softmax_loss",
    "sampled_sparse_softmax_loss",
    "scaled_softplus",
]

__getattr__ = module_getattr("contrib.nn", __name__)
