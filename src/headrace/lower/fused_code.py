"""A fused element-wise step as a function of its inputs.

Small arrays: the members one after the other, in as few temporaries as possible. Large ones: the
same lines on blocks of rows or flat blocks, over threads. Inputs of lower rank (a bias) or of one
element are passed whole to every block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.dtypes import float32
from headrace.core.shapes import covers
from headrace.kernels.accel import library
from headrace.kernels.numpy import blocks
from headrace.lower.fusion import MIN_SINGLE_FUNCTION, Fused
from headrace.lower.native_groups import NativeStep, StepInto
from headrace.program.node_kernels import bound_kernel
from headrace.program.nodes import Program
from headrace.runtime import buffers

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["FUSED_FILENAME", "bound_group", "compiled", "make_fused"]

#: Elements from which blocks over threads pay.
THREADS_FROM = 128 * 1024
#: Elements from which a single function is the kernel library's, if it has it.
LIBRARY_FROM = 64 * 1024

FUSED_FILENAME = "<headrace fused>"
_code: dict[str, Any] = {}


def make_fused(step: Fused, program: Program, own: int | None) -> Callable[..., Any]:
    """The step as a function; ``own`` is the input whose buffer may be overwritten."""
    if step.reduces:
        from headrace.lower.reduced_code import make_reduced

        return make_reduced(step, program)
    chain, into = compiled(step, program, own)
    info = program.values[step.output]
    dtype, rank = info.dtype.np_dtype, len(info.shape or ())
    same_type = [program.values[i].dtype is info.dtype for i in step.inputs]
    ranks = [
        None if program.values[i].shape is None else len(program.values[i].shape or ())
        for i in step.inputs
    ]
    # a single function of one array may be the kernel library's
    single = len(step.nodes) == 1 and len(step.inputs) == 1 and info.dtype is float32
    alone = step.nodes[0].opdef.name if single else None
    large, options = _large(step)
    lower = [k for k, r in enumerate(ranks) if r != rank and r != 0]

    def widened(inputs: tuple[Any, ...], shape: tuple[int, ...]) -> bool:
        """An input of lower rank stretches the others: [n,1] and [m] give [n,m]."""
        return any(_stretches(getattr(inputs[k], "shape", ()), shape) for k in lower)

    def run(*inputs: Any) -> Any:
        shape = None
        for x, r in zip(inputs, ranks):
            if r == rank or r is None:
                if getattr(x, "ndim", 0) != rank:
                    continue
                if shape is None:
                    shape = x.shape
                elif x.shape != shape:
                    return chain(*inputs)
        if shape is None or widened(inputs, shape):
            return chain(*inputs)
        out = inputs[own] if own is not None and same_type[own] else None
        size = 1
        for d in shape:
            size *= d
        if alone is not None and size >= LIBRARY_FROM:
            found = library()
            target = out if out is not None and out.flags.writeable else None
            result = None if found is None else found.unary(alone, inputs[0], target)
            if result is not None:
                return result
        if size < large:
            if out is None or not out.flags.writeable:
                return chain(*inputs)
            into(*inputs, out)
            return out
        if out is None or not out.flags.c_contiguous or not out.flags.writeable:
            out = buffers.empty(shape, dtype)
        _blocked(into, inputs, shape, out, options)
        return out

    return run


def _large(step: Fused) -> tuple[int, dict[str, int]]:
    """Elements from which blocks pay, and how large they are."""
    cheap = len(step.nodes) == 1 and not step.nodes[0].opdef.traits.heavy
    return (
        (MIN_SINGLE_FUNCTION, {"block": MIN_SINGLE_FUNCTION // 4}) if cheap else (THREADS_FROM, {})
    )


def _stretches(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return any(d not in (1, full) for d, full in zip(own[::-1], shape[::-1]))


def bound_group(
    step: Fused, program: Program, inputs: Sequence[Any], out: Array
) -> Callable[..., None]:
    """``f(*inputs, out)`` for arrays of these shapes, ``out`` being of the result's.

    Native once the step has proved hot in this binding.
    """
    plain = _bound_numpy(step, program, inputs, out)
    return StepInto(NativeStep(step, program, None, plain), step.output)


def _bound_numpy(
    step: Fused, program: Program, inputs: Sequence[Any], out: Array
) -> Callable[..., None]:
    _, into = compiled(step, program, None)
    large, options = _large(step)
    same = [getattr(x, "shape", ()) for x in inputs if getattr(x, "ndim", 0) == out.ndim]
    if out.size < large or not same or any(s != out.shape for s in same):
        return into

    def in_blocks(*arrays: Any) -> None:
        _blocked(into, arrays[:-1], arrays[-1].shape, arrays[-1], options)

    return in_blocks


def compiled(
    step: Fused, program: Program, own: int | None
) -> tuple[Callable[..., Any], Callable[..., None]]:
    """``chain(inputs) -> result`` and ``into(inputs, out)``."""
    source, params = _source(step, program, own)
    code = _code.get(source)
    if code is None:
        if len(_code) > 512:
            _code.clear()
        code = _code[source] = compile(source, FUSED_FILENAME, "exec")
    namespace: dict[str, Any] = {"np": np, **params}
    exec(code, namespace)
    return namespace["chain"], namespace["into"]


def _blocked(
    into: Callable[..., None],
    inputs: tuple[Any, ...],
    shape: tuple[int, ...],
    out: object,
    options: dict[str, int],
) -> None:
    whole = [
        i
        for i, x in enumerate(inputs)
        if getattr(x, "shape", ()) != shape and getattr(x, "size", 1) != 1
    ]
    if not whole and all(getattr(x, "shape", ()) != shape or x.flags.c_contiguous for x in inputs):
        blocks.over_blocks(into, [*inputs, out], **options)
        return
    blocks.over_rows(into, [*inputs, out], shape, **options)


def _source(step: Fused, program: Program, own: int | None) -> tuple[str, dict[str, Any]]:
    """Two functions: ``chain(inputs) -> result`` and ``into(inputs, out)``."""
    names = {value: f"x{n}" for n, value in enumerate(step.inputs)}
    last_use = {i: n for n, node in enumerate(step.nodes) for i in node.inputs}
    params: dict[str, Any] = {}
    forms: list[str] = []  # how each node is written; ``{out}`` is where its result lies
    for node in step.nodes:
        form = node.opdef.traits.into
        if form is None or program.values[node.outputs[0]].dtype._kind not in "fiuc":
            kernel = f"k{len(params)}"
            params[kernel] = bound_kernel(node)
            form = f"{kernel}({', '.join(['{}'] * len(node.inputs))})"
        forms.append(form)
    chain = _chain_lines(step, forms, program, dict(names), last_use)
    into = _into_lines(step, forms, program, dict(names), last_use, own)
    arguments = ", ".join(names.values())
    texts = [f"def chain({arguments}):", *chain, f"def into({arguments}, out):", *into, ""]
    return "\n".join(texts), params


def _chain_lines(
    step: Fused,
    forms: list[str],
    program: Program,
    names: dict[int, str],
    last_use: dict[int, int],
) -> list[str]:
    """One line a node; a temporary that dies there is written over."""
    lines: list[str] = []
    shape = program.values[step.output].shape

    def may_be_reused(i: int, n: int) -> bool:
        node, info = step.nodes[n], program.values[i]
        return (
            names[i][0] == "t"
            and last_use[i] == n
            and info.dtype is program.values[node.outputs[0]].dtype
            and info.shape == shape
            and all(j == i or covers(shape, program.values[j].shape) for j in node.inputs)
        )

    for n, (node, form) in enumerate(zip(step.nodes, forms)):
        over = next((names[i] for i in node.inputs if may_be_reused(i, n)), "None")
        lines.append(f" t{n} = " + form.format(*[names[i] for i in node.inputs], out=over))
        names[node.outputs[0]] = f"t{n}"
    return [*lines, f" return {names[step.output]}"]


def _into_lines(
    step: Fused,
    forms: list[str],
    program: Program,
    names: dict[int, str],
    last_use: dict[int, int],
    own: int | None,
) -> list[str]:
    """One line a node; everything in ``out`` when it is free."""
    lines: list[str] = []
    final = program.values[step.output].dtype
    in_out: int | None = None  # the value that lies in ``out``
    for n, (node, form) in enumerate(zip(step.nodes, forms)):
        value, args = node.outputs[0], [names[i] for i in node.inputs]
        is_free = in_out is None or last_use.get(in_out, -1) <= n or value == step.output
        fits = "{out}" in form and program.values[value].dtype is final and is_free
        if fits and _may_overwrite(step, n, last_use, own):
            lines.append(" " + form.format(*args, out="out"))
            names[value], in_out = "out", value
        else:
            lines.append(f" t{n} = " + form.format(*args, out="None"))
            names[value] = f"t{n}"
    if names[step.output] != "out":
        lines.append(f" out[...] = {names[step.output]}")
    return lines


def _may_overwrite(step: Fused, n: int, last_use: dict[int, int], own: int | None) -> bool:
    """`out` may be the input ``own``: it is only written once no later member reads that input."""
    return own is None or last_use[step.inputs[own]] <= n
