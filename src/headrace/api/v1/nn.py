"""``tf.nn``: neural-network functions."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace.api.missing import late, module_getattr
from headrace.ops.array.space_to_depth import depth_to_space, space_to_batch, space_to_depth
from headrace.ops.math.unary import sigmoid, tanh
from headrace.ops.nn.activations import (
    crelu, elu, leaky_relu, log_softmax, relu, relu6, selu, softmax, softplus, softsign, swish,
)
from headrace.ops.nn.dropout import dropout
from headrace.ops.nn.convolution import (
    atrous_conv2d, conv1d, conv2d, conv3d, convolution, depthwise_conv2d, depthwise_conv2d_native,
    separable_conv2d,
)
from headrace.ops.nn.conv_gradient_functions import (
    conv2d_backprop_filter, conv2d_backprop_input, conv3d_backprop_filter,
    conv3d_backprop_filter_v2, depthwise_conv2d_native_backprop_filter,
    depthwise_conv2d_native_backprop_filter as depthwise_conv2d_backprop_filter,
    depthwise_conv2d_native_backprop_input, depthwise_conv2d_native_backprop_input as
    depthwise_conv2d_backprop_input,
)  # fmt: skip
from headrace.ops.nn.conv_transposed_functions import (
    atrous_conv2d_transpose, conv1d_transpose, conv2d_transpose, conv3d_transpose, conv_transpose,
    deconv2d,
)  # fmt: skip
from headrace.ops.nn.nn_v2 import compute_average_loss, scale_regularization_loss
from headrace.ops.nn.space_to_batch_calls import with_space_to_batch
from headrace.ops.nn.embedding import (
    embedding_lookup, embedding_lookup_sparse, safe_embedding_lookup_sparse,
)
from headrace.ops.nn.cross_entropy import (
    l2_loss, log_poisson_loss, sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits, softmax_cross_entropy_with_logits_v2,
    weighted_cross_entropy_with_logits, zero_fraction,
)
from headrace.ops.nn.sparse_cross_entropy import sparse_softmax_cross_entropy_with_logits
from headrace.ops.nn.bias import bias_add, relu_layer, xw_plus_b
from headrace.ops.nn.normalization import (
    batch_norm_with_global_normalization, batch_normalization, fused_batch_norm, l2_normalize,
)  # fmt: skip
from headrace.ops.nn.local_response import (local_response_normalization, lrn)
from headrace.ops.nn.moments import (
    moments, normalize_moments, sufficient_statistics, weighted_moments,
)  # fmt: skip
from headrace.ops.nn.pooling import (
    avg_pool, avg_pool1d, avg_pool2d, avg_pool3d, avg_pool_v2, max_pool, max_pool1d, max_pool2d,
    max_pool3d, max_pool_v2, max_pool_with_argmax, pool,
)
from headrace.ops.array.selecting import in_top_k, top_k

__all__ = [
    "all_candidate_sampler", "atrous_conv2d", "atrous_conv2d_transpose", "avg_pool",
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "avg_pool_v2",
    "batch_norm_with_global_normalization", "batch_normalization", "bias_add",
    "collapse_repeated", "compute_accidental_hits", "compute_average_loss",
    "conv1d", "conv1d_transpose", "conv2d", "conv2d_backprop_filter",
    "conv2d_backprop_input", "conv2d_transpose", "conv3d", "conv3d_backprop_filter",
    "conv3d_backprop_filter_v2", "conv3d_transpose", "conv_transpose", "convolution", "crelu",
    "ctc_beam_search_decoder", "ctc_beam_search_decoder_v2", "ctc_greedy_decoder", "ctc_loss",
    "ctc_loss_v2", "ctc_unique_labels",
    "deconv2d", "depth_to_space", "depthwise_conv2d", "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input", "depthwise_conv2d_native",
    "depthwise_conv2d_native_backprop_filter", "depthwise_conv2d_native_backprop_input",
    "dilation2d", "dropout", "elu", "erosion2d", "fractional_avg_pool", "fractional_max_pool",
    "embedding_lookup", "embedding_lookup_sparse",
    "fixed_unigram_candidate_sampler", "fused_batch_norm", "in_top_k", "l2_loss",
    "l2_normalize", "leaky_relu", "learned_unigram_candidate_sampler",
    "local_response_normalization", "log_poisson_loss", "log_softmax",
    "log_uniform_candidate_sampler", "lrn", "max_pool", "max_pool1d", "max_pool2d",
    "max_pool3d", "max_pool_v2", "max_pool_with_argmax", "moments", "nce_loss",
    "normalize_moments", "pool", "relu", "relu6", "relu_layer", "safe_embedding_lookup_sparse",
    "sampled_softmax_loss", "scale_regularization_loss", "selu", "separable_conv2d", "sigmoid",
    "sigmoid_cross_entropy_with_logits", "softmax", "softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2", "softplus", "softsign", "space_to_batch",
    "space_to_depth", "sparse_softmax_cross_entropy_with_logits", "sufficient_statistics",
    "swish", "tanh", "top_k", "uniform_candidate_sampler", "weighted_cross_entropy_with_logits",
    "weighted_moments", "with_space_to_batch", "xw_plus_b", "zero_fraction",
]

# static names: begin (tools/static_names.py)
if _typing.TYPE_CHECKING:
    from headrace.api.v1 import rnn_cell as rnn_cell
    from headrace.layers.rnn.bidirectional import (
        bidirectional_dynamic_rnn as bidirectional_dynamic_rnn,
    )
    from headrace.layers.rnn.bidirectional import (
        static_bidirectional_rnn as static_bidirectional_rnn,
    )
    from headrace.layers.rnn.dynamic_rnn import dynamic_rnn as dynamic_rnn
    from headrace.layers.rnn.raw_rnn import raw_rnn as raw_rnn
    from headrace.layers.rnn.static_rnn import static_rnn as static_rnn
    from headrace.layers.rnn.static_rnn import static_state_saving_rnn as static_state_saving_rnn
    from headrace.ops.nn.candidate_sampling import all_candidate_sampler as all_candidate_sampler
    from headrace.ops.nn.candidate_sampling import (
        compute_accidental_hits as compute_accidental_hits,
    )
    from headrace.ops.nn.candidate_sampling import (
        fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler,
    )
    from headrace.ops.nn.candidate_sampling import (
        learned_unigram_candidate_sampler as learned_unigram_candidate_sampler,
    )
    from headrace.ops.nn.candidate_sampling import (
        log_uniform_candidate_sampler as log_uniform_candidate_sampler,
    )
    from headrace.ops.nn.candidate_sampling import (
        uniform_candidate_sampler as uniform_candidate_sampler,
    )
    from headrace.ops.nn.ctc import ctc_beam_search_decoder as ctc_beam_search_decoder
    from headrace.ops.nn.ctc import ctc_beam_search_decoder_v2 as ctc_beam_search_decoder_v2
    from headrace.ops.nn.ctc import ctc_greedy_decoder as ctc_greedy_decoder
    from headrace.ops.nn.ctc import ctc_loss as ctc_loss
    from headrace.ops.nn.ctc_dense import collapse_repeated as collapse_repeated
    from headrace.ops.nn.ctc_dense import ctc_loss_v2 as ctc_loss_v2
    from headrace.ops.nn.ctc_dense import ctc_unique_labels as ctc_unique_labels
    from headrace.ops.nn.fractional_pooling import fractional_avg_pool as fractional_avg_pool
    from headrace.ops.nn.fractional_pooling import fractional_max_pool as fractional_max_pool
    from headrace.ops.nn.morphology import dilation2d as dilation2d
    from headrace.ops.nn.morphology import erosion2d as erosion2d
    from headrace.ops.nn.sampled_losses import nce_loss as nce_loss
    from headrace.ops.nn.sampled_losses import sampled_softmax_loss as sampled_softmax_loss
# static names: end

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr(
        "nn",
        __name__,
        modules={"rnn_cell": "headrace.api.v1.rnn_cell"},
        names=late({
            "headrace.ops.nn.ctc": (
                "ctc_beam_search_decoder ctc_beam_search_decoder_v2 ctc_greedy_decoder ctc_loss"
            ),
            "headrace.ops.nn.ctc_dense": "collapse_repeated ctc_loss_v2 ctc_unique_labels",
            "headrace.ops.nn.morphology": "dilation2d erosion2d",
            "headrace.ops.nn.fractional_pooling": "fractional_avg_pool fractional_max_pool",
            "headrace.ops.nn.candidate_sampling": (
                "all_candidate_sampler compute_accidental_hits fixed_unigram_candidate_sampler "
                "learned_unigram_candidate_sampler log_uniform_candidate_sampler "
                "uniform_candidate_sampler"
            ),
            "headrace.ops.nn.sampled_losses": "nce_loss sampled_softmax_loss",
            "headrace.layers.rnn.bidirectional": (
                "bidirectional_dynamic_rnn static_bidirectional_rnn"
            ),
            "headrace.layers.rnn.dynamic_rnn": "dynamic_rnn",
            "headrace.layers.rnn.raw_rnn": "raw_rnn",
            "headrace.layers.rnn.static_rnn": "static_rnn static_state_saving_rnn",
        }),
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
