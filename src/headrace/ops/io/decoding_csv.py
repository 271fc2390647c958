"""DecodeCSV: lines of comma-separated values to one tensor for each column.

An empty field takes the column's default; a column whose default is an empty vector must be there.

    >>> decode_csv(["1,2.5,a", "3,,b"], [[0], [0.0], [""]])
    # int32 [1, 3], float32 [2.5, 0], string [a, b]
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.build import apply_list
from headrace.core.graph import get_default_graph
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import invalid

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike
    from headrace.core.dtypes import DType

__all__ = ["decode_csv", "decode_csv_v2"]

_ALLOWED = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.string)
_NAMES = {dtypes.float32: "float", dtypes.float64: "double"}
_QUOTE = b'"'
_QUOTES = re.compile(rb'"*')
#: A run of an odd number of quotes: the last of them ends the field. (Linear: runs are tried at
#: their beginning alone.)
_LAST_QUOTE = re.compile(rb'(?<!")"(?:"")*(?!")')


def split_fields(record: bytes, delim: bytes, quotes: bool) -> list[bytes]:
    """The fields of one record; an empty record has none."""
    if not record:
        return []
    if not quotes or _QUOTE not in record:
        if quotes:
            _check_plain(record)
        elif b"\n" in record or b"\r" in record:
            raise invalid("Unquoted fields cannot have quotes/CRLFs inside")
        return record.split(delim)
    fields, at, end = [], 0, len(record)
    while True:
        if record.startswith(_QUOTE, at):
            field, at = _quoted(record, at + 1, delim)
        else:
            stop = record.find(delim, at)
            stop = end if stop < 0 else stop
            field, at = record[at:stop], stop
            _check_plain(field)
        fields.append(field)
        if at >= end:
            return fields
        at += 1  # the delimiter
        if at == end:
            return [*fields, b""]


def _check_plain(field: bytes) -> None:
    if _QUOTE in field or b"\n" in field or b"\r" in field:
        raise invalid("Unquoted fields cannot have quotes/CRLFs inside")


def _quoted(record: bytes, at: int, delim: bytes) -> tuple[bytes, int]:
    """A field after its opening quote, and the place after its closing one.

    Two quotes stand for one.
    """
    run = _QUOTES.match(record, at)
    assert run is not None
    stop = run.end()
    if not (stop - at) % 2:  # pairs alone: the field goes on
        last = _LAST_QUOTE.search(record, stop)
        if last is None:
            raise invalid("Quoted field has to end with quote followed by delim or end")
        stop = last.end()
    if stop < len(record) and record[stop : stop + 1] != delim:
        raise invalid("Quote inside a string has to be escaped by another quote")
    return record[at : stop - 1].replace(b'""', _QUOTE), stop


def _column(
    values: Sequence[bytes], default: Array | np.generic, dtype: DType, column: int, na: bytes
) -> Array:
    """One column, converted; ``default`` has no element where a value is required."""
    fallback = default.reshape(-1).tolist()[0] if default.size else None
    if dtype is dtypes.string:
        read: Any = _unchanged
    else:
        read = float if dtype.is_floating else int
    out: list[Any] = []
    for i, text in enumerate(values):
        if not text or text == na:
            if fallback is None:
                raise invalid(f"Field {column} is required but missing in record {i}!")
            out.append(fallback)
            continue
        try:
            out.append(read(text))
        except ValueError:
            raise _not_valid(column, i, dtype, text) from None
    if dtype is dtypes.string:
        strings = np.empty(len(out), object)
        strings[:] = out
        return strings
    return _numbers(out, values, dtype, column)


def _unchanged(text: bytes) -> bytes:
    return text


def _numbers(out: list[Any], values: Sequence[bytes], dtype: DType, column: int) -> Array:
    """Python reads underscores in numbers, and integers of any size."""
    for i, text in enumerate(values):
        if b"_" in text:
            raise _not_valid(column, i, dtype, text)
    try:
        return np.array(out, dtype.np_dtype)
    except OverflowError:
        info = np.iinfo(dtype.np_dtype)
        i = next(i for i, v in enumerate(out) if not info.min <= v <= info.max)
        raise _not_valid(column, i, dtype, values[i]) from None


def _not_valid(column: int, record: int, dtype: DType, text: bytes) -> Exception:
    kind = _NAMES.get(dtype, dtype.name)
    return invalid(
        f"Field {column} in record {record} is not a valid {kind}: {text.decode(errors='replace')}"
    )


def _kernel(
    xp: ArrayNamespace,
    records: Array,
    *defaults: Array,
    field_delim: str,
    use_quote_delim: bool,
    na_value: str,
    select_cols: Sequence[int],
    OUT_TYPE: Sequence[DType],
) -> Any:
    if len(field_delim.encode()) != 1:
        raise invalid("field_delim should be only 1 char")
    if any(d.ndim > 1 for d in defaults):
        raise invalid("Each record default should be at most rank 1")
    delim, na, n = field_delim.encode(), na_value.encode(), len(defaults)
    rows = []
    for i, record in enumerate(records.reshape(-1).tolist()):
        fields = split_fields(record, delim, use_quote_delim)
        if select_cols:
            fields = [fields[c] for c in select_cols if c < len(fields)]
        if len(fields) != n:
            raise invalid(f"Expect {n} fields but have {len(fields)} in record {i}")
        rows.append(fields)
    columns = list(zip(*rows)) if rows else [()] * n
    out = [
        _column(c, d, t, i, na).reshape(records.shape)
        for i, (c, d, t) in enumerate(zip(columns, defaults, OUT_TYPE))
    ]
    return out[0] if n == 1 else tuple(out)


def _shape(c: Inference) -> list[Shape]:
    for i in range(1, c.n_inputs):
        shape = c.shape(i)
        if shape is None:
            continue
        if len(shape) > 1:
            raise ValueError(f"Shape must be at most rank 1 but is rank {len(shape)}")
        if shape and shape[0] is not None and shape[0] > 1:
            raise ValueError(
                "Shape of a default must be a length-0 or length-1 vector, or a scalar."
            )
    return [c.shape(0)] * (c.n_inputs - 1)


# The signature is cut at commas: the delimiter is written as an escape.
DECODE_CSV = define(
    "DecodeCSV",
    "records: string, record_defaults: *OUT_TYPE -> output: *OUT_TYPE; field_delim: str='\\x2c', "
    "use_quote_delim: bool=True, na_value: str='', select_cols: list(int)=[]",
    shape=_shape,
    kernel=_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    batching="same",
)


def decode_csv(
    records: TensorLike,
    record_defaults: Any,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Any = None,
) -> list[Tensor]:
    """CSV records to a list of tensors, one for each column, of the shape of ``records``.

    ``record_defaults`` has one entry for each column: a tensor with the type and, for fields that
    may be empty, the value. ``select_cols`` takes some columns by number; ``na_value`` counts as
    empty.

    ``field_delim`` separates fields; ``use_quote_delim=False`` takes quotation marks for ordinary
    characters.

        a, b = tf.decode_csv(["1,x", "2,y"], [[0], [""]])
    """
    if not isinstance(record_defaults, (list, tuple)) and not get_default_graph()._is_eager:
        raise TypeError(
            "Expected list for 'record_defaults' argument to 'decode_csv' Op, not "
            f"{record_defaults}."
        )
    chosen = [] if select_cols is None else list(select_cols)
    if any(a >= b for a, b in itertools.pairwise(chosen)):
        raise ValueError("select_cols is not strictly increasing.")
    if chosen and chosen[0] < 0:
        raise ValueError("select_cols contains negative values.")
    if chosen and len(chosen) != len(record_defaults):
        raise ValueError("Length of select_cols and record_defaults do not match.")
    for default in record_defaults:
        dtype = getattr(default, "dtype", None)
        if dtype is not None and dtypes.as_dtype(dtype).base_dtype not in _ALLOWED:
            names = ", ".join(d.name for d in _ALLOWED)
            raise TypeError(
                "Value passed to parameter 'record_defaults' has DataType "
                f"{dtypes.as_dtype(dtype).name} not in list "
                f"of allowed values: {names}"
            )
    return apply_list(
        DECODE_CSV,
        records,
        list(record_defaults),
        field_delim=field_delim,
        use_quote_delim=use_quote_delim,
        na_value=na_value,
        select_cols=chosen,
        name=name,
    )


def decode_csv_v2(
    records: TensorLike,
    record_defaults: object,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: TensorLike | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """As ``tf.decode_csv``, with ``name`` last.

    ``record_defaults`` has a tensor for each column, which gives its type, and its default if it is
    not empty. A field equal to ``na_value`` counts as missing. ``select_cols`` are the sorted
    indices of the columns to parse. TF 1 has ``name`` before ``na_value``.
    """
    return decode_csv(
        records, record_defaults, field_delim, use_quote_delim, name, na_value, select_cols
    )
