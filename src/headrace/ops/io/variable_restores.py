"""Restoring into the memory that variables have.

Where a plan gives what RestoreV2 reads to assignments and to nothing else, it does both with the
ops here (lower/select_restores.py). RestoreV2 then compares all bytes with their checksums before
anything is written, but leaves tensors in the file whose variables have arrays of the same size;
the assignments read them into these arrays, or into new ones where somebody still reads the old
values. So a damaged checkpoint changes no variable, and restoring needs no second set of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core.opdef import NOT_DIFFERENTIABLE, OpDef
from headrace.ops.io.checkpoint_ops import RESTORE_V2, restore_all
from headrace.ops.state import ref_state, resource_state
from headrace.ops.training.native_updates import MIN_OVERWRITTEN
from headrace.wire.stored_tensors import StoredTensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.core.dtypes import DType

__all__ = ["RESTORE_STORED", "assignment_of_stored"]


def _restore_kernel(
    xp: ArrayNamespace,
    prefix: Array,
    names: Array,
    slices: Array,
    *,
    dtypes: Sequence[DType],
    keys: Sequence[str | None],
    rt: Any,
) -> Any:
    values = rt.state.values
    present = [None if key is None else _large(values.get(key)) for key in keys]
    found = restore_all(prefix, names, slices, dtypes, present)
    return found[0] if len(found) == 1 else found


def _large(value: object) -> Array | None:
    """A value that writers overwrite rather than replace."""
    return value if isinstance(value, np.ndarray) and value.size > MIN_OVERWRITTEN else None


#: RestoreV2 whose results may be left in the file: ``keys`` has the variables' for these.
RESTORE_STORED = OpDef(
    RESTORE_V2.name,
    f"{RESTORE_V2.signature}, keys: list(string)",
    RESTORE_V2.shape,
    _restore_kernel,
    NOT_DIFFERENTIABLE,
    RESTORE_V2.traits,
    None,
    None,
)


class _ReadIntoVariable:
    """The ``native`` form of these assignments."""

    def __call__(self, uses: int, made: Sequence[Any], *inputs: Any, **attrs: Any) -> bool:
        _, value = inputs
        out = made[0]
        if not isinstance(value, StoredTensor) or value.shape != out.shape:
            return False
        if value.dtype != out.dtype or not out.flags.c_contiguous:
            return False
        value.read_into(out)
        return True

    def why_not(self, dtype: DType, uses: int, size: int) -> str:
        return "read from the file into the variable's memory"


@functools.cache
def assignment_of_stored(opdef: OpDef) -> OpDef:
    """An assignment, of a value that may still be in its file and is nobody else's."""
    usual: Callable[..., Any] = opdef.kernel
    check = (ref_state if opdef is ref_state.ASSIGN else resource_state).check_assigned_shape

    def replace(current: Array, value: Array | StoredTensor) -> None:
        check(current.shape, value.shape)
        np.copyto(current, value.read() if isinstance(value, StoredTensor) else value, "no")

    @functools.wraps(usual)
    def kernel(xp: ArrayNamespace, current: object, value: object, **attrs: object) -> Any:
        read = value.read() if isinstance(value, StoredTensor) else value
        return usual(xp, current, read, **attrs)

    return OpDef(
        opdef.name,
        opdef.signature,
        opdef.shape,
        kernel,
        NOT_DIFFERENTIABLE,
        opdef.traits._replace(role=""),
        replace,
        None,
        _ReadIntoVariable(),
    )
