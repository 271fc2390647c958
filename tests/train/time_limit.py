"""Tests of what waits: a call that does not end fails its test instead of hanging it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

__all__ = ["within"]


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
