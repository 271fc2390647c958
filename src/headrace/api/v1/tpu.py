"""``tf.tpu`` and ``tf.contrib.tpu`` on one device."""

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.train.one_device_tpu import (
    CrossShardOptimizer,
    batch_parallel,
    bfloat16_scope,
    cross_replica_sum,
    initialize_system,
    outside_compilation,
    replicate,
    rewrite,
    shard,
    shutdown_system,
)

__all__ = [
    "CrossShardOptimizer",
    "batch_parallel",
    "bfloat16_scope",
    "cross_replica_sum",
    "initialize_system",
    "outside_compilation",
    "replicate",
    "rewrite",
    "shard",
    "shutdown_system",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("tpu", __name__)
