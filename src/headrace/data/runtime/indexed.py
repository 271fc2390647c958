"""Passes over rows of arrays: work on row numbers, gather once per batch.

A stage whose elements can be reached by number has ``rows()``. A pass over it is a *stream* of row
numbers: slicing, shuffling, repeating and sharding change the stream only, and a batch is one
``take`` for each component.

    stream.more(n)     up to n further numbers: a ``range`` or an int64 array; empty at the end

Rows that follow each other come as a range, so that a batch of them is a view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.data.runtime.stages import Element, Pass

__all__ = [
    "ArrayRows",
    "IndexPass",
    "PartRows",
    "RangeRows",
    "Repeated",
    "Rows",
    "Sharded",
    "Skipped",
    "Span",
    "Stream",
    "Taken",
    "ZipRows",
]

Numbers = Any  # a range or an int64 array
#: Row numbers asked for ahead where elements are taken one by one.
MAX_AHEAD = 256


class Rows:
    """Elements by number."""

    def __len__(self) -> int:
        raise NotImplementedError

    def row(self, i: int) -> Element:
        raise NotImplementedError

    def take(self, numbers: Numbers) -> Element:
        """The rows with these numbers, stacked; a view where they are a range."""
        raise NotImplementedError

    def columns(self, numbers: Numbers) -> list[Any]:
        """The components of these rows, each an iterable over rows."""
        rows = [self.row(i) for i in _plain(numbers)]
        return list(zip(*rows))


class ArrayRows(Rows):
    """The rows of arrays with one length."""

    def __init__(self, arrays: Sequence[Any]) -> None:
        self.arrays = tuple(arrays)
        # a row of a string vector is an array of rank 0: bytes alone would not be a tensor
        self.at = tuple((a, a.dtype.kind == "O" and a.ndim == 1) for a in arrays)

    def __len__(self) -> int:
        return len(self.arrays[0])

    def row(self, i: int) -> Element:
        return tuple([a[i, ...] if keep else a[i] for a, keep in self.at])

    def take(self, numbers: Numbers) -> Element:
        if type(numbers) is range:
            cut = slice(numbers.start, numbers.stop, numbers.step)
            return tuple([a[cut] for a in self.arrays])
        return tuple([a.take(numbers, 0) for a in self.arrays])

    def columns(self, numbers: Numbers) -> list[Any]:
        plain = _plain(numbers)
        return [
            [a[i, ...] for i in plain]
            if keep
            else a.take(numbers)
            if a.ndim == 1
            else [a[i] for i in plain]
            for a, keep in self.at
        ]


def _plain(numbers: Numbers) -> Any:
    return numbers if type(numbers) is range else numbers.tolist()


class RangeRows(Rows):
    """The numbers of a range."""

    def __init__(self, values: range, dtype: Any = np.int64) -> None:
        self.values = values
        self.dtype = np.dtype(dtype)

    def __len__(self) -> int:
        return len(self.values)

    def row(self, i: int) -> Element:
        return (self.dtype.type(self.values[i]),)

    def take(self, numbers: Numbers) -> Element:
        if type(numbers) is range:
            part = self.values[numbers.start : numbers.stop : numbers.step]
            return (np.arange(part.start, part.stop, part.step, dtype=self.dtype),)
        return ((self.values.start + self.values.step * numbers).astype(self.dtype, copy=False),)

    def columns(self, numbers: Numbers) -> list[Any]:
        return list(self.take(numbers))


class ZipRows(Rows):
    """Several rows side by side, as many as the shortest has."""

    def __init__(self, parts: Sequence[Rows]) -> None:
        self.parts = tuple(parts)
        self.length = min(len(p) for p in parts)

    def __len__(self) -> int:
        return self.length

    def row(self, i: int) -> Element:
        return tuple([c for p in self.parts for c in p.row(i)])

    def take(self, numbers: Numbers) -> Element:
        return tuple([c for p in self.parts for c in p.take(numbers)])

    def columns(self, numbers: Numbers) -> list[Any]:
        return [c for p in self.parts for c in p.columns(numbers)]


class PartRows(Rows):
    """Some of the rows: those whose numbers are in a range."""

    def __init__(self, whole: Rows, numbers: range) -> None:
        self.whole = whole
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def row(self, i: int) -> Element:
        return self.whole.row(self.numbers[i])

    def take(self, numbers: Numbers) -> Element:
        if type(numbers) is range:
            return self.whole.take(self.numbers[numbers.start : numbers.stop : numbers.step])
        return self.whole.take(self.numbers.start + self.numbers.step * numbers)


# streams ------------------------------------------------------------------------------------------


class Stream:
    """Row numbers, some at a time."""

    gathers = False  # numbers do not come as ranges, so that batches are arrays of their own

    def more(self, n: int) -> Numbers:
        raise NotImplementedError


class Span(Stream):
    """One range."""

    def __init__(self, numbers: range) -> None:
        self.left = numbers

    def more(self, n: int) -> Numbers:
        got, self.left = self.left[:n], self.left[n:]
        return got


class Taken(Stream):
    def __init__(self, source: Stream, count: int) -> None:
        self.source = source
        self.left = count
        self.gathers = source.gathers

    def more(self, n: int) -> Numbers:
        if not self.left:
            return range(0)
        got = self.source.more(min(n, self.left))
        self.left -= len(got)
        return got


class Skipped(Stream):
    def __init__(self, source: Stream, count: int) -> None:
        self.source = source
        self.left = count
        self.gathers = source.gathers

    def more(self, n: int) -> Numbers:
        while self.left:
            got = self.source.more(self.left)
            if not len(got):
                self.left = 0
                return got
            self.left -= len(got)
        return self.source.more(n)


class Sharded(Stream):
    """Every so-many-th number, starting with number ``index``."""

    def __init__(self, source: Stream, shards: int, index: int) -> None:
        self.source = source
        self.shards = shards
        self.index = index
        self.at = 0
        self.gathers = source.gathers

    def more(self, n: int) -> Numbers:
        while True:
            got = self.source.more(n * self.shards)
            if not len(got):
                return got
            first = (self.index - self.at) % self.shards
            self.at += len(got)
            part = got[first :: self.shards]
            if len(part):
                return part


class Repeated(Stream):
    """The stream again and again; a chunk never goes over the end of a round."""

    def __init__(self, start: Callable[[], Stream], count: int) -> None:
        self.start = start
        self.left = count
        self.current: Stream | None = None
        self.empty = True
        self.gathers = False

    def more(self, n: int) -> Numbers:
        while self.left:
            if self.current is None:
                self.current = self.start()
                self.empty = True
            got = self.current.more(n)
            if len(got):
                self.empty = False
                return got
            self.current = None
            self.left -= 1
            if self.empty and self.left < 0:
                self.left = 0  # an empty dataset repeated forever is empty
        return range(0)


class IndexPass(Pass):
    """A pass given by a stream of row numbers."""

    instant = True

    def __init__(self, rows: Rows, stream: Stream) -> None:
        self.rows = rows
        self.stream = stream
        self.fresh = False
        self._row = rows.row
        self._ahead: Any = range(0)
        self._used = 0
        self._next_number: Any = iter(()).__next__

    def __next__(self) -> Element:
        try:
            i: int = self._next_number()
        except StopIteration:
            self._ahead = ahead = self.stream.more(MAX_AHEAD)
            self._used = 0
            self._next_number = iter(ahead if type(ahead) is range else ahead.tolist()).__next__
            i = self._next_number()
        self._used += 1
        return self._row(i)

    def numbers(self, n: int) -> Numbers:
        """Exactly the next n row numbers, fewer at the end."""
        got = self._take_ahead(n) if self._used < len(self._ahead) else self.stream.more(n)
        if len(got) == n:
            return got
        parts, have = [got], len(got)
        while have < n:
            got = self.stream.more(n - have)
            if not len(got):
                break
            parts.append(got)
            have += len(got)
        parts = [p for p in parts if len(p)]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate([np.asarray(p, np.int64) for p in parts]) if parts else range(0)

    def _take_ahead(self, n: int) -> Numbers:
        """Numbers that were asked for ahead come first."""
        got = self._ahead[self._used : self._used + n]
        self._used += len(got)
        left = self._ahead[self._used :]
        self._next_number = iter(left if type(left) is range else left.tolist()).__next__
        return got

    def many(self, n: int) -> list[Element]:
        numbers = self.numbers(n)
        return list(zip(*self.rows.columns(numbers))) if len(numbers) else []

    def block(self, n: int) -> Element:
        numbers = self.numbers(n)
        if not len(numbers):
            raise StopIteration
        return self.rows.take(numbers)
