"""Ctrl-C comes before the first write of a run or after its last, never between.

Python raises KeyboardInterrupt wherever the main thread happens to be. The handler that is
installed here looks where that is: in a generated function it is between the lines that write
variables if the line number lies between those that the function's name tells (``writes_12_30``).
Then the interrupt is sent again a moment later. Nothing is added to what a run does, but for one
look at the handler in runs that write (notebooks replace it for every cell).

A run that is still writing after ``MAX_WAIT_SECONDS`` (a loop without end) is interrupted all the
same. Seconds in which the process was stopped, or had no turn on a busy machine, do not count.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

try:  # without making an enumeration's member of what it finds: ten times as fast
    from _signal import getsignal  # type: ignore[import-not-found]
except ImportError:
    from signal import getsignal

__all__ = [
    "FILENAME",
    "getsignal",
    "handler",
    "is_writing",
    "name_with_writes",
    "protect",
    "uninterrupted",
]

#: Of generated functions.
FILENAME = "<headrace>"
#: Seconds that an interrupt waits at most, and after which it is tried again.
MAX_WAIT_SECONDS, RETRY_SECONDS = 5.0, 0.002
#: The most that the time between two tries counts: the process was not running for the rest.
_TURN = 0.1

_PREFIX = "writes_"
_writers: set[CodeType] = set()
_last_try: list[float] = []
_waited = [0.0]
_previous: list[Callable[[int, FrameType | None], Any]] = []

F = TypeVar("F", bound=Callable[..., Any])


def name_with_writes(first: int, last: int) -> str:
    """The name of a generated function whose lines ``first`` to ``last`` are not to be
    interrupted.
    """
    return f"{_PREFIX}{first}_{last}"


def uninterrupted(function: F) -> F:
    """Decorator: the function is not interrupted, wherever it was called."""
    _writers.add(function.__code__)
    return function


def is_writing(frame: FrameType | None) -> bool:
    """Whether a frame, or one that called it, is between writes that belong together."""
    while frame is not None:
        code = frame.f_code
        if code in _writers:
            return True
        if code.co_filename == FILENAME and code.co_name.startswith(_PREFIX):
            _, first, last = code.co_name.split("_")
            if int(first) <= (frame.f_lineno or 0) <= int(last):
                return True
        frame = frame.f_back
    return False


def handler(number: int, frame: FrameType | None) -> None:
    """For SIGINT."""
    now = time.monotonic()
    if is_writing(frame):
        _waited[0] += min(now - _last_try[0], _TURN) if _last_try else 0.0
        _last_try[:] = [now]
        if _waited[0] < MAX_WAIT_SECONDS:
            later = threading.Timer(RETRY_SECONDS, _send)
            later.daemon = True
            later.start()
            return
    _last_try.clear()
    _waited[0] = 0.0
    _previous[-1](number, frame)


def _send() -> None:
    if hasattr(signal, "pthread_kill"):
        ident = threading.main_thread().ident
        assert ident is not None
        signal.pthread_kill(ident, signal.SIGINT)
    else:  # Windows
        signal.raise_signal(signal.SIGINT)


def protect() -> None:
    """Put the handler before the present one, if that is a Python function and this is the main
    thread.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    found = getsignal(signal.SIGINT)
    if found is not handler and callable(found):
        _previous[:] = [found]
        signal.signal(signal.SIGINT, handler)
