"""Settings that make this machine compute like one with fewer instructions; each needs a process of its own.

The variables are read when NumPy, OpenBLAS and oneDNN are loaded. Used by ``tools/check``, tests and benchmarks:

    python -m tests.instruction_sets avx2                          # the numeric tests
    python -m tests.instruction_sets avx2 pytest tests/ops/test_nn.py  # any module's main program
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["NUMERIC", "SETTINGS", "Setting"]

#: Tests whose numbers come from code that is chosen by instruction set: kernels, layouts, fused steps, whole programs.
NUMERIC = [
    "test_benchmark_models",
    "test_cross_entropy",
    "test_gradients",
    "test_grouping",
    "test_kept",
    "test_linalg",
    "test_math",
    "test_narrow_weights",
    "test_nn",
    "test_onednn",
    "test_onednn_conv",
    "test_onednn_kernels",
    "test_optimizers",
    "test_packing",
    "test_programs",
    "test_random",
    "test_random_graphs",
    "test_reproducible",
    "test_rewrites_lstm",
    "test_rewrites_models",
    "test_rewrites_products",
    "test_rewrites_reductions",
    "test_rewrites_training",
    "test_samples",
    "test_settled",
    "test_settled_graphs",
    "test_settled_training",
    "test_threads",
]


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
        "AVX2 only",
        {
            "ONEDNN_MAX_CPU_ISA": "AVX2",
            "OPENBLAS_CORETYPE": "Haswell",
            "ATEN_CPU_CAPABILITY": "avx2",
            "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
        },
        True,
    ),
    "avx512": Setting(
        "AVX-512 without VNNI",
        {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE", "OPENBLAS_CORETYPE": "SkylakeX"},
    ),
    "none": Setting("no kernel library", {"HEADRACE_ONEDNN": "0"}),
}


def main() -> int:
    name, *command = sys.argv[1:]
    if not command:
        folder = Path(__file__).parent
        command = [
            "pytest",
            "-n",
            "auto",
            *[str(p) for m in NUMERIC for p in folder.rglob(f"{m}.py")],
        ]
    environment = {**os.environ, **SETTINGS[name].environment()}
    return subprocess.run([sys.executable, "-m", *command], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
