"""Control-flow contexts: which branch or loop an operation was made in.

``tf.cond`` and ``tf.while_loop`` make TF-1's flat Switch / Merge / Enter / Exit / NextIteration
operations in the user's graph; the contexts kept beside them are what a Program is structured by.
An operation's guard is the chain of branches from its context outwards; its frame is the innermost
loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from headrace.core.tensor import Operation, Tensor

if TYPE_CHECKING:
    from headrace.core.opdef import OpDef

__all__ = [
    "CondBase",
    "Context",
    "WhileBase",
    "backward_pass",
    "frame_of",
    "guards_of",
    "named_pass",
]

#: The name of the backward pass that is being made in this thread.
_PASS: ContextVar[str] = ContextVar("backward_pass", default="")


def backward_pass() -> str:
    """What gradient functions that keep state of their own (TensorArray's) tell passes apart by."""
    return _PASS.get()


@contextmanager
def named_pass(name: str) -> Iterator[None]:
    """Gradients that are made inside belong to the pass of this name."""
    token = _PASS.set(name)
    try:
        yield
    finally:
        _PASS.reset(token)


class Context:
    """Base of both kinds. ``outer`` is the enclosing context or None."""

    #: Set on contexts of backward loops: gives forward tensors their value of the matching
    #: iteration.
    backward: Any = None

    def __init__(self, name: str, outer: Context | None) -> None:
        self.name = name
        self.outer_context = outer
        self._where: tuple[Context | None, tuple[CondBase, ...]] | None = None

    @property
    def outer(self) -> Context | None:
        return self.outer_context

    def Enter(self) -> None:
        raise NotImplementedError

    def capture_inputs(self, opdef: OpDef, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(self.capture(t) for t in inputs)

    def capture(self, tensor: Tensor) -> Tensor:
        """The tensor as it is known inside this context."""
        raise NotImplementedError

    def control_inputs_for(
        self, op: Operation, controls: tuple[Operation, ...]
    ) -> tuple[Operation, ...]:
        raise NotImplementedError

    def op_added(self, op: Operation) -> None:
        return


class CondBase(Context):
    """One branch of a cond."""

    pred: Tensor
    pivot: Tensor
    branch: int
    sibling: CondBase | None = None  # the other branch


class WhileBase(Context):
    """One loop."""

    #: Its variables as gradients need them (ops/control/while_loops.py); None: not known.
    loop_variables: list[Any] | None = None
    invariants: dict[Tensor, Tensor]  # inside -> outside


def frame_of(context: Context | None) -> Context | None:
    """The innermost loop that a context is in (itself included)."""
    return None if context is None else _place(context)[0]


def guards_of(context: Context | None) -> tuple[CondBase, ...]:
    """The branches between a context and its frame, outermost first."""
    return () if context is None else _place(context)[1]


def _place(context: Context) -> tuple[Context | None, tuple[CondBase, ...]]:
    """Frame and guards, remembered with the context: what is around it never changes."""
    chain = []
    at: Context | None = context
    while at is not None and at._where is None:
        chain.append(at)
        at = at.outer_context
    for inner in reversed(chain):
        frame, guards = (
            (None, ()) if inner.outer_context is None else inner.outer_context._where or (None, ())
        )
        if isinstance(inner, WhileBase):
            inner._where = (inner, ())
        else:
            inner._where = (
                (frame, (*guards, inner)) if isinstance(inner, CondBase) else (frame, guards)
            )
    assert context._where is not None
    return context._where
