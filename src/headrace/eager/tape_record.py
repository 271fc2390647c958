"""What a tape remembers of one operation, in the form that gradient functions read.

Inputs, outputs, attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.core.opdef import NOT_DIFFERENTIABLE, OpDef
from headrace.core.tapes import ACTIVE, TAPES
from headrace.eager.eager_tensor import Place

__all__ = ["ACTIVE", "Record", "TAPES", "record", "record_operation"]


class Record(Place):
    """One operation that was computed; gradient functions take it for an Operation."""

    def __init__(
        self,
        opdef: OpDef | None,
        attrs: dict[str, Any],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        backward: Callable[..., Any] | None = None,
    ) -> None:
        self._opdef = opdef
        self._attrs = attrs
        self._inputs = tuple(inputs)
        self._outputs = tuple(outputs)
        self._backward = backward
        self._skip: frozenset[int] = frozenset()

    @property
    def type(self) -> str:  # type: ignore[override]
        return "Custom" if self._opdef is None else self._opdef.name

    name = type

    @property
    def graph(self) -> Any:
        from headrace.eager.eager_context import EAGER

        return EAGER

    @property
    def op_def(self) -> OpDef | None:
        return self._opdef

    @property
    def inputs(self) -> list[Any]:
        return list(self._inputs)

    @property
    def outputs(self) -> list[Any]:
        return list(self._outputs)

    def get_attr(self, name: str) -> bytes:
        value = self._attrs[name]
        return value.encode() if isinstance(value, str) else value


def record(
    opdef: OpDef, attrs: dict[str, Any], inputs: Sequence[Any], outputs: Sequence[Any]
) -> None:
    """Tell the tapes of this thread about an operation."""
    if opdef.grad is NOT_DIFFERENTIABLE:  # no gradient passes, yet what comes out is watched
        for tape in TAPES.items:
            if tape._wants(inputs):
                tape._watch_outputs(outputs)
        return
    made: Record | None = None
    for tape in TAPES.items:
        if tape._wants(inputs):
            if made is None:
                made = Record(opdef, attrs, inputs, outputs)
            tape._add(made)


def record_operation(
    op_type: str, outputs: Sequence[Any], inputs: Sequence[Any], backward: Callable[..., Any]
) -> None:
    """A computation with a gradient of its own.

    ``backward(*output_grads)`` returns one gradient per input.
    """
    if not ACTIVE[0]:
        return
    made: Record | None = None
    for tape in TAPES.items:
        if tape._wants(inputs):
            if made is None:
                made = Record(None, {"name": op_type}, inputs, outputs, backward)
            tape._add(made)
