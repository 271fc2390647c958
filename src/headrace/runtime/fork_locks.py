"""Locks that no forked child finds taken.

A child has one thread, the one that forked. A lock that another thread held at that moment stays
taken forever, and what it protected may be half done: a variable that is being overwritten is not
in its dictionary. So the forking thread first takes all registered locks, which waits until others
are done, and gives them back on both sides.

    self.lock = held_at_fork(threading.RLock())
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol, TypeVar

__all__ = ["held_at_fork"]

#: Seconds that a fork waits for one lock. A lock that takes longer is made anew in the child.
MAX_WAIT_SECONDS = 2.0


class LockLike(Protocol):
    """A lock of ``threading``."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...

    def release(self) -> None: ...


_Lock = TypeVar("_Lock", bound=LockLike)

#: (not a WeakSet: a session registers several, and this costs a third)
_locks: set[weakref.ref[LockLike]] = set()
#: Those that the forking thread took, and those that it could not take.
_taken: list[LockLike] = []
_missed: list[LockLike] = []


def held_at_fork(lock: _Lock) -> _Lock:
    """Register a lock."""
    _locks.add(weakref.ref(lock, _locks.discard))
    return lock


def _take() -> None:
    # (a copy is made in one go: no lock can die while it is)
    for lock in filter(None, [ref() for ref in _locks.copy()]):
        (_taken if lock.acquire(timeout=MAX_WAIT_SECONDS) else _missed).append(lock)


def _release() -> None:
    while _taken:
        _taken.pop().release()


def _release_in_parent() -> None:
    _release()
    _missed.clear()


def _release_in_child() -> None:
    _release()
    while _missed:
        _missed.pop()._at_fork_reinit()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_take, after_in_parent=_release_in_parent, after_in_child=_release_in_child
    )
