"""One backward pass over a graph."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from headrace.autodiff.aggregate import (
    as_dense,
    is_trainable,
    total,
    variable_dtype,
    zeros_like,
)
from headrace.autodiff.backward_record import Given, Pass, passes
from headrace.autodiff.op_counts import gate_ops, gradient_ops
from headrace.autodiff.registry import gradient_function
from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.contexts import CondBase, Context, WhileBase, frame_of
from headrace.core.graph import Graph
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.opdef import FLOW
from headrace.core.schedule import Loop, Unit, needed_ops, schedule
from headrace.core.seeds import count_as, ops_counted
from headrace.core.tensor import Operation, Tensor
from headrace.ops.control.control_contexts import (
    CondContext,
    branch_context,
    guarded,
    in_context,
    is_inside,
)
from headrace.ops.control.control_flow import merge, merge_on, switch

__all__ = ["Tape"]


def loops_around(context: Context | None) -> tuple[Context, ...]:
    """The loops around a context, innermost first."""
    out = []
    frame = frame_of(context)
    while frame is not None:
        out.append(frame)
        frame = frame_of(frame.outer_context)
    return tuple(out)


def _is_loop_merge(op: Operation) -> bool:
    return op._inputs[0]._op._opdef.role == "enter"


class Tape:
    """One backward pass.

    Backward loops use a tape of their own that maps contexts (see while_grad.py).
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.grads: dict[Tensor, list[Any]] = {}
        self.gated = False
        self.colocated = False
        #: Operations that gradients may pass; None: all.
        self.only: Collection[Operation] | None = None
        self.record: Pass | None = None
        self.between: set[Operation] = set()
        self.wanted: set[Tensor] = set()
        self.called_in: Context | None = graph._context
        #: loops that are being built around the call: their operations are visited singly
        self.open = loops_around(self.called_in)

    # where gradient operations are made -----------------------------------------------------------
    def context_for(self, context: Context | None) -> Context | None:
        """The context for the gradient operations of an op that was made in ``context``.

        Its own, unless gradients were asked for further inside.
        """
        called = self.called_in
        if called is not None and (context is None or is_inside(called, context)):
            return called
        return context

    def frame(self) -> Context | None:
        """The loop whose operations this tape walks over; None at the top."""
        return None

    # the pass -------------------------------------------------------------------------------------
    def recorded(
        self, ys: Sequence[Tensor], starts: Sequence[Any], xs: Sequence[Tensor], stops: set[Tensor]
    ) -> list[Any]:
        """``backprop``, kept for rewriting."""
        self.record = Pass()
        for y, g in zip(ys, starts):
            if g is not None:
                self.record.given.setdefault(y, []).append(Given(None, g))
        found = self.backprop(ys, starts, xs, stops)
        passes(self.graph).append(self.record)
        return found

    def backprop(
        self, ys: Sequence[Tensor], starts: Sequence[Any], xs: Sequence[Tensor], stops: set[Tensor]
    ) -> list[Any]:
        between = self.ops_between(ys, xs, stops)
        for y, g in zip(ys, starts):
            if g is not None:
                self.grads.setdefault(y, []).append(g)
        wanted = set(xs)
        self.between, self.wanted = between, wanted
        for unit in reversed(self.order(between)):
            if isinstance(unit, Loop):
                self.loop(unit)
            else:
                self.operation(unit, between, wanted, stops)
        return [self.collected(x, keep=True) for x in xs]

    def collected(self, tensor: Tensor, keep: bool = False) -> Any:
        """The summed gradient of a tensor so far."""
        grads = self.grads.get(tensor)
        if not grads:
            return None
        if len(grads) > 1:
            # what comes out of a branch's Switch is used, and so summed up, inside that branch
            made_in = tensor._op._cond_context or tensor._op._context
            with in_context(self.graph, self.context_for(made_in)), self.beside(grads):
                grads[:] = [total(grads)]
            if self.record is not None:
                self.record.sums[tensor] = grads[0]
        return grads[0]

    def beside(self, grads: list[Any]) -> AbstractContextManager[Any]:
        """Sums stand where the gradient of the first use does, if gradients stand where their
        operations do.
        """
        first = next((g for g in reversed(grads) if isinstance(g, Tensor)), None)
        if not self.colocated or first is None:
            return nullcontext()
        return self.graph.colocate_with(first._op, ignore_existing=True)

    def add(
        self, tensor: Tensor, grad: IndexedSlices | Tensor, by: Operation | None = None
    ) -> None:
        self.grads.setdefault(tensor, []).append(grad)
        if self.record is not None:
            self.record.given.setdefault(tensor, []).append(Given(by, grad))

    def ops_between(
        self, ys: Sequence[Tensor], xs: Sequence[Tensor], stops: set[Tensor]
    ) -> set[Operation]:
        """Operations on a path from an x to a y."""
        behind: set[Operation] = set()
        stack = [y._op for y in ys if y not in stops and self.passes(y._op)]
        behind.update(stack)
        while stack:
            op = stack.pop()
            for t in op._inputs:
                if (
                    t not in stops
                    and t._op not in behind
                    and self.enters(t._op)
                    and self.passes(t._op)
                ):
                    behind.add(t._op)
                    stack.append(t._op)
        users: dict[Operation, list[Operation]] = {}
        for op in behind:
            for t in op._inputs:
                if is_trainable(t):  # nothing flows back through shapes and indices
                    users.setdefault(t._op, []).append(op)
        reached: set[Operation] = set()
        start = {x: None for x in xs}
        queue = [op for op in behind if any(t in start for t in op._inputs)]
        reached.update(queue)
        while queue:
            op = queue.pop()
            for user in users.get(op, ()):
                if user not in reached:
                    reached.add(user)
                    queue.append(user)
        if self.open and self.frame() is None:
            self.check_loop_starts(behind, reached, xs)
        # an x may be an output of an operation that only other xs lead to
        return reached

    def check_loop_starts(
        self, behind: set[Operation], reached: set[Operation], xs: Sequence[Tensor]
    ) -> None:
        """A loop that is being built knows its variables' values in one iteration only, not where
        they came from.
        """
        starts = [
            t._op._inputs[0]._op._inputs[0]._op
            for op in behind
            for t in op._inputs
            if t._op._role == "merge" and _is_loop_merge(t._op) and not self.enters(t._op)
        ]
        if not starts:
            return
        before = needed_ops(starts, ())
        for x in xs:
            inside = frame_of(x._op._context) in self.open
            if x._op in before and not inside and not any(x in op._inputs for op in reached):
                raise ValueError(
                    "Cannot compute gradient inside while loop with respect to op "
                    f"'{x._op.name}'. We do not support taking "
                    "the gradient wrt or through the initial value of a loop variable. "
                    "Gradients can be computed through "
                    "loop invariants or wrt the input parameters to the loop body."
                )

    def passes(self, op: Operation) -> bool:
        """Whether gradients may pass an operation.

        If a tape asks, it has to be one that the tape recorded.
        """
        return self.only is None or op in self.only

    def enters(self, op: Operation) -> bool:
        """Whether the walk from the ys goes on behind an operation.

        Not to an open loop's earlier iterations.
        """
        return not (
            self.open
            and op._role == "merge"
            and frame_of(op._context) in self.open
            and _is_loop_merge(op)
        )

    def order(self, between: set[Operation]) -> list[Unit]:
        units = schedule(self.with_loops(between))
        return self.opened(units) if self.open else units

    def opened(self, units: list[Unit]) -> list[Unit]:
        """An open loop's units in the place of the loop."""
        out: list[Unit] = []
        for unit in units:
            if isinstance(unit, Loop) and unit.context in self.open:
                out.extend(self.opened(unit.units))
            else:
                out.append(unit)
        return out

    def with_loops(self, between: set[Operation]) -> set[Operation]:
        """A loop comes as a whole: the operations that steer it are needed to structure it."""
        own = self.frame()
        extra: set[Operation] = set()
        for op in between:
            frame = frame_of(op._context)
            if isinstance(frame, WhileBase) and frame is not own and frame not in self.open:
                extra.update(v.merge._op for v in frame.loop_variables or ())
        return between | extra

    # one unit
    # ---------------------------------------------------------------------------------------
    def operation(
        self, op: Operation, between: set[Operation], wanted: set[Tensor], stops: set[Tensor]
    ) -> None:
        if op not in between:
            return
        # a gradient arrives at a stop or at an integer (which may be an x) but does not pass it
        out_grads = [
            self.collected(t) if is_trainable(t) and t not in stops else None for t in op._outputs
        ]
        for t in op._outputs:
            if t not in wanted:
                self.grads.pop(t, None)
        if all(g is None for g in out_grads):
            return
        rule = self.structural if op._opdef.role in FLOW else self.by_function
        in_grads = rule(op, out_grads)
        if in_grads is None:
            return
        for t, g in zip(op._inputs, in_grads):
            if g is not None and is_trainable(t):
                self.add(t, g, op)
        own = rule == self.by_function and gradient_function(op) is op._opdef.grad
        if self.record is not None and own:
            self.record.arrived[op], self.record.sent[op] = out_grads, in_grads

    def by_function(self, op: Operation, out_grads: list[Any]) -> Sequence[Any] | None:
        function = gradient_function(op)
        if function is None:
            return None
        graph = self.graph
        before = ops_counted(graph)
        with in_context(graph, self.context_for(op._context)), graph.name_scope(op.name + "_grad"):
            filled = out_grads if function is op._opdef.grad else self.filled(op, out_grads)
            with graph.colocate_with(op if self.colocated else None, ignore_existing=True):
                result = function(op, *filled)
        in_grads = list(result) if isinstance(result, (list, tuple)) else [result]
        if len(in_grads) != len(op._inputs):
            raise ValueError(
                f"Num gradients {len(in_grads)} generated for op {op.name} do not match "
                f"num inputs {len(op._inputs)}"
            )
        for t, g in zip(op._inputs, in_grads):
            _check_type(op, t, g)
        self.count(op, before, out_grads, in_grads)
        return in_grads

    def count(self, op: Operation, before: int, out_grads: list[Any], in_grads: list[Any]) -> None:
        """What was made counts as what TF makes (see op_counts.py)."""
        made = gradient_ops(op, out_grads)
        if made is None:
            made = ops_counted(self.graph) - before
        if op._reshaped_in_tf:  # before and after; gradients pass through these reshapes too
            made += 2 + 2 * sum(t in self.wanted or t._op in self.between for t in op._inputs)
        missing = sum(g is None and is_trainable(t) for t, g in zip(op._outputs, out_grads))
        count_as(self.graph, before, made + missing + (gate_ops(in_grads) if self.gated else 0))

    @staticmethod
    def filled(op: Operation, out_grads: list[Any]) -> list[Any]:
        """Gradient functions of users get zeros for outputs that nothing depends on, as in TF."""
        return [
            zeros_like(t)
            if g is None and is_trainable(t) and t._dtype is not dtypes.resource
            else g
            for t, g in zip(op._outputs, out_grads)
        ]

    def structural(self, op: Operation, out_grads: list[Any]) -> Sequence[Any] | None:
        if op._opdef.role == "merge":
            return [out_grads[0]] * len(op._inputs)
        if op._opdef.role == "switch":
            return [self.switch(op, out_grads), None]
        return [out_grads[0]]

    def switch(self, op: Operation, out_grads: list[Any]) -> Tensor:
        """The gradient of a tensor that a branch used.

        What the branch gives if it is taken, else zero.
        """
        branch = 1 if out_grads[1] is not None else 0
        inner = op._cond_context
        if inner is None or None not in out_grads:
            return self.lone_switch(op, out_grads)
        outer = self.context_for(op._context)
        pred = inner.pred
        with in_context(self.graph, outer):
            if outer is not None:
                pred = outer.capture(pred)
            other = _other_branch(inner, pred, 1 - branch, outer)
            with in_context(self.graph, self.context_for(inner)):
                good = as_dense(out_grads[branch])
            good = guarded(good, pred, branch, outer)
            source = op._inputs[0]
            if source._dtype is dtypes.resource:
                source = apply_op("ReadVariableOp", source, dtype=variable_dtype(source))
            with in_context(self.graph, other):
                zero = zeros_like(source)
            pair = (zero, good) if branch else (good, zero)
            return merge_on(pair[0], pair[1], pred)

    def lone_switch(self, op: Operation, out_grads: list[Any]) -> Tensor:
        """The gradient of a Switch that no ``tf.cond`` made: that of the side which was there."""
        source, pred = op._inputs
        with in_context(self.graph, self.context_for(op._context)):
            sides = [
                switch(zeros_like(source) if grad is None else as_dense(grad), pred)[side]
                for side, grad in enumerate(out_grads)
            ]
            merged: Tensor = merge(sides)[0]
        return merged

    def loop(self, unit: Loop) -> None:
        from headrace.autodiff.while_grad import loop_gradient

        loop_gradient(self, unit.context)


