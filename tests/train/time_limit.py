"""Tests of what waits: a call that does not end fails its test instead of hanging it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

__all__ = ["until_it_waits", "within"]


def until_it_waits(thread: threading.Thread, seconds: float = 120.0) -> None:
    """Return once the thread is inside of a wait for a condition: a sleep would guess when."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert thread.is_alive(), "the thread has ended instead of waiting"
        frame = sys._current_frames().get(thread.ident or 0)
        if frame is not None and frame.f_code is threading.Condition.wait.__code__:
            return
        time.sleep(0.005)
    raise AssertionError(f"the thread did not begin to wait within {seconds} seconds")


def within(seconds: float, call: Callable[[], Any]) -> Any:
    """What ``call`` returns or raises, from a thread of its own.

    AssertionError if it takes longer.
    """
    found: list[Any] = []

    def run() -> None:
        try:
            found.append((True, call()))
        except BaseException as error:
            found.append((False, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, f"not done after {seconds} seconds"
    good, value = found[0]
    if not good:
        raise value
    return value
