"""How far saving or restoring is.

    with headrace.file_progress():
        saver.restore(sess, path)
    restoring model-1000 ━━━━━━━━━━━━━━━━╺━━━━━━━━━━━ 1.2/2.0 GB 1.1 GB/s 0:00:01

``HEADRACE_PROGRESS=1`` asks for a whole program. The line is drawn on standard error where that is
a terminal. Code that moves bytes says ``with transfer("saving model", total) as advance`` and
calls ``advance(n)``, from any thread; ``advance`` is None if nobody asked.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from headrace.env import progress_wanted

__all__ = ["Meter", "Observer", "file_progress", "observed", "transfer"]

#: Seconds between two looks at the line.
_INTERVAL = 0.1


class Meter(Protocol):
    """Is told how many bytes more were moved, and the end."""

    def advance(self, count: int, /) -> None: ...

    def close(self) -> None: ...


#: Makes a meter for a transfer: (what is done, all bytes).
Observer = Callable[[str, int], Meter]


class _Local(threading.local):
    observer: Observer | None = None


_local = _Local()


@contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """What the calling thread saves and restores inside is told to ``observer``."""
    outer, _local.observer = _local.observer, observer
    try:
        yield
    finally:
        _local.observer = outer


@contextmanager
def transfer(title: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """``total`` bytes are about to be moved; gives the function to call for each part."""
    observer = _local.observer
    if observer is None:
        if not progress_wanted():
            yield None
            return
        observer = _default_observer
    meter = observer(title, total)
    try:
        yield meter.advance
    finally:
        meter.close()


def _default_observer(title: str, total: int) -> Meter:
    return _Bar(title, total, sys.stderr, False)


@contextmanager
def file_progress(file: TextIO | None = None, force: bool = False) -> Iterator[None]:
    """Show a line for every checkpoint that is saved or restored inside.

    On standard error unless ``file`` is given; only where that is a terminal, unless ``force``.
    """

    def observe(title: str, total: int) -> Meter:
        return _Bar(title, total, sys.stderr if file is None else file, force)

    with observed(observe):
        yield


class _Bar:
    """A line, drawn by rich without a thread of its own."""

    def __init__(self, title: str, total: int, file: TextIO, force: bool) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self._lock = threading.Lock()
        self._drawn = time.perf_counter()
        self._waiting = 0
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(file=file, force_terminal=True if force else None),
            auto_refresh=False,
            disable=not (force or file.isatty()),
        )
        self._task = self._bars.add_task(title, total=total)
        self._bars.start()

    def advance(self, count: int) -> None:
        with self._lock:
            self._waiting += count
            now = time.perf_counter()
            if now - self._drawn > _INTERVAL:
                self._drawn = now
                self._draw()

    def _draw(self) -> None:
        self._bars.update(self._task, advance=self._waiting, refresh=True)
        self._waiting = 0

    def close(self) -> None:
        with self._lock:
            self._draw()
            self._bars.stop()
