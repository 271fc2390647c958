"""``interleave`` with threads: the datasets of a cycle are read at once, their elements come in the
usual order.

Every dataset of the cycle has a thread that reads ahead, and the next ones are opened before their
turn. ``calls`` bounds how many of the threads read at the same moment. Without determinism a
dataset that has nothing ready is passed over.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from headrace import errors
from headrace.data.runtime.mapping import Function, InterleavePass, InterleaveStage
from headrace.data.runtime.prefetch import AUTOTUNE
from headrace.data.runtime.simple_stages import OnePass
from headrace.data.runtime.stage_threads import ChannelPass
from headrace.data.runtime.stages import Context, Element, Pass, Stage
from headrace.runtime.cores import cpu_count

__all__ = ["ParallelInterleaveStage"]


class ParallelInterleaveStage(InterleaveStage):
    """``ahead``: datasets opened before their turn; ``buffer``: elements read ahead of each."""

    def __init__(
        self,
        source: Stage,
        function: Function,
        cycle_length: int,
        block_length: int,
        calls: int,
        deterministic: bool | None,
        ahead: int = 1,
        buffer: int = 0,
    ) -> None:
        if cycle_length == AUTOTUNE:
            cycle_length = min(max(2, 2 * cpu_count()), 10)
        super().__init__(source, function, cycle_length, block_length)
        if calls != AUTOTUNE and calls <= 0:
            raise errors.InvalidArgumentError(
                None, None, "num_parallel_calls must be greater than zero."
            )
        self.calls = calls if calls != AUTOTUNE else 2 * cpu_count() + 2
        self.deterministic = deterministic
        self.ahead = ahead
        self.buffer = buffer or max(8, 2 * block_length)

    def start(self, ctx: Context) -> Pass:
        ordered = ctx.deterministic if self.deterministic is None else self.deterministic
        kind = ParallelInterleavePass if ordered else SloppyInterleavePass
        return kind(self, ctx.start(self.inputs[0]), self.opener(ctx))

    def opener(self, ctx: Context) -> Callable[[Element], Pass]:
        plain = super().opener(ctx)
        permits = threading.Semaphore(min(self.calls, self.cycle_length + self.ahead))

        def opened(element: Element) -> Pass:
            return ChannelPass(_Gated(plain(element), permits), self.buffer, "interleave")

        return opened


class _Gated(OnePass):
    """One of several passes of which only some may be at work at the same time."""

    def __init__(self, source: Pass, permits: Any) -> None:
        super().__init__(source)
        self.permits = permits

    def __next__(self) -> Element:
        with self.permits:
            return next(self.source)


class ParallelInterleavePass(InterleavePass):
    def __init__(
        self, stage: ParallelInterleaveStage, source: Pass, opener: Callable[[Element], Pass]
    ) -> None:
        super().__init__(stage, source, opener)
        self.wanted = stage.cycle_length + stage.ahead
        self.upcoming: deque[Any] = deque()
        self.exhausted = False

    def _open(self) -> None:
        self._open_ahead()
        if not self.upcoming:
            self.ended = True
            return
        made = self.upcoming.popleft()
        if isinstance(made, Exception):
            raise made
        self.cycle[self.at] = made
        self.open += 1

    def _open_ahead(self) -> None:
        while not self.exhausted and self.open + len(self.upcoming) < self.wanted:
            try:
                self.upcoming.append(self.opener(next(self.source)))
            except StopIteration:
                self.exhausted = True
            except Exception as error:  # it is raised when its turn comes
                self.upcoming.append(error)

    def close(self) -> None:
        super().close()
        for part in self.upcoming:
            if isinstance(part, Pass):
                part.close()


class SloppyInterleavePass(ParallelInterleavePass):
    """Passes over a dataset that has nothing ready, if another one has."""

    def __next__(self) -> Element:
        current = self.cycle[self.at]
        if current is not None and _nothing_ready(current):
            for step in range(1, len(self.cycle)):
                other = self.cycle[(self.at + step) % len(self.cycle)]
                if other is not None and not _nothing_ready(other):
                    self.at = (self.at + step) % len(self.cycle)
                    self.taken = 0
                    break
        return super().__next__()


def _nothing_ready(a_pass: Any) -> bool:
    return a_pass.channel.ready.empty() and not a_pass.ended
