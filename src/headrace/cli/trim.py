"""``headrace trim``: identical copies of the kernel library in the environment become one file with
several names.

A wheel cannot hold links, so ``libdnnl.so``, ``libdnnl.so.3`` and ``libdnnl.so.3.2`` are unpacked
as three copies of 54 MB. Files whose bytes are equal are replaced by hard links: every name goes on
working, and pip can still uninstall them.
"""

from __future__ import annotations

import argparse
import filecmp
import glob
import os

from headrace.kernels.onednn.onednn_library import find_library

__all__ = ["link_copies", "run_trim"]


def link_copies(folder: str, pattern: str = "libdnnl.so*") -> int:
    """Make hard links of equal files; how many bytes that frees."""
    kept: list[str] = []
    freed = 0
    for path in sorted(glob.glob(os.path.join(folder, pattern)), key=len, reverse=True):
        if os.path.islink(path) or not os.path.isfile(path):
            continue
        same = next((k for k in kept if _equal(k, path)), None)
        if same is None:
            kept.append(path)
        elif not os.path.samefile(same, path):
            freed += os.path.getsize(path)
            _link(same, path)
    return freed


def _equal(a: str, b: str) -> bool:
    return os.path.samefile(a, b) or filecmp.cmp(a, b, shallow=False)


def _link(source: str, target: str) -> None:
    """In one step: the target is always there, and a process that has it open keeps its own."""
    new = f"{target}.{os.getpid()}.new"
    os.link(source, new)
    os.replace(new, target)


def run_trim(_: argparse.Namespace) -> int:
    """The command; its exit code."""
    try:
        folder = os.path.dirname(find_library())
    except ImportError as error:
        print(f"nothing to do: {error}")
        return 0
    try:
        freed = link_copies(folder)
    except OSError as error:
        print(f"copies in {folder} cannot be linked: {error}")
        return 1
    print(f"{freed / 1e6:.0f} MB freed in {folder}")
    return 0
