"""Files that fit a pattern."""

from __future__ import annotations

import glob

__all__ = ["matching_files"]


def matching_files(pattern: str) -> list[str]:
    """The paths that fit a glob pattern, sorted; directories among them, as in TensorFlow."""
    return sorted(glob.glob(pattern))