def _other_branch(inner: CondBase, pred: Tensor, branch: int, outer: Any) -> CondContext:
    """The branch of a cond that a tensor was not used in, as a context of the backward pass."""
    sibling = inner if inner.branch == branch else inner.sibling
    if sibling is None or sibling.pred is not pred:
        return branch_context(pred, branch, inner.name, outer)
    return CondContext(pred, sibling.pivot, branch, inner.name, outer)


def _check_type(op: Operation, tensor: Tensor, grad: IndexedSlices | Tensor | None) -> None:
    if grad is None or tensor._dtype._base in (dtypes.resource, dtypes.variant):
        return
    if not isinstance(grad, (Tensor, IndexedSlices)):
        raise TypeError(
            f"The gradient function of {op.name} ({op.type}) returned {type(grad)}, not a Tensor"
        )
    if grad.dtype.base_dtype is not tensor._dtype._base and is_trainable(tensor):
        raise TypeError(
            f"The gradient function of {op.name} ({op.type}) gave a gradient of type "
            f"{grad.dtype.name} for its input "
            f"{tensor.name} of type {tensor._dtype.name}"
        )
    if (
        isinstance(grad, Tensor)
        and grad._shape is None
        and tensor._shape is not None
        and grad._op.graph is tensor.graph
    ):
        grad._shape = tensor._shape
