"""Operations on variables, computed at once.

Kernels are given values for handles, writers store the new ones.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core import convert
from headrace.core.dtypes import kernel_name
from headrace.core.opdef import KernelNode, OpDef, bind_kernel
from headrace.eager.eager_context import STATE
from headrace.eager.eager_errors import located
from headrace.eager.eager_tensor import Handle, Place
from headrace.kernels.numpy import numpy_xp
from headrace.lower.session_state import RunContext, Writer
from headrace.runtime.float_errors import restore, silence

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.tensor import Tensor
    from headrace.eager.execute import CallPlan

__all__ = ["VariableHandle", "call"]


_numbers = itertools.count()


class _HandleOp(Place):
    """What a variable's handle was made by, for code that looks a variable's type and shape up
    there.
    """

    type = "VarHandleOp"
    _role = "handle"

    def __init__(self, name: str, attrs: dict[str, Any]) -> None:
        super().__init__()
        from headrace.eager.eager_context import EAGER

        self.name = name
        self.graph = EAGER
        self._attrs = attrs


class VariableHandle(Handle):
    """The handle of an eager variable; its value is the key in the state."""

    __slots__ = ("number", "variable", "writers")

    variable: Any  # a weak reference to the tf.Variable

    def __init__(self, key: str, name: str, attrs: dict[str, Any]) -> None:
        super().__init__(key, _HandleOp(name, attrs))
        self.writers: dict[Any, Writer] = {}
        #: Handles made later have a larger one.
        self.number = next(_numbers)

    def __del__(self) -> None:
        STATE.values.pop(self._static, None)

    def __repr__(self) -> str:
        dtype, shape = self._op._attrs["dtype"], self._op._attrs["shape"]
        return (
            f"<tf.Tensor: shape=(), dtype=resource, value=<ResourceHandle(name={self._static!r}, "
            f"dtype={dtype.name}, shape={shape})>>"
        )

    __str__ = __repr__


convert.EAGER_KINDS.add(VariableHandle)

#: Handles that the operation VarHandleOp made with a shared name, as long as somebody has them.
_shared: weakref.WeakValueDictionary[str, VariableHandle] = weakref.WeakValueDictionary()


def handle_kernel(attrs: dict[str, Any], name: str | None) -> Callable[[], VariableHandle]:
    """What VarHandleOp does at once: a variable without a value, shared if it has a shared name."""
    shared = attrs["shared_name"]
    key = f"{attrs['container']}/{shared}"

    def make() -> VariableHandle:
        found = _shared.get(key) if shared else None
        if found is None:
            own = f"{key}@{next(_numbers)}"
            found = VariableHandle(own, shared or name or "VarHandleOp", attrs)
            if shared:
                _shared[key] = found
        return found

    return make


def call(plan: CallPlan, values: list[Any], inputs: Sequence[Any]) -> Any:
    """Compute an op that reads or writes variables.

    ``values`` has keys where ``inputs`` has handles.
    """
    traits = plan.opdef.traits
    want = plan.attrs.get("dtype")
    for i in traits.reads:
        handle = inputs[i]
        have = handle._op._attrs["dtype"] if isinstance(handle, VariableHandle) else want
        if want is not None and have is not None and have is not want:
            raise errors.InvalidArgumentError(
                None,
                None,
                "Trying to read variable with wrong dtype. Expected "
                f"{kernel_name(want)} got {kernel_name(have)}.",
            )
        values[i] = _read(values[i], inputs[i], traits.uninit_ok)
    if traits.writes:
        return _write(plan, values, inputs)
    if plan.wants_rt:
        return plan.kernel(*values, rt=RunContext(STATE))
    return plan.kernel(*values)


def write_variable(
    opdef: OpDef, handle: VariableHandle, dtype: DTypeLike, value: TensorLike
) -> None:
    """An assignment to one variable, with as little around it as possible."""
    writer = handle.writers.get(opdef)
    if writer is None:
        node = KernelNode(opdef.name, opdef.name, {"dtype": dtype})
        kernel = bind_kernel(opdef, node, numpy_xp)
        writer = handle.writers[opdef] = Writer(
            [_Gone(handle._op.name)],
            [handle._static],
            [0],
            kernel,
            opdef.inplace,
            opdef.traits.uninit_ok,
            False,
            False,
        )
    token = silence()
    try:
        writer.write_one(STATE, None, value)
    except Exception as error:
        raise located(error, opdef, (handle,), (value,), None) from None
    finally:
        restore(token)


def _read(key: str, handle: Tensor, uninit_ok: bool) -> Any:
    value = STATE.values.get(key)
    if value is None:
        value = STATE.raw(key)  # it may just be being written by another thread
        if value is None and not uninit_ok:
            raise errors.FailedPreconditionError(
                None,
                None,
                f"Could not find variable {handle._op.name}. It has no value (yet, or any more).",
            )
    return value


def _write(plan: CallPlan, values: list[Any], inputs: Sequence[Any]) -> Any:
    positions = plan.opdef.traits.writes
    handles = [inputs[i] for i in positions]
    if not isinstance(handles[0], VariableHandle):
        raise errors.InvalidArgumentError(
            None, None, f"{plan.opdef.name} needs the handle of a variable"
        )
    keys = tuple(h._static for h in handles)
    writers = handles[0].writers
    which = (id(plan), keys)
    writer = writers.get(which)
    if writer is None:
        writer = writers[which] = Writer(
            [_Gone(h._op.name) for h in handles],
            keys,
            positions,
            plan.kernel,
            plan.opdef.inplace,
            plan.opdef.traits.uninit_ok,
            False,
            plan.wants_rt,
        )
        writers[("plan", id(plan))] = plan  # type: ignore[assignment]  # the id stays its own
    rest = [v for i, v in enumerate(values) if i not in positions]
    result = writer(STATE, RunContext(STATE), *rest)
    others = result[len(keys) :]
    return others if len(others) != 1 else others[0]


class _Gone:
    """Stands for the variable in the message about a value that is not there."""

    def __init__(self, name: str) -> None:
        self.name = name
