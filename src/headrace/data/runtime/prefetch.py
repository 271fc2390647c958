"""``prefetch``: a thread produces ahead of the reader.

With AUTOTUNE the number of elements ahead grows from measured waits: when the reader found nothing
ready for a share of its time although the thread had been held up for want of room before, bursts
are longer than the buffer, and the buffer doubles, up to a number of elements and a number of
bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from headrace import errors
from headrace.data.runtime.stage_threads import ChannelPass
from headrace.data.runtime.stages import Context, Element, Pass, Stage

__all__ = ["AUTOTUNE", "PrefetchStage"]

#: TensorFlow's number for "find out".
AUTOTUNE = -1
FIRST_DEPTH = 2
MAX_DEPTH = 64
MAX_BYTES = 256 << 20
#: The share of the time that both sides must have waited for the other.
SHARE = 0.02


class PrefetchStage(Stage):
    def __init__(self, source: Stage, buffer_size: int) -> None:
        if buffer_size < AUTOTUNE:
            raise errors.InvalidArgumentError(
                None, None, f"buffer_size must be >= 0 or set to be {AUTOTUNE} for auto-tuning"
            )
        self.inputs = (source,)
        self.buffer_size = buffer_size

    def start(self, ctx: Context) -> Pass:
        source = ctx.start(self.inputs[0])
        if not self.buffer_size:
            return source
        if self.buffer_size == AUTOTUNE:
            return TunedPass(source, FIRST_DEPTH, "prefetch")
        return ChannelPass(source, self.buffer_size, "prefetch")

    def cardinality(self) -> int:
        return self.inputs[0].cardinality()


class TunedPass(ChannelPass):
    """With a depth that follows from the waits."""

    def __init__(
        self, source: Pass, size: int, name: str, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        super().__init__(source, size, name)
        self.clock = clock
        self._seen = 0
        self._waits = (0.0, 0.0)
        self._start = clock()

    def __next__(self) -> Element:
        element = super().__next__()
        self._seen += 1
        if self._seen >= 2 * self.channel.size and self.channel.size < MAX_DEPTH:
            self._tune(element)
        return element

    def _tune(self, element: Element) -> None:
        channel = self.channel
        waits = (channel.producer_waits, channel.consumer_waits)
        end = self.clock()
        least = SHARE * (end - self._start)
        both = all(now - before > least for now, before in zip(waits, self._waits))
        self._seen, self._waits, self._start = 0, waits, end
        if both and (2 * channel.size) * nbytes(element) <= MAX_BYTES:
            channel.grow(min(channel.size, MAX_DEPTH - channel.size))


def nbytes(element: Element) -> int:
    return sum(int(getattr(part, "nbytes", 64)) for part in element) + 64 * len(element)
