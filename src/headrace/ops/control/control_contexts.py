"""The contexts of ``tf.cond`` and ``tf.while_loop``.

What happens when an op inside uses a tensor from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from headrace.core.build import apply, apply_many, apply_op
from headrace.core.contexts import CondBase, Context, WhileBase, frame_of
from headrace.core.graph import Graph, get_default_graph
from headrace.core.seeds import count_more
from headrace.core.tensor import Operation, Tensor
from headrace.ops.control.control_flow_ops import ENTER, REF_ENTER, REF_SWITCH, SWITCH

__all__ = ["CondContext", "WhileContext", "branch_context", "guarded", "in_context", "is_inside"]


def is_inside(context: Context | None, container: Context) -> bool:
    """Whether ``context`` is ``container`` or lies within it."""
    while context is not None:
        if context is container or _same_branch(context, container):
            return True
        context = context.outer_context
    return False


def _same_branch(a: Context, b: Context) -> bool:
    return (
        isinstance(a, CondBase)
        and isinstance(b, CondBase)
        and a.pred is b.pred
        and a.branch == b.branch
    )


@contextmanager
def in_context(graph: Graph, context: Context | None) -> Iterator[None]:
    """Ops made inside belong to ``context``; control dependencies from outside do not reach in."""
    old_context, old_controls = graph._context, graph._control_ops
    graph._context = context
    if context is not old_context:
        graph._control_ops = ()
    try:
        yield
    finally:
        graph._context = old_context
        graph._control_ops = old_controls


class _Shared(Context):
    """What both kinds do."""

    def __init__(self, name: str, outer: Context | None) -> None:
        super().__init__(name, outer)
        self._entered: list[tuple[Graph, Context | None, Any]] = []
        self.captured: dict[Tensor, Tensor] = {}
        self.nested: list[CondContext | WhileContext] = []  # what the program made inside

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The message of the context; None if it is not in ``export_scope``."""
        from headrace.ops.control.context_messages import _to_proto

        assert isinstance(self, (CondContext, WhileContext))
        return _to_proto(self, export_scope)

    @staticmethod
    def from_proto(context_def: object, import_scope: str | None = None) -> Any:
        """The context of the default graph that a message describes."""
        from headrace.ops.control.context_messages import context_from_proto

        return context_from_proto(context_def, import_scope)

    def Enter(self) -> None:
        graph = get_default_graph()
        self._entered.append((graph, graph._context, graph._control_ops))
        graph._context = self

    def Exit(self) -> None:
        graph, context, controls = self._entered.pop()
        graph._context = context
        graph._control_ops = controls

    def capture(self, tensor: Tensor) -> Tensor:
        if self.backward is not None:
            tensor = self.backward.value(tensor)
        if is_inside(tensor._op._context, self):
            return tensor
        if tensor._op.graph._is_function:
            self.check_accessible(tensor)
        found = self.captured.get(tensor)
        if found is None:
            outside = tensor
            if self.outer_context is not None:
                outside = self.outer_context.capture(tensor)
                found = self.captured.get(outside)
            if found is None:
                found = self.bring_in(outside)
            self.captured[tensor] = self.captured[outside] = found
        return found

    def check_accessible(self, tensor: Tensor) -> None:
        """In functions branches do not see what other branches compute."""

    def bring_in(self, tensor: Tensor) -> Tensor:
        raise NotImplementedError


