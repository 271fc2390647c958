"""Dataset ops with functions: map, filter, flat_map, interleave, scan, grouping, reduce,
generators.

A function attribute is a :class:`~headrace.data.functions.user_functions.DataFunction`; what it
captured are the op's further inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.data.functions.user_functions import bound, bound_batches
from headrace.data.ops.dataset_ops import ONE, OUT, dataset_op, stage_of
from headrace.data.runtime.batching import BatchStage
from headrace.data.runtime.generator_stage import GeneratorStage
from headrace.data.runtime.interleave import ParallelInterleaveStage
from headrace.data.runtime.mapping import (
    FilterStage,
    FlatMapStage,
    GroupByReducerStage,
    GroupByWindowStage,
    InterleaveStage,
    MapStage,
    ScanStage,
    TakeWhileStage,
)
from headrace.data.runtime.parallel import ParallelMapStage
from headrace.data.runtime.reduce_run import Closing, reduce_stage
from headrace.data.runtime.stages import Context, Stage

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.core.dtypes import DType
    from headrace.data.api.generators import PythonFunction
    from headrace.data.functions.user_functions import DataFunction
    from headrace.lower.session_state import RunContext
    from headrace.ops.state.table_resource import TableResource

__all__: list[str] = []

ARGS = f"{ONE}, other_arguments: *Targuments"


def _map(
    xp: ArrayNamespace,
    source: Stage,
    *args: Array | TableResource,
    f: DataFunction,
    preserve_cardinality: bool,
    rt: RunContext,
) -> Stage:
    batches = bound_batches(f, rt, args)
    return MapStage(
        stage_of(source), bound(f, rt, args), preserve_cardinality, batches, f.runs_python
    )


_MAP = f"f: func, {OUT}, use_inter_op_parallelism: bool=True, preserve_cardinality: bool=False"
dataset_op("MapDataset", ARGS, _map, _MAP)
dataset_op("ExperimentalMapDataset", ARGS, _map, _MAP)


def _parallel_map(
    xp: ArrayNamespace,
    source: Stage,
    *args: Array,
    f: DataFunction,
    sloppy: bool,
    preserve_cardinality: bool,
    rt: RunContext,
) -> Stage:
    *captured, calls = args
    return ParallelMapStage(
        stage_of(source),
        bound(f, rt, captured),
        int(calls),
        False if sloppy else None,
        preserve_cardinality,
        bound_batches(f, rt, captured),
        f.learned,
        f.runs_python,
    )


dataset_op(
    "ParallelMapDataset",
    f"{ARGS}, num_parallel_calls: int32",
    _parallel_map,
    f"f: func, {OUT}, use_inter_op_parallelism: bool=True, sloppy: bool=False, "
    "preserve_cardinality: bool=False",
)


def _map_and_batch(
    xp: ArrayNamespace,
    source: Stage,
    *args: Array,
    f: DataFunction,
    preserve_cardinality: bool,
    rt: RunContext,
) -> Stage:
    *captured, batch_size, calls, drop = args
    mapped = ParallelMapStage(
        stage_of(source),
        bound(f, rt, captured),
        int(calls),
        None,
        preserve_cardinality,
        bound_batches(f, rt, captured),
        f.learned,
        f.runs_python,
    )
    return BatchStage(mapped, int(batch_size), bool(drop))


for _name in ("MapAndBatchDataset", "ExperimentalMapAndBatchDataset"):
    dataset_op(
        _name,
        f"{ARGS}, batch_size: int64, num_parallel_calls: int64, drop_remainder: bool",
        _map_and_batch,
        f"f: func, {OUT}, preserve_cardinality: bool=False",
    )


def _filter(
    xp: ArrayNamespace, source: Stage, *args: Array, predicate: DataFunction, rt: RunContext
) -> Stage:
    return FilterStage(stage_of(source), bound(predicate, rt, args))


def _take_while(
    xp: ArrayNamespace, source: Stage, *args: object, predicate: DataFunction, rt: RunContext
) -> Stage:
    return TakeWhileStage(stage_of(source), bound(predicate, rt, args))


def _flat_map(
    xp: ArrayNamespace, source: Stage, *args: Array | Stage, f: DataFunction, rt: RunContext
) -> Stage:
    return FlatMapStage(stage_of(source), bound(f, rt, args), f.live)


dataset_op("FilterDataset", ARGS, _filter, f"predicate: func, {OUT}")
for _name in ("TakeWhileDataset", "ExperimentalTakeWhileDataset"):
    dataset_op(_name, ARGS, _take_while, f"predicate: func, {OUT}")
dataset_op("FlatMapDataset", ARGS, _flat_map, f"f: func, {OUT}")


def _interleave(
    xp: ArrayNamespace, source: Stage, *args: Array, f: DataFunction, rt: RunContext
) -> Stage:
    *captured, cycle, block = args
    return InterleaveStage(stage_of(source), bound(f, rt, captured), int(cycle), int(block))


def _parallel_interleave(
    xp: ArrayNamespace, source: Stage, *args: Array, f: DataFunction, sloppy: bool, rt: RunContext
) -> Stage:
    *captured, cycle, block, calls = args
    return ParallelInterleaveStage(
        stage_of(source),
        bound(f, rt, captured),
        int(cycle),
        int(block),
        int(calls),
        False if sloppy else None,
    )


def _legacy_interleave(
    xp: ArrayNamespace, source: Stage, *args: Array, f: DataFunction, rt: RunContext
) -> Stage:
    *captured, cycle, block, sloppy, buffered, ahead = args
    return ParallelInterleaveStage(
        stage_of(source),
        bound(f, rt, captured),
        int(cycle),
        int(block),
        int(cycle),
        not sloppy,
        max(1, int(ahead)),
        max(1, int(buffered)),
    )


_CYCLE = "cycle_length: int64, block_length: int64"
dataset_op("InterleaveDataset", f"{ARGS}, {_CYCLE}", _interleave, f"f: func, {OUT}")
dataset_op(
    "ParallelInterleaveDatasetV2",
    f"{ARGS}, {_CYCLE}, num_parallel_calls: int64",
    _parallel_interleave,
    f"f: func, {OUT}, sloppy: bool=False",
)
for _name in ("ParallelInterleaveDataset", "ExperimentalParallelInterleaveDataset"):
    dataset_op(
        _name,
        f"{ARGS}, {_CYCLE}, sloppy: bool, buffer_output_elements: int64, "
        "prefetch_input_elements: int64",
        _legacy_interleave,
        f"f: func, {OUT}",
    )


def _scan(
    xp: ArrayNamespace,
    source: Stage,
    *args: Array,
    f: DataFunction,
    Tstate: Sequence[DType],
    rt: RunContext,
) -> Stage:
    n = len(Tstate)
    return ScanStage(stage_of(source), args[:n], bound(f, rt, args[n:]))


for _name in ("ScanDataset", "ExperimentalScanDataset"):
    dataset_op(
        _name,
        f"{ONE}, initial_state: *Tstate, other_arguments: *Targuments",
        _scan,
        f"f: func, {OUT}, preserve_cardinality: bool=False",
    )


def _reduce(
    xp: ArrayNamespace,
    source: Stage,
    *args: Array,
    f: DataFunction,
    Tstate: Sequence[DType],
    rt: RunContext,
) -> Array | tuple[Array, Array]:
    n = len(Tstate)
    closing = rt.session_resource(("closing", "Dataset.reduce"), Closing)
    function = bound(f, rt, args[n:])
    state = reduce_stage(Context(), stage_of(source), args[:n], function, closing)
    return state if len(state) != 1 else state[0]


define(
    "ReduceDataset",
    f"{ONE}, initial_state: *Tstate, other_arguments: *Targuments -> components: *output_types; "
    f"f: func, {OUT}, use_inter_op_parallelism: bool=True",
    shape=lambda c: list(c.attr("output_shapes")),
    kernel=_reduce,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    host_only=True,
    view=True,
)


def _group_by_window(
    xp: ArrayNamespace,
    source: Stage,
    *args: object,
    key_func: DataFunction,
    reduce_func: DataFunction,
    window_size_func: DataFunction,
    Tkey_func_other_arguments: Sequence[Any],
    Treduce_func_other_arguments: Sequence[Any],
    rt: RunContext,
) -> Stage:
    a = len(Tkey_func_other_arguments)
    b = a + len(Treduce_func_other_arguments)
    return GroupByWindowStage(
        stage_of(source),
        bound(key_func, rt, args[:a]),
        bound(reduce_func, rt, args[a:b]),
        bound(window_size_func, rt, args[b:]),
    )


_GROUP = (
    f"{ONE}, key_func_other_arguments: *Tkey_func_other_arguments, "
    "reduce_func_other_arguments: *Treduce_func_other_arguments, "
    "window_size_func_other_arguments: *Twindow_size_func_other_arguments"
)
for _name in ("GroupByWindowDataset", "ExperimentalGroupByWindowDataset"):
    dataset_op(
        _name,
        _GROUP,
        _group_by_window,
        f"key_func: func, reduce_func: func, window_size_func: func, {OUT}",
    )


def _group_by_reducer(
    xp: ArrayNamespace,
    source: Stage,
    *args: object,
    key_func: DataFunction,
    init_func: DataFunction,
    reduce_func: DataFunction,
    finalize_func: DataFunction,
    rt: RunContext,
) -> Stage:
    functions = []
    rest = list(args)
    for f in (key_func, init_func, reduce_func, finalize_func):
        n = len(f.captured)
        functions.append(bound(f, rt, rest[:n]))
        rest = rest[n:]
    return GroupByReducerStage(stage_of(source), *functions)


for _name in ("GroupByReducerDataset", "ExperimentalGroupByReducerDataset"):
    dataset_op(
        _name,
        f"{ONE}, "
        + ", ".join(
            f"{f}_func_other_arguments: *T{f}_func_other_arguments"
            for f in ("key", "init", "reduce", "finalize")
        ),
        _group_by_reducer,
        f"key_func: func, init_func: func, reduce_func: func, finalize_func: func, {OUT}",
    )


def _generator(
    xp: ArrayNamespace, *args: object, init_func: PythonFunction, next_func: Any
) -> Stage:
    """The functions are Python's own.

    (the start of an iterator, the conversion of what it yields).
    """
    return GeneratorStage(init_func.call, next_func.call, args)


dataset_op(
    "GeneratorDataset",
    "init_func_other_args: *Tinit_func_args, next_func_other_args: *Tnext_func_args, "
    "finalize_func_other_args: *Tfinalize_func_args",
    _generator,
    f"init_func: func, next_func: func, finalize_func: func, {OUT}",
)
