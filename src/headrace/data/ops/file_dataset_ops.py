"""Dataset ops that read and write files of a certain form: CSV, TFRecord writing, snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.data.functions.user_functions import bound
from headrace.data.ops.dataset_ops import ONE, OUT, _files, dataset_op, parts_of, stage_of, text
from headrace.data.runtime.csv_records import CsvFormat, CsvStage
from headrace.data.runtime.saved import SavedStage, SnapshotStage, save_elements
from headrace.data.runtime.stages import Context, Stage

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.core.dtypes import DType
    from headrace.data.functions.user_functions import DataFunction
    from headrace.data.runtime.mapping import MapStage
    from headrace.data.runtime.sources import RangeStage
    from headrace.lower.session_state import RunContext

__all__: list[str] = []


def _csv(
    xp: ArrayNamespace,
    filenames: Array,
    compression: Array,
    buffer_size: Array,
    header: Array,
    delimiter: Array,
    quotes: Array,
    missing: Array,
    columns: Array,
    *defaults: Array,
    output_types: Sequence[DType],
) -> Stage:
    mark = text(delimiter).encode()
    if len(mark) != 1:
        raise errors.InvalidArgumentError(None, None, "field_delim should be only 1 char")
    if buffer_size <= 0:
        raise errors.InvalidArgumentError(None, None, "buffer_size should be positive")
    form = CsvFormat(
        mark,
        bool(quotes),
        bool(header),
        text(missing).encode(),
        tuple(np.asarray(columns).reshape(-1).tolist()),
    )
    return CsvStage(
        _files(filenames), text(compression), int(buffer_size), form, defaults, output_types
    )


for _name in ("CSVDataset", "ExperimentalCSVDataset"):
    dataset_op(
        _name,
        "filenames: string, compression_type: string, buffer_size: int64, header: bool, "
        "field_delim: string, "
        "use_quote_delim: bool, na_value: string, select_cols: int64, record_defaults: "
        "*output_types",
        _csv,
        "output_shapes: list(shape)",
    )


def _write_records(
    xp: ArrayNamespace, source: Stage, filename: Array, compression: Array
) -> tuple[()]:
    """Every element, a string, as a record of a TFRecord file."""
    from headrace.wire.tfrecord import TFRecordWriter

    a_pass = Context().start(stage_of(source))
    try:
        with TFRecordWriter(text(filename), text(compression) or None) as writer:
            for (record,) in a_pass:
                writer.write(record.item())
    finally:
        a_pass.close()
    return ()


for _name in ("DatasetToTFRecord", "ExperimentalDatasetToTFRecord"):
    define(
        _name,
        "input_dataset: variant, filename: string, compression_type: string -> ",
        shape=lambda c: [],
        kernel=_write_records,
        grad=NOT_DIFFERENTIABLE,
        stateful=True,
        host_only=True,
        writes_files=True,
    )


def _snapshot(
    xp: ArrayNamespace,
    source: MapStage | RangeStage,
    path: Array,
    *,
    compression: str,
    output_types: Sequence[Any],
    output_shapes: Sequence[Any],
) -> Stage:
    parts = parts_of(output_types, output_shapes)
    return SnapshotStage(stage_of(source), text(path), compression, parts, None, None)


dataset_op(
    "SnapshotDataset",
    f"{ONE}, path: string",
    _snapshot,
    f"{OUT}, compression: str='', reader_path_prefix: str='', writer_path_prefix: str='', "
    "shard_size_bytes: int=10737418240, pending_snapshot_expiry_seconds: int=86400, "
    "num_reader_threads: int=1, reader_buffer_size: int=1, num_writer_threads: int=1, "
    "writer_buffer_size: int=1",
)


def _sharded_snapshot(
    xp: ArrayNamespace,
    source: Stage,
    path: Array,
    *args: object,
    compression: str,
    reader_func: DataFunction,
    shard_func: DataFunction,
    Treader_func_args: Sequence[Any],
    output_types: Sequence[DType],
    output_shapes: Sequence[Sequence[Any]],
    rt: RunContext,
) -> Stage:
    n = len(Treader_func_args)
    return SnapshotStage(
        stage_of(source),
        text(path),
        compression,
        parts_of(output_types, output_shapes),
        bound(shard_func, rt, args[n:]),
        bound(reader_func, rt, args[:n]),
    )


_READER = "reader_func_other_args: *Treader_func_args"
_SHARD = "shard_func_other_args: *Tshard_func_args"
dataset_op(
    "SnapshotDatasetV2",
    f"{ONE}, path: string, {_READER}, {_SHARD}",
    _sharded_snapshot,
    f"{OUT}, compression: str='', reader_prefix: str='', writer_prefix: str='', "
    "hash_valid: bool=False, hash: int=0, "
    "reader_func: func, shard_func: func",
)


def _save(
    xp: ArrayNamespace,
    source: Stage,
    path: Array,
    *args: object,
    compression: str,
    shard_func: DataFunction,
    use_shard_func: bool,
    element_spec: str,
    rt: RunContext,
) -> tuple[()]:
    a_pass = Context().start(stage_of(source))
    shard = bound(shard_func, rt, args) if use_shard_func else None
    try:
        save_elements(a_pass, text(path), compression, shard, element_spec)
    finally:
        a_pass.close()
    return ()


define(
    "_SaveDataset",
    f"{ONE}, path: string, {_SHARD} -> ; compression: str='', shard_func: func, "
    "use_shard_func: bool=True, element_spec: str",
    shape=lambda c: [],
    kernel=_save,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    host_only=True,
    writes_files=True,
)


def _load(
    xp: ArrayNamespace,
    path: Array,
    *args: object,
    compression: str,
    reader_func: DataFunction,
    output_types: Sequence[DType],
    output_shapes: Sequence[Sequence[int | None]],
    rt: RunContext,
) -> Stage:
    parts = parts_of(output_types, output_shapes)
    return SavedStage(text(path), compression, parts, bound(reader_func, rt, args))


dataset_op(
    "LoadDataset",
    f"path: string, {_READER}",
    _load,
    f"{OUT}, compression: str='', reader_func: func",
)
