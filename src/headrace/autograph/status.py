"""Whether conversion is on in this thread, and what AutoGraph tells the user.

``control_status_ctx()`` is what library functions that take a user's function ask before they
convert it: inside a function under ``do_not_convert`` nothing further is converted.

>>> with ControlStatusCtx(Status.DISABLED):
...     control_status_ctx().status
<Status.DISABLED: 2>
"""

from __future__ import annotations

import enum
import logging
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "ControlStatusCtx",
    "Status",
    "control_status_ctx",
    "log",
    "set_verbosity",
    "trace",
    "warn_once",
    "write_trace",
]

_LOGGER = logging.getLogger("tensorflow")


class Status(enum.Enum):
    """Whether code runs under AutoGraph: ENABLED, DISABLED or UNSPECIFIED (inherited).

    What ``tf.autograph`` keeps for each context of a call; user code meets it in its own
    converters.
    """

    UNSPECIFIED = 0
    ENABLED = 1
    DISABLED = 2


class ControlStatusCtx:
    """``with ControlStatusCtx(Status.ENABLED):`` sets the status for the calling thread."""

    def __init__(self, status: Status, options: object = None) -> None:
        self.status = status
        self.options = options

    def __enter__(self) -> ControlStatusCtx:
        _stack.items.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _stack.items.pop()

    def __repr__(self) -> str:
        return f"{self.status.name}[{self.options}]"


class _Stack(threading.local):
    def __init__(self) -> None:
        self.items: list[ControlStatusCtx] = [ControlStatusCtx(Status.UNSPECIFIED)]


_stack = _Stack()


def control_status_ctx() -> ControlStatusCtx:
    """The innermost status of this thread."""
    return _stack.items[-1]


class _Verbosity:
    level = 0
    to_stdout = False


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """0: only warnings; 1 and above: every conversion and why something was left as it is."""
    _Verbosity.level = level
    _Verbosity.to_stdout = alsologtostdout


def trace(*args: TensorLike) -> None:
    """Print while tracing: the Python values, tensors as ``Tensor("…")``."""
    write_trace(" ".join(map(str, args)))


def write_trace(text: str) -> None:
    sys.stdout.write(text + "\n")


def log(level: int, message: str, *args: object) -> None:
    if _Verbosity.level < level:
        return
    text = message % args
    _LOGGER.log(logging.INFO, "%s", text)
    if _Verbosity.to_stdout:
        write_trace(text)


_warned: set[Any] = set()


def warn_once(key: object, message: str) -> None:
    """A warning that appears once for each key."""
    if key not in _warned:
        _warned.add(key)
        _LOGGER.warning("%s", message)
