"""``tf.distribute``: the default strategy, one replica in this process."""

from headrace.api.missing import module_getattr
from headrace.train.replicas import (
    ReduceOp,
    ReplicaContext,
    Strategy,
    get_loss_reduction,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)

__all__ = [
    "ReduceOp", "ReplicaContext", "Strategy", "get_loss_reduction", "get_replica_context",
    "get_strategy", "has_strategy", "in_cross_replica_context",
]  # fmt: skip

__getattr__ = module_getattr(
    "distribute", __name__, names={"Server": "headrace.train.cluster:Server"}
)
