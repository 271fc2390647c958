"""CSV files: ``CsvDataset`` (tuples of columns) and ``make_csv_dataset`` (batches of dicts by
column name).

tf.data.experimental.CsvDataset("prices.csv", [tf.float32, ""], header=True)
tf.data.experimental.make_csv_dataset("prices*.csv", 32, label_name="price", num_epochs=1)
"""

from __future__ import annotations

import csv
import functools
import gzip
import io
import math
import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.specs import TensorSpec
from headrace.data.api.dataset import AUTOTUNE, DatasetV2
from headrace.data.api.dataset_v1 import DatasetV1

if TYPE_CHECKING:
    from headrace.core.annotations import Array, TensorLike
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Tensor

__all__ = ["CsvDatasetV1", "CsvDatasetV2", "make_csv_dataset"]

#: Bytes that are read at once.
BUFFER = 4 * 1024 * 1024
_ALLOWED = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.string)
_MAX_FLOAT32 = float(np.finfo(np.float32).max)
_MAX_INT32, _MIN_INT32 = 2**31 - 1, -(2**31)


def _default(value: Array | str | DType | Sequence[float | str]) -> Tensor:
    """A column's default as a tensor; a type alone means that the value must be there."""
    if isinstance(value, dtypes.DType):
        return convert_to_tensor(np.zeros(0, value.np_dtype), value)
    return convert_to_tensor(value)


class _Csv:
    """Beside a dataset class."""

    _base: Any

    def __init__(
        self,
        filenames: TensorLike,
        record_defaults: Any,
        compression_type: str | None = None,
        buffer_size: Any = None,
        header: Any = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[Any] | None = None,
        exclude_cols: Any = None,
    ) -> None:
        if exclude_cols is not None and len(exclude_cols):
            select_cols = _all_but(select_cols, exclude_cols, len(record_defaults))
        defaults = [_default(d) for d in record_defaults]
        in_eager = get_default_graph()._is_eager
        for d in defaults:
            if d.dtype.base_dtype not in _ALLOWED:
                raise TypeError(
                    "record_defaults must be of one of "
                    f"{', '.join(t.name for t in _ALLOWED)}, got {d.dtype.name}."
                )
            if d.shape.ndims is not None and d.shape.ndims > 1 and not in_eager:
                raise ValueError(
                    f"Shape must be at most rank 1 but is rank {d.shape.ndims} for 'CSVDataset', "
                    f"record default {d}."
                )
        columns = np.array([] if select_cols is None else select_cols, np.int64)
        if (np.diff(columns) <= 0).any() or (columns < 0).any():
            raise ValueError("select_cols must be strictly increasing and must not be negative.")
        if len(columns) and len(columns) != len(defaults):
            raise ValueError("Length of select_cols and record_defaults do not match.")
        spec = tuple(TensorSpec((), d.dtype) for d in defaults)
        size = BUFFER if buffer_size is None else buffer_size
        variant = apply_op(
            "CSVDataset",
            filenames,
            "" if compression_type is None else compression_type,
            size,
            header,
            field_delim,
            use_quote_delim,
            na_value,
            columns,
            defaults,
            output_shapes=[s.shape for s in spec],
        )
        self._base.__init__(self, variant, spec)


def _all_but(select: Any, exclude: Sequence[int], n: int) -> list[int]:
    """The columns that are not excluded."""
    if select is not None and len(select):
        raise ValueError("Either select_cols or exclude_cols should be empty")
    left = (c for c in range(n + len(exclude)) if c not in set(exclude))
    return [c for c, _ in zip(left, range(n))]


class CsvDatasetV2(_Csv, DatasetV2):
    """The records of CSV files, a tuple of scalars each.

    ``record_defaults`` gives a type per column (the column is required) or a default value.
    """


class CsvDatasetV1(_Csv, DatasetV1):
    """The records of CSV files, a tuple of scalars each.

    ``record_defaults`` gives a type per column (the column is required) or a default value.
    """


# make_csv_dataset -------------------------------------------------------------------------------


def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Any = None,
    column_defaults: Any = None,
    label_name: str | None = None,
    select_columns: TensorLike | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: Any = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: Any = None,
    prefetch_buffer_size: Any = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int = 100,
    compression_type: Any = None,
    ignore_errors: bool = False,
    kind: Any = None,
) -> Any:
    """Batches of dicts of columns from CSV files; with ``label_name`` of (dict of the others,
    label).

    ``file_pattern`` is one pattern or a list. Without ``column_names`` the first line is read,
    without ``column_defaults`` the types are inferred from ``num_rows_for_inference`` rows.
    ``select_columns`` takes some columns by name or number. Rows are shuffled and repeated forever
    unless ``shuffle=False`` and ``num_epochs`` say otherwise; ``ignore_errors`` drops rows that do
    not parse.

        tf.data.experimental.make_csv_dataset("prices*.csv", 32, label_name="price", num_epochs=1)
    """
    files = _file_names(file_pattern, shuffle, shuffle_seed)
    quoting = csv.QUOTE_MINIMAL if use_quote_delim else csv.QUOTE_NONE
    form = {"delimiter": field_delim, "quoting": quoting}
    if column_names is None:
        if not header:
            raise ValueError("`column_names` must be given if there is no header")
        column_names = _header(files, form, compression_type)
    if len(column_names) != len(set(column_names)):
        raise ValueError("Cannot have duplicate column names.")
    chosen = _chosen(select_columns, column_names)
    if column_defaults is None:
        how = (header, num_rows_for_inference, na_value, compression_type)
        column_defaults = _inferred(files, form, chosen, *how, len(column_names))
    elif len(column_defaults) != len(chosen) and len(column_defaults) == len(column_names):
        column_defaults = [column_defaults[i] for i in chosen]
    names = [column_names[i] for i in chosen]
    if label_name not in (None, *names):
        raise ValueError("`label_name` provided must be one of the columns.")
    reader = CsvDatasetV1 if kind is None or issubclass(kind, DatasetV1) else CsvDatasetV2
    read = functools.partial(
        reader,
        record_defaults=column_defaults,
        compression_type=compression_type,
        header=header,
        field_delim=field_delim,
        use_quote_delim=use_quote_delim,
        na_value=na_value,
        select_cols=chosen,
    )
    dataset = _rows_of(reader, read, files, num_parallel_reads, sloppy)
    if ignore_errors:
        dataset = dataset.ignore_errors()
    dataset = _repeated(dataset, shuffle, shuffle_buffer_size, shuffle_seed, num_epochs)
    dataset = dataset.batch(batch_size, drop_remainder=num_epochs is None)
    dataset = dataset.map(_naming(names, label_name))
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _rows_of(
    reader: Any, read: Callable[..., Any], files: Any, parallel: int | None, sloppy: bool
) -> Any:
    """The rows of all files, one file after the other or ``parallel`` ones at once."""
    dataset = reader._base.from_tensor_slices(files)
    if parallel:
        return dataset._parallel_interleave(
            lambda name: read([name]), parallel, 1, sloppy, None, None
        )
    return dataset.flat_map(lambda name: read([name]))


