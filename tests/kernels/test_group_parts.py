"""A long chain is computed by parts that take turns: the bits are those of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.kernels.native import llvm_library

if llvm_library.available() is None:
    pytest.skip(f"no LLVM: {llvm_library.status()}", allow_module_level=True)

from headrace.kernels.native.element_loops import GRAIN, Access, element_loop
from headrace.kernels.native.group_kernels import Group, Member, write_members, write_result
from headrace.kernels.native.ir_builder import Function
from headrace.kernels.native.ir_values import Value
from headrace.kernels.native.kernel import Kernel

CAST = (("DstT", "f64"), ("Truncate", False))
GROUPS = {
    "one type": Group(
        ("f32", "f32"),
        tuple(
            Member(*m, "f32")  # type: ignore[arg-type]
            for m in (("Mul", (0, 1)), ("Tanh", (2,)), ("Add", (3, 0)), ("Exp", (4,)))
        ),
    ),
    "half": Group(("f16", "f16"), (Member("Mul", (0, 1), "f16"), Member("Sigmoid", (2,), "f16"))),
    "a choice": Group(
        ("f32", "f32"),
        (
            Member("Less", (0, 1), "bool"),
            Member("Tanh", (0,), "f32"),
            Member("Select", (2, 3, 1), "f32"),
        ),
    ),
    "two types": Group(
        ("f32", "f64"), (Member("Cast", (0,), "f64", CAST), Member("Add", (2, 1), "f64"))
    ),
}
DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16}


@pytest.mark.parametrize("extents", [("full", "full"), ("full", "scalar")])
@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("parts", [1, 2, 4])
def test_parts_are_the_whole(name: str, parts: int, extents: tuple[str, str]) -> None:
    group = GROUPS[name]
    rng = np.random.default_rng(5)
    inputs = [
        rng.normal(0, 2, 1003 if extent == "full" else 1).astype(DTYPES[element])
        for element, extent in zip(group.inputs, extents)
    ]
    accesses = [Access(e, x) for e, x in zip(group.inputs, extents)]

    def whole(f: Function, values: list[Value]) -> list[Value]:
        return [f.convert(write_members(f, values, group.members)[-1], group.element)]

    def by_parts(f: Function, values: list[Value]) -> list[Value]:
        return [write_result(f, values, group, 8 * 16 // parts)]

    found = []
    for body in (whole, by_parts):
        source = element_loop("g", accesses, [Access(group.element)], body, 16, lanes=8)
        out = np.empty(1003, DTYPES[group.element])
        Kernel(source, "g").run([*inputs, out], [], out.size, GRAIN)
        found.append(out.tobytes())
    assert found[0] == found[1]
