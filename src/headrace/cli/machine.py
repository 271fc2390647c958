"""What Headrace runs on, in lines.

Versions, kernel library and instruction set, threads, and what is missing.
"""

from __future__ import annotations

import platform
from importlib import metadata, util

import numpy as np

from headrace.api.version import HEADRACE_VERSION, VERSION
from headrace.kernels import accel
from headrace.kernels.native import llvm_library
from headrace.runtime.cpu_features import cpu
from headrace.runtime.thread_pool import chosen_threads

__all__ = ["machine_rows", "missing_parts"]

#: What an absent part costs, measured with a small conv net on 2 cores with AVX-512 (training 112
#: -> 280 ms, inference 12 -> 60 ms).
NO_LIBRARY = (
    "everything works on NumPy; inference of conv nets takes 5 times as long, their "
    "training 2.5 times, "
    'and weights="int8" has no effect'
)
NO_TURBO = (
    "JPEG files are decoded by Pillow; some pixels differ from TensorFlow's, by up to 4 of 255"
)
NO_LLVM = "fused element-wise steps run on NumPy, up to ten times slower"
NO_PILLOW = "JPEG and GIF files cannot be decoded"


def machine_rows(short: bool = False) -> list[tuple[str, str]]:
    """(name, value) for ``headrace version``; the ``short`` form, for a report, loads nothing."""
    threads = chosen_threads()
    if short and not accel.loaded():
        return [("threads", f"{threads.count}: {threads.source}")]
    rows = [
        ("headrace", f"{HEADRACE_VERSION} (API of TensorFlow {VERSION})"),
        ("python", f"{platform.python_version()}, numpy {np.__version__}"),
        ("cpu", cpu().model + (f"; not used: {cpu().hidden}" if cpu().hidden else "")),
        ("kernels", accel.status() if accel.library() is not None else "NumPy alone"),
        ("native", llvm_library.status()),
        ("threads", f"{threads.count}: {threads.source}"),
    ]
    rows = rows[3:] if short else rows
    return rows + [("missing", f"{what}: {cost}") for what, cost in missing_parts()]


def missing_parts() -> list[tuple[str, str]]:
    """Optional parts that are not here, and what that costs."""
    found = []
    if accel.library() is None:
        found.append((f"kernel library ({accel.status()})", NO_LIBRARY))
    if llvm_library.available() is None:
        found.append((f"LLVM ({llvm_library.status()})", NO_LLVM))
    if not _there("simplejpeg"):
        found.append(("simplejpeg", NO_TURBO if _there("PIL") else NO_PILLOW))
    return found


def _there(module: str) -> bool:
    try:
        return util.find_spec(module) is not None
    except (ImportError, ValueError, metadata.PackageNotFoundError):
        return False
