"""Settings that make this machine compute like one with fewer instructions; each needs a process of its own.

The variables are read when NumPy, OpenBLAS and oneDNN are loaded. Used by ``tools/check``, tests and benchmarks:

    python -m tests.instruction_sets avx2 pytest tests/test_nn.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field

__all__ = ["SETTINGS", "Setting"]


def _numpy_features() -> str:
    """The names of what lies above AVX2 in the installed NumPy, which differ between its versions."""
    from numpy._core import _multiarray_umath as umath

    above = [f for f in umath.__cpu_dispatch__ if "AVX512" in f or f == "X86_V4"]
    return " ".join(above)


@dataclass(frozen=True)
class Setting:
    """A kind of machine. ``variables`` go into the environment of its processes."""

    meaning: str
    variables: dict[str, str] = field(default_factory=dict)
    without_avx512: bool = False

    def environment(self) -> dict[str, str]:
        found = dict(self.variables)
        if self.without_avx512:
            found["NPY_DISABLE_CPU_FEATURES"] = _numpy_features()
        return found


SETTINGS = {
    "avx2": Setting(
        "AVX2 only", {"ONEDNN_MAX_CPU_ISA": "AVX2", "OPENBLAS_CORETYPE": "Haswell"}, True
    ),
    "avx512": Setting(
        "AVX-512 without VNNI", {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE", "OPENBLAS_CORETYPE": "SkylakeX"}
    ),
    "none": Setting("no kernel library", {"HEADRACE_ONEDNN": "0"}),
}


def main() -> int:
    name, *command = sys.argv[1:]
    environment = {**os.environ, **SETTINGS[name].environment()}
    return subprocess.run([sys.executable, "-m", *command], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
