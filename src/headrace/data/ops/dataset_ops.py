"""Dataset ops.

TensorFlow's names and attributes, each computing a stage (runtime/stages.py), which is the value of
a variant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.opdef import NOT_DIFFERENTIABLE, OpDef, define
from headrace.data.runtime.batching import (
    BatchStage,
    DenseToSparseBatchStage,
    PaddedBatchStage,
    UnbatchStage,
    WindowStage,
)
from headrace.data.runtime.cache_stage import FileCacheStage, MemoryCacheStage
from headrace.data.runtime.file_stages import FilesStage, MatchingFilesStage
from headrace.data.runtime.pipeline_rewrites import OptionsStage, optimized
from headrace.data.runtime.prefetch import PrefetchStage
from headrace.data.runtime.shuffle import ShuffleAndRepeatStage, ShuffleStage
from headrace.data.runtime.simple_stages import (
    ConcatenateStage,
    DirectedInterleaveStage,
    IgnoreErrorsStage,
    RepeatStage,
    ShardStage,
    SkipStage,
    TakeStage,
    UniqueStage,
    ZipStage,
)
from headrace.data.runtime.sources import (
    RandomStage,
    RangeStage,
    SliceStage,
    SparseSliceStage,
    TensorStage,
)
from headrace.data.runtime.stages import Context, Stage
from headrace.wire.element_files import PartSpec

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.core.dtypes import DType

__all__ = ["dataset_op", "parts_of", "stage_of"]

OUT = "output_types: list(type), output_shapes: list(shape)"


def stage_of(variant: object) -> Stage:
    """The stage that a variant holds."""
    value = variant[()] if isinstance(variant, np.ndarray) and variant.ndim == 0 else variant
    if not isinstance(value, Stage):
        raise errors.InvalidArgumentError(None, None, "The given variant is not a dataset")
    return value


def dataset_op(
    name: str, inputs: str, kernel: Callable[..., Any], attrs: str = OUT, out: str = "handle"
) -> OpDef:
    """Define an op that makes a dataset.

    It is never folded: each run of it is a dataset of its own.
    """
    return define(
        name,
        f"{inputs} -> {out}: variant; {attrs}",
        shape=lambda c: [()],
        kernel=kernel,
        grad=NOT_DIFFERENTIABLE,
        stateful=True,
        host_only=True,
    )


def text(value: Array) -> str:
    """A scalar string input."""
    item = value.item() if isinstance(value, np.ndarray) else value
    return item.decode() if isinstance(item, bytes) else str(item)


# sources ------------------------------------------------------------------------------------------


def _slices(xp: ArrayNamespace, *components: Array) -> Stage:
    for c in components:
        if not np.ndim(c):
            raise errors.InvalidArgumentError(
                None, None, "All components must be at least 1-dimensional"
            )
    return SliceStage(components)


dataset_op(
    "TensorDataset",
    "components: *Toutput_types",
    lambda xp, *c: TensorStage(c),
    "output_shapes: list(shape)",
)
dataset_op(
    "TensorSliceDataset", "components: *Toutput_types", _slices, "output_shapes: list(shape)"
)
dataset_op(
    "SparseTensorSliceDataset",
    "indices: int64, values: Tvalues, dense_shape: int64",
    lambda xp, *parts: SparseSliceStage(*parts),
    "",
)


def _range(
    xp: ArrayNamespace, start: Array, stop: Array, step: Array, *, output_types: Sequence[Any]
) -> Stage:
    return RangeStage(int(start), int(stop), int(step), output_types[0].np_dtype)


dataset_op("RangeDataset", "start: int64, stop: int64, step: int64", _range)
for _name in ("RandomDataset", "ExperimentalRandomDataset"):
    dataset_op(_name, "seed: int64, seed2: int64", lambda xp, a, b: RandomStage(int(a), int(b)))

# elements passed on -----------------------------------------------------------------------------

ONE = "input_dataset: variant"


def _unary(name: str, inputs: str, make: Callable[..., Stage], attrs: str = OUT) -> None:
    """An op of one dataset and integers."""

    def kernel(xp: ArrayNamespace, source: Array, *numbers: Any) -> Stage:
        return make(stage_of(source), *map(int, numbers))

    dataset_op(name, f"{ONE}{', ' if inputs else ''}{inputs}", kernel, attrs)


_unary("TakeDataset", "count: int64", TakeStage)
_unary("SkipDataset", "count: int64", SkipStage)
_unary("RepeatDataset", "count: int64", RepeatStage)
_unary(
    "ShardDataset",
    "num_shards: int64, index: int64",
    ShardStage,
    f"{OUT}, require_non_empty: bool=False",
)
_unary(
    "PrefetchDataset",
    "buffer_size: int64",
    PrefetchStage,
    f"{OUT}, slack_period: int=0, legacy_autotune: bool=True",
)
_unary(
    "ShuffleAndRepeatDataset",
    "buffer_size: int64, seed: int64, seed2: int64, count: int64",
    ShuffleAndRepeatStage,
)
_unary("BatchDataset", "batch_size: int64", lambda s, n: BatchStage(s, n, False))
for _name in ("UnbatchDataset", "ExperimentalUnbatchDataset"):
    _unary(_name, "", UnbatchStage)
for _name in ("UniqueDataset", "ExperimentalUniqueDataset"):
    _unary(_name, "", UniqueStage)
for _name in ("IgnoreErrorsDataset", "ExperimentalIgnoreErrorsDataset"):
    _unary(_name, "", IgnoreErrorsStage)
_unary("_IgnoreErrorsLoggedDataset", "", lambda s: IgnoreErrorsStage(s, log_warning=True))
_unary("ModelDataset", "", lambda s: s, f"{OUT}, algorithm: int=0, cpu_budget: int=0")


def _shuffle(
    xp: ArrayNamespace,
    source: Stage,
    buffer_size: Array,
    seed: Array,
    seed2: Array,
    *,
    reshuffle_each_iteration: bool,
) -> Stage:
    return ShuffleStage(
        stage_of(source), int(buffer_size), int(seed), int(seed2), reshuffle_each_iteration
    )


dataset_op(
    "ShuffleDataset",
    f"{ONE}, buffer_size: int64, seed: int64, seed2: int64",
    _shuffle,
    f"reshuffle_each_iteration: bool=True, {OUT}",
)
dataset_op(
    "ConcatenateDataset",
    f"{ONE}, another_dataset: variant",
    lambda xp, a, b: ConcatenateStage([stage_of(a), stage_of(b)]),
)
dataset_op(
    "ZipDataset",
    "input_datasets: N*variant",
    lambda xp, *parts: ZipStage(list(map(stage_of, parts))),
)
for _name in ("DirectedInterleaveDataset", "ExperimentalDirectedInterleaveDataset"):
    dataset_op(
        _name,
        "selector_input_dataset: variant, data_input_datasets: N*variant",
        lambda xp, selector, *parts: DirectedInterleaveStage(
            stage_of(selector), list(map(stage_of, parts))
        ),
    )


def parts_of(output_types: Sequence[Any], output_shapes: Sequence[Any]) -> list[PartSpec]:
    """What a file of elements is compared with."""
    return [
        PartSpec(object if t._kind == "r" else t.np_dtype, s)
        for t, s in zip(output_types, output_shapes)
    ]


def _cache(
    xp: ArrayNamespace,
    source: Stage,
    filename: Array,
    *,
    output_types: Sequence[DType],
    output_shapes: Sequence[Sequence[int | None] | None],
) -> Stage:
    name = text(filename)
    if not name:
        return MemoryCacheStage(stage_of(source))
    return FileCacheStage(stage_of(source), name, parts_of(output_types, output_shapes))


dataset_op("CacheDataset", f"{ONE}, filename: string", _cache)


def _optimize(xp: ArrayNamespace, source: Stage, names: Array) -> Stage:
    return optimized(stage_of(source), [n.decode() for n in np.asarray(names).tolist()])


dataset_op(
    "OptimizeDataset",
    f"{ONE}, optimizations: string",
    _optimize,
    f"{OUT}, optimization_configs: list(str)=[]",
)
for _name in ("PrivateThreadPoolDataset", "ExperimentalPrivateThreadPoolDataset"):
    _unary(_name, "num_threads: int64", lambda s, n: OptionsStage(s, threads=n))
for _name in ("MaxIntraOpParallelismDataset", "ExperimentalMaxIntraOpParallelismDataset"):
    _unary(_name, "max_intra_op_parallelism: int64", lambda s, n: s)

# batches ----------------------------------------------------------------------------------------


def _batch(xp: ArrayNamespace, source: Stage, batch_size: Array, drop_remainder: Array) -> Stage:
    return BatchStage(stage_of(source), int(batch_size), bool(drop_remainder))


dataset_op(
    "BatchDatasetV2",
    f"{ONE}, batch_size: int64, drop_remainder: bool",
    _batch,
    f"parallel_copy: bool=False, {OUT}",
)


def _padded_batch(
    xp: ArrayNamespace, source: Stage, batch_size: Array, *rest: Array, N: int
) -> Stage:
    shapes, values, drop = rest[:N], rest[N:-1], bool(rest[-1])
    return PaddedBatchStage(stage_of(source), int(batch_size), shapes, values, drop)


def _padded_batch_v1(
    xp: ArrayNamespace, source: Stage, batch_size: Array, *rest: Array, N: int
) -> Stage:
    return PaddedBatchStage(stage_of(source), int(batch_size), rest[:N], rest[N:], False)


_PADDED = f"{ONE}, batch_size: int64, padded_shapes: N*int64, padding_values: *Toutput_types"
dataset_op("PaddedBatchDataset", _PADDED, _padded_batch_v1, "output_shapes: list(shape)")
dataset_op(
    "PaddedBatchDatasetV2",
    f"{_PADDED}, drop_remainder: bool",
    _padded_batch,
    "parallel_copy: bool=False, output_shapes: list(shape)",
)


def _window(
    xp: ArrayNamespace, source: Stage, size: Array, shift: Array, stride: Array, drop: Array
) -> Stage:
    return WindowStage(stage_of(source), int(size), int(shift), int(stride), bool(drop))


dataset_op(
    "WindowDataset",
    f"{ONE}, size: int64, shift: int64, stride: int64, drop_remainder: bool",
    _window,
)
for _name in ("DenseToSparseBatchDataset", "ExperimentalDenseToSparseBatchDataset"):
    dataset_op(
        _name,
        f"{ONE}, batch_size: int64, row_shape: int64",
        lambda xp, s, n, row: DenseToSparseBatchStage(stage_of(s), int(n), row.tolist()),
    )

# files ------------------------------------------------------------------------------------------


def _files(filenames: Array) -> list[bytes]:
    return np.asarray(filenames, object).reshape(-1).tolist()


def _records(
    xp: ArrayNamespace, filenames: Array, compression_type: Array, buffer_size: Array
) -> Stage:
    from headrace.wire.tfrecord import record_reader

    kind, size = text(compression_type), int(buffer_size) or None
    return FilesStage(_files(filenames), lambda path: record_reader(path, kind, size), "TFRecord")


def _lines(
    xp: ArrayNamespace, filenames: Array, compression_type: Array, buffer_size: Array
) -> Stage:
    from headrace.wire.streams import text_lines

    kind, size = text(compression_type), int(buffer_size) or None
    return FilesStage(_files(filenames), lambda path: text_lines(path, kind, size), "TextLine")


def _fixed(
    xp: ArrayNamespace,
    filenames: Array,
    header: Array,
    record: Array,
    footer: Array,
    buffer_size: Array,
    compression: Array | None = None,
) -> Stage:
    from headrace.wire.streams import fixed_length_records

    kind = "" if compression is None else text(compression)
    sizes = int(record), int(header), int(footer)
    if sizes[0] <= 0:
        raise errors.InvalidArgumentError(None, None, "`record_bytes` must be > 0")

    def read(path: str) -> Any:
        return fixed_length_records(path, *sizes, kind)

    return FilesStage(_files(filenames), read, "FixedLengthRecord")


_FILES = "filenames: string, compression_type: string, buffer_size: int64"
_FIXED = (
    "filenames: string, header_bytes: int64, record_bytes: int64, footer_bytes: int64, "
    "buffer_size: int64"
)
dataset_op("TFRecordDataset", _FILES, _records, "")
dataset_op("TextLineDataset", _FILES, _lines, "")
dataset_op("FixedLengthRecordDataset", _FIXED, _fixed, "")
dataset_op("FixedLengthRecordDatasetV2", f"{_FIXED}, compression_type: string", _fixed, "")


def _matching(xp: ArrayNamespace, patterns: Array) -> Stage:
    from headrace.data.api.file_names import matching_files

    return MatchingFilesStage(_files(patterns), matching_files)


for _name in ("MatchingFilesDataset", "ExperimentalMatchingFilesDataset"):
    dataset_op(_name, "patterns: string", _matching, "")

# what is known of a dataset ---------------------------------------------------------------------


def _cardinality(xp: ArrayNamespace, source: Stage) -> Any:
    return np.int64(stage_of(source).cardinality())


for _name in ("DatasetCardinality", "ExperimentalDatasetCardinality"):
    define(
        _name,
        "input_dataset: variant -> cardinality: int64",
        shape=lambda c: [()],
        kernel=_cardinality,
        grad=NOT_DIFFERENTIABLE,
        stateful=True,
        host_only=True,
    )


def _single(xp: ArrayNamespace, source: Stage) -> Array | tuple[Array, Array]:
    a_pass = Context().start(stage_of(source))
    try:
        elements = [e for _, e in zip(range(2), a_pass)]
    finally:
        a_pass.close()
    if len(elements) != 1:
        raise errors.InvalidArgumentError(
            None,
            None,
            "Dataset was empty." if not elements else "Dataset had more than one element.",
        )
    return elements[0] if len(elements[0]) != 1 else elements[0][0]


define(
    "DatasetToSingleElement",
    f"dataset: variant -> components: *output_types; {OUT}",
    shape=lambda c: list(c.attr("output_shapes")),
    kernel=_single,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    host_only=True,
    view=True,
)
