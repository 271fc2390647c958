"""Threads behind a pass: a channel with one producer, and what stops all of them.

A channel is two queues: ``free`` holds one token for each element that may be waiting, ``ready``
the elements. Both are C queues, so that passing an element costs no lock in Python. The thread
holds the channel and the pass that it reads, never the pass that reads from it: when that one is
dropped or closed, the channel is told to stop, and the thread closes its own source and ends. What
is left when the interpreter ends is told to stop as well.

Threads do not survive a fork: in the child, a channel says so at its next element.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from headrace import errors
from headrace.data.runtime.block_functions import Failure
from headrace.data.runtime.stages import Element, Pass

__all__ = ["END", "Channel", "ChannelPass", "Failure", "start_thread"]

#: How long closing waits for a thread that is in the middle of an element.
MAX_WAIT_SECONDS = 2.0


class _End:
    pass


#: The last item of a channel.
END = _End()
_STOP = object()


def cancelled() -> Failure:
    text = "The iterator was closed while an element was waited for."
    return Failure(errors.CancelledError(None, None, text))


class Channel:
    """Elements from one thread to another."""

    def __init__(self, size: int) -> None:
        self.ready: SimpleQueue[Any] = SimpleQueue()
        self.free: SimpleQueue[Any] = SimpleQueue()
        self.stopped = False
        self.size = 0
        self.taken = 0  # places that were not given back yet
        self.producer_waits = 0.0
        self.consumer_waits = 0.0
        self.grow(size)
        _channels.add(self)

    def grow(self, more: int) -> None:
        """So many further elements may wait."""
        self.size += more
        self.batch = max(1, self.size // 2)
        for _ in range(more):
            self.free.put(None)

    def stop(self) -> None:
        """No more elements. A reader that waits for one on another thread is told."""
        self.stopped = True
        self.free.put(_STOP)
        self.ready.put(cancelled())

    # the producing side -------------------------------------------------------------------------
    def no_more(self) -> None:
        """For the other producers: the source has ended."""
        self.free.put(_STOP)

    def may_produce(self) -> bool:
        """Wait for a place; False if the channel was stopped."""
        try:
            token = self.free.get_nowait()
        except Empty:
            start = time.perf_counter()
            token = self.free.get()
            self.producer_waits += time.perf_counter() - start
        return token is not _STOP and not self.stopped

    # the reading side ---------------------------------------------------------------------------
    def get(self) -> Any:
        try:
            item = self.ready.get_nowait()
        except Empty:
            start = time.perf_counter()
            item = self.ready.get()
            self.consumer_waits += time.perf_counter() - start
        self.taken += 1
        if self.taken >= self.batch:  # several at once: the producer is not woken for each
            for _ in range(self.taken):
                self.free.put(None)
            self.taken = 0
        return item


_channels: weakref.WeakSet[Channel] = weakref.WeakSet()
_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


def start_thread(name: str, work: Callable[..., None], *args: object) -> threading.Thread:
    """A daemon thread; ``work`` must not refer to the pass that it works for."""
    thread = threading.Thread(target=work, args=args, name=f"headrace-{name}", daemon=True)
    _threads.add(thread)
    thread.start()
    return thread


@atexit.register
def _stop_all() -> None:
    for channel in list(_channels):
        channel.stop()
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    for thread in list(_threads):
        if thread.ident is not None:  # a worker may be starting another one right now
            thread.join(max(0.0, deadline - time.monotonic()))


_LOST = (
    "This iterator has threads, which a forked process does not inherit. Make the iterator in "
    "the process that uses it."
)


def _after_fork() -> None:
    """The threads are gone, and a queue may have been in use at that moment.

    Neither is touched again.
    """
    for channel in list(_channels):
        channel.ready, channel.free = SimpleQueue(), SimpleQueue()
        channel.ready.put(Failure(errors.FailedPreconditionError(None, None, _LOST)))
        channel.ready.put(END)
    _threads.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _produce(channel: Channel, source: Pass) -> None:
    """The work of a prefetching thread."""
    ready = channel.ready
    try:
        while channel.may_produce():
            try:
                item: Any = next(source)
            except StopIteration:
                break
            except (
                BaseException
            ) as error:  # sys.exit() of the user's code as well: it may not get lost
                item = Failure(error)
            ready.put(item)
            item = None
    finally:
        ready.put(END)
        source.close()


class ChannelPass(Pass):
    """Elements that a thread of its own produces ahead."""

    def __init__(self, source: Pass, size: int, name: str) -> None:
        self.fresh = source.fresh
        self.channel = Channel(size)
        self._get = self.channel.get
        self.ended = False
        self._closer = weakref.finalize(self, self.channel.stop)
        start_thread(name, _produce, self.channel, source)

    def __next__(self) -> Element:
        if self.ended:
            raise StopIteration
        item = self.channel.get()
        if type(item) is tuple:
            return item
        if item is END:
            self.ended = True
            raise StopIteration
        raise item.error

    def waits(self) -> float | None:
        return self.channel.consumer_waits

    def close(self) -> None:
        self.ended = True
        self._closer()
