"""A progress line for loops: how many, how fast, how long still, and how much of the time went into
waiting for input.

    for batch in headrace.progress(dataset, description="epoch 1"):
        ...
    epoch 1 ━━━━━━━━━━━━━━━━╺━━━━━━━━━━━  312/468  81.2/s  0:00:01  waiting 4 %

Datasets and iterables of any kind. Where the output is not a terminal nothing is shown unless
``force`` is set; the counts are kept all the same.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

__all__ = ["Progress", "progress"]

#: Seconds between two looks at the line.
INTERVAL = 0.1


def progress(
    iterable: object,
    total: int | None = None,
    description: str = "",
    *,
    force: bool = False,
    file: object = None,
) -> Progress:
    """The items of ``iterable`` with a progress line; ``total`` is found out where it can be."""
    return Progress(iterable, total, description, force, file)


class Progress:
    """An iterable that shows how far it is."""

    def __init__(
        self, iterable: Any, total: int | None, description: str, force: bool, file: Any
    ) -> None:
        self.iterable = iterable
        self.total = _total(iterable) if total is None else total
        self.description = description
        self.count = 0
        self.seconds = 0.0
        self.waiting_seconds = 0.0
        out = sys.stdout if file is None else file
        self._file = out
        self._shown = force or bool(getattr(out, "isatty", lambda: False)())
        self._force = force

    @property
    def rate(self) -> float:
        """Items per second."""
        return self.count / self.seconds if self.seconds else 0.0

    @property
    def waiting_share(self) -> float:
        """The part of the time that went into getting the next item."""
        return self.waiting_seconds / self.seconds if self.seconds else 0.0

    def __len__(self) -> int:
        if self.total is None:
            raise TypeError("the number of items is not known")
        return self.total

    def __iter__(self) -> Iterator[Any]:
        self.count, self.waiting_seconds, self.seconds = 0, 0.0, 0.0
        line = _Line(self) if self._shown else None
        start = last = time.perf_counter()
        items = iter(self.iterable)
        try:
            while True:
                asked = time.perf_counter()
                try:
                    item = next(items)
                except StopIteration:
                    break
                finally:
                    now = time.perf_counter()
                    self.waiting_seconds += now - asked
                    self.seconds = now - start
                yield item
                self.count += 1
                if line is not None and now - last > INTERVAL:
                    last = now
                    line.update()
        finally:
            self.seconds = time.perf_counter() - start
            if line is not None:
                line.close()


class _Line:
    """The line itself, drawn by rich without a thread of its own."""

    def __init__(self, source: Progress) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bars

        self.source = source
        console = Console(file=source._file, force_terminal=True if source._force else None)
        self.bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]:.3g}/s"),
            TimeRemainingColumn(),
            TimeElapsedColumn(),
            TextColumn("waiting {task.fields[waiting]:.0%}"),
            console=console,
            auto_refresh=False,
        )
        self.bars.start()
        self.task = self.bars.add_task(
            source.description, total=source.total, rate=0.0, waiting=0.0
        )

    def update(self) -> None:
        source = self.source
        self.bars.update(
            self.task,
            completed=source.count,
            rate=source.rate,
            waiting=source.waiting_share,
            refresh=True,
        )

    def close(self) -> None:
        self.update()
        self.bars.stop()


def _total(iterable: Any) -> int | None:
    """The number of items, if it can be told without going through them."""
    try:
        return len(iterable)
    except TypeError:
        return None
