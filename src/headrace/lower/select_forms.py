"""How a step of one op is written where no shape is known: an operator, a NumPy call, its kernel.

tanh of %0        ->  "np.tanh({0})"
a small product   ->  "{0} @ {1}"
anything else     ->  "", a call of the op's bound kernel

The text belongs to the instruction; the emitter puts the names of the inputs into it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, shapes
from headrace.kernels.numpy import gemm
from headrace.lower.listing import Instr
from headrace.lower.session_state import MIN_OVERWRITTEN
from headrace.ops.internal import fused_ops
from headrace.program.nodes import Node, Program

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.core.dtypes import DType

__all__ = ["is_small_update", "select_form"]

_BLAS = frozenset([dtypes.float32, dtypes.float64])
_EXACT = frozenset([dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64])
_MIN_PRODUCT_CALL = 4096  # elements below which a product is an operator

Params = tuple[tuple[str, Any], ...]


def select_form(instr: Instr, node: Node, program: Program) -> None:
    """Decide how a node is computed, and how that is written."""
    template, role = node.opdef.traits.expression, node.opdef.role
    if template is not None and not (role == "+" and _is_text(node, program)):
        instr.implementation, instr.text = "operator", template
    elif role == "matmul" and program.values[node.outputs[0]].dtype in _BLAS:
        instr.implementation = "product"
        instr.text, instr.params = _product(node, program)
    else:
        short = _shortcut(node, program)
        if short is not None:
            instr.implementation = "NumPy"
            instr.text, instr.params = short


def is_small_update(node: Node, program: Program) -> bool:
    """A new value that is one expression, of a variable that is replaced rather than
    overwritten.
    """
    if node.opdef.traits.update is None:
        return False
    variable, change = (program.values[node.inputs[i]].shape for i in (0, -1))
    size = shapes.num_elements(variable)
    return size is not None and size <= MIN_OVERWRITTEN and variable == change


def _is_text(node: Node, program: Program) -> bool:
    """``+`` of two scalar strings would give plain bytes."""
    return program.values[node.outputs[0]].dtype is dtypes.string


def _product(node: Node, program: Program) -> tuple[str, Params]:
    """Small products as an operator, the others (or unknown sizes) through the threads of
    ``gemm``.
    """
    left = "{0}.T" if node.attrs["transpose_a"] else "{0}"
    right = "{1}.T" if node.attrs["transpose_b"] else "{1}"
    fused = node.attrs.get("fused_ops")
    given = [program.values[v].shape for v in node.inputs[:2]]
    if not all(s is not None and len(s) == 2 for s in given):  # np.matmul takes vectors too
        step = gemm.matmul if fused is None else fused_ops.product_step(fused)
        third = "" if fused is None else ", {2}"
        name = "product" if fused is None else f"{step.__name__}_of_matrices"
        return f"{name}({left}, {right}{third})", ((name, _of_matrices(step)),)
    if fused is not None:
        function = fused_ops.product_step(fused)
        name = function.__name__
        return f"{name}({left}, {right}, {{2}})", ((name, function),)
    sizes = [shapes.num_elements(program.values[v].shape) for v in (*node.inputs, *node.outputs)]
    if all(s is not None and s < _MIN_PRODUCT_CALL for s in sizes):
        return f"{left} @ {right}", ()
    return f"matmul({left}, {right})", (("matmul", gemm.matmul),)


@functools.cache
def _of_matrices(step: Callable[..., Any]) -> Callable[..., Any]:
    """A product that refuses what is no matrix."""

    def product(left: Array, right: Array, *others: Array) -> Any:
        for i, x in enumerate((left, right)):
            if x.ndim != 2:
                shape = shapes.show(x.shape)
                text = f"In[{i}] is not a matrix. Instead it has shape {shape}"
                raise errors.InvalidArgumentError(None, None, text)
        return step(left, right, *others)

    return product


def _shortcut(node: Node, program: Program) -> tuple[str, Params] | None:
    """Ops on shapes and scalars whose other inputs are known, without a call of their
    kernel.
    """
    form = _SHORTCUTS.get(node.opdef.name)
    return None if form is None else form(node, program)


def _size(node: Node, program: Program) -> tuple[str, Params]:
    dtype = program.values[node.outputs[0]].dtype
    of = f"{dtype.name}_of"
    return f"{of}({{0}}.size)", ((of, _number_of(dtype)),)


def _inverse_size(node: Node, program: Program) -> tuple[str, Params]:
    dtype = program.values[node.outputs[0]].dtype
    inverse = f"inverse_{dtype.name}"
    return f"{inverse}({{0}}.size)", ((inverse, _inverse_of(dtype)),)


def _cast(node: Node, program: Program) -> tuple[str, Params] | None:
    """Of a scalar to a float."""
    source, dtype = program.values[node.inputs[0]], program.values[node.outputs[0]].dtype
    if source.shape != () or dtype not in _BLAS or source.dtype not in _EXACT:
        return None
    return f"{dtype.name}({{0}})", ((dtype.name, dtype.np_dtype.type),)


def _expand_dims(node: Node, program: Program) -> tuple[str, Params] | None:
    """At a known axis."""
    shape, axis = program.values[node.inputs[0]].shape, program.constants.get(node.inputs[1])
    if not shape or axis is None or axis.size != 1:
        return None
    at = int(axis.reshape(-1)[0])
    at = at + len(shape) + 1 if at < 0 else at
    return f"{{0}}[{', '.join([':'] * at + ['None'])}]", ()


def _adding(node: Node, program: Program) -> tuple[str, Params] | None:
    """Sums over everything, and of columns, of the types that add up in their own precision."""
    is_sum = node.opdef.traits.reduces == "sum"
    info = program.values[node.inputs[0]]
    axes = program.constants.get(node.inputs[1])
    if info.dtype not in _BLAS or info.shape is None or axes is None or node.attrs["keep_dims"]:
        return None
    rank = len(info.shape)
    gone = {int(a) % rank for a in axes.reshape(-1)} if rank else set()
    if rank and len(gone) == rank:
        total = "vector_sum({0})" if rank == 1 else "np.add.reduce({0}, None)"
        params: Params = (("vector_sum", gemm.vector_sum),) if rank == 1 else ()
        return (total if is_sum else f"{total} / {{0}}.size"), params
    if is_sum and rank == 2 and gone == {0}:
        return "column_sums({0})", (("column_sums", gemm.column_sums),)
    return None


_SHORTCUTS: dict[str, Callable[[Node, Program], tuple[str, Params] | None]] = {
    "Size": _size,
    "_InverseSize": _inverse_size,
    "Cast": _cast,
    "ExpandDims": _expand_dims,
    "Sum": _adding,
    "Mean": _adding,
}


@functools.cache
def _number_of(dtype: DType) -> Callable[[int], Any]:
    """From a size to a NumPy scalar.

    Sizes come again, and to make one takes four times as long as to find it.
    """
    return functools.lru_cache(64)(dtype.np_dtype.type)


@functools.cache
def _inverse_of(dtype: DType) -> Callable[[int], Any]:
    """From a size to one over it, of rank 0 since it is there to be multiplied with arrays."""
    make = dtype.np_dtype.type

    @functools.lru_cache(64)
    def inverse(size: int) -> Any:
        made = np.asarray(make(1) / make(size))
        made.flags.writeable = False
        return made

    return inverse
