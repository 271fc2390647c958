"""Compiled versions of the in-place updates, for variables that have proved hot.

An op's ``native`` is asked before its ``inplace``: ``native(uses, made, *inputs, **attributes)`` is
told how often the variable has been overwritten in this session, and where the new values go (the
variable's own arrays, or others if somebody reads those); it answers whether it did the update.
Which update is the first compiled one depends on that count and on the variable's size alone: the
same program changes over at the same run, also when a process trains twice.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.env import native_setting
from headrace.ops.training.update_rules import Rule

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike
    from headrace.core.dtypes import DType
    from headrace.core.opdef import OpDef

__all__ = ["HOT_ELEMENTS", "DenseUpdate", "GroupUpdate", "NativeUpdate", "SparseUpdate"]
__all__ += ["find_compiled", "is_hot"]

#: Updates of a group of small variables in a session before they are compiled, each of which counts
#: as so many elements more than it has.
HOT_GROUP, GROUP_CALL = 1 << 23, 8192

#: Elements that updates of one variable must have written before they are compiled.
HOT_ELEMENTS = 1 << 24
#: Smaller variables are replaced rather than overwritten (lower/session_state.py).
MIN_OVERWRITTEN = 16 * 1024


@functools.cache
def _kernels() -> Any:
    """The module of compiled updates, or the reason why there are none."""
    from headrace.kernels.native.llvm_library import available, why_not

    if available() is None:
        return why_not()
    from headrace.kernels.native import update_kernels

    return update_kernels


def is_hot(uses: int, size: int) -> bool:
    """Whether the next update of a variable that was overwritten so often is compiled."""
    if uses * size < HOT_ELEMENTS and native_setting() != "always":
        return False
    return not isinstance(_kernels(), str)


class NativeUpdate:
    """What ``define`` takes as the ``native`` of a training op."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.count = len(rule.variables)
        self.at = rule.rest.index(rule.gradient)

    def __call__(self, uses: int, made: Sequence[Any], *inputs: Any, **attrs: Any) -> bool:
        raise NotImplementedError

    def why_not(self, dtype: DType, uses: int, size: int) -> str:
        """Why the next update is NumPy's, in words for ``explain``; empty if it is compiled."""
        if native_setting() == "off":
            return "switched off by HEADRACE_NATIVE"
        if size <= MIN_OVERWRITTEN:
            return f"variables of up to {MIN_OVERWRITTEN:,} elements are replaced, not overwritten"
        if uses * size < HOT_ELEMENTS and native_setting() != "always":
            return f"compiled when it has written {HOT_ELEMENTS:,} elements; {uses * size:,} so far"
        kernels = _kernels()
        if isinstance(kernels, str):
            return kernels
        return str(kernels.why_not_native(self.rule, dtype, ()))


class DenseUpdate(NativeUpdate):
    """Of an ``Apply…`` op: all elements, over threads."""

    of_products: OpDef | None = None  # the op with a product for its gradient, once it was wanted

    def __call__(self, uses: int, made: Sequence[Any], *inputs: Any, **attrs: Any) -> bool:
        var = inputs[0]
        if not is_hot(uses, var.size):
            return False
        variables, rest = inputs[: self.count], inputs[self.count :]
        found = find_compiled(self.rule, variables, rest, attrs)
        if found is None or any(v.shape != var.shape for v in variables):
            return False
        if rest[self.at].shape != var.shape:
            return False  # NumPy's version tells what is wrong
        found.dense(variables, rest, made)
        return True


class SparseUpdate(NativeUpdate):
    """Of a ``SparseApply…`` op: the rows that ``indices`` names, in their order."""

    def __init__(self, rule: Rule, check_rows: Callable[[Any, int], None]) -> None:
        super().__init__(rule)
        self.check_rows = check_rows

    def __call__(self, uses: int, made: Sequence[Any], *inputs: Any, **attrs: Any) -> bool:
        var, rest = inputs[0], list(inputs[self.count :])
        indices = rest.pop(self.at + 1)
        grad = rest[self.at]
        if not is_hot(uses, grad.size):
            return False
        variables = inputs[: self.count]
        found = find_compiled(self.rule, variables, tuple(rest), attrs)
        fits = indices.ndim == 1 and grad.shape == (indices.size, *var.shape[1:])
        if found is None or not fits or any(v.shape != var.shape for v in variables):
            return False
        self.check_rows(indices, var.shape[0])
        for old, new in zip(variables, made):
            if new is not old:
                np.copyto(new, old)
        found.sparse(made, rest, indices)
        return True


def find_compiled(
    rule: Rule, variables: tuple[Any, ...], rest: tuple[Any, ...], attrs: dict[str, Any]
) -> Any | None:
    """The compiled update; None where it is NumPy's."""
    kernels, dtype = _kernels(), variables[0].dtype
    if kernels.why_not_native(rule, dtype, rest):
        return None
    if any(v.dtype != dtype or not v.flags.c_contiguous for v in variables):
        return None
    if rule.signs and rule.wrong_number(dict(zip(rule.rest, rest))):
        return None  # NumPy's version tells what is wrong
    at = rule.rest.index(rule.gradient)
    if any(np.ndim(x) for i, x in enumerate(rest) if i != at) or rest[at].dtype != dtype:
        return None
    return kernels.find_update(rule, dtype, attrs)


_numbers = itertools.count()


class GroupUpdate:
    """New values of small variables that are updated together (lower/group_writer.py).

    ``update(counts, arrays, shared, gradients)``: the new arrays, or None to leave it to NumPy.
    ``counts`` is the session's; an update is compiled when it has come often enough there.
    """

    __slots__ = ("attrs", "number", "rule", "sizes", "why_not")

    def __init__(self, native: NativeUpdate, attrs: dict[str, Any], sizes: list[int]) -> None:
        self.rule, self.attrs, self.sizes = native.rule, attrs, sizes
        self.number = ("updates", next(_numbers))
        self.why_not = "it has not run often enough"

    def __call__(
        self, counts: dict[Any, Any], arrays: tuple[Any, ...], shared: Any, gradients: Any
    ) -> tuple[Any, ...] | None:
        found = counts.get(self.number, 0)
        if type(found) is int:
            found = counts[self.number] = self._count(found, arrays[0].dtype)
        if type(found) is int or found is None:
            return None
        made = tuple([np.empty_like(a) for a in arrays])
        status = found.function(*arrays, *[g.reshape(-1) for g in gradients], *shared, *made)
        return None if status else made

    def _count(self, runs: int, dtype: DTypeLike) -> Any:
        """The number of runs, the compiled update, or None if there is none."""
        setting = native_setting()
        work = (runs + 1) * (sum(self.sizes) + GROUP_CALL)
        if setting == "off" or (setting == "hot" and work < HOT_GROUP):
            return runs + 1
        kernels = _kernels()
        if isinstance(kernels, str):
            self.why_not = kernels
            return None
        self.why_not = kernels.why_not_native(self.rule, dtype, ())
        if not self.why_not and "lr_power" in self.rule.rest:
            self.why_not = "its power may be another one in each run"
        if self.why_not:
            return None
        try:
            return kernels.find_update(self.rule, dtype, self.attrs).together(self.sizes)
        except RuntimeError as error:
            self.why_not = str(error)
            return None
