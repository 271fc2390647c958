"""What the examples share.

Timing two ways of doing the same thing, and the line that each example ends with.
"""

import os
from collections.abc import Callable
from time import perf_counter
from typing import Any

#: Set by the tests: the examples then do a little of everything instead of enough to measure.
QUICK = os.environ.get("HEADRACE_EXAMPLES_QUICK") == "1"


def scaled(count: int) -> int:
    """``count``, or a small part of it in quick mode."""
    return max(5, count // 50) if QUICK else count


def timed(work: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """The seconds that a call of ``work`` takes, and what it returns."""
    start = perf_counter()
    result = work(*arguments)
    return perf_counter() - start, result


def finish(slow: float, fast: float) -> None:
    """The closing line, from two times in seconds."""
    _finish(f"{slow * 1e3:.2f} ms", f"{fast * 1e3:.2f} ms", slow / fast)


def finish_memory(slow: float, fast: float) -> None:
    """The closing line, from two amounts of memory in bytes."""
    _finish(f"{slow / 1e6:.2f} MB", f"{fast / 1e6:.2f} MB", slow / fast)


def _finish(slow: str, fast: str, times: float) -> None:
    print(f"slow {slow}, fast {fast}: {times:.1f} times")