def _naming(names: Sequence[str], label_name: str | None) -> Callable[..., Any]:
    """Columns -> a dict of them; with a label, (the others, label)."""

    def named(*columns: Tensor) -> Any:
        features = OrderedDict(zip(names, columns))
        if label_name is None:
            return features
        label = features.pop(label_name)
        return features, label

    return named


def _repeated(dataset: Any, shuffle: bool, size: int, seed: object, epochs: object) -> Any:
    if shuffle:
        dataset = dataset.shuffle(size, seed)
    return dataset if epochs == 1 else dataset.repeat(epochs)


def _file_names(pattern: str, shuffle: bool, seed: int | None) -> list[str]:
    """The files of one or several patterns, in an order that the seed gives."""
    from headrace.data.api.file_names import matching_files

    patterns = list(pattern) if isinstance(pattern, (list, tuple)) else [pattern]
    if not patterns:
        raise ValueError("Given file patterns must not be empty.")
    found = sorted(name for p in patterns for name in matching_files(str(p)))
    if not found:
        raise ValueError(f"No files match {pattern}.")
    if shuffle:
        np.random.default_rng(seed).shuffle(found)
    return found


def _opened(path: str, compression: object) -> Any:
    if compression == "GZIP":
        return gzip.open(path, "rt", newline="")
    if compression == "ZLIB":
        with open(path, "rb") as file:
            return io.StringIO(zlib.decompress(file.read()).decode(), newline="")
    return open(path, newline="")


def _header(files: list[str], form: dict[str, Any], compression: object) -> list[str]:
    """The names of the columns, which all files must have."""
    found: list[str] | None = None
    for path in files:
        with _opened(path, compression) as file:
            names = next(csv.reader(file, **form), None)
        if names is None:
            raise ValueError(f"Error when reading header of {path}: it is empty.")
        if found is not None and names != found:
            raise ValueError("All CSV files must have the same column names in the same order.")
        found = names
    assert found is not None
    return found


def _chosen(select: Any, names: Sequence[str]) -> list[int]:
    if select is None:
        return list(range(len(names)))
    if all(isinstance(c, int) for c in select):
        chosen = sorted(select)
        if any(not 0 <= c < len(names) for c in chosen):
            raise ValueError("select_columns contains a number that is not that of a column.")
    else:
        unknown = [c for c in select if c not in names]
        if unknown:
            raise ValueError(
                f"Value '{unknown[0]}' from `select_columns` is not in the columns {list(names)}."
            )
        chosen = sorted(names.index(c) for c in select)
    if len(set(chosen)) != len(chosen):
        raise ValueError("select_columns must not name a column twice.")
    return chosen


def _inferred(
    files: list[str],
    form: dict[str, Any],
    chosen: list[int],
    header: bool,
    rows: int | None,
    missing: str,
    compression: object,
    n: int,
) -> list[Any]:
    """Defaults by the types that the values of the first rows have.

    Int32, int64, float32, float64 or string.
    """
    levels = [0] * len(chosen)
    seen = 0
    for path in files:
        with _opened(path, compression) as file:
            reader = csv.reader(file, **form)
            if header:
                next(reader, None)
            for row in reader:
                if rows is not None and seen >= rows:
                    break
                if len(row) != n:
                    raise ValueError(
                        f"Problem inferring types: CSV row {row} has {len(row)} number of "
                        f"fields. Expected: {n}."
                    )
                seen += 1
                levels = [max(lv, _level(row[c], missing)) for lv, c in zip(levels, chosen)]
    made = {
        0: dtypes.int32,
        1: dtypes.int64,
        2: dtypes.float32,
        3: dtypes.float64,
        4: dtypes.string,
    }
    return [[""] if lv == 4 else np.zeros(1, made[lv].np_dtype) for lv in levels]


def _level(text: str, missing: str) -> int:
    if text in ("", missing):
        return 0
    try:
        number = int(text)
    except ValueError:
        try:
            value = float(text)
        except ValueError:
            return 4
        return 3 if _MAX_FLOAT32 < abs(value) < math.inf else 2
    if _MIN_INT32 <= number <= _MAX_INT32:
        return 0
    return 1 if -(2**63) <= number < 2**63 else 2
