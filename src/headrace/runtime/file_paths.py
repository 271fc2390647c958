"""Paths that users give: text or bytes, also as ``file://`` addresses, which TensorFlow's file
systems read too.

    >>> local_path("file:///tmp/model")
    '/tmp/model'
"""

from __future__ import annotations

import os

__all__ = ["local_path"]

_SCHEME = "file://"


def local_path(path: bytes | str) -> str:
    """The path as text, without ``file://``."""
    text: str = os.fsdecode(path)
    return text[len(_SCHEME) :] if text.startswith(_SCHEME) else text
