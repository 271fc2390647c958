"""Paths that users give: text or bytes, also as ``file://`` addresses, which TensorFlow's file
systems read too.

    >>> local_path("file:///tmp/model")
    '/tmp/model'
"""

from __future__ import annotations

import os
import re

from headrace import errors

__all__ = ["local_path"]

_SCHEME = re.compile(r"([a-zA-Z][0-9a-zA-Z.]*)://")


def local_path(path: bytes | str) -> str:
    """The path as text, without ``file://``; UnimplementedError for the files of other systems."""
    try:
        text: str = os.fsdecode(path)
    except TypeError:
        raise TypeError(f"Expected binary or unicode string, got {path!r}") from None
    found = _SCHEME.match(text)
    if found is None:
        return text
    if found[1] != "file":
        raise errors.UnimplementedError(
            None, None, f"File system scheme '{found[1]}' not implemented (file: '{text}')"
        )
    return text[found.end() :]
