"""Native functions against float64 and long double: all exponents, special values, denormals."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.kernels.native import llvm_library

if llvm_library.available() is None:
    pytest.skip(f"no LLVM: {llvm_library.status()}", allow_module_level=True)

from headrace.kernels.native.element_loops import GRAIN, Access, element_loop
from headrace.kernels.native.kernel import Kernel
from headrace.kernels.native.vector_math import MATH, ULPS, power, rsqrt
from headrace.runtime.thread_pool import limited

DTYPES = {"f32": np.float32, "f64": np.float64}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.0, -2.0]


def call(function, *inputs):
    element = "f32" if inputs[0].dtype == np.float32 else "f64"
    arrays = [np.ascontiguousarray(x) for x in inputs]
    source = element_loop(
        "f",
        [Access(element)] * len(arrays),
        [Access(element)],
        lambda f, values: [function(f, *values)],
    )
    out = np.empty_like(arrays[0])
    with limited(1):  # workers take denormals for zero
        Kernel(source, "f").run([*arrays, out], [], out.size, GRAIN)
    return out


def arguments(element):
    """All exponents with random mantissas, both signs, neighbours of thresholds, special values."""
    dtype, integer = DTYPES[element], {"f32": np.uint32, "f64": np.uint64}[element]
    bits, width = (23, 8) if element == "f32" else (52, 11)
    rng = np.random.default_rng(3)
    exponents = np.repeat(np.arange(2**width - 1), 120 if element == "f32" else 20)
    mantissas = rng.integers(0, 2**bits, exponents.size)
    positive = ((exponents << bits) | mantissas).astype(integer).view(dtype)
    usual = np.concatenate([rng.normal(0, s, 60_000) for s in (0.1, 1, 3, 10, 50)]).astype(dtype)
    near = [np.log(2) * n / 2 for n in range(-300, 300)] + [0.93, 9.02, 88.72, -87.3, 709.7, -745]
    near = np.array(near, dtype)
    edges = np.concatenate([near, np.nextafter(near, dtype(9e9)), np.nextafter(near, dtype(-9e9))])
    info = np.finfo(dtype)
    ends = [info.max, info.tiny, info.smallest_subnormal, info.eps]
    found = np.concatenate([positive, -positive, usual, edges, ends, np.negative(ends), SPECIAL])
    return found.astype(dtype)


def wide(x):
    return x.astype(np.float64 if x.dtype == np.float32 else np.longdouble)


def sigmoid(x):
    return np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x)))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def erf(x):
    import scipy.special

    return scipy.special.erf(x)


REFERENCES = {
    "Exp": np.exp,
    "Expm1": np.expm1,
    "Log": np.log,
    "Log1p": np.log1p,
    "Tanh": np.tanh,
    "Sigmoid": sigmoid,
    "Softplus": softplus,
    "Erf": erf,
    "Sin": np.sin,
    "Cos": np.cos,
}
CASES = [(op, element) for op, types in MATH.items() for element in types]


def errors(found, exact):
    """Distances in units of the last place of the exact result."""
    dtype = found.dtype
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype)
        unit = np.spacing(np.abs(rounded)).astype(exact.dtype)
        distance = np.abs(wide(found) - exact) / unit
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    return np.where(same, 0, np.where(np.isfinite(rounded) & np.isfinite(found), distance, np.inf))


@pytest.mark.parametrize(("op", "element"), CASES)
def test_functions_are_within_their_bounds(op, element):
    x = arguments(element)
    with np.errstate(all="ignore"):
        exact = REFERENCES[op](wide(x))
    found = call(MATH[op][element], x)
    off = errors(found, exact)
    worst = int(np.argmax(off))
    text = f"{op}({x[worst]!r}) = {found[worst]!r}, not {exact[worst]!r}: {off[worst]}"
    assert off[worst] <= ULPS.get(MATH[op][element], {}).get(element, 2), text
    zero = exact == 0
    assert np.array_equal(np.signbit(found[zero]), np.signbit(exact[zero]))


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_reciprocal_roots(element):
    x = arguments(element)
    with np.errstate(all="ignore"):
        exact = 1 / np.sqrt(wide(x))
    assert errors(call(rsqrt, x), exact).max() <= 2


def test_powers_are_within_two_ulp():
    rng = np.random.default_rng(4)
    special = [*SPECIAL, 3.0, -3.0, 0.25, 1e30, -1e30, 1e-30, 16777217.0, 33554432.0, -0.7]
    x, y = (a.ravel() for a in np.meshgrid(special, special))
    usual = np.exp(rng.normal(0, 5, 200_000)), rng.normal(0, 8, 200_000)
    near = 1 + rng.normal(0, 1e-3, 100_000), rng.normal(0, 3e4, 100_000)
    whole = rng.normal(0, 3, 50_000), rng.integers(-9, 9, 50_000)
    x = np.concatenate([x, usual[0], near[0], whole[0]]).astype(np.float32)
    y = np.concatenate([y, usual[1], near[1], whole[1]]).astype(np.float32)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
    found = call(power, x, y)
    off = errors(found, exact)
    worst = int(np.argmax(off))
    assert off[worst] <= 2, (x[worst], y[worst], found[worst], exact[worst])


@pytest.mark.parametrize("op", ["Exp", "Log", "Tanh", "Sigmoid", "Erf", "Sin"])
def test_bits_do_not_depend_on_neighbours(op):
    x = arguments("f32")
    whole = call(MATH[op]["f32"], x)
    assert np.array_equal(call(MATH[op]["f32"], x[5:]), whole[5:], equal_nan=True)
    for n in (1, 3, 17, 63):
        part = x[-n:]
        assert np.array_equal(call(MATH[op]["f32"], part), whole[-n:], equal_nan=True)


@pytest.mark.parametrize("op", ["Exp", "Log", "Tanh", "Sigmoid", "Softplus", "Erf"])
def test_the_loops_use_whole_registers(op):
    """Nothing falls back to one lane at a time."""
    llvm = llvm_library.load()
    if llvm.vector_bits == 128:
        pytest.skip("x86")
    source = element_loop(
        "f", [Access("f32")], [Access("f32")], lambda f, v: [MATH[op]["f32"](f, *v)]
    )
    text = llvm.assembly(source)
    register = "zmm" if llvm.vector_bits == 512 else "ymm"
    arithmetic = [line for line in text.splitlines() if "fma" in line or "fnma" in line]
    assert arithmetic and all(register in line for line in arithmetic)
    assert "call" not in text
