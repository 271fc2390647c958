"""Dataset ops of TensorFlow 2 (not in 1.15), and of Headrace's own, for what its methods can say
and 1.15's ops cannot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace import errors
from headrace.data.functions.user_functions import bound
from headrace.data.ops.dataset_ops import ONE, OUT, dataset_op, stage_of
from headrace.data.ops.function_dataset_ops import ARGS
from headrace.data.runtime.batching import BatchStage
from headrace.data.runtime.interleave import ParallelInterleaveStage
from headrace.data.runtime.parallel import ParallelMapStage
from headrace.data.runtime.prefetch import PrefetchStage
from headrace.data.runtime.simple_stages import AssertCardinalityStage, DirectedInterleaveStage
from headrace.data.runtime.sources import RandomStage
from headrace.data.runtime.stages import Stage

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.data.functions.user_functions import DataFunction
    from headrace.lower.session_state import RunContext

__all__: list[str] = []

_ORDERED = {"true": True, "false": False, "default": None}


def _ordered(text: str) -> bool | None:
    if text not in _ORDERED:
        raise errors.InvalidArgumentError(None, None, f"deterministic may not be {text!r}")
    return _ORDERED[text]


def _parallel_map(
    xp: ArrayNamespace,
    source: Stage,
    *args: Array,
    f: DataFunction,
    deterministic: str,
    preserve_cardinality: bool,
    rt: RunContext,
) -> Stage:
    function = bound(f, rt, args[:-1])
    return ParallelMapStage(
        stage_of(source),
        function,
        int(args[-1]),
        _ordered(deterministic),
        preserve_cardinality,
        python=f.runs_python,
    )


dataset_op(
    "ParallelMapDatasetV2",
    f"{ARGS}, num_parallel_calls: int64",
    _parallel_map,
    f"f: func, {OUT}, use_inter_op_parallelism: bool=True, deterministic: str='default', "
    "preserve_cardinality: bool=False",
)


def _parallel_interleave(
    xp: ArrayNamespace,
    source: Stage,
    *args: Array,
    f: DataFunction,
    deterministic: str,
    rt: RunContext,
) -> Stage:
    *captured, cycle, block, buffered, ahead, calls = args
    return ParallelInterleaveStage(
        stage_of(source),
        bound(f, rt, captured),
        int(cycle),
        int(block),
        int(calls),
        _ordered(deterministic),
        max(1, int(ahead)),
        max(0, int(buffered)),
    )


dataset_op(
    "ParallelInterleaveDatasetV4",
    f"{ARGS}, cycle_length: int64, block_length: int64, buffer_output_elements: int64, "
    "prefetch_input_elements: int64, num_parallel_calls: int64",
    _parallel_interleave,
    f"f: func, {OUT}, deterministic: str='default'",
)


def _parallel_batch(
    xp: ArrayNamespace,
    source: Stage,
    batch_size: Array,
    calls: Array,
    drop: Array,
    *,
    deterministic: str,
) -> Stage:
    """Batches are put together by a thread, ahead of the reader."""
    _ordered(deterministic)
    return PrefetchStage(BatchStage(stage_of(source), int(batch_size), bool(drop)), int(calls))


dataset_op(
    "ParallelBatchDataset",
    f"{ONE}, batch_size: int64, num_parallel_calls: int64, drop_remainder: bool",
    _parallel_batch,
    f"parallel_copy: bool=False, {OUT}, deterministic: str='default'",
)
dataset_op(
    "AssertCardinalityDataset",
    f"{ONE}, cardinality: int64",
    lambda xp, source, n: AssertCardinalityStage(stage_of(source), int(n)),
)
dataset_op(
    "_StoppingInterleaveDataset",
    "selector_input_dataset: variant, data_input_datasets: N*variant",
    lambda xp, selector, *parts: DirectedInterleaveStage(
        stage_of(selector), list(map(stage_of, parts)), stop_on_empty=True
    ),
)
dataset_op(
    "_RerandomDataset",
    "seed: int64, seed2: int64",
    lambda xp, a, b: RandomStage(int(a), int(b), again=True),
)
