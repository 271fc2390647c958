"""Settings that make this machine compute like one with fewer instructions, or like an installation
without compiled kernels; each needs a process of its own.

The variables are read when NumPy, OpenBLAS and oneDNN are loaded. Used by ``tools/check``, tests
and benchmarks:

    python -m tests.instruction_sets avx2                          # the numeric tests
    python -m tests.instruction_sets avx2 pytest tests/ops/nn/test_nn.py  # any main program
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from headrace.runtime import cpu_features

__all__ = ["NUMERIC", "SETTINGS", "Setting", "numeric_files"]

#: Tests whose numbers come from code that is chosen by instruction set, by who chooses it.
_LIBRARY = """
    test_benchmark_models test_cross_entropy test_fused_products test_write_stage test_lstm_cells
    test_model_patterns test_narrow_weights test_nn test_onednn test_onednn_conv
    test_onednn_kernels test_optimizers test_packing test_programs test_reproducible test_bound_runs
    test_bound_graphs test_bound_training test_threads test_training_patterns
    test_update_groups
"""
#: Tests of steps that would be compiled, and of what stands beside them.
_NATIVE = """
    test_native_updates test_native_segments test_native_philox test_native_resize
    test_product_updates test_bound_segments
    test_native_scatter test_native_cells test_native_recurrent test_specialised
    test_explain test_structures test_cache_keys
"""
#: Tests of what is compiled if there is a compiler.
_COMPILED = """
    test_bound_runs test_bound_training test_lstm_cells test_native_groups test_llvm_library
    test_random_graphs test_vector_math
"""
_NUMPY = (
    "test_closing_reductions test_gradients test_linalg test_math test_random "
    "test_random_graphs test_samples test_vector_math test_native_groups test_llvm_library"
)
NUMERIC = [*_LIBRARY.split(), *_NUMPY.split()]


def numeric_files(setting: str) -> list[str]:
    """The files to run with a setting.

    Without VNNI only oneDNN's code is another, so NumPy's tests would show nothing new. The samples
    of single ops run each op a few times, so none of their steps is ever compiled: they show
    nothing new without native kernels. Without llvmlite the same code runs as when native kernels
    are switched off, so only what would load it is new.
    """
    wanted = _LIBRARY.split() if setting == "avx512" else NUMERIC
    if setting == "nonative":
        wanted = [n for n in [*NUMERIC, *_NATIVE.split()] if n != "test_samples"]
    if setting == "nollvm":
        wanted = [*_NATIVE.split(), *_COMPILED.split()]
    files = []
    for name in wanted:
        found = [str(p) for p in Path(__file__).parent.rglob(f"{name}.py")]
        if not found:
            raise SystemExit(f"there is no {name}.py any more: mend the list in {__file__}")
        files += found
    return files


def left_out(setting: str) -> list[str]:
    """pytest's options for what a setting cannot change.

    Tests that are marked ``once``; without the kernel library, samples of the reference executor,
    which does not use it.
    """
    options = ["-m", "not once"]
    return [*options, "-k", "not (test_samples and reference)"] if setting == "none" else options


def _numpy_features() -> str:
    """The names of what lies above AVX2 in the installed NumPy, which differ between its
    versions.
    """
    from numpy._core import _multiarray_umath as umath

    above = [f for f in umath.__cpu_dispatch__ if "AVX512" in f or f == "X86_V4"]
    return " ".join(above)


@dataclass(frozen=True)
class Setting:
    """A kind of machine. ``variables`` go into the environment of its processes."""

    meaning: str
    variables: dict[str, str] = field(default_factory=dict)
    without_avx512: bool = False
    plugin: str = ""  # a module that pytest loads first
    needs: str = ""  # a CPU flag; a setting can take instructions away, not add them

    def missing(self) -> str:
        """Why this machine cannot compute like that one; empty if it can."""
        if not self.needs or self.needs in cpu_features.cpu().flags:
            return ""
        return f"{self.meaning}: not imitated, because this CPU has no {self.needs}"

    def environment(self) -> dict[str, str]:
        found = dict(self.variables)
        if self.plugin:
            found["PYTEST_PLUGINS"] = self.plugin
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
        needs="avx512f",
    ),
    "none": Setting("no kernel library", {"HEADRACE_ONEDNN": "0"}),
    "nonative": Setting("no native kernels", {"HEADRACE_NATIVE": "0"}),
    "nollvm": Setting("llvmlite is not installed", plugin="tests.without_llvmlite"),
}


def main() -> int:
    name, *command = sys.argv[1:] or ["--help"]
    if name not in SETTINGS:
        print(f"python -m tests.instruction_sets {'|'.join(SETTINGS)} [MODULE ARGUMENTS...]")
        return 0 if name == "--help" else 2
    if missing := SETTINGS[name].missing():
        print(missing)
        return 0
    if not command:
        command = ["pytest", "-n", "auto", *left_out(name), *numeric_files(name)]
    environment = {**os.environ, **SETTINGS[name].environment()}
    return subprocess.run([sys.executable, "-m", *command], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
