"""Stages that pass elements on as they are.

Take, skip, shard, repeat, concatenate, zip, and a few more.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from headrace import errors
from headrace.data.runtime.indexed import (
    ArrayRows,
    IndexPass,
    PartRows,
    Repeated,
    Sharded,
    Skipped,
    Span,
    Stream,
    Taken,
    ZipRows,
)
from headrace.data.runtime.sources import ListPass
from headrace.data.runtime.stages import (
    INFINITE,
    UNKNOWN,
    Context,
    Element,
    Pass,
    Stage,
    block_of,
    counted,
    unmeasured,
)

__all__ = [
    "AssertCardinalityStage",
    "ConcatenateStage",
    "DirectedInterleaveStage",
    "IgnoreErrorsStage",
    "RepeatStage",
    "ShardStage",
    "SkipStage",
    "TakeStage",
    "UniqueStage",
    "ZipStage",
]

_log = logging.getLogger("tensorflow")


class OnePass(Pass):
    """A pass over one source."""

    def __init__(self, source: Pass) -> None:
        self.source = source
        self.fresh = source.fresh
        self.live = source.live

    def close(self) -> None:
        self.source.close()


class TakeStage(Stage):
    def __init__(self, source: Stage, count: int) -> None:
        self.inputs = (source,)
        self.count = count

    def start(self, ctx: Context) -> Pass:
        source = ctx.start(self.inputs[0])
        if self.count < 0:
            return source
        plain = unmeasured(source)
        if isinstance(plain, IndexPass):
            return IndexPass(plain.rows, Taken(plain.stream, self.count))
        return TakePass(source, self.count)

    def cardinality(self) -> int:
        return counted(self.count, self.inputs[0].cardinality())

    def rows(self) -> Any:
        whole = self.inputs[0].rows()
        if whole is None or self.count < 0:
            return whole
        return PartRows(whole, range(len(whole))[: self.count])


class TakePass(OnePass):
    def __init__(self, source: Pass, count: int) -> None:
        super().__init__(source)
        self.left = count
        if source.block is not None:
            self.block = self._block

    def __next__(self) -> Element:
        if self.left <= 0:
            raise StopIteration
        self.left -= 1
        return next(self.source)

    def _block(self, n: int) -> Element:
        if self.left <= 0:
            raise StopIteration
        try:
            got = block_of(self.source)(min(n, self.left))
        except StopIteration:
            raise
        except Exception:
            self.left -= 1  # an element that failed is one of them
            raise
        self.left -= len(got[0])
        return got


class SkipStage(Stage):
    def __init__(self, source: Stage, count: int) -> None:
        self.inputs = (source,)
        self.count = count

    def start(self, ctx: Context) -> Pass:
        if self.count < 0:
            return ListPass(())
        source = ctx.start(self.inputs[0])
        plain = unmeasured(source)
        if isinstance(plain, IndexPass):
            return IndexPass(plain.rows, Skipped(plain.stream, self.count))
        return SkipPass(source, self.count) if self.count else source

    def cardinality(self) -> int:
        n = self.inputs[0].cardinality()
        if self.count < 0:
            return 0
        return n if n < 0 else max(0, n - self.count)

    def rows(self) -> Any:
        whole = self.inputs[0].rows()
        if whole is None:
            return None
        return PartRows(whole, range(len(whole))[self.count :] if self.count >= 0 else range(0))


class SkipPass(OnePass):
    def __init__(self, source: Pass, count: int) -> None:
        super().__init__(source)
        self.left = count

    def __next__(self) -> Element:
        while self.left:
            next(self.source)
            self.left -= 1
        return next(self.source)


def check_shard(shards: int, index: int) -> None:
    if shards < 1:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"Number of shards must be greater than zero (currently num_shards = {shards}).",
        )
    if not 0 <= index < shards:
        raise errors.InvalidArgumentError(
            None, None, f"Index must be between 0 and {shards - 1} (currently index = {index})."
        )


class ShardStage(Stage):
    def __init__(self, source: Stage, shards: int, index: int) -> None:
        check_shard(shards, index)
        self.inputs = (source,)
        self.shards = shards
        self.index = index

    def start(self, ctx: Context) -> Pass:
        source = ctx.start(self.inputs[0])
        plain = unmeasured(source)
        if isinstance(plain, IndexPass):
            return IndexPass(plain.rows, Sharded(plain.stream, self.shards, self.index))
        return ShardPass(source, self.shards, self.index)

    def cardinality(self) -> int:
        n = self.inputs[0].cardinality()
        return n if n < 0 else n // self.shards + (self.index < n % self.shards)

    def rows(self) -> Any:
        whole = self.inputs[0].rows()
        return (
            None if whole is None else PartRows(whole, range(len(whole))[self.index :: self.shards])
        )


class ShardPass(OnePass):
    def __init__(self, source: Pass, shards: int, index: int) -> None:
        super().__init__(source)
        self.shards = shards
        self.left = index  # elements of other shards before our next one

    def __next__(self) -> Element:
        while self.left:
            next(self.source)
            self.left -= 1
        element = next(self.source)
        self.left = self.shards - 1
        return element


class RepeatStage(Stage):
    def __init__(self, source: Stage, count: int) -> None:
        self.inputs = (source,)
        self.count = count

    def start(self, ctx: Context) -> Pass:
        if not self.count:
            return ListPass(())
        first = ctx.start(self.inputs[0])
        plain = unmeasured(first)
        if not isinstance(plain, IndexPass):
            return RepeatPass(ctx, self.inputs[0], first, self.count)
        ready = [plain]

        def start() -> Stream:
            a_pass = ready.pop() if ready else unmeasured(ctx.start(self.inputs[0]))
            assert isinstance(a_pass, IndexPass)
            return a_pass.stream

        stream = Repeated(start, self.count)
        stream.gathers = plain.stream.gathers
        return IndexPass(plain.rows, stream)

    def cardinality(self) -> int:
        n = self.inputs[0].cardinality()
        if not self.count or not n:
            return 0
        if self.count < 0:
            return INFINITE
        return n if n < 0 else n * self.count


class RepeatPass(OnePass):
    def __init__(self, ctx: Context, stage: Stage, first: Pass, count: int) -> None:
        super().__init__(first)
        self.ctx = ctx
        self.stage = stage
        self.left = count
        self.empty = True
        if first.block is not None:
            self.block = self._block

    def __next__(self) -> Element:
        while self.left:
            for element in self.source:
                self.empty = False
                return element
            self._again()
        raise StopIteration

    def _block(self, n: int) -> Element:
        while self.left:
            try:
                got = block_of(self.source)(n)
            except StopIteration:
                self._again()
                continue
            self.empty = False
            return got
        raise StopIteration

    def _again(self) -> None:
        self.source.close()
        self.left -= 1
        if self.left < 0 and self.empty:
            self.left = 0  # an empty dataset repeated forever is empty
        self.empty = True
        if self.left:
            self.source = self.ctx.start(self.stage)


class ConcatenateStage(Stage):
    def __init__(self, parts: Sequence[Stage]) -> None:
        self.inputs = tuple(parts)

    def start(self, ctx: Context) -> Pass:
        return ConcatenatePass(ctx, self.inputs)

    def cardinality(self) -> int:
        sizes = [s.cardinality() for s in self.inputs]
        if INFINITE in sizes:
            return INFINITE
        return UNKNOWN if UNKNOWN in sizes else sum(sizes)


class ConcatenatePass(OnePass):
    def __init__(self, ctx: Context, stages: Sequence[Stage]) -> None:
        super().__init__(ctx.start(stages[0]))
        self.ctx = ctx
        self.rest = list(stages[:0:-1])
        self.fresh = False

    def __next__(self) -> Element:
        while True:
            for element in self.source:
                return element
            if not self.rest:
                raise StopIteration
            self.source.close()
            self.source = self.ctx.start(self.rest.pop())


class ZipStage(Stage):
    def __init__(self, parts: Sequence[Stage]) -> None:
        self.inputs = tuple(parts)

    def start(self, ctx: Context) -> Pass:
        rows = self.rows()
        if rows is not None:
            return IndexPass(rows, Span(range(len(rows))))
        return ZipPass([ctx.start(s) for s in self.inputs])

    def cardinality(self) -> int:
        sizes = [s.cardinality() for s in self.inputs]
        if UNKNOWN in sizes:
            return UNKNOWN
        return min((n for n in sizes if n >= 0), default=INFINITE)

    def rows(self) -> Any:
        parts = [s.rows() for s in self.inputs]
        return None if any(p is None for p in parts) else ZipRows(parts)


class ZipPass(Pass):
    def __init__(self, parts: list[Pass]) -> None:
        self.parts = parts
        self.fresh = all(p.fresh for p in parts)
        self._left: list[Element | None] = [None] * len(parts)  # rows for which others had none yet
        if all(p.block is not None and not p.live for p in parts):
            self.block = self._block

    def __next__(self) -> Element:
        if any(left is not None for left in self._left):
            return ArrayRows(self._block(1)).row(0)
        out: list[Any] = []
        failed: Exception | None = None
        for part in self.parts:  # each moves on even if another fails, so that they stay in step
            try:
                out += next(part)
            except StopIteration:
                raise
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return tuple(out)

    def _block(self, n: int) -> Element:
        failed: Exception | None = None
        for i, part in enumerate(self.parts):
            if self._left[i] is None:
                try:
                    self._left[i] = block_of(part)(n)
                except StopIteration:
                    raise
                except Exception as error:  # its element is not there: the others' are passed over
                    failed = failed or error
                    n = 1
        rows = min(n, *[len(left[0]) for left in self._left if left is not None], n)
        got = [self._cut(i, rows) for i in range(len(self.parts))]
        if failed is not None:
            raise failed
        return tuple([c for part in got for c in part])

    def _cut(self, i: int, rows: int) -> Element:
        left = self._left[i]
        if left is None:
            return ()
        self._left[i] = tuple([c[rows:] for c in left]) if len(left[0]) > rows else None
        return tuple([c[:rows] for c in left])

    def close(self) -> None:
        for part in self.parts:
            part.close()


def exactly(source: Pass, n: int) -> Element:
    """n elements stacked, fewer only at the end of the source (where there may be none.

    StopIteration).
    """
    assert source.block is not None
    got = source.block(n)
    have = len(got[0])
    if have == n:
        return got
    parts = [got]
    while have < n:
        try:
            got = source.block(n - have)
        except StopIteration:
            break
        have += len(got[0])
        parts.append(got)
    if len(parts) == 1:
        return parts[0]
    from headrace.data.runtime.stacking import concatenate

    return tuple([concatenate(c, i) for i, c in enumerate(zip(*parts))])


class DirectedInterleaveStage(Stage):
    """Elements of several datasets in the order that a selector gives.

    An empty one is passed over, or is the end.
    """

    def __init__(
        self, selector: Stage, parts: Sequence[Stage], stop_on_empty: bool = False
    ) -> None:
        self.inputs = (selector, *parts)
        self.stop_on_empty = stop_on_empty

    def start(self, ctx: Context) -> Pass:
        selector, *parts = [ctx.start(s) for s in self.inputs]
        return DirectedInterleavePass(selector, parts, self.stop_on_empty)

    def cardinality(self) -> int:
        sizes = [s.cardinality() for s in self.inputs[1:]]
        return INFINITE if all(n == INFINITE for n in sizes) else UNKNOWN


class DirectedInterleavePass(Pass):
    def __init__(self, selector: Pass, parts: Sequence[Pass], stop_on_empty: bool) -> None:
        self.selector = selector
        self.parts: list[Pass | None] = list(parts)
        self.stop_on_empty = stop_on_empty
        self.open = len(parts)

    def __next__(self) -> Element:
        while self.open:
            which = int(next(self.selector)[0])
            if not 0 <= which < len(self.parts):
                raise errors.InvalidArgumentError(
                    None, None, f"Selector index out of range: {which} >= {len(self.parts)}"
                )
            part = self.parts[which]
            if part is None:
                continue
            for element in part:
                return element
            part.close()
            self.parts[which] = None
            self.open = 0 if self.stop_on_empty else self.open - 1
        raise StopIteration

    def close(self) -> None:
        self.selector.close()
        for part in self.parts:
            if part is not None:
                part.close()


class UniqueStage(Stage):
    """Each value once."""

    def __init__(self, source: Stage) -> None:
        self.inputs = (source,)

    def start(self, ctx: Context) -> Pass:
        return UniquePass(ctx.start(self.inputs[0]))


class UniquePass(OnePass):
    def __init__(self, source: Pass) -> None:
        super().__init__(source)
        self.seen: set[Any] = set()

    def __next__(self) -> Element:
        while True:
            element = next(self.source)
            key = element[0].item() if not element[0].ndim else element[0].tobytes()
            if key not in self.seen:
                self.seen.add(key)
                return element


class IgnoreErrorsStage(Stage):
    """Elements that fail are left out; their errors are logged if ``log_warning`` says so."""

    def __init__(self, source: Stage, log_warning: bool = False) -> None:
        self.inputs = (source,)
        self.log_warning = log_warning

    def start(self, ctx: Context) -> Pass:
        return IgnoreErrorsPass(ctx.start(self.inputs[0]), self.log_warning)


class IgnoreErrorsPass(OnePass):
    def __init__(self, source: Pass, log_warning: bool) -> None:
        super().__init__(source)
        self.log_warning = log_warning

    def __next__(self) -> Element:
        while True:
            try:
                return next(self.source)
            except errors.OpError as error:
                if self.log_warning:
                    _log.warning("Error raised with error message %s", error.message)


class AssertCardinalityStage(Stage):
    """An error at the end if there were fewer elements than was said, and at the first that is too
    many.
    """

    def __init__(self, source: Stage, expected: int) -> None:
        self.inputs = (source,)
        self.expected = expected

    def start(self, ctx: Context) -> Pass:
        return AssertCardinalityPass(ctx.start(self.inputs[0]), self.expected)

    def cardinality(self) -> int:
        return self.expected


class AssertCardinalityPass(OnePass):
    def __init__(self, source: Pass, expected: int) -> None:
        super().__init__(source)
        self.expected = expected
        self.seen = 0

    def __next__(self) -> Element:
        for element in self.source:
            self.seen += 1
            if 0 <= self.expected < self.seen:
                raise self._wrong(f"at least {self.seen} elements")
            return element
        if self.expected not in (self.seen, UNKNOWN):
            raise self._wrong(f"only {self.seen} element{'' if self.seen == 1 else 's'}")
        raise StopIteration

    def _wrong(self, found: str) -> errors.FailedPreconditionError:
        plural = "" if self.expected == 1 else "s"
        wanted = (
            "an infinite number of elements"
            if self.expected == INFINITE
            else f"{self.expected} element{plural}"
        )
        return errors.FailedPreconditionError(
            None, None, f"Input dataset was expected to contain {wanted} but contained {found}."
        )
