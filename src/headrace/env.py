"""The environment variables that Headrace reads, all of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

__all__ = [
    "NativeSetting",
    "allocator_is_users",
    "cache_folder",
    "cache_limit",
    "native_setting",
    "onednn_isa_setting",
    "onednn_wanted",
    "openmp_settings",
    "progress_wanted",
    "settings_while_loading",
    "thread_setting",
    "verifies",
]


def verifies() -> bool:
    """HEADRACE_DEBUG=verify checks every program after each pass (program/verify.py)."""
    return "verify" in os.environ.get("HEADRACE_DEBUG", "")


def onednn_wanted() -> bool:
    """HEADRACE_ONEDNN=0 leaves oneDNN alone even where it is installed."""
    return os.environ.get("HEADRACE_ONEDNN", "1").lower() not in ("0", "no", "off", "false")


def progress_wanted() -> bool:
    """HEADRACE_PROGRESS=1 shows how far saving and restoring are (wire/transfer_progress.py)."""
    return os.environ.get("HEADRACE_PROGRESS", "0").lower() not in ("", "0", "no", "off", "false")


NativeSetting = Literal["off", "hot", "always"]


def native_setting() -> NativeSetting:
    """When kernels are compiled with LLVM, by HEADRACE_NATIVE.

    ``0`` never, ``always`` at the first run (tests), everything else for steps that proved hot.
    """
    text = os.environ.get("HEADRACE_NATIVE", "1").strip().lower()
    if text in ("0", "no", "off", "false"):
        return "off"
    return "always" if text == "always" else "hot"


def cache_folder() -> str:
    """Where files that can be made again are kept.

    HEADRACE_CACHE_DIR, or else the user's cache folder; empty if there is none.
    """
    chosen = os.environ.get("HEADRACE_CACHE_DIR")
    if chosen is not None:
        return chosen
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    if not base:
        home = os.path.expanduser("~")
        under = "Library/Caches" if sys.platform == "darwin" else ".cache"
        base = os.path.join(home, under) if os.path.isabs(home) else ""
    return os.path.join(base, "headrace") if base else ""


def cache_limit() -> int:
    """Bytes that the cache folder may hold (HEADRACE_CACHE_MB, 64 by default)."""
    text = os.environ.get("HEADRACE_CACHE_MB", "").strip()
    return (int(text) if text.isdigit() else 64) << 20


def onednn_isa_setting() -> str:
    """The user's limit of oneDNN's instruction set.

    OneDNN reads the same variables. Empty if there is none.
    """
    return os.environ.get("ONEDNN_MAX_CPU_ISA") or os.environ.get("DNNL_MAX_CPU_ISA") or ""


def thread_setting() -> tuple[str, int] | None:
    """HEADRACE_NUM_THREADS, or else TensorFlow's TF_NUM_INTRAOP_THREADS or OMP_NUM_THREADS, with
    its number.
    """
    for name in ("HEADRACE_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "").strip()
        if text.isdigit() and int(text) > 0:
            return name, int(text)
    return None


def allocator_is_users() -> bool:
    """Whether the user has chosen an allocator or its settings.

    HEADRACE_MALLOC=0 says to leave it alone as well.
    """
    chosen = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES", "LD_PRELOAD")
    return os.environ.get("HEADRACE_MALLOC", "1") == "0" or any(n in os.environ for n in chosen)


@contextmanager
def settings_while_loading(**settings: str) -> Iterator[None]:
    """While this lasts, a library that is loaded reads these variables.

    A user's own values are left as they are.
    """
    ours = {name: value for name, value in settings.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)


def openmp_settings(threads: int, spins: int) -> dict[str, str]:
    """How an OpenMP runtime that Headrace loads is to behave in every thread that calls it.

    By default libgomp's threads spin for milliseconds after each parallel region: on the cores that
    Headrace's own threads, or another process, want to work on. And it starts as many as the
    machine has cores, whatever a quota allows.
    """
    found = {"OMP_NUM_THREADS": str(threads)}
    if "OMP_WAIT_POLICY" not in os.environ:
        found["GOMP_SPINCOUNT"] = str(spins)
    return found
