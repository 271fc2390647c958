"""Compiled versions of the in-place updates, for variables that have proved hot.

An op's ``native`` is asked before its ``inplace``: ``native(uses, *inputs, **attributes)`` is told
how often the variable has been overwritten in this session and answers whether it did the update.
Which update is the first compiled one depends on that count and on the variable's size alone: the
same program changes over at the same run, also when a process trains twice.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.env import native_setting
from headrace.ops.training.update_rules import Rule

__all__ = ["HOT_ELEMENTS", "native_dense", "native_sparse", "way"]

#: Elements that updates of one variable must have written before they are compiled.
HOT_ELEMENTS = 1 << 24
NativeUpdate = Callable[..., bool]


@functools.cache
def _kernels() -> Any:
    """The module of compiled updates, or the reason why there are none."""
    from headrace.kernels.native.llvm_library import available, why_not

    if available() is None:
        return why_not()
    from headrace.kernels.native import update_kernels

    return update_kernels


def _is_hot(uses: int, size: int) -> bool:
    if uses * size < HOT_ELEMENTS and native_setting() != "always":
        return False
    return not isinstance(_kernels(), str)


def way(rule: Rule, dtype: Any, uses: int, size: int) -> str:
    """How an update is computed and why, in words for ``explain``."""
    if native_setting() == "off":
        return "NumPy: switched off by HEADRACE_NATIVE"
    if uses * size < HOT_ELEMENTS and native_setting() != "always":
        return f"NumPy until it has written {HOT_ELEMENTS:,} elements"
    kernels = _kernels()
    why = kernels if isinstance(kernels, str) else kernels.why_not_native(rule, dtype, ())
    return f"NumPy: {why}" if why else "native"


def native_dense(rule: Rule) -> NativeUpdate:
    """Of an ``Apply…`` op: all elements, over threads."""
    count = len(rule.variables)

    def update(uses: int, *inputs: Any, **attrs: Any) -> bool:
        var = inputs[0]
        if not _is_hot(uses, var.size):
            return False
        variables, rest = inputs[:count], inputs[count:]
        found = _find(rule, variables, rest, attrs)
        if found is None or any(v.shape != var.shape for v in variables):
            return False
        if rest[found.at].shape != var.shape:
            return False  # NumPy's version tells what is wrong
        found.dense(variables, rest)
        return True

    return update


def native_sparse(rule: Rule, check_rows: Callable[[Any, int], None]) -> NativeUpdate:
    """Of a ``SparseApply…`` op: the rows that ``indices`` names, in their order."""
    count = len(rule.variables)
    at = rule.rest.index(rule.gradient)

    def update(uses: int, *inputs: Any, **attrs: Any) -> bool:
        var, rest = inputs[0], list(inputs[count:])
        indices = rest.pop(at + 1)
        grad = rest[at]
        if not _is_hot(uses, grad.size):
            return False
        variables = inputs[:count]
        found = _find(rule, variables, tuple(rest), attrs)
        fits = indices.ndim == 1 and grad.shape == (indices.size, *var.shape[1:])
        if found is None or not fits or any(v.shape != var.shape for v in variables):
            return False
        check_rows(indices, var.shape[0])
        found.sparse(variables, rest, indices)
        return True

    return update


def _find(
    rule: Rule, variables: tuple[Any, ...], rest: tuple[Any, ...], attrs: dict[str, Any]
) -> Any | None:
    """The compiled update; None where it is NumPy's."""
    kernels, dtype = _kernels(), variables[0].dtype
    if kernels.why_not_native(rule, dtype, rest):
        return None
    if any(v.dtype != dtype or not v.flags.c_contiguous for v in variables):
        return None
    at = rule.rest.index(rule.gradient)
    if any(np.ndim(x) for i, x in enumerate(rest) if i != at) or rest[at].dtype != dtype:
        return None
    return kernels.find_update(rule, dtype, attrs)
