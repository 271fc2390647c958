"""Operations added where no scope is open: what ``Graph._add_op`` does, without asking for each of
thousands whether a device, a colocation or a branch applies to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from headrace.core.infer import infer_shapes
from headrace.core.tensor import Operation

if TYPE_CHECKING:
    from headrace.core.dtypes import DType
    from headrace.core.graph import Graph
    from headrace.core.opdef import OpDef
    from headrace.core.tensor import Tensor

__all__ = ["PlainForm", "add_plain_op", "has_open_scopes"]


def has_open_scopes(graph: Graph) -> bool:
    """Whether something around the calling thread changes the operations that it makes.

    Names and control inputs are the caller's: they are given with each operation.
    """
    scopes = graph._scopes.here
    return bool(
        graph._finalized
        or graph._is_function
        or scopes.context is not None
        or scopes.attrs
        or scopes.container
        or scopes.colocation_stack
        or scopes.gradient_overrides
        or scopes.device_stack
    )


class PlainForm(Protocol):
    """What a new operation gets besides its inputs and its name."""

    opdef: OpDef
    attrs: dict[str, Any]
    #: The type of the output if there is just one and it is no reference.
    result: DType | None


def add_plain_op(
    graph: Graph,
    form: PlainForm,
    inputs: tuple[Tensor, ...],
    name: str,
    control_inputs: tuple[Operation, ...],
) -> Operation:
    """Append an operation under its final name; its inputs are in no branch or loop.

    The caller says where it was made.
    """
    op = Operation.__new__(Operation)
    op.graph = graph
    op.name = name
    op._opdef = opdef = form.opdef
    op.type = opdef.name
    op._inputs = inputs
    op._attrs = form.attrs
    op._context = None
    op._device = ""
    if control_inputs:
        direct = {t._op for t in inputs}
        control_inputs = tuple([c for c in control_inputs if c not in direct])
    op._control_inputs = control_inputs
    op._outputs = infer_shapes(op, form.result)
    ops = graph._ops
    with graph._lock:
        op._id = len(ops)
        ops.append(op)
        graph._by_name[name] = op
        graph._version += 1
    return op
