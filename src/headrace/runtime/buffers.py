"""Large arrays that are used again: a step's temporaries are the next step's.

Memory that is new to a process has to be brought in and cleared page by page, which can cost as
much as what is computed in it. ``empty`` gives an array that was given back before if there is one
of this shape; generated code gives back what nothing reads any more. Only arrays that come from
here are taken, and only if nothing else references them, so what is kept is what runs need at once.
Shapes that are no longer asked for are forgotten.

    >>> a = empty((1024, 1024), np.float32)
    >>> give(a); a = None
    >>> empty((1024, 1024), np.float32)      # the same memory
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.runtime.fork_locks import held_at_fork

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["MIN_BYTES", "clear", "empty", "give", "held_bytes", "set_limit"]

#: Smaller arrays are left to the allocator: it has memory of any shape that was just used, which is
#: still in the caches. Larger ones it takes from the system and gives back each time.
MIN_BYTES = 32 << 20
#: A shape may be forgotten once this many requests went by without it.
MAX_REQUESTS_WITHOUT = 32


class _Shelf:
    """The arrays of one shape and type."""

    __slots__ = ("asked", "free")

    def __init__(self) -> None:
        self.free: list[np.ndarray[Any, np.dtype[Any]]] = []
        self.asked = 0  # when it was last asked for


_shelves: OrderedDict[tuple[tuple[int, ...], Any], _Shelf] = OrderedDict()
_lock = held_at_fork(threading.Lock())
_made: dict[int, weakref.ref[Any]] = {}  # the arrays that come from here, by identity
_state = {"clock": 0, "bytes": 0, "limit": 1 << 62}


def empty(
    shape: tuple[int, ...] | int, dtype: np.dtype[Any] | type[Any]
) -> np.ndarray[Any, np.dtype[Any]]:
    """An array with any contents."""
    dtype = np.dtype(dtype)
    if isinstance(shape, int):
        shape = (shape,)
    size = dtype.itemsize
    for n in shape:
        size *= n
    if size < MIN_BYTES:
        return np.empty(shape, dtype)
    key = (tuple(shape), dtype)
    with _lock:
        _state["clock"] += 1
        shelf = _shelves.get(key)
        if shelf is None:
            shelf = _shelves[key] = _Shelf()
        else:
            _shelves.move_to_end(key)
        shelf.asked = _state["clock"]
        if shelf.free:
            _state["bytes"] -= size
            return shelf.free.pop()
        _forget_old(size)
    made = np.empty(shape, dtype)
    number = id(made)
    _made[number] = weakref.ref(made, lambda _: _made.pop(number, None))
    return made


def _references_if_unshared() -> int:
    """What getrefcount says in ``give`` of an array that only its caller's variable holds."""

    def look(array: Array) -> int:
        return sys.getrefcount(array)

    array = np.empty(1)
    return look(array)


_ALONE = _references_if_unshared()


def give(array: Array | np.generic) -> None:
    """Take an array back, if it may be used again. The caller forgets it at once."""
    if (
        type(array) is not np.ndarray
        or array.nbytes < MIN_BYTES
        or sys.getrefcount(array) != _ALONE
        or id(array) not in _made  # (an array that is gone is gone from there too)
    ):
        return
    with _lock:
        shelf = _shelves.get((array.shape, array.dtype))
        if shelf is None or _state["bytes"] + array.nbytes > _state["limit"]:
            return
        shelf.free.append(array)
        _state["bytes"] += array.nbytes


def _forget_old(size: int) -> None:
    """Make room for new memory.

    Drop as much of what nobody has asked for in a while, the oldest first.
    """
    oldest = _state["clock"] - MAX_REQUESTS_WITHOUT
    while _shelves and size > 0:
        key = next(iter(_shelves))
        shelf = _shelves[key]
        if shelf.asked >= oldest:
            return
        dropped = sum(a.nbytes for a in shelf.free)
        _state["bytes"] -= dropped
        size -= dropped
        del _shelves[key]


def held_bytes() -> int:
    """What is kept for later."""
    return _state["bytes"]


def clear() -> None:
    """Give everything that is kept back to the system."""
    with _lock:
        _shelves.clear()
        _state["bytes"] = 0


def set_limit(limit: int | None) -> None:
    """Keep no more than so many bytes (None: what runs need)."""
    _state["limit"] = (1 << 62) if limit is None else limit
    if _state["bytes"] > _state["limit"]:
        clear()
