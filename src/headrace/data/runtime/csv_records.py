"""CSV files as elements: one component for each column that is asked for.

A record ends with a line feed, a carriage return or both; inside quotes neither ends it, and two
quotes stand for one. A record that is wrong is an error of its own: the next one starts on the next
line. Batches are converted column by column.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace import errors
from headrace.data.runtime.file_stages import text_scalar
from headrace.data.runtime.stages import Context, Element, Pass, Stage
from headrace.runtime.file_paths import local_path
from headrace.wire.streams import Pending, chunks

__all__ = ["CsvFormat", "CsvStage", "csv_records"]

_QUOTES = re.compile(rb'"+')
_LINE_END = re.compile(rb"\r\n|\n|\r")
_TYPE_NAMES = {"float32": "float", "float64": "double"}
#: The fields of a record, or what is wrong with it.
Record = Any


def _invalid(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, text)


class CsvFormat(NamedTuple):
    """How a file is written, and which columns are read (none: all)."""

    delimiter: bytes
    quotes: bool
    header: bool
    missing: bytes
    columns: tuple[int, ...]


# records ----------------------------------------------------------------------------------------


def csv_records(pieces: Iterator[bytes], delimiter: bytes, quotes: bool) -> Iterator[Record]:
    """The records of a text that comes in pieces."""
    pending, need = Pending("A CSV file"), 0
    for piece in pieces:
        if (
            pending.size + len(piece) < need
        ):  # not looked at again before it is twice as long: linear time
            pending.add(piece)
            continue
        text, at = pending.joined(piece), 0
        while (found := _record(text, at, delimiter, quotes, last=False)) is not None:
            record, at = found
            yield record
        pending.add(text[at:])
        need = 2 * pending.size
    text, at = pending.joined(b""), 0
    while at < len(text):
        found = _record(text, at, delimiter, quotes, last=True)
        assert found is not None
        record, at = found
        yield record


def _record(
    text: bytes, at: int, delimiter: bytes, quotes: bool, last: bool
) -> tuple[Record, int] | None:
    """The record at ``at`` and the place after it.

    None if the text may end before the record does.
    """
    line = _line(text, at, last)
    if line is None:
        return None
    stop, after = line
    if not quotes or text.find(b'"', at, stop) < 0:
        return text[at:stop].split(delimiter), after
    return _quoted_record(text, at, delimiter, last)


def _line(text: bytes, at: int, last: bool) -> tuple[int, int] | None:
    """The end of the line, and the start of the next."""
    found = _LINE_END.search(text, at)
    if found is None:
        return (len(text), len(text)) if last else None
    if found.end() == len(text) and found.group() == b"\r" and not last:
        return None  # a line feed may follow
    return found.start(), found.end()


def _quoted_record(text: bytes, at: int, delimiter: bytes, last: bool) -> tuple[Record, int] | None:
    fields: list[bytes] = []
    while True:
        if text.startswith(b'"', at):
            field = _quoted(text, at + 1, delimiter, last)
        else:
            field = _unquoted(text, at, delimiter, last)
        if field is None:
            return None
        value, at = field
        if isinstance(value, Exception):
            line = _line(text, at, last)
            return None if line is None else (value, line[1])
        fields.append(value)
        if text.startswith(delimiter, at):
            at += len(delimiter)
            continue
        line = _line(text, at, last)
        return None if line is None else (fields, line[1])


def _quoted(text: bytes, at: int, delimiter: bytes, last: bool) -> tuple[Any, int] | None:
    """A field after its opening quote, and the place after the closing one.

    Two quotes stand for one, so the field ends with the first odd run of quotes.
    """
    for run in _QUOTES.finditer(text, at):
        if run.end() == len(text) and not last:
            return None
        if (run.end() - run.start()) % 2:
            break
    else:
        if not last:
            return None
        return _invalid("Reached end of file without closing quoted field in record"), len(text)
    after = run.end()
    if text[after : after + 1] in (b"", b"\n", b"\r") or text.startswith(delimiter, after):
        return text[at : after - 1].replace(b'""', b'"'), after
    return _invalid("Quote inside a string has to be escaped by another quote"), after


def _unquoted(text: bytes, at: int, delimiter: bytes, last: bool) -> tuple[Any, int] | None:
    found = _field_end(delimiter).search(text, at)
    if found is None:
        return (text[at:], len(text)) if last else None
    if found.group() == b'"':
        return _invalid("Unquoted fields cannot have quotes inside"), at
    return text[at : found.start()], found.start()


@functools.cache
def _field_end(delimiter: bytes) -> re.Pattern[bytes]:
    return re.compile(b'[\r\n"' + re.escape(delimiter) + b"]")


# the stage --------------------------------------------------------------------------------------


class CsvStage(Stage):
    """``defaults`` and ``types`` have one entry for each column that is read.

    An empty default: the value must be there.
    """

    def __init__(
        self,
        paths: Sequence[bytes],
        compression: str,
        buffer_size: int | None,
        form: CsvFormat,
        defaults: Sequence[Any],
        types: Sequence[Any],
    ) -> None:
        self.paths = [local_path(p) for p in paths]
        self.compression = compression
        self.buffer_size = buffer_size
        self.form = form
        self.columns = [
            _Column(i, np.asarray(d), t) for i, (d, t) in enumerate(zip(defaults, types))
        ]

    def start(self, ctx: Context) -> Pass:
        return CsvPass(self)

    def records(self, path: str) -> Iterator[Record]:
        form = self.form
        pieces = chunks(path, self.compression, self.buffer_size)
        records = csv_records(pieces, form.delimiter, form.quotes)
        if form.header and next(records, None) is None:
            raise _invalid(f"Can't read header of file {path}")
        return records

    def chosen(self, record: Record) -> list[bytes]:
        """The fields of the columns that are read."""
        if isinstance(record, Exception):
            raise record
        n = len(self.columns)
        fields: list[bytes] = record
        if self.form.columns:
            fields = [fields[c] for c in self.form.columns if c < len(fields)]
        if len(fields) != n:
            have = "more" if len(fields) > n else str(len(fields))
            raise _invalid(f"Expect {n} fields but have {have} in record")
        return fields


class CsvPass(Pass):
    fresh = True

    def __init__(self, stage: CsvStage) -> None:
        self.stage = stage
        self.paths = iter(stage.paths)
        self.records: Iterator[Record] = iter(())
        self.pending: list[Record] = []  # read already, the next one last

    def __next__(self) -> Element:
        stage = self.stage
        fields = stage.chosen(self._record())
        missing = stage.form.missing
        return tuple([c.one(f, missing) for c, f in zip(stage.columns, fields)])

    def _record(self) -> Record:
        if self.pending:
            return self.pending.pop()
        while True:
            for record in self.records:
                return record
            self.records = iter(())
            self.records = self.stage.records(next(self.paths))

    def block(self, n: int) -> Element:
        records = [self._record()]
        while len(records) < n:
            try:
                records.append(self._record())
            except StopIteration:
                break
        stage = self.stage
        try:
            columns = zip(*[stage.chosen(r) for r in records])
            return tuple([c.all(v, stage.form.missing) for c, v in zip(stage.columns, columns)])
        except errors.InvalidArgumentError:
            self.pending += records[::-1]  # one by one, up to the one that is wrong
            while True:
                next(self)

    def close(self) -> None:
        self.paths = iter(())
        self.records = iter(())


class _Column:
    """The conversion of a column's fields."""

    def __init__(self, number: int, default: Any, dtype: Any) -> None:
        self.number = number
        self.default = default.reshape(-1).tolist()[0] if default.size else None
        self.name = _TYPE_NAMES.get(dtype.name, dtype.name)
        self.np_dtype = dtype.np_dtype
        self.text = self.np_dtype.kind == "O"
        self.read: Callable[[bytes], Any] = (
            bytes if self.text else float if self.np_dtype.kind == "f" else int
        )

    def value(self, field: bytes, missing: bytes) -> Any:
        if not field or field == missing:
            if self.default is None:
                raise _invalid(f"Field {self.number} is required but missing in record!")
            return self.default
        try:
            if b"_" in field and not self.text:  # which Python would read
                raise ValueError
            return self.read(field)
        except ValueError:
            raise self.wrong(field) from None

    def wrong(self, field: bytes) -> Exception:
        shown = field.decode(errors="replace")
        return _invalid(f"Field {self.number} in record is not a valid {self.name}: {shown}")

    def one(self, field: bytes, missing: bytes) -> Any:
        value = self.value(field, missing)
        if self.text:
            return text_scalar(value)
        try:
            with np.errstate(over="ignore"):
                return self.np_dtype.type(value)
        except OverflowError:
            raise self.wrong(field) from None

    def all(self, fields: Sequence[bytes], missing: bytes) -> np.ndarray[Any, Any]:
        values = [self.value(f, missing) for f in fields]
        if self.text:
            out = np.empty(len(values), object)
            out[:] = values
            return out
        try:
            with np.errstate(over="ignore"):  # a number beyond float32 is an infinity
                return np.array(values, self.np_dtype)
        except OverflowError:
            raise self.wrong(b"") from None
