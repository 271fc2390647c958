"""``tf.nn``: neural-network functions, with TF 2's signatures."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace.api.v2.name_lookup import module_getattr
from headrace.api.v2.adapted import avg_pool2d
from headrace.ops.array.space_to_depth import (
    depth_to_space_v2 as depth_to_space, space_to_batch_v2 as space_to_batch,
    space_to_depth_v2 as space_to_depth,
)
from headrace.ops.math.unary import sigmoid, tanh
from headrace.ops.nn.activations import (
    crelu_v2 as crelu, elu, leaky_relu, log_softmax_v2 as log_softmax, relu, relu6, selu,
    softmax_v2 as softmax, softplus, softsign,
)
from headrace.ops.nn.dropout import dropout_v2 as dropout
from headrace.ops.nn.convolution import (
    atrous_conv2d, conv1d_v2 as conv1d, conv2d_v2 as conv2d, conv3d_v2 as conv3d, convolution_v2 as
    convolution, depthwise_conv2d_v2 as depthwise_conv2d, separable_conv2d_v2 as separable_conv2d,
)  # fmt: skip
from headrace.ops.nn.conv_gradient_functions import (
    depthwise_conv2d_native_backprop_filter as depthwise_conv2d_backprop_filter,
    depthwise_conv2d_native_backprop_input as depthwise_conv2d_backprop_input,
)
from headrace.ops.nn.conv_transposed_functions import (
    atrous_conv2d_transpose, conv1d_transpose, conv2d_transpose_v2 as conv2d_transpose,
    conv3d_transpose_v2 as conv3d_transpose, conv_transpose,
)  # fmt: skip
from headrace.ops.nn.ctc import (
    ctc_beam_search_decoder_v2 as ctc_beam_search_decoder, ctc_greedy_decoder,
)
from headrace.ops.nn.ctc_dense import collapse_repeated, ctc_loss_v2 as ctc_loss, ctc_unique_labels
from headrace.ops.nn.morphology import dilation2d_v2 as dilation2d, erosion2d_v2 as erosion2d
from headrace.ops.nn.space_to_batch_calls import with_space_to_batch
from headrace.ops.nn.embedding import (
    embedding_lookup_sparse_v2 as embedding_lookup_sparse, embedding_lookup_v2 as embedding_lookup,
    safe_embedding_lookup_sparse_v2 as safe_embedding_lookup_sparse,
)
from headrace.ops.nn.cross_entropy import (
    l2_loss, log_poisson_loss,
    sigmoid_cross_entropy_with_logits_v2 as sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2 as softmax_cross_entropy_with_logits,
    weighted_cross_entropy_with_logits_v2 as weighted_cross_entropy_with_logits, zero_fraction,
)
from headrace.ops.nn.sparse_cross_entropy import (
    sparse_softmax_cross_entropy_with_logits_v2 as sparse_softmax_cross_entropy_with_logits,
)
from headrace.ops.nn.bias import bias_add
from headrace.ops.nn.normalization import (
    batch_norm_with_global_normalization_v2 as batch_norm_with_global_normalization,
    batch_normalization, l2_normalize_v2 as l2_normalize,
)  # fmt: skip
from headrace.ops.nn.local_response import (
    local_response_normalization, local_response_normalization as lrn,
)  # fmt: skip
from headrace.ops.nn.moments import (
    moments_v2 as moments, normalize_moments, sufficient_statistics_v2 as sufficient_statistics,
    weighted_moments_v2 as weighted_moments,
)  # fmt: skip
from headrace.ops.nn.pooling import (
    avg_pool1d, avg_pool3d, avg_pool_v2 as avg_pool, max_pool1d, max_pool2d, max_pool3d,
    max_pool_v2 as max_pool, max_pool_with_argmax_v2 as max_pool_with_argmax, pool_v2 as pool,
)
from headrace.ops.nn.candidate_sampling import (
    all_candidate_sampler, compute_accidental_hits, fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler,
)  # fmt: skip
from headrace.ops.nn.sampled_losses import (
    nce_loss_v2 as nce_loss, sampled_softmax_loss_v2 as sampled_softmax_loss,
)  # fmt: skip
from headrace.ops.nn.nn_v2 import (
    compute_average_loss, gelu, scale_regularization_loss, silu, silu as swish,
)
from headrace.ops.array.selecting import in_top_k_v2 as in_top_k, top_k

__all__ = [
    "collapse_repeated", "ctc_loss", "ctc_unique_labels", "dilation2d", "erosion2d",
    "with_space_to_batch",
    "all_candidate_sampler", "atrous_conv2d", "atrous_conv2d_transpose", "avg_pool", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "batch_norm_with_global_normalization", "batch_normalization",
    "bias_add", "compute_accidental_hits", "compute_average_loss", "conv1d", "conv1d_transpose",
    "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "conv_transpose", "convolution",
    "crelu", "ctc_beam_search_decoder", "ctc_greedy_decoder", "depth_to_space", "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter", "depthwise_conv2d_backprop_input", "dropout", "elu",
    "embedding_lookup", "embedding_lookup_sparse", "fixed_unigram_candidate_sampler", "gelu",
    "in_top_k", "l2_loss", "l2_normalize", "leaky_relu", "learned_unigram_candidate_sampler",
    "local_response_normalization", "log_poisson_loss", "log_softmax", "lrn", "max_pool",
    "max_pool1d", "max_pool2d", "max_pool3d", "max_pool_with_argmax", "moments", "nce_loss",
    "normalize_moments", "pool", "relu", "relu6", "safe_embedding_lookup_sparse",
    "sampled_softmax_loss", "scale_regularization_loss", "selu", "separable_conv2d", "sigmoid",
    "sigmoid_cross_entropy_with_logits", "silu", "softmax", "softmax_cross_entropy_with_logits",
    "softplus", "softsign", "space_to_batch", "space_to_depth",
    "sparse_softmax_cross_entropy_with_logits", "sufficient_statistics", "swish", "tanh", "top_k",
    "weighted_cross_entropy_with_logits", "weighted_moments", "zero_fraction",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("nn", __name__)
