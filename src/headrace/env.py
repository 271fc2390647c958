"""The environment variables that Headrace reads, all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = [
    "allocator_is_users",
    "brief_openmp_waits",
    "onednn_isa_setting",
    "onednn_wanted",
    "thread_setting",
]


def onednn_wanted() -> bool:
    """HEADRACE_ONEDNN=0 leaves oneDNN alone even where it is installed."""
    return os.environ.get("HEADRACE_ONEDNN", "1").lower() not in ("0", "no", "off", "false")


def onednn_isa_setting() -> str:
    """The user's limit of oneDNN's instruction set; oneDNN reads the same variables. Empty if there is none."""
    return os.environ.get("ONEDNN_MAX_CPU_ISA") or os.environ.get("DNNL_MAX_CPU_ISA") or ""


def thread_setting() -> int:
    """HEADRACE_NUM_THREADS, or else TensorFlow's TF_NUM_INTRAOP_THREADS or OMP_NUM_THREADS; 0 if none says a number."""
    for name in ("HEADRACE_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "").strip()
        if text.isdigit() and int(text) > 0:
            return int(text)
    return 0


def allocator_is_users() -> bool:
    """Whether the user has chosen an allocator or its settings; HEADRACE_MALLOC=0 says to leave it alone as well."""
    chosen = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES", "LD_PRELOAD")
    return os.environ.get("HEADRACE_MALLOC", "1") == "0" or any(n in os.environ for n in chosen)


@contextmanager
def brief_openmp_waits() -> Iterator[None]:
    """While this lasts, an OpenMP runtime that is loaded learns to wait for work by spinning only briefly.

    By default libgomp's threads spin for milliseconds after each parallel region: on the cores that Headrace's own threads,
    or another process, want to work on. A user's own setting is left as it is.
    """
    names = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    if any(name in os.environ for name in names):
        yield
        return
    os.environ[names[0]] = "10000"
    try:
        yield
    finally:
        os.environ.pop(names[0], None)
