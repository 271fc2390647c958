"""``tf.distribute``: the default strategy, one replica in this process."""

import typing as _typing

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

# static names: begin (tools/static_names.py)
if _typing.TYPE_CHECKING:
    from headrace.train.cluster import Server as Server
# static names: end

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr(
        "distribute", __name__, names={"Server": "headrace.train.cluster:Server"}
    )
