"""The arguments of a generated line, and the call of an op's kernel.

the number 2 beside an array   ->  "z0", an array of rank 0
a kernel                       ->  "k0(f0, c0)", with the bound kernel as the parameter k0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.lower.emit_lines import CodeLines
from headrace.lower.native_kernels import NativeKernel
from headrace.lower.select_forms import is_small_update
from headrace.program.constants import exact_key, peek
from headrace.program.node_kernels import bound_kernel
from headrace.program.nodes import Node

__all__ = ["argument", "arguments", "call_kernel"]


def arguments(code: CodeLines, node: Node) -> list[str]:
    """The names of a node's inputs."""
    return [argument(code, node, i) for i in range(len(node.inputs))]


def argument(code: CodeLines, node: Node, i: int) -> str:
    value = node.inputs[i]
    if node.opdef.traits.uninit_ok and (value in code.by_start or value in code.by_current):
        name = code.variable(value, check=False)
        return f"(S.raw({code.param_key(value)}) if {name} is None else {name})"
    return _beside_array(code, node, value) or code.name(value)


def _beside_array(code: CodeLines, node: Node, value: int) -> str | None:
    """A constant number in an expression with an array, as one of rank 0.

    A NumPy scalar takes 0.2 µs more there.
    """
    array = peek(code.program.constants, value)
    if array is None or array.ndim or array.dtype.kind == "O":
        return None
    if node.opdef.traits.expression is None and not is_small_update(node, code.program):
        return None
    if not any(code.program.values[i].shape for i in node.inputs):
        return None
    name = code.numbers.get(value)
    if name is None:
        name = code.numbers[value] = code.param(f"z{len(code.params)}", np.asarray(array))
        code.constant_params[name] = value
    return name


def call_kernel(code: CodeLines, node: Node, args: list[str]) -> str:
    if node.opdef.traits.compiled:
        step = code.param(f"k{len(code.params)}", NativeKernel(node, bound_kernel(node)))
        return f"{step}({', '.join(['S', *args])})"
    kernel = kernel_param(code, node)
    if "rt" in node.opdef.kernel_params:
        code.uses_rt = True
        args = [*args, "rt=rt"]
    return f"{kernel}({', '.join(args)})"


def kernel_param(code: CodeLines, node: Node) -> str:
    opdef = node.opdef
    key: Any = None
    if "node" not in opdef.kernel_params:
        try:
            key = (
                opdef.name,
                tuple([exact_key(node.attrs[p]) for p in opdef.kernel_params if p != "rt"]),
            )
            found = code.kernels.get(key)
        except TypeError:
            key, found = None, None
        if found is not None:
            return found
    name = f"k{len(code.params)}"
    if key is not None:
        code.kernels[key] = name
    return code.param(name, bound_kernel(node))
