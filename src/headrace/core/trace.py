"""Where in the user's program an operation was made.

A frame is kept as (code object, instruction offset): two loads when the op is made, a line number
only when someone asks. Frames inside Headrace are passed over.
"""

from __future__ import annotations

import linecache
import os
import sys
from types import CodeType
from typing import Any

__all__ = ["Frames", "capture", "describe", "user_line"]

#: code, offset, code, offset, … innermost first: one flat tuple, which the garbage collector can
#: forget about.
Frames = tuple[Any, ...]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_DEPTH = 2 * 5
_internal: dict[str, bool] = {}


def is_internal(filename: str) -> bool:
    """Whether a file belongs to Headrace (its command line's runpy frames included)."""
    known = _internal.get(filename)
    if known is None:
        path = os.path.abspath(filename)
        known = (
            path.startswith(_PACKAGE) or filename.startswith("<frozen") or filename == "<headrace>"
        )
        _internal[filename] = known
    return known


def capture(depth: int = 1) -> Frames:
    """The innermost user frames of the caller."""
    frame = sys._getframe(depth)
    out: list[Any] = []
    known = _internal
    while frame is not None:
        code = frame.f_code
        name = code.co_filename
        internal = known.get(name)
        if internal is None:
            internal = is_internal(name)
        if not internal:
            out.append(code)
            out.append(frame.f_lasti)
            if len(out) == _DEPTH:
                break
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(out)


def line_number(code: CodeType, lasti: int) -> int:
    found = code.co_firstlineno
    for start, end, line in code.co_lines():
        if start <= lasti < end:
            return line if line is not None else found
        if line is not None:
            found = line
    return found


def describe(frames: Frames) -> list[tuple[str, int, str, str]]:
    """(file, line, function, text), innermost last as in a Python traceback."""
    out = []
    for code, lasti in reversed(list(zip(frames[::2], frames[1::2]))):
        line = line_number(code, lasti)
        text = linecache.getline(code.co_filename, line).strip()
        out.append((code.co_filename, line, code.co_name, text))
    return out


def describe_with_start_lines(frames: Frames) -> list[tuple[str, int, str, str, int]]:
    """(file, line, function, text, first line of the function), innermost last."""
    codes = frames[::2][::-1]
    return [(*f, code.co_firstlineno) for f, code in zip(describe(frames), codes)]


def user_line(frames: Frames) -> str:
    """One line for a message: ``file.py:12 in build: y = tf.matmul(a, b)``."""
    if not frames:
        return ""
    file, line, function, text = describe(frames[:2])[0]
    return f"{file}:{line} in {function}" + (f": {text}" if text else "")
