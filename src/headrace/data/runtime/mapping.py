"""Stages that call a function for each element: map, filter, flat_map, interleave, scan,
take_while, grouping, reduce.

A function takes the arrays of an element and returns a tuple of arrays; a function that makes a
dataset returns a tuple with its stage.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice, starmap
from typing import Any

import numpy as np

from headrace import errors
from headrace.data.runtime.batching import ElementsStage
from headrace.data.runtime.block_functions import (
    BlockFunction,
    Failure,
    pulled,
    rows_of,
    stacked,
    taken_block,
)
from headrace.data.runtime.simple_stages import OnePass
from headrace.data.runtime.stages import Context, Element, Pass, Stage

__all__ = [
    "FilterStage",
    "FlatMapStage",
    "GroupByReducerStage",
    "GroupByWindowStage",
    "InterleaveStage",
    "MapStage",
    "ScanStage",
    "TakeWhileStage",
]

Function = Callable[..., Element]


def cardinality_kept(error: errors.OutOfRangeError) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(
        None,
        error._op,
        f"Function invocation produced OutOfRangeError: {error.message}. A mapped "
        "function may not end its dataset.",
    )


class MapStage(Stage):
    """``preserve``: the function may not end the dataset with an OutOfRangeError; ``batches`` gives
    the function on blocks of elements, or None; ``live``: the function is the user's code.
    """

    def __init__(
        self,
        source: Stage,
        function: Function,
        preserve: bool,
        batches: Callable[[], BlockFunction | None] = lambda: None,
        live: bool = False,
    ) -> None:
        self.inputs = (source,)
        self.function = function
        self.preserve = preserve
        self.batches = batches
        self.live = live

    def start(self, ctx: Context) -> Pass:
        made = self._pass(ctx.start(self.inputs[0]))
        made.live = made.live or self.live
        return made

    def _pass(self, source: Pass) -> Pass:
        if source.instant and hasattr(self.function, "fill"):
            return RowsMapPass(source, self.function, self.preserve)
        on_block = self.batches()
        if on_block is None or (source.live and not (on_block.sure and source.block)):
            return MapPass(source, self.function, self.preserve)
        return BatchMapPass(source, self.function, on_block)

    def cardinality(self) -> int:
        return self.inputs[0].cardinality()


class MapPass(OnePass):
    def __init__(self, source: Pass, function: Function, preserve: bool) -> None:
        super().__init__(source)
        self.fresh = True
        self.function = function
        self.preserve = preserve
        self._pull = source.__next__
        self._pending: deque[Any] = deque()  # read ahead when a call failed

    def __next__(self) -> Element:
        element = self._pending.popleft() if self._pending else self._pull()
        try:
            return self.function(*element)
        except errors.OutOfRangeError as error:
            if self.preserve:
                raise cardinality_kept(error) from error
            raise StopIteration from None

    def many(self, n: int) -> list[Element]:
        if self._pending or not self.source.instant:
            return list(islice(self, n))
        elements = self.source.many(n)
        out: list[Element] = []
        try:
            out.extend(
                starmap(self.function, elements)
            )  # what was computed before an error is in it
        except errors.OutOfRangeError as error:
            self._pending.extend(elements[len(out) + 1 :])
            if self.preserve:
                raise cardinality_kept(error) from error
        except BaseException:
            self._pending.extend(elements[len(out) + 1 :])
            raise
        return out


class BatchMapPass(MapPass):
    """With a function that is the same on a block of elements.

    No more elements are read than were asked for.
    """

    def __init__(self, source: Pass, function: Function, on_block: BlockFunction) -> None:
        super().__init__(source, function, True)
        self.on_block = on_block
        self._done: deque[Any] = deque()  # results that were found one by one, and errors

    def __next__(self) -> Element:
        waiting = self._done or self._pending
        if waiting and type(waiting[0]) is Failure:
            raise waiting.popleft().error
        return self._done.popleft() if self._done else super().__next__()

    def block(self, n: int) -> Element:
        if not self._done and not self._pending:
            rows = self._pulled(n)
            found = None if rows is None else self.on_block(rows)
            if found is not None:
                return found
            if rows is not None:
                self._pending.extend(rows_of(rows))
        self._one_by_one(n)
        return taken_block(self._done, n)

    def _pulled(self, n: int) -> Element | None:
        """The next elements stacked.

        None if they are in ``_pending``, because they cannot be stacked or one is an error.
        """
        if self.source.block is not None:
            return self.source.block(n)
        elements = pulled(self.source, n)
        if not elements:
            raise StopIteration
        rows = None if type(elements[-1]) is Failure else stacked(elements)
        if rows is None:
            self._pending.extend(elements)
        return rows

    def _one_by_one(self, n: int) -> None:
        """Calls for the elements that were read, up to the first error."""
        done = self._done
        while self._pending and len(done) < n and not (done and type(done[-1]) is Failure):
            element = self._pending.popleft()
            try:
                done.append(element if type(element) is Failure else self.function(*element))
            except Exception as error:
                done.append(Failure(error))

    def many(self, n: int) -> list[Element]:
        if self.on_block.given_up or self.source.live:
            return list(islice(self, n))
        out: list[Element] = []
        while len(out) < n:
            try:
                out += rows_of(self.block(n - len(out)))
            except StopIteration:
                break
        return out


class RowsMapPass(MapPass):
    """Of a Python function with results of one shape.

    Each goes into its row of a block (data/functions/direct.py).
    """

    def __init__(self, source: Pass, function: Function, preserve: bool) -> None:
        super().__init__(source, function, preserve)
        self._fill: Callable[..., tuple[int, Any]] = function.fill  # type: ignore[attr-defined]
        self._row = function.row  # type: ignore[attr-defined]
        self._other: Any = None  # an element or error that is no row

    def __next__(self) -> Element:
        return super().__next__() if self._other is None else self._given()

    def _given(self) -> Element:
        other, self._other = self._other, None
        if type(other) is tuple:
            return other
        if not isinstance(other, errors.OutOfRangeError):
            raise other
        if self.preserve:
            raise cardinality_kept(other) from other
        raise StopIteration

    def block(self, n: int) -> Element:
        if self._other is None:
            if not self._pending:
                self._pending.extend(self.source.many(n))
            if not self._pending:
                raise StopIteration
            shape, dtype = self._row
            rows = np.empty((min(n, len(self._pending)), *shape), dtype)
            count, self._other = self._fill(self._pending, rows)
            if count:
                return (rows[:count],)
        return tuple([np.asarray(part)[None] for part in self._given()])

    def many(self, n: int) -> list[Element]:
        if self._other is not None:
            return [self._given(), *super().many(n - 1)]
        return super().many(n)


class FilterStage(Stage):
    def __init__(self, source: Stage, predicate: Function) -> None:
        self.inputs = (source,)
        self.predicate = predicate

    def start(self, ctx: Context) -> Pass:
        return FilterPass(ctx.start(self.inputs[0]), self.predicate)


class FilterPass(OnePass):
    def __init__(self, source: Pass, predicate: Function) -> None:
        super().__init__(source)
        self.predicate = predicate

    def __next__(self) -> Element:
        predicate = self.predicate
        for element in self.source:
            if predicate(*element)[0]:
                return element
        raise StopIteration


class TakeWhileStage(Stage):
    def __init__(self, source: Stage, predicate: Function) -> None:
        self.inputs = (source,)
        self.predicate = predicate

    def start(self, ctx: Context) -> Pass:
        return TakeWhilePass(ctx.start(self.inputs[0]), self.predicate)


class TakeWhilePass(FilterPass):
    ended = False

    def __next__(self) -> Element:
        if not self.ended:
            for element in self.source:
                if self.predicate(*element)[0]:
                    return element
                break
            self.ended = True
        raise StopIteration


class FlatMapStage(Stage):
    """``live``: the datasets that the function makes may be."""

    def __init__(self, source: Stage, function: Function, live: bool = True) -> None:
        self.inputs = (source,)
        self.function = function
        self.live = live

    def start(self, ctx: Context) -> Pass:
        return FlatMapPass(ctx, ctx.start(self.inputs[0]), self.function, self.live)


class FlatMapPass(OnePass):
    def __init__(self, ctx: Context, source: Pass, function: Function, live: bool) -> None:
        super().__init__(source)
        self.fresh = False
        self.live = live or source.live
        self.ctx = ctx
        self.function = function
        self.current: Pass | None = None
        #: Elements that did not fit into a block, and an error.
        self._read: deque[Element | Failure] = deque()

    def __next__(self) -> Element:
        if self._read:
            item = self._read.popleft()
            if isinstance(item, Failure):
                raise item.error
            return item
        while True:
            for element in self._dataset():
                return element
            self._ended()

    def _dataset(self) -> Pass:
        """The dataset that is read now; StopIteration when there is no further one."""
        if self.current is None:
            self.current = self.ctx.start(self.function(*next(self.source))[0])
        return self.current

    def _ended(self) -> None:
        if self.current is not None:
            self.current.close()
            self.current = None

    def many(self, n: int) -> list[Element]:
        out: list[Element] = []
        while self._read and len(out) < n:
            out.append(next(self))
        while len(out) < n:
            try:
                got = self._dataset().many(n - len(out))
            except StopIteration:
                break
            out += got
            if len(out) < n:
                self._ended()
        return out

    def block(self, n: int) -> Element:
        while not self._read:
            dataset = self._dataset()
            if dataset.block is None:
                self._read.extend(pulled(dataset, n))
            else:
                with contextlib.suppress(StopIteration):
                    return dataset.block(n)
            if not self._read:
                self._ended()
        return taken_block(self._read, n)

    def close(self) -> None:
        self.source.close()
        self._ended()


class InterleaveStage(Stage):
    """``open_element`` makes a pass of an element's dataset.

    The parallel form puts a thread behind it.
    """

    def __init__(
        self, source: Stage, function: Function, cycle_length: int, block_length: int
    ) -> None:
        for name, value in (("cycle_length", cycle_length), ("block_length", block_length)):
            if value <= 0:
                raise errors.InvalidArgumentError(None, None, f"{name} must be greater than zero.")
        self.inputs = (source,)
        self.function = function
        self.cycle_length = cycle_length
        self.block_length = block_length

    def start(self, ctx: Context) -> Pass:
        return InterleavePass(self, ctx.start(self.inputs[0]), self.opener(ctx))

    def opener(self, ctx: Context) -> Callable[[Element], Pass]:
        function = self.function
        return lambda element: ctx.start(function(*element)[0])


class InterleavePass(OnePass):
    """TensorFlow's order.

    A place in the cycle keeps its dataset until that ends, then takes the next input.
    """

    def __init__(
        self, stage: InterleaveStage, source: Pass, opener: Callable[[Element], Pass]
    ) -> None:
        super().__init__(source)
        self.fresh = False
        self.opener = opener
        self.cycle: list[Pass | None] = [None] * stage.cycle_length
        self.block_length = stage.block_length
        self.at = 0
        self.taken = 0
        self.open = 0
        self.ended = False

    def __next__(self) -> Element:
        while not self.ended or self.open:
            current = self.cycle[self.at]
            if current is not None:
                for element in current:
                    self.taken += 1
                    if self.taken == self.block_length:
                        self._advance()
                    return element
                current.close()
                self.cycle[self.at] = None
                self.open -= 1
                self._advance()
            elif not self.ended:
                self._open()
            else:
                self._advance()
        raise StopIteration

    def _open(self) -> None:
        for element in self.source:
            self.cycle[self.at] = self.opener(element)
            self.open += 1
            return
        self.ended = True

    def _advance(self) -> None:
        self.taken = 0
        self.at = (self.at + 1) % len(self.cycle)

    def close(self) -> None:
        self.source.close()
        for part in self.cycle:
            if part is not None:
                part.close()


class ScanStage(Stage):
    """``function(*state, *element)`` returns the new state and the output."""

    def __init__(self, source: Stage, initial: Sequence[Any], function: Function) -> None:
        self.inputs = (source,)
        self.initial = tuple(initial)
        self.function = function

    def start(self, ctx: Context) -> Pass:
        return ScanPass(ctx.start(self.inputs[0]), self)

    def cardinality(self) -> int:
        return self.inputs[0].cardinality()


class ScanPass(OnePass):
    def __init__(self, source: Pass, stage: ScanStage) -> None:
        super().__init__(source)
        self.fresh = True
        self.state = stage.initial
        self.function = stage.function

    def __next__(self) -> Element:
        element = next(self.source)
        try:
            results = self.function(*self.state, *element)
        except errors.OutOfRangeError:
            raise StopIteration from None
        n = len(self.state)
        self.state = results[:n]
        return results[n:]


class GroupByWindowStage(Stage):
    """Elements by key; a full group, or what is left at the end, becomes a dataset by
    ``reduce``.
    """

    def __init__(self, source: Stage, key: Function, reduce: Function, window: Function) -> None:
        self.inputs = (source,)
        self.key = key
        self.reduce = reduce
        self.window = window

    def start(self, ctx: Context) -> Pass:
        return GroupByWindowPass(ctx, ctx.start(self.inputs[0]), self)


class GroupByWindowPass(OnePass):
    def __init__(self, ctx: Context, source: Pass, stage: GroupByWindowStage) -> None:
        super().__init__(source)
        self.fresh = False
        self.ctx = ctx
        self.stage = stage
        self.groups: dict[int, list[Element]] = {}
        self.sizes: dict[int, int] = {}
        self.current: Pass | None = None
        self.ended = False

    def __next__(self) -> Element:
        while True:
            if self.current is not None:
                for element in self.current:
                    return element
                self.current.close()
                self.current = None
            key = self._full_group()
            self.current = self._reduced(key)

    def _full_group(self) -> Any:
        """Read on until a group is full.

        At the end the groups that are left come in the order of their keys.
        """
        for element in () if self.ended else self.source:
            key = self.stage.key(*element)[0]
            number = int(key)
            group = self.groups.setdefault(number, [])
            group.append(element)
            if len(group) == self._size(number, key):
                return key
        self.ended = True
        if not self.groups:
            raise StopIteration
        return min(self.groups)

    def _size(self, number: int, key: np.generic) -> int:
        found = self.sizes.get(number)
        if found is None:
            found = self.sizes[number] = int(self.stage.window(key)[0])
            if found <= 0:
                raise errors.InvalidArgumentError(
                    None, None, f"Window size must be greater than zero, but got {found}."
                )
        return found

    def _reduced(self, key: int | np.generic) -> Pass:
        elements = self.groups.pop(int(key))
        made = self.stage.reduce(np.int64(key), ElementsStage(elements))[0]
        return self.ctx.start(made)

    def close(self) -> None:
        self.source.close()
        if self.current is not None:
            self.current.close()


class GroupByReducerStage(Stage):
    """Elements by key, each group reduced to one element.

    The groups come at the end, in the order of their keys.
    """

    def __init__(
        self, source: Stage, key: Function, init: Function, reduce: Function, finalize: Function
    ) -> None:
        self.inputs = (source,)
        self.key = key
        self.init = init
        self.reduce = reduce
        self.finalize = finalize

    def start(self, ctx: Context) -> Pass:
        return GroupByReducerPass(ctx.start(self.inputs[0]), self)


class GroupByReducerPass(OnePass):
    def __init__(self, source: Pass, stage: GroupByReducerStage) -> None:
        super().__init__(source)
        self.fresh = True
        self.stage = stage
        self.states: dict[int, Element] = {}
        self.keys: Any = None

    def __next__(self) -> Element:
        if self.keys is None:
            for element in self.source:
                self._add(element)
            self.keys = iter(sorted(self.states))
        return self.stage.finalize(*self.states.pop(next(self.keys)))

    def _add(self, element: Element) -> None:
        key = self.stage.key(*element)[0]
        number = int(key)
        state = self.states.get(number)
        if state is None:
            state = self.stage.init(key)
        self.states[number] = self.stage.reduce(*state, *element)
