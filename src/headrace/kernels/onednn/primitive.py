"""A primitive with the memory objects that it works on, and the bounded cache that keeps
primitives.

Making a primitive takes a fraction of a millisecond, calling one a few microseconds; so each is
kept under a key that says everything it was made for (sizes, strides, options). Memory objects are
bound to an array by each call, therefore every thread has its own.

    >>> kept: Cache[tuple[int, int], Call] = Cache(64)
    >>> # make((512, 768)) -> Call, at most once in this thread while it is kept
    >>> call = kept.get((512, 768), make)
    >>> call(x, y)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from headrace.kernels.onednn.onednn_library import SCRATCHPAD, SCRATCHPAD_DESC, Api
from headrace.runtime.thread_pool import thread_count

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Cache", "Call", "aligned", "contiguous_float32"]

Key = TypeVar("Key")
Made = TypeVar("Made")
_missing: Any = object()

FLOAT32 = np.dtype(np.float32)
#: A thread keeps scratch memory up to this size; a primitive that needs more gets it for the call.
SCRATCH_KEPT = 8 << 20
#: Numbers of threads that a thread keeps primitives for.
MAX_COUNTS = 3


class Cache(Generic[Key, Made]):
    """What was used last stays, at most ``limit`` per thread (and number of threads that it
    spreads its work over).
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.local = threading.local()

    def get(self, key: Key, make: Callable[[Key], Made]) -> Made:
        threads = thread_count()  # a primitive is made for a number of threads
        try:
            kept: dict[Key, Made] = self.local.kept[threads]
        except (AttributeError, KeyError):
            by_threads = self.local.__dict__.setdefault("kept", {})
            if len(by_threads) >= MAX_COUNTS:
                by_threads.clear()
            kept = by_threads.setdefault(threads, {})
        made: Made = kept.pop(key, _missing)
        if made is _missing:
            made = make(key)
            while len(kept) >= self.limit:
                del kept[next(iter(kept))]
        kept[key] = made
        return made

    def __len__(self) -> int:
        """For the present number of threads."""
        return len(getattr(self.local, "kept", {}).get(thread_count(), ()))


def aligned(size: int) -> Array:
    """Bytes that begin at a cache line."""
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size]


class _Scratch(threading.local):
    """Scratch memory of a thread: its primitives never run at the same time."""

    buffer: Array | None = None

    def get(self, size: int) -> Array:
        if size > SCRATCH_KEPT:
            return aligned(size)
        if self.buffer is None or self.buffer.size < size:
            self.buffer = aligned(size)
        return self.buffer


_scratch = _Scratch()


class Call:
    """A primitive of a description, called with an array for each of ``places`` (argument, memory
    description).
    """

    def __init__(
        self, api: Api, description: object, places: Sequence[tuple[int, Any]], keep: object = None
    ) -> None:
        self.primitive = api.make("dnnl_primitive_create", "dnnl_primitive_destroy", description)
        self.memory = [api.memory(desc) for _, desc in places]
        pairs = [(argument, m) for (argument, _), m in zip(places, self.memory)]
        scratch = api.query(description, SCRATCHPAD_DESC)
        self.scratch_size = api.c.dnnl_memory_desc_get_size(scratch) if scratch else 0
        if self.scratch_size:
            self.scratch = api.memory(scratch)
            pairs.append((SCRATCHPAD, self.scratch))
        self.arguments = api.arguments(*pairs)
        self.api = api
        self.keep = (description, *places, keep)

    def aim(self, place: int, array: Array) -> None:
        """From now on the argument at this place is ``array``; the caller keeps it alive."""
        self.api.c.dnnl_memory_set_data_handle(self.memory[place], self.api.pointer(array))

    def __call__(self, *arrays: Array) -> None:
        api = self.api
        set_handle, pointer = api.c.dnnl_memory_set_data_handle, api.pointer
        for memory, array in zip(self.memory, arrays):
            set_handle(memory, pointer(array))
        if self.scratch_size:
            scratch = _scratch.get(self.scratch_size)
            set_handle(self.scratch, pointer(scratch))
        api.execute(self.primitive, self.arguments)


def contiguous_float32(*arrays: Array) -> bool:
    return all(x.dtype is FLOAT32 and x.flags.c_contiguous for x in arrays)
