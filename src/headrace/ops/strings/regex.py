"""Regular expressions with RE2's syntax, meaning and linear time, by the package ``google-re2``.

TensorFlow matches with RE2: UTF-8 text, ``[[:alpha:]]``, ``\\pL``, no lookahead and no
back-references, and time that grows linearly with the text whatever the pattern is. Where the
package has no wheel, patterns in which nothing repeats are matched by Python's ``re``, which treats
them alike; any other pattern is an UnimplementedError that names the package.

    >>> compile_pattern(b"(a)(.)").replace(b"ab", b"\\\\2\\\\1", everywhere=True)
    b'ba'
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from types import ModuleType

from headrace import errors

__all__ = ["Pattern", "compile_pattern", "needs_groups"]

#: Start and end in the text of a match and of each of its groups; (-1, -1) for a group that took no
#: part.
Spans = Sequence[tuple[int, int]]
_NONE = (-1, -1)
#: What may be in a pattern that Python's ``re`` matches as RE2 does: literals, escaped punctuation,
#: simple groups and classes.
_PLAIN = re.compile(
    rb"(?:[A-Za-z0-9 "
    rb"_,;:=<>@#%&~'\"/!\t-]|\\[.^$*+?()\[\]{}|\\/-]|\\d|\((?!\?)|\)|\||\[\^?[A-Za-z0-9 "
    rb"_,;.]+\])*"
)


class Pattern:
    """A compiled pattern.

    ``search(text, at)`` gives the spans of the first match from ``at`` on, None if there is none.
    """

    def __init__(
        self, search: Callable[[bytes, int], Spans | None], full: Callable[[bytes], bool]
    ) -> None:
        self._search = search
        self.matches = full

    def replace(self, text: bytes, rewrite: bytes, everywhere: bool) -> bytes:
        """RE2's ``GlobalReplace`` or ``Replace``; a group that is not there is empty.

        A backslash that means nothing ends the rewrite there in ``GlobalReplace`` and makes
        ``Replace`` do nothing.
        """
        parts, valid = _rewrite_parts(rewrite)
        if not (valid or everywhere):
            return text
        return self._replace_all(text, parts) if everywhere else self._replace_first(text, parts)

    def _replace_first(self, text: bytes, parts: list[bytes | int]) -> bytes:
        spans = self._search(text, 0)
        if spans is None:
            return text
        return text[: spans[0][0]] + _expanded(text, spans, parts) + text[spans[0][1] :]

    def _replace_all(self, text: bytes, parts: list[bytes | int]) -> bytes:
        """An empty match where the last match ended is passed over, by one character."""
        out: list[bytes] = []
        at, last = 0, -1
        while at <= len(text):
            spans = self._search(text, at)
            if spans is None:
                break
            start, end = spans[0]
            out.append(text[at:start])
            at = start
            if start == end == last:
                step = _character(text, at)
                out.append(text[at : at + step])
                at += step
                continue
            out.append(_expanded(text, spans, parts))
            at = last = end
        return b"".join(out) + text[at:]


def _character(text: bytes, at: int) -> int:
    """The length of the UTF-8 character at a place.

    1 where there is none (also at the end, to get past it).
    """
    lead = text[at] if at < len(text) else 0
    size = 1 if lead < 0xC2 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4 if lead < 0xF5 else 1
    rest = text[at + 1 : at + size]
    return size if len(rest) == size - 1 and all(b & 0xC0 == 0x80 for b in rest) else 1


@functools.lru_cache(256)
def _rewrite_parts(rewrite: bytes) -> tuple[list[bytes | int], bool]:
    """The literal parts and group numbers of a rewrite, up to a backslash that means nothing.

    Whether there was none.
    """
    parts: list[bytes | int] = []
    at = 0
    while (stop := rewrite.find(b"\\", at)) >= 0:
        parts.append(rewrite[at:stop])
        following = rewrite[stop + 1 : stop + 2]
        if following == b"\\":
            parts.append(b"\\")
        elif following.isdigit():
            parts.append(int(following))
        else:
            return parts, False
        at = stop + 2
    return [*parts, rewrite[at:]], True


def _expanded(text: bytes, spans: Spans, parts: list[bytes | int]) -> bytes:
    return b"".join([p if isinstance(p, bytes) else _group(text, spans, p) for p in parts])


def _group(text: bytes, spans: Spans, number: int) -> bytes:
    start, end = spans[number] if number < len(spans) else _NONE
    return b"" if start < 0 else text[start:end]


def needs_groups(rewrite: bytes) -> bool:
    """Whether a rewrite names a group; finding groups costs time in proportion to their number."""
    return any(isinstance(part, int) and part for part in _rewrite_parts(rewrite)[0])


@functools.lru_cache(256)
def compile_pattern(pattern: bytes, groups: bool = True) -> Pattern:
    """The pattern, ready to match.

    Without ``groups`` only whole matches are found. One that RE2 refuses is an
    InvalidArgumentError.
    """
    try:
        import re2
    except ImportError:
        return _by_python(pattern)
    return _by_re2(re2, pattern, groups)


def _by_re2(re2: ModuleType, pattern: bytes, groups: bool) -> Pattern:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = not groups
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        raise _refused(
            pattern, reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        ) from None
    regexp, kinds = compiled._regexp, re2._Anchor

    def search(text: bytes, at: int) -> Spans | None:
        spans: Spans = regexp.Match(kinds.UNANCHORED, text, at, len(text))
        return None if spans[0] == _NONE else spans

    def full(text: bytes) -> bool:
        spans: Spans = regexp.Match(kinds.ANCHOR_BOTH, text, 0, len(text))
        return spans[0] != _NONE

    return Pattern(search, full)


def _by_python(pattern: bytes) -> Pattern:
    if _PLAIN.fullmatch(pattern) is None:
        raise errors.UnimplementedError(
            None,
            None,
            f"The pattern {pattern.decode(errors='replace')!r} needs RE2, which is not "
            "installed: pip install google-re2. "
            "Without it only literals, simple classes, groups and alternatives are matched.",
        )
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise _refused(pattern, str(error)) from None

    def search(text: bytes, at: int) -> Spans | None:
        found = compiled.search(text, at)
        return None if found is None else [found.span(i) for i in range(compiled.groups + 1)]

    return Pattern(search, lambda text: compiled.fullmatch(text) is not None)


def _refused(pattern: bytes, reason: str) -> errors.InvalidArgumentError:
    text = f"Invalid pattern: {pattern.decode(errors='replace')}, error: {reason}"
    return errors.InvalidArgumentError(None, None, text)
