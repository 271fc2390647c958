"""LLVM: there or not, limits of the CPU, the cache, and what the IR builder writes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import numpy as np
import pytest

from headrace.kernels.native import llvm_library, object_loader, vector_math
from headrace.kernels.native.element_loops import GRAIN, Access, element_loop
from headrace.kernels.native.kernel import Kernel

needs_llvm = pytest.mark.skipif(
    llvm_library.available() is None, reason=f"no LLVM: {llvm_library.status()}"
)


def in_process(code, **environment):
    """What a program prints in a process of its own."""
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return found.stdout.strip()


STATUS = "from headrace.kernels.native import llvm_library as l; print(l.why_not() or l.status())"


@pytest.mark.once
def test_it_can_be_switched_off():
    assert in_process(STATUS, HEADRACE_NATIVE="0") == "switched off by HEADRACE_NATIVE"


@pytest.mark.once
def test_it_may_be_missing():
    hidden = "import sys; sys.modules['llvmlite'] = None\n"
    assert "llvmlite" in in_process(hidden + STATUS, HEADRACE_NATIVE="1")


@needs_llvm
def test_the_limit_of_instruction_sets_holds():
    width = (
        "from headrace.kernels.native.llvm_library import load; l = load(); "
        "print(l.vector_bits, '+avx512f' in l.features)"
    )
    wide = llvm_library.load().vector_bits
    assert in_process(width, ONEDNN_MAX_CPU_ISA="AVX2") == f"{min(wide, 256)} False"
    if wide == 512:
        assert in_process(width, ONEDNN_MAX_CPU_ISA="AVX512_CORE") == "512 True"
    assert "AVX2" in in_process(STATUS, ONEDNN_MAX_CPU_ISA="SSE41")


SCALED = """
import numpy as np
from headrace.kernels.native.element_loops import Access, element_loop
from headrace.kernels.native.kernel import Kernel
from headrace.kernels.native.llvm_library import load
source = element_loop("f", [Access("f32")], [Access("f32")], lambda f, v: [v[0] * 3.0])
kernel = Kernel(source, "f")
x, y = np.arange(100, dtype=np.float32), np.empty(100, np.float32)
kernel.run([x, y], [], 100, 1000)
assert (y == 3 * x).all()
print(kernel.code.from_cache, load().cache.problem)
"""


@pytest.mark.once
@needs_llvm
def test_a_second_process_finds_the_code(tmp_path):
    folder = str(tmp_path)
    assert in_process(SCALED, HEADRACE_CACHE_DIR=folder) == "False"
    assert in_process(SCALED, HEADRACE_CACHE_DIR=folder) == "True"
    # code for another CPU is other code
    limited = in_process(SCALED, HEADRACE_CACHE_DIR=folder, ONEDNN_MAX_CPU_ISA="AVX2")
    assert limited == ("False" if llvm_library.load().vector_bits == 512 else "True")
    for file in (tmp_path / "native").iterdir():
        file.write_bytes(file.read_bytes()[:200])
    assert in_process(SCALED, HEADRACE_CACHE_DIR=folder) == "False"
    assert in_process(SCALED, HEADRACE_CACHE_DIR=folder) == "True"


@pytest.mark.once
@needs_llvm
def test_without_a_place_for_the_cache_kernels_work(tmp_path):
    (tmp_path / "file").write_text("")
    assert in_process(SCALED, HEADRACE_CACHE_DIR=str(tmp_path / "file")).startswith("False Not a")


@needs_llvm
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (100, 10), (5, 16), (2, 31), (4, 1000)])
def test_operands_of_all_extents(shape):
    rows, columns = shape
    rng = np.random.default_rng(0)
    x, r, c = (rng.normal(size=s).astype(np.float32) for s in (shape, (columns,), (rows, 1)))
    flags, s = rng.random(shape) < 0.5, np.array(2.5, np.float32)
    accesses = [
        Access("f32"),
        Access("f32", "row"),
        Access("f32", "column"),
        Access("f32", "scalar"),
        Access("bool"),
    ]
    source = element_loop(
        "f",
        accesses,
        [Access("f32"), Access("bool")],
        lambda f, v: [f.select(v[4], v[0] * v[1] + v[2], v[3]), v[0] < v[1]],
    )
    around = np.full((rows + 2, columns), 7, np.float32)
    out, less = around[1:-1], np.empty(shape, bool)
    Kernel(source, "f").run([x, r, c, s, flags, out, less], [columns], rows, 1)
    assert np.array_equal(out, np.where(flags, x * r + c, s))
    assert np.array_equal(less, x < r)
    assert (around[[0, -1]] == 7).all()


@needs_llvm
def test_bits_depend_neither_on_threads_nor_on_lanes():
    from headrace.runtime.thread_pool import limited

    rng = np.random.default_rng(1)
    x = rng.normal(size=5 * GRAIN + 17).astype(np.float32)
    found = []
    for lanes, interleave, threads in ((None, 2, 1), (None, 2, 4), (8, 1, 3), (4, 4, 2)):
        source = element_loop(
            "f",
            [Access("f32")],
            [Access("f32")],
            lambda f, v: [f.sqrt(f.abs(v[0])) / (v[0] * 1.7 + 0.3)],
            interleave,
            lanes,
        )
        y = np.empty_like(x)
        with limited(threads):
            Kernel(source, "f").run([x, y], [], x.size, GRAIN)
        found.append(y.tobytes())
    assert len(set(found)) == 1
    expected = np.sqrt(np.abs(x)) / (x * np.float32(1.7) + np.float32(0.3))
    assert found[0] == expected.tobytes()


TYPES = ["float32", "float64", "float16", "bfloat16", "bool", "int8", "int16", "int32", "int64"]
TYPES += ["uint8", "uint16", "uint32", "uint64"]


@needs_llvm
@pytest.mark.parametrize("source_type", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_casts_are_numpys(source_type, target):
    import ml_dtypes

    from headrace.kernels.native.ir_values import ELEMENT_OF_DTYPE

    def dtype(name):
        return np.dtype(getattr(ml_dtypes, name, None) or name)

    numbers = [0, 1, 2, 3, 5, 100, 0.5, 1.5, 2.5, 77.25]
    if dtype(source_type).kind not in "ub":
        numbers += [-1, -2, -100]
        if "float" in source_type and "float" in target:
            numbers += [np.inf, -np.inf, np.nan, 1e-3, 1.00390625, 1.01171875, -0.0]
    if dtype(target).kind in "ub":
        numbers = [n for n in numbers if not n < 0]
    x = np.array(numbers, np.float64).astype(dtype(source_type))
    with np.errstate(all="ignore"):
        expected = x.astype(dtype(target))
    a, b = ELEMENT_OF_DTYPE[source_type], ELEMENT_OF_DTYPE[target]
    kernel = Kernel(
        element_loop("f", [Access(a)], [Access(b)], lambda f, v: [f.convert(v[0], b)]), "f"
    )
    out = np.empty_like(expected)
    kernel.run([x.view(np.uint8), out.view(np.uint8)], [], x.size, GRAIN)
    if dtype(target).itemsize > 1 and "float" in target:
        nan = np.isnan(expected.astype(np.float64))
        assert np.array_equal(nan, np.isnan(out.astype(np.float64)))
        assert out[~nan].tobytes() == expected[~nan].tobytes()
    else:
        assert out.tobytes() == expected.tobytes()


LOADED = SCALED + "import sys; print('llvmlite.binding' in sys.modules)"


@pytest.mark.once
@needs_llvm
@pytest.mark.skipif(sys.platform != "linux", reason="LLVM links objects elsewhere")
def test_code_from_the_cache_needs_no_compiler(tmp_path):
    folder = str(tmp_path)
    assert in_process(LOADED, HEADRACE_CACHE_DIR=folder).split() == ["False", "True"]
    assert in_process(LOADED, HEADRACE_CACHE_DIR=folder).split() == ["True", "False"]


def machine_code(source):
    llvm = llvm_library.load()
    return llvm._emit(source, False)


def exponential(name="f"):
    """A kernel with constants."""
    x = Access("f32")
    return element_loop(name, [x], [x], lambda f, v: [vector_math.exp(f, v[0] * 3.0)])


@needs_llvm
def test_a_loaded_object_computes_what_llvm_links(monkeypatch):
    x = np.linspace(-3, 3, 1001, dtype=np.float32)
    found = []
    for n, refuses in enumerate((False, True)):
        if refuses:
            monkeypatch.setattr(llvm_library, "LoadedObject", _refusing)
        kernel, y = Kernel(exponential(f"f{n}"), f"f{n}"), np.empty_like(x)
        assert (type(kernel.code._engine) is object_loader.LoadedObject) is not refuses
        kernel.run([x, y], [], x.size, 1 << 20)
        found.append(y)
        with pytest.raises(LookupError):
            kernel.code.address("g")
    np.testing.assert_array_equal(*found)


def _refusing(code):
    raise object_loader.CannotLoad("as on another system")


@needs_llvm
def test_what_is_not_in_the_object_is_left_to_llvm():
    source = (
        "declare double @cos(double)\n"
        "define double @both(double %x) { %y = call double @cos(double %x) ret double %y }"
    )
    with pytest.raises(object_loader.CannotLoad):
        object_loader.LoadedObject(machine_code(source))
    llvm = llvm_library.load()
    assert llvm.function(llvm.compile(source), "both", "double(*)(double)")(0.0) == 1.0


@needs_llvm
def test_damaged_objects_are_refused_or_loaded_but_never_written_beyond():
    whole = machine_code(exponential())
    random = np.random.default_rng(0)
    for end in random.integers(0, len(whole), 60):
        with pytest.raises(object_loader.CannotLoad):
            object_loader.LoadedObject(whole[:end])
    for _ in range(300):  # (their code is not called)
        damaged = bytearray(whole)
        damaged[random.integers(len(whole))] ^= 1 << random.integers(8)
        with contextlib.suppress(object_loader.CannotLoad):
            object_loader.LoadedObject(bytes(damaged))