class CondContext(_Shared, CondBase):
    """One branch: outside tensors come in through a Switch."""

    def __init__(
        self, pred: Tensor, pivot: Tensor, branch: int, name: str, outer: Context | None
    ) -> None:
        super().__init__(name, outer)
        self.pred = pred
        self.pivot = pivot
        self.branch = branch

    def check_accessible(self, tensor: Tensor) -> None:
        context = tensor._op._context
        while context is not None:
            if (
                isinstance(context, CondContext)
                and context.pred is self.pred
                and context.branch != self.branch
                and tensor._op is not context.pivot._op
            ):
                there, here = ("true_fn", "false_fn") if context.branch else ("false_fn", "true_fn")
                name = tensor.name[tensor.name.rfind("/") + 1 :]
                raise ValueError(
                    f"Tensor {name} in {there} is accessed from {here}. (It is "
                    f"{tensor.name}: return it from the branch, "
                    "or compute it outside of tf.cond.)"
                )
            context = context.outer_context

    def bring_in(self, tensor: Tensor) -> Tensor:
        graph = tensor._op.graph
        opdef = REF_SWITCH if tensor._dtype._is_ref else SWITCH
        with in_context(graph, self.outer_context):
            out: Tensor = apply_many(opdef, tensor, self.pred, name="Switch")[self.branch]
        out._op._cond_context = self
        graph.prevent_fetching(out._op)
        return out

    def op_added(self, op: Operation) -> None:
        """What one branch computes may not be there."""
        if self.outer_context is not None or op.type not in ("Exit", "RefExit"):
            op.graph.prevent_fetching(op)

    def capture_inputs(self, opdef: object, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        # the Switch of this very branch is the way in: its output counts as inside
        return tuple(t if self.is_own_switch(t) else self.capture(t) for t in inputs)

    def is_own_switch(self, tensor: Tensor) -> bool:
        context = tensor._op._cond_context
        return (
            context is not None
            and _same_branch(context, self)
            and tensor._value_index == self.branch
        )

    def control_inputs_for(
        self, op: Operation, controls: tuple[Operation, ...]
    ) -> tuple[Operation, ...]:
        frame = frame_of(self)
        if frame is not None:  # TensorFlow drops what lies outside of the loop around this branch
            controls = tuple(c for c in controls if frame_of(c._context) is frame)
        if op._inputs or any(is_inside(c._context, self) for c in controls):
            return controls
        return (*controls, self.pivot._op)


def branch_context(pred: Tensor, branch: int, name: str, outer: Context | None) -> CondContext:
    """A branch of its own, with a pivot that is there only if ``pred`` is ``branch``.

    For what gradients add to a cond.
    """
    graph = pred._op.graph
    with in_context(graph, outer):
        side: Tensor = apply_many(SWITCH, pred, pred, name="Switch")[branch]
    made = CondContext(pred, side, branch, name, outer)
    side._op._cond_context = made
    with in_context(graph, made):
        made.pivot = apply_op("Identity", side)
    count_more(graph, -2)
    return made


def guarded(tensor: Tensor, pred: Tensor, branch: int, outer: Context | None) -> Tensor:
    """The tensor as a value of a branch, which a Merge may have as its input.

    A Switch away if it is from outside.
    """
    context = tensor._op._context
    while context is not None and context is not outer:
        if isinstance(context, CondBase) and context.pred is pred and context.branch == branch:
            return tensor
        context = context.outer_context
    graph = tensor._op.graph
    with in_context(graph, outer):
        side: Tensor = apply_many(SWITCH, tensor, pred, name="Switch")[branch]
    side._op._cond_context = CondContext(pred, pred, branch, "", outer)
    count_more(graph, -1)
    return side


class WhileContext(_Shared, WhileBase):
    """A loop: outside tensors come in as loop invariants through a constant Enter."""

    def __init__(self, name: str, outer: Context | None, parallel_iterations: int = 10) -> None:
        super().__init__(name, outer)
        self.parallel_iterations = parallel_iterations
        self.pivot: Operation | None = None
        self.back_prop = True
        self.swap_memory = False
        self.maximum_iterations: Tensor | None = None
        self.invariants: dict[Tensor, Tensor] = {}  # inside -> outside
        self.enters: list[Operation] = []

    @property
    def scope(self) -> str:
        """The name scope of the loop: its frame's name without the last part."""
        scope, _, last = self.name.rpartition("/")
        return scope if scope and last.startswith("while_context") else self.name

    def run_in_order(self) -> None:
        """One iteration after the other, in TensorFlow too.

        What is pushed on stacks inside must keep its order.
        """
        self.parallel_iterations = 1
        for op in self.enters:
            op._attrs = {**op._attrs, "parallel_iterations": 1}

    def enter(self, tensor: Tensor, is_constant: bool, name: str = "Enter") -> Tensor:
        graph = tensor._op.graph
        opdef = REF_ENTER if tensor._dtype._is_ref else ENTER
        controls = tuple(c for c in graph._control_ops if self._is_around(c._context))
        with in_context(graph, self.outer_context):
            graph._control_ops = controls
            out: Tensor = apply(
                opdef,
                tensor,
                frame_name=self.name,
                is_constant=is_constant,
                parallel_iterations=self.parallel_iterations,
                name=name,
            )
        out._op._context = self
        self.enters.append(out._op)
        graph.prevent_feeding(out)
        graph.prevent_fetching(out._op)
        return out

    def op_added(self, op: Operation) -> None:
        """What is inside of a loop has a value for each iteration."""
        graph = op.graph
        graph.prevent_fetching(op)
        for t in op._outputs:
            graph.prevent_feeding(t)

    def bring_in(self, tensor: Tensor) -> Tensor:
        out = self.enter(tensor, is_constant=True)
        self.invariants[out] = tensor
        return out

    def control_inputs_for(
        self, op: Operation, controls: tuple[Operation, ...]
    ) -> tuple[Operation, ...]:
        inside = [c for c in controls if frame_of(c._context) is self]
        if len(inside) != len(controls):
            inside += self._brought_in(c for c in controls if frame_of(c._context) is not self)
        if not inside and self.pivot is not None and _is_free(op):
            return (self.pivot,)
        return tuple(inside)

    def _brought_in(self, outside: Iterable[Operation]) -> list[Operation]:
        """Operations that wait for those outside, through their first outputs.

        One without outputs is left out, as in TensorFlow.
        """
        graph = get_default_graph()
        with in_context(graph, self):
            old, graph._control_ops = graph._control_ops, ()
            try:
                return [apply_op("Identity", c._outputs[0])._op for c in outside if c._outputs]
            finally:
                graph._control_ops = old

    def _is_around(self, context: Context | None) -> bool:
        """Whether a context lies around this loop, within the next loop outside."""
        at, frame = self.outer_context, frame_of(self.outer_context)
        while at is not context:
            if at is None or at is frame:
                return False
            at = at.outer_context
        return True


def _is_free(op: Operation) -> bool:
    """Whether nothing holds an operation of a loop back until its iteration starts.

    It uses loop invariants alone.
    """
    return all(
        t._op.type in ("Enter", "RefEnter") and t._op._attrs["is_constant"] for t in op._inputs
    )
