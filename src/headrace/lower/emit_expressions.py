"""The right-hand side of a generated line: an operator, a NumPy call or a call of the op's kernel.

tanh of f0        ->  "np.tanh(f0)"
a small product   ->  "f0 @ c0"
anything else     ->  "k0(f0, c0)", with the bound kernel as the parameter k0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.opdef import KernelNode, bind_kernel
from headrace.kernels.numpy import gemm, numpy_xp
from headrace.lower.emit_lines import CodeLines
from headrace.lower.emit_numbers import inverse_of, number_of
from headrace.lower.native_kernels import NativeKernel
from headrace.lower.session_state import SMALL
from headrace.ops.internal import fused_ops
from headrace.program.constants import exact_key, peek
from headrace.program.nodes import Node

__all__ = ["argument", "call_kernel", "expression", "is_small_update"]

_BLAS = frozenset([dtypes.float32, dtypes.float64])
_EXACT = frozenset([dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64])
_SMALL = 4096  # elements below which a product is an operator


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
    if node.opdef.traits.expression is None and not is_small_update(code, node):
        return None
    if not any(code.program.values[i].shape for i in node.inputs):
        return None
    name = code.numbers.get(value)
    if name is None:
        name = code.numbers[value] = code.param(f"z{len(code.params)}", np.asarray(array))
        code.constant_params[name] = value
    return name


def expression(code: CodeLines, node: Node, args: list[str]) -> str:
    name = node.opdef.name
    template = node.opdef.traits.expression
    if template is not None and not (name == "Add" and _is_string(code, node)):
        code.instr.implementation = "operator"
        return template.format(*args)
    if node.opdef.role == "matmul" and code.program.values[node.outputs[0]].dtype in _BLAS:
        code.instr.implementation = "product"
        return _product(code, node, args)
    short = _shortcut(code, node, args)
    if short is None:
        return call_kernel(code, node, args)
    code.instr.implementation = "NumPy"
    return short


def _is_string(code: CodeLines, node: Node) -> bool:
    """``+`` of two scalar strings would give plain bytes."""
    return code.program.values[node.outputs[0]].dtype is dtypes.string


def _shortcut(code: CodeLines, node: Node, args: list[str]) -> str | None:
    """Ops on shapes and scalars whose other inputs are known, without a call of their
    kernel.
    """
    name, role = node.opdef.name, node.opdef.role
    if role == "reduction":
        return _reduction(code, node, args[0])
    if role or name not in ("Size", "_InverseSize", "Cast", "ExpandDims"):
        return None
    dtype = code.program.values[node.outputs[0]].dtype
    if name == "Size":
        return f"{code.param(f'{dtype.name}_of', number_of(dtype))}({args[0]}.size)"
    if name == "_InverseSize":
        return f"{code.param(f'inverse_{dtype.name}', inverse_of(dtype))}({args[0]}.size)"
    source = code.program.values[node.inputs[0]]
    if name == "Cast" and source.shape == () and dtype in _BLAS and source.dtype in _EXACT:
        return f"{code.param(dtype.name, dtype.np_dtype.type)}({args[0]})"
    if name == "ExpandDims" and source.shape:
        axis = code.program.constants.get(node.inputs[1])
        if axis is not None and axis.size == 1:
            rank = len(source.shape)
            at = int(axis.reshape(-1)[0])
            at = at + rank + 1 if at < 0 else at
            return f"{args[0]}[{', '.join([':'] * at + ['None'])}]"
    return None


def _reduction(code: CodeLines, node: Node, x: str) -> str | None:
    """Sums over everything, and of columns, of the types that add up in their own precision."""
    if node.opdef.name not in ("Sum", "Mean"):
        return None
    info = code.program.values[node.inputs[0]]
    axes = code.program.constants.get(node.inputs[1])
    if info.dtype not in _BLAS or info.shape is None or axes is None or node.attrs["keep_dims"]:
        return None
    rank = len(info.shape)
    gone = {int(a) % rank for a in axes.reshape(-1)} if rank else set()
    if rank and len(gone) == rank:
        if rank == 1:
            total = f"{code.param('vector_sum', gemm.vector_sum)}({x})"
        else:
            total = f"np.add.reduce({x}, None)"
        return total if node.opdef.name == "Sum" else f"{total} / {x}.size"
    if node.opdef.name == "Sum" and rank == 2 and gone == {0}:
        return f"{code.param('column_sums', gemm.column_sums)}({x})"
    return None


def _product(code: CodeLines, node: Node, args: list[str]) -> str:
    """Small products as an operator, the others (or unknown sizes) through the threads of
    ``gemm``.
    """
    left = args[0] + (".T" if node.attrs["transpose_a"] else "")
    right = args[1] + (".T" if node.attrs["transpose_b"] else "")
    if node.opdef.name == "_FusedMatMul":
        function = fused_ops.product_step(node.attrs["fused_ops"])
        return f"{code.param(function.__name__, function)}({left}, {right}, {args[2]})"
    sizes = [
        shapes.num_elements(code.program.values[v].shape) for v in (*node.inputs, *node.outputs)
    ]
    if all(s is not None and s < _SMALL for s in sizes):
        return f"{left} @ {right}"
    return f"{code.param('matmul', gemm.matmul)}({left}, {right})"


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


def bound_kernel(node: Node) -> Callable[..., Any]:
    """The op's NumPy kernel with the node's attributes."""
    known = KernelNode(node.op.name, node.op.type, node.attrs, node.op)
    return bind_kernel(node.opdef, known, numpy_xp)


def is_small_update(code: CodeLines, node: Node) -> bool:
    """A new value that is one expression, of a variable that is replaced rather than
    overwritten.
    """
    if node.opdef.traits.update is None:
        return False
    variable, change = (code.program.values[node.inputs[i]].shape for i in (0, -1))
    size = shapes.num_elements(variable)
    return size is not None and size <= SMALL and variable == change
