"""``tf.data.Options``: settings of a pipeline. What has no meaning here is kept, so that programs
that set it run.

options = tf.data.Options()
options.experimental_deterministic = False
dataset = dataset.with_options(options)
"""

from __future__ import annotations

import enum
from typing import Any

__all__ = [
    "AutoShardPolicy",
    "AutotuneOptions",
    "DistributeOptions",
    "MapVectorizationOptions",
    "OptimizationOptions",
    "Options",
    "StatsOptions",
    "ThreadingOptions",
]


class AutoShardPolicy(enum.IntEnum):
    """How a dataset is divided between workers.

    ``OFF`` divides nothing, ``FILE`` gives each worker files, ``DATA`` every n-th element, ``AUTO``
    chooses, ``HINT`` is for ``shard`` in the program. Headrace has one worker: the policy is
    recorded in the options and changes nothing.
    """

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class _Settings:
    """Attributes with None for what was not set."""

    _names: tuple[str, ...] = ()

    def __init__(self) -> None:
        for name in self._names:
            object.__setattr__(self, name, None)

    def __setattr__(self, name: str, value: int) -> None:
        if name not in self._names:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def merge(self, other: object, strict: bool = False) -> Any:
        """These settings with those of ``other`` over them.

        ``strict``: a ValueError where both have a value and the values differ (TF 1.15).
        """
        merged = type(self)()
        for name in self._names:
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, _Settings) and isinstance(theirs, _Settings):
                theirs = mine.merge(theirs, strict)
            elif strict and mine is not None and theirs is not None and mine != theirs:
                raise ValueError(
                    f"Cannot merge incompatible values ({mine} and {theirs}) of option: {name}"
                )
            object.__setattr__(merged, name, mine if theirs is None else theirs)
        return merged


class AutotuneOptions(_Settings):
    """Settings of ``tf.data``'s tuning: whether, how, and with how many cores and bytes."""

    _names = ("autotune_algorithm", "cpu_budget", "enabled", "initial_parallelism", "ram_budget")


class DistributeOptions(_Settings):
    """Settings for several workers; Headrace has one, so they are recorded only."""

    _names = ("auto_shard", "auto_shard_policy", "num_devices", "_make_stateless")


class MapVectorizationOptions(_Settings):
    """Settings of TensorFlow's vectorised maps; recorded only."""

    _names = ("enabled", "use_choose_fastest")


class OptimizationOptions(_Settings):
    """Which rewrites of a pipeline are allowed. Attributes that are not set are None."""

    apply_default_optimizations: bool | None
    shuffle_and_repeat_fusion: bool | None

    _names = (
        "apply_default_optimizations",
        "autotune",
        "autotune_algorithm",
        "autotune_buffers",
        "autotune_cpu_budget",
        "filter_fusion",
        "filter_parallelization",
        "filter_with_random_uniform_fusion",
        "hoist_random_uniform",
        "inject_prefetch",
        "map_and_batch_fusion",
        "map_and_filter_fusion",
        "map_fusion",
        "map_parallelization",
        "map_vectorization",
        "noop_elimination",
        "parallel_batch",
        "reorder_data_discarding_ops",
        "seq_interleave_prefetch",
        "shuffle_and_repeat_fusion",
    )


class StatsOptions(_Settings):
    """Where a pipeline's statistics go; ``headrace.data.stats`` prints them here."""

    _names = ("aggregator", "counter_prefix", "latency_all_edges", "prefix")


class ThreadingOptions(_Settings):
    """Threads of a pipeline: ``private_threadpool_size``, ``max_intra_op_parallelism``."""

    max_intra_op_parallelism: int | None
    private_threadpool_size: int | None

    _names = ("max_intra_op_parallelism", "private_threadpool_size")


class Options(_Settings):
    """Settings of a dataset, given to ``dataset.with_options(options)``."""

    deterministic: bool | None
    experimental_deterministic: bool | None
    experimental_optimization: OptimizationOptions
    experimental_threading: ThreadingOptions
    threading: ThreadingOptions

    _names = (
        "autotune",
        "dataset_name",
        "deterministic",
        "experimental_deterministic",
        "experimental_distribute",
        "experimental_external_state_policy",
        "experimental_optimization",
        "experimental_slack",
        "experimental_stateful_whitelist",
        "experimental_stats",
        "experimental_symbolic_checkpoint",
        "experimental_threading",
        "experimental_warm_start",
        "framework_type",
        "threading",
    )

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "autotune", AutotuneOptions())
        object.__setattr__(self, "experimental_distribute", DistributeOptions())
        object.__setattr__(self, "experimental_optimization", OptimizationOptions())
        object.__setattr__(self, "experimental_stats", StatsOptions())
        object.__setattr__(self, "experimental_threading", ThreadingOptions())
        object.__setattr__(self, "threading", ThreadingOptions())

    def ordered(self) -> bool | None:
        """Whether elements must keep their order; None if nothing was said."""
        return self.experimental_deterministic if self.deterministic is None else self.deterministic

    def threads(self) -> int | None:
        """The size of the private thread pool that was asked for."""
        found = [self.threading, self.experimental_threading]
        return next((t.private_threadpool_size for t in found if t.private_threadpool_size), None)

    def fuses_shuffle(self) -> bool:
        """Whether TensorFlow 1.15 would join ``shuffle`` and ``repeat``."""
        wanted = self.experimental_optimization
        if wanted.shuffle_and_repeat_fusion is not None:
            return bool(wanted.shuffle_and_repeat_fusion)
        return wanted.apply_default_optimizations is not False
