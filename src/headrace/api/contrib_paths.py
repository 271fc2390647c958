"""The inner modules of ``tf.contrib`` that lead back to a namespace of it.

``from tensorflow.contrib.opt.python.training.nadam_optimizer import NadamOptimizer`` is written
where ``tf.contrib.opt.NadamOptimizer`` would do. A module is listed if what it
defines has the same meaning in the namespace (`cudnn_rnn_ops.CudnnLSTM` has not: it is no layer).
Those of `signal` and `memory_stats` are paths of versions before 1.15.
"""

from __future__ import annotations

__all__ = ["CONTRIB_INNER"]

#: Namespace of contrib -> package inside of it -> modules.
CONTRIB_INNER: dict[str, dict[str, str]] = {
    "cudnn_rnn": {
        "python.layers": "cudnn_rnn",
    },
    "data": {
        "python.ops": (
            "batching counter enumerate_ops error_ops get_single_element grouping "
            "interleave_ops parsing_ops prefetching_ops random_ops readers resampling "
            "scan_ops shuffle_ops unique writers"
        ),
    },
    "distributions": {
        "python.ops": (
            "binomial cauchy chi2 deterministic geometric half_normal independent "
            "inverse_gamma logistic mixture mixture_same_family mvn_diag mvn_full_covariance "
            "mvn_tril onehot_categorical poisson relaxed_bernoulli relaxed_onehot_categorical"
        ),
    },
    "eager": {
        "python": "datasets tfe",
    },
    "framework": {
        "python.framework": "graph_util",
        "python.ops": "script_ops sort_ops",
    },
    "graph_editor": {
        "": "edit reroute select subgraph transform util",
    },
    "image": {
        "python.ops": "dense_image_warp image_ops interpolate_spline sparse_image_warp",
    },
    "integrate": {
        "python.ops": "odes",
    },
    "layers": {
        "python.ops": "bucketization_op",
    },
    "lookup": {
        "": "lookup_ops",
    },
    "losses": {
        "python.losses": "loss_ops",
        "python.metric_learning": "metric_loss_ops",
    },
    "memory_stats": {
        "python.ops": "memory_stats_ops",
    },
    "metrics": {
        "python.metrics": "classification",
        "python.ops": "confusion_matrix_ops histogram_ops metric_ops set_ops",
    },
    "nn": {
        "python.ops": "alpha_dropout cross_entropy sampling_ops",
    },
    "opt": {
        "python.training": (
            "adam_gs_optimizer adamax addsign drop_stale_gradient_optimizer "
            "external_optimizer ggt lars_optimizer lazy_adam_gs_optimizer lazy_adam_optimizer "
            "moving_average_optimizer multitask_optimizer_wrapper nadam_optimizer powersign "
            "reg_adagrad_optimizer shampoo sign_decay variable_clipping_optimizer "
            "weight_decay_optimizers"
        ),
    },
    "rnn": {
        "python.ops": "fused_rnn_cell",
    },
    "signal": {
        "python.ops": "mel_ops spectral_ops window_ops",
    },
    "sparsemax": {
        "python.ops": "sparsemax sparsemax_loss",
    },
    "staging": {},
    "stateless": {},
    "tensorboard": {
        "plugins": "projector",
    },
    "training": {
        "python.training": "bucket_ops device_setter evaluation hparam training",
    },
}
