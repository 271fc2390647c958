"""``headrace trim``: equal files become one, others stay as they are, and it can be repeated."""

from __future__ import annotations

import os
from pathlib import Path

from headrace.cli.trim import link_copies


def test_equal_copies_are_linked(tmp_path: Path) -> None:
    for name, content in {
        "libdnnl.so": b"a" * 1000,
        "libdnnl.so.3": b"a" * 1000,
        "libdnnl.so.3.2": b"a" * 1000,
        "libdnnl.so.2": b"b" * 1000,
        "other.so": b"a" * 1000,
    }.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "libdnnl.so.link").symlink_to("libdnnl.so.2")
    assert link_copies(str(tmp_path)) == 2000
    inodes = {n: os.stat(tmp_path / n).st_ino for n in os.listdir(tmp_path)}
    assert inodes["libdnnl.so"] == inodes["libdnnl.so.3"] == inodes["libdnnl.so.3.2"]
    assert len({inodes[n] for n in ("libdnnl.so", "libdnnl.so.2", "other.so")}) == 3
    assert (tmp_path / "libdnnl.so.link").is_symlink()
    assert (tmp_path / "libdnnl.so.2").read_bytes() == b"b" * 1000
    assert link_copies(str(tmp_path)) == 0
    assert len(os.listdir(tmp_path)) == 6  # nothing is left over
