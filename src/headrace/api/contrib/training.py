"""``tf.contrib.training``: HParams, placement strategies; training and evaluation are tf_slim's
(see ``headrace.api.hosting``).
"""

from headrace.api.hosting import hosted_getattr
from headrace.train.hparams import HParams, parse_values
from headrace.train.input_queues.buckets import bucket, bucket_by_sequence_length
from headrace.train.input_queues.resampling import (
    rejection_sample,
    resample_at_rate,
    stratified_sample,
    weighted_resample,
)
from headrace.train.placement_strategies import (
    GreedyLoadBalancingStrategy,
    RandomStrategy,
    byte_size_load_fn,
)

__all__ = [
    "GreedyLoadBalancingStrategy", "HParams", "RandomStrategy", "bucket",
    "bucket_by_sequence_length", "byte_size_load_fn", "parse_values", "rejection_sample",
    "resample_at_rate", "stratified_sample", "weighted_resample",
]  # fmt: skip

__getattr__ = hosted_getattr(
    "contrib.training", __name__, ["tf_slim.training.training", "tf_slim.training.evaluation"]
)
