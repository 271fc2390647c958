"""``tf.distribute`` for one process with one replica: the default strategy.

Code that asks for its replica context or strategy gets the ones that stand for "no strategy".
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.ops.control.dependencies import group
from headrace.ops.math.reductions import reduce_mean, reduce_sum

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.data.api.dataset import DatasetV2

__all__ = [
    "ReduceOp",
    "ReplicaContext",
    "Strategy",
    "get_loss_reduction",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]


class ReduceOp:
    """How values of replicas are joined."""

    SUM = "SUM"
    MEAN = "MEAN"


class Strategy:
    """The default strategy: one replica, which is the program itself."""

    num_replicas_in_sync = 1

    @contextlib.contextmanager
    def scope(self) -> Iterator[Strategy]:
        """Nothing changes inside of it."""
        yield self

    def experimental_run_v2(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """``fn(*args, **kwargs)``."""
        return fn(*args, **(kwargs or {}))

    def experimental_local_results(self, value: TensorLike) -> tuple[Any, ...]:
        """The values of all replicas: one."""
        return (value,)

    unwrap = experimental_local_results

    def experimental_distribute_dataset(self, dataset: DatasetV2) -> DatasetV2:
        """The data set: one replica gets all of it."""
        return dataset

    def group(self, value: object, name: str | None = None) -> Any:
        """An operation that does ``value``."""
        return group(value, name=name)

    def reduce(self, reduce_op: object, value: TensorLike, axis: int | None = None) -> Any:
        """The value of the one replica, reduced over ``axis`` if it is given."""
        if axis is None:
            return value
        if str(reduce_op).upper().endswith("MEAN"):
            return reduce_mean(value, axis=axis)
        return reduce_sum(value, axis=axis)


class ReplicaContext:
    """Where code of the one replica runs."""

    num_replicas_in_sync = 1
    replica_id_in_sync_group = 0
    devices = ("",)

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy

    def merge_call(
        self,
        merge_fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """``merge_fn(strategy, *args, **kwargs)``."""
        return merge_fn(self.strategy, *args, **(kwargs or {}))


_strategy = Strategy()
_context = ReplicaContext(_strategy)


def get_strategy() -> Strategy:
    """The strategy that is in force: always the default one."""
    return _strategy


def get_replica_context() -> ReplicaContext:
    """The context of the one replica."""
    return _context


def has_strategy() -> bool:
    """Whether a strategy other than the default is in force: there is no other."""
    return False


def in_cross_replica_context() -> bool:
    """Whether code runs outside of replicas: never under the default strategy."""
    return False


def get_loss_reduction() -> str:
    """How losses of replicas are joined."""
    return ReduceOp.SUM
