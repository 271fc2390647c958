"""Shuffling, in TensorFlow's order.

TensorFlow keeps a ring of ``buffer_size`` elements, fills it, draws one of those that are left with
a random word modulo their number, and moves the first element into the gap. With the same seeds the
same order results. Repeating may be part of it (``shuffle_and_repeat``): the ring then holds
elements of the next round while the current one is drawn from, but a draw only ever takes from the
oldest round.

Over rows the ring holds row numbers, so that a batch is gathered at once (:class:`Shuffled`); any
other source goes element by element (:class:`ShufflePass`). Both give the same order.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from headrace import errors
from headrace.data.runtime.indexed import IndexPass, Numbers, Stream
from headrace.data.runtime.random_words import SeedGenerator, Words, seeds_or_any
from headrace.data.runtime.stages import (
    INFINITE,
    UNKNOWN,
    Context,
    Element,
    Pass,
    Stage,
    unmeasured,
)

__all__ = ["ShuffleAndRepeatStage", "ShuffleStage"]

#: Row numbers taken from the source at once while the ring is filled.
CHUNK = 65536


#: Elements of so many rounds and one more are in the ring at most, as in TensorFlow: a ring with
#: room for millions of rounds is not filled.
MAX_ROUNDS = 3


class Rounds:
    """The rounds (epochs) that a shuffle reads, and how many elements of each are in the ring."""

    def __init__(self, start: Callable[[], Any], count: int) -> None:
        self.start = start
        self.left = count  # further rounds to begin; negative: no end
        self.current: Any = None
        self.sizes: deque[int] = deque()  # of the rounds in the ring, oldest first
        self.got_any = True

    def begin(self) -> bool:
        """Start the next round.

        False if there is none (or the source is empty, however often repeated).
        """
        if not self.left or not self.got_any:
            self.current = None
            return False
        self.left -= 1
        self.current = self.start()
        self.sizes.append(0)
        self.got_any = self.left >= 0  # an endless repetition of nothing must end
        return True

    def front(self) -> int:
        """The size of the oldest round in the ring."""
        sizes = self.sizes
        while len(sizes) > 1 and not sizes[0]:
            sizes.popleft()
        return sizes[0] if sizes else 0


class Shuffled(Stream):
    """Row numbers in shuffled order."""

    gathers = True

    def __init__(
        self, start: Callable[[], Stream], count: int, buffer_size: int, words: Words
    ) -> None:
        self.rounds = Rounds(start, count)
        self.size = buffer_size
        self.words = words
        self.ring: list[Any] = []
        self.first = 0  # slot of the oldest element
        self.filling = True

    def more(self, n: int) -> Numbers:
        if self.filling:
            self._fill()
        incoming = self._incoming(n)
        if incoming is None:
            return self._drain(n)
        return self._exchange(incoming)

    def _fill(self) -> None:
        """All but one place of the ring; with the next element it is full."""
        self.rounds.begin()
        while len(self.ring) < self.size - 1:
            got = self._incoming(min(self.size - 1 - len(self.ring), CHUNK))
            if got is None:
                break
            self.ring += got
            self.rounds.sizes[-1] += len(got)
        else:
            self.ring.append(None)
        self.filling = False

    def _incoming(self, n: int) -> list[int] | None:
        """Up to n further numbers of one round; None when the last round is over."""
        rounds = self.rounds
        while rounds.current is not None:
            front = rounds.front()
            # (what is drawn before the oldest round is used up, at most)
            limit = min(n, front) if len(rounds.sizes) > 1 and not self.filling else n
            got = rounds.current.more(limit)
            if len(got):
                rounds.got_any = True
                return list(got) if type(got) is range else got.tolist()
            rounds.begin()
        return None

    def _exchange(self, incoming: list[int]) -> Numbers:
        """One drawn for each that comes in: the ring stays full."""
        sizes = self.rounds.sizes
        front = self.rounds.front()
        n = len(incoming)
        random = self.words.take(n).astype(np.int64)
        if len(sizes) == 1:
            steps = random % (front + 1)
        else:
            steps = random % np.arange(front, front - n, -1)
            sizes[0] -= n
            sizes[-1] += n
        return self._draw(incoming, steps.tolist())

    def _draw(self, incoming: list[int], steps: list[int]) -> Numbers:
        ring, first, size = self.ring, self.first, self.size
        out = []
        for new, step in zip(incoming, steps):
            ring[first - 1] = new
            at = first + step
            if at >= size:
                at -= size
            out.append(ring[at])
            ring[at] = ring[first]
            first += 1
            if first == size:
                first = 0
        self.first = first
        return np.array(out, np.int64)

    def _drain(self, n: int) -> Numbers:
        """Nothing comes in any more."""
        front = self.rounds.front()
        n = min(n, front)
        if not n:
            return range(0)
        steps = self.words.take(n).astype(np.int64) % np.arange(front, front - n, -1)
        self.rounds.sizes[0] -= n
        ring, first, size = self.ring, self.first, len(self.ring)
        out = []
        for step in steps.tolist():
            at = first + step
            if at >= size:
                at -= size
            out.append(ring[at])
            ring[at] = ring[first]
            first += 1
            if first == size:
                first = 0
        self.first = first
        return np.array(out, np.int64)


class ShufflePass(Pass):
    """Elements in shuffled order, one by one."""

    def __init__(
        self, start: Callable[[], Pass], fresh: bool, count: int, buffer_size: int, words: Words
    ) -> None:
        self.rounds = Rounds(start, count)
        self.rounds.begin()
        self.fresh = fresh
        self.size = buffer_size
        self.words = words
        self.ring: list[Any] = []
        self.first = 0
        self.count = 0
        self.random: Iterator[int] = iter(())

    def __next__(self) -> Element:
        rounds = self.rounds
        while rounds.current is not None and self.count < self.size:
            try:
                new = next(rounds.current)
            except StopIteration:
                rounds.current.close()
                rounds.begin()
                continue
            rounds.got_any = True
            self._add(new)
            rounds.sizes[-1] += 1
            if len(rounds.sizes) > MAX_ROUNDS:
                break
        if not self.count:
            raise StopIteration
        return self._draw(rounds.front())

    def _add(self, new: Element) -> None:
        """Behind the newest element; a ring that is full grows to twice its size."""
        n = len(self.ring)
        if self.count == n:
            more = max(64, n)
            self.ring = [*self.ring[self.first :], *self.ring[: self.first], *[None] * more]
            self.first, n = 0, n + more
        self.ring[(self.first + self.count) % n] = new
        self.count += 1

    def _draw(self, front: int) -> Element:
        ring, first = self.ring, self.first
        at = (first + self._word() % front) % len(ring)
        out: Element = ring[at]
        ring[at] = ring[first]
        ring[first] = None
        self.first = (first + 1) % len(ring)
        self.count -= 1
        self.rounds.sizes[0] -= 1
        return out

    def _word(self) -> int:
        for word in self.random:
            return word
        self.random = iter(self.words.take(256).tolist())
        return next(self.random)

    def close(self) -> None:
        if self.rounds.current is not None:
            self.rounds.current.close()


def _shuffled(source: Stage, ctx: Context, count: int, size: int, words: Words) -> Pass:
    ready = [ctx.start(source)]  # the first round is begun here, to see what kind of pass it is

    def start() -> Pass:
        return ready.pop() if ready else ctx.start(source)

    first = unmeasured(ready[0])
    if not isinstance(first, IndexPass) or _spans_rounds(source, count, size):
        return ShufflePass(start, first.fresh, count, size, words)

    def stream() -> Stream:
        found = unmeasured(start())
        assert isinstance(found, IndexPass)
        return found.stream

    return IndexPass(first.rows, Shuffled(stream, count, size, words))


def _spans_rounds(source: Stage, count: int, size: int) -> bool:
    """Whether the ring has room for so many rounds that their number is what limits it."""
    n = source.cardinality()
    few = 0 <= count <= MAX_ROUNDS
    return not few and n != INFINITE and (n == UNKNOWN or size > MAX_ROUNDS * n)


def check_buffer_size(buffer_size: int) -> int:
    """The number of elements in the ring.

    An unknown cardinality stands for all elements, as in TensorFlow 2.
    """
    if buffer_size == UNKNOWN:
        return sys.maxsize
    if buffer_size <= 0:
        raise errors.InvalidArgumentError(
            None, None, f"buffer_size must be greater than zero, got {buffer_size}."
        )
    return buffer_size


class ShuffleStage(Stage):
    """``shuffle``: every pass has an order of its own unless ``reshuffle`` is off."""

    def __init__(
        self, source: Stage, buffer_size: int, seed: int, seed2: int, reshuffle: bool
    ) -> None:
        self.inputs = (source,)
        self.buffer_size = check_buffer_size(buffer_size)
        self.seeds = seeds_or_any(seed, seed2)
        self.reshuffle = reshuffle
        self.generator = SeedGenerator(*self.seeds)

    def start(self, ctx: Context) -> Pass:
        seeds = self.seeds
        if self.reshuffle:
            seeds = self._generator(ctx).pair()
        return _shuffled(self.inputs[0], ctx, 1, self.buffer_size, Words(*seeds))

    def _generator(self, ctx: Context) -> SeedGenerator:
        if ctx.generators is None:
            return self.generator
        found = ctx.generators.get(self)
        if found is None:
            found = ctx.generators[self] = SeedGenerator(*self.seeds)
        return found

    def cardinality(self) -> int:
        return self.inputs[0].cardinality()


class ShuffleAndRepeatStage(Stage):
    """``shuffle`` and ``repeat`` in one.

    The ring is filled from the next round before the last is drawn empty.
    """

    def __init__(self, source: Stage, buffer_size: int, seed: int, seed2: int, count: int) -> None:
        self.inputs = (source,)
        self.buffer_size = check_buffer_size(buffer_size)
        self.seeds = seeds_or_any(seed, seed2)
        self.count = count

    def start(self, ctx: Context) -> Pass:
        words = Words(*self.seeds)
        return _shuffled(self.inputs[0], ctx, self.count, self.buffer_size, words)

    def cardinality(self) -> int:
        n = self.inputs[0].cardinality()
        if self.count < 0:
            return INFINITE if n else 0
        return n if n in (INFINITE, UNKNOWN) else n * self.count
