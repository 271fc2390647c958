r"""Paths that match a pattern, as TensorFlow's file systems find them.

``*`` and ``?`` match within one component of a path, ``[a-z]`` one character, ``[!a]`` and ``[^a]``
any other, ``\*`` a star. Other than in a shell, names that begin with a dot are names like others,
and a pattern without a folder gives ``./name``.

    >>> matching_paths("/tmp/run/*.txt")
    ['/tmp/run/.hidden.txt', '/tmp/run/a.txt']
"""

from __future__ import annotations

import os
import re

__all__ = ["matching_paths"]

_WILD = re.compile(r"[*?\[\\]")


def matching_paths(pattern: str) -> list[str]:
    """The paths that match, sorted. FileNotFoundError or NotADirectoryError where the folder before
    the first wildcard is none.
    """
    wild = _WILD.search(pattern)
    folder, slash, _ = pattern[: wild.start() if wild else None].rpartition("/")
    if not slash:
        folder, pattern = ".", f"./{pattern}"
    os.listdir(folder or "/")
    found = [] if folder.endswith("/") else [folder]
    for part in pattern[len(folder) + 1 :].split("/"):
        found = _below(found, part)
    return sorted(found)


def _below(folders: list[str], part: str) -> list[str]:
    """The entries of these folders whose name matches one component of a pattern."""
    matches = _compiled(part).fullmatch
    out = []
    for folder in folders:
        try:
            names = os.listdir(folder or "/")
        except OSError:
            continue
        out += [f"{folder}/{name}" for name in names if matches(name)]
    return out


def _compiled(part: str) -> re.Pattern[str]:
    out, i = [], 0
    while i < len(part):
        c = part[i]
        i += 1
        if c == "*":
            out.append(".*")
        elif c == "?":
            out.append(".")
        elif c == "[":
            closed = part.find("]", i + 1 + (part[i : i + 1] in ("!", "^")))
            if closed < 0:
                out.append(r"\[")
                continue
            inside, i = part[i:closed], closed + 1
            negated = inside[:1] in ("!", "^")
            inside = re.sub(r"([\[\\^&~|])", r"\\\1", inside[negated:])
            out.append(f"[{'^' if negated else ''}{inside}]")
        elif c == "\\" and i < len(part):
            out.append(re.escape(part[i]))
            i += 1
        else:
            out.append(re.escape(c))
    return re.compile("".join(out), re.DOTALL)
