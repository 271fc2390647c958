"""The gradient of a loop is a loop that runs backwards.

For a forward loop ``x, n = body(x), n + 1`` the backward loop starts with the gradient of the
loop's result and the number of iterations, and in each of its iterations applies the gradient of
``body``. Values of forward tensors that it needs are pushed on stacks by the forward loop and
popped here, last iteration first. Gradients of loop invariants add up over the iterations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.autodiff.aggregate import as_dense, is_trainable, variable_dtype, zeros_like
from headrace.autodiff.backward_pass import Tape
from headrace.autodiff.registry import gradient_function
from headrace.core import dtypes
from headrace.core.build import apply, apply_many, apply_op, apply_operation
from headrace.core.contexts import CondBase, Context, frame_of
from headrace.core.infer import static_value
from headrace.core.opdef import FLOW
from headrace.core.seeds import count_more
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.basic import constant, identity
from headrace.ops.control.control_contexts import (
    WhileContext,
    branch_context,
    guarded,
    in_context,
    is_inside,
)
from headrace.ops.control.control_flow_ops import (
    CONTROL_TRIGGER,
    EXIT,
    LOOP_COND,
    MERGE,
    NEXT_ITERATION,
    STACK,
    STACK_POP,
    STACK_PUSH,
    SWITCH,
)

if TYPE_CHECKING:
    from headrace.core.graph import Graph

__all__ = ["loop_gradient"]


def loop_gradient(tape: Tape, forward: Any) -> None:
    """Add the gradients of a loop's inputs to ``tape``, given those of its results."""
    variables = forward.loop_variables
    if variables is None:
        raise LookupError(
            f"No gradient can be made for the loop '{forward.name}': its variables are not known"
        )
    if isinstance(forward, BackwardContext):
        if any(tape.grads.get(t) for t in forward.results):
            raise TypeError("Second-order gradient for while loops not supported.")
        return
    exit_grads = {v: tape.collected(v.exit._op._inputs[0]) for v in variables}
    if all(g is None for g in exit_grads.values()):
        return
    if not forward.back_prop:
        return  # the program says that no gradient passes
    _Backward(tape, forward, variables, exit_grads).build()


class BackwardContext(WhileContext):
    """The context of a backward loop."""

    #: What the loop's Exit operations take: the gradients.
    results: tuple[Tensor, ...] = ()


class _Backward:
    def __init__(
        self, tape: Tape, forward: WhileContext, variables: list[Any], exit_grads: dict[Any, Any]
    ) -> None:
        self.tape = tape
        self.graph = tape.graph
        self.forward = forward
        self.variables = variables
        self.exit_grads = exit_grads
        self.outer = tape.context_for(forward.outer_context)
        with in_context(self.graph, self.outer):
            self.context = BackwardContext(
                self.graph.unique_name(forward.scope.rpartition("/")[2] + "_grad"), self.outer
            )
        self.context.backward = self
        self.stacks: dict[Tensor, Tensor] = {}
        self.contexts: dict[Any, Context] = {}
        self.counter_add: Operation | None = None
        self.counter: Operation | None = None
        self.counter_sub: Operation | None = None
        self.push_sync: Operation | None = None
        self.pop_sync: Operation | None = None

    # the loop -------------------------------------------------------------------------------------
    def build(self) -> None:
        active = self.active_variables()
        invariants = [
            (inside, outside)
            for inside, outside in self.forward.invariants.items()
            if is_trainable(outside)
        ]
        invariants = [p for p in invariants if self.is_used(p[0], active)]
        with self.graph.name_scope(self.forward.scope + "_grad"):
            count = self.forward_count()
            starts = [
                count,
                *(self.start(v) for v in active),
                *(self.zero(o) for _, o in invariants),
            ]
            exits = self.loop(starts, active, invariants)
        for v, grad in zip(active, exits[1:]):
            self.tape.add(v.enter._op._inputs[0], grad)
        for (_, outside), grad in zip(invariants, exits[1 + len(active) :]):
            self.tape.add(outside, grad)

    def zero(self, outside: Tensor) -> Tensor:
        with in_context(self.graph, self.outer):
            if outside._dtype is dtypes.resource:
                return zeros_like(
                    apply_op("ReadVariableOp", outside, dtype=variable_dtype(outside))
                )
            return zeros_like(outside)

    def active_variables(self) -> list[Any]:
        """Loop variables that the results with gradients depend on."""
        chosen = {v: None for v in self.variables if self.exit_grads[v] is not None}
        for v in (
            self.variables
        ):  # on the way to a y, though no gradient came along it: zero, as in TensorFlow
            if v.exit._op in self.tape.between and is_trainable(v.merge):
                chosen[v] = None
        grown = True
        while grown:
            grown = False
            reached = self.ops_behind([v.next._op._inputs[0] for v in chosen])
            for v in self.variables:
                if v not in chosen and is_trainable(v.merge) and v.inside._op in reached:
                    chosen[v] = None
                    grown = True
        return [v for v in self.variables if v in chosen]

    def ops_behind(self, tensors: list[Tensor]) -> set[Operation]:
        """The operations of the body that gradients of the tensors may come to."""
        seen: set[Operation] = {t._op for t in tensors}
        stack = list(seen)
        while stack:
            op = stack.pop()
            if (
                op._role == "switch"
                and frame_of(op._context) is self.forward
                and op._cond_context is None
            ):
                continue  # a loop variable as the body sees it
            if op._opdef.role not in FLOW and not _is_passed(op):
                continue
            for t in op._inputs:
                if not is_trainable(t):
                    continue
                if t._op not in seen and is_inside(t._op._context, self.forward):
                    seen.add(t._op)
                    stack.append(t._op)
        return seen

    def is_used(self, inside: Tensor, active: list[Any]) -> bool:
        return inside._op in self.ops_behind([v.next._op._inputs[0] for v in active])

    def start(self, v: Any) -> Tensor:
        grad = self.exit_grads[v]
        with in_context(self.graph, self.outer):
            return zeros_like(v.exit) if grad is None else as_dense(grad)

    def forward_count(self) -> Tensor:
        """A new loop variable of the forward loop that counts its iterations."""
        forward, graph = self.forward, self.graph
        controls, graph._control_ops = graph._control_ops, ()  # the call may wait for the loop
        try:
            return self._counted(forward, graph)
        finally:
            graph._control_ops = controls

    def _counted(self, forward: WhileContext, graph: Graph) -> Tensor:
        with in_context(graph, forward.outer_context):
            zero = constant(0, name="f_count")
        enter = forward.enter(zero, is_constant=False, name="f_count")
        with in_context(graph, forward):
            merge = apply_many(MERGE, [enter, enter], name="Merge")[0]
            loop_cond = self.loop_cond()
            switch = apply_many(SWITCH, merge, loop_cond, name="Switch")
            added = apply_op("AddV2", identity(switch[1]), constant(1, name="y"), name="Add")
            following = apply(NEXT_ITERATION, added, name="NextIteration")
        graph._close_loop(merge._op, enter, following)
        self.counter_add = added._op
        self.counter = added._op._inputs[0]._op
        for around in (forward.outer_context, self.outer):
            outer = frame_of(around)
            while isinstance(outer, WhileContext):  # its iterations use the same stacks
                outer.run_in_order()
                outer = frame_of(outer.outer_context)
        with in_context(graph, forward.outer_context):
            return apply(EXIT, switch[0], name="f_count")

    def loop_cond(self) -> Tensor:
        pred: Tensor = self.variables[0].inside._op._inputs[1]
        return pred

    def loop(
        self, starts: list[Tensor], active: list[Any], invariants: list[tuple[Tensor, Tensor]]
    ) -> list[Tensor]:
        context, graph = self.context, self.graph
        enters = [context.enter(s, is_constant=False) for s in starts]
        context.Enter()
        try:
            merges = [apply_many(MERGE, [e, e], name="Merge")[0] for e in enters]
            context.pivot = merges[0]._op
            test = apply(
                LOOP_COND,
                apply_op("GreaterEqual", merges[0], constant(1, name="b_one")),
                name="b_count",
            )
            switches = [apply_many(SWITCH, m, test, name="Switch") for m in merges]
            inside = [identity(s[1]) for s in switches]
            context.pivot = inside[0]._op
            nexts = [apply_op("Sub", inside[0], constant(1, name="b_one"))]
            self.counter_sub = nexts[0]._op
            nexts += self.body(inside[1:], active, invariants)
            followings = [apply(NEXT_ITERATION, n, name="NextIteration") for n in nexts]
        finally:
            context.Exit()
        for m, e, f in zip(merges, enters, followings):
            graph._close_loop(m._op, e, f)
            if m._shape != f._shape:
                m._shape = m._shape if f._shape is None else None
        with in_context(graph, self.outer):
            exits = [apply(EXIT, s[0], name="Exit") for s in switches]
        for x, s in zip(exits, starts):
            x._shape = s._shape
        context.loop_variables = []
        context.results = tuple([x._op._inputs[0] for x in exits])
        return exits

    def body(
        self, grads: list[Tensor], active: list[Any], invariants: list[tuple[Tensor, Tensor]]
    ) -> list[Tensor]:
        inner = LoopTape(self)
        ys = [v.next._op._inputs[0] for v in active]
        xs = [v.inside for v in active] + [i for i, _ in invariants]
        found = inner.backprop(ys, grads[: len(active)], xs, set())
        with in_context(self.graph, self.context):
            out = [
                zeros_like(self.context.capture(v.inside)) if g is None else as_dense(g)
                for v, g in zip(active, found)
            ]
            for sum_so_far, g in zip(grads[len(active) :], found[len(active) :]):
                out.append(sum_so_far if g is None else apply_op("AddV2", sum_so_far, as_dense(g)))
        return out

    # values of the forward loop
    # ---------------------------------------------------------------------
    def value(self, tensor: Tensor) -> Tensor:
        """A forward tensor as the backward loop sees it.

        Its value in the iteration that is being undone.
        """
        while tensor._op._role == "switch" and tensor._op._cond_context is not None:
            if frame_of(tensor._op._context) is not self.forward:
                break
            tensor = tensor._op._inputs[
                0
            ]  # known outside of the branch: the backward branch takes it in by itself
        if frame_of(tensor._op._context) is not self.forward:
            return tensor
        invariants: dict[Tensor, Tensor] = self.forward.invariants
        outside = invariants.get(tensor)
        if outside is not None:
            return outside
        found = self.stacks.get(tensor)
        if found is None:
            found = self.stacks[tensor] = self.popped(tensor)
        return found

    def popped(self, tensor: Tensor) -> Tensor:
        graph = self.graph
        known = (
            static_value(tensor) if tensor._op._role != "constant" else tensor._op._attrs["value"]
        )
        if known is not None:
            with in_context(graph, self.context):
                return constant(known, tensor._dtype._base)
        outermost = self.outermost()
        controls, graph._control_ops = graph._control_ops, ()
        try:
            return self._stacked(tensor, outermost)
        finally:
            graph._control_ops = controls

    def _stacked(self, tensor: Tensor, outermost: Context | None) -> Tensor:
        graph = self.graph
        with in_context(graph, outermost):
            limit = constant(-1, name="stack_size")
            handle = apply(
                STACK,
                limit,
                elem_type=tensor._dtype._base,
                stack_name=tensor._op.name,
                name="f_acc",
            )
        with in_context(graph, tensor._op._context):
            push = apply(STACK_PUSH, handle, tensor, name="StackPushV2")
        self.order_push(push._op)
        with in_context(graph, self.context_for(tensor._op._context)):
            out: Tensor = apply(STACK_POP, handle, elem_type=tensor._dtype._base, name="StackPopV2")
        self.order_pop(out._op)
        out._shape = tensor._shape
        return out

    def order_push(self, push: Operation) -> None:
        """Pushes of one iteration come after those of the one before, and before those of the next.

        A push in a branch does not happen in every iteration, and in TensorFlow what waits for it
        would not happen either: a ControlTrigger, which runs whatever its inputs do, stands
        between.
        """
        assert self.counter_add is not None and self.counter is not None
        push._add_control_input(self.counter)
        if push._context is self.forward:
            self.counter_add._add_control_input(push)
            return
        if self.push_sync is None:
            self.push_sync = self.trigger("f_sync", self.forward, self.counter_add)
        self.push_sync._add_control_input(push)

    def order_pop(self, pop: Operation) -> None:
        """Likewise for pops: the next iteration of the backward loop waits for them."""
        assert self.counter_sub is not None
        if self.pop_sync is None:
            self.pop_sync = self.trigger("b_sync", self.context, self.counter_sub)
        self.pop_sync._add_control_input(pop)

    def trigger(self, name: str, context: Context, before: Operation) -> Operation:
        with in_context(self.graph, context):
            made: Operation = apply_operation(CONTROL_TRIGGER, name=name)
        made._control_inputs = ()
        before._add_control_input(made)
        count_more(self.graph, -1)
        return made

    def outermost(self) -> Context | None:
        """Stacks live outside of every loop."""
        context: Context | None = self.forward
        found = None
        while context is not None:
            if isinstance(context, WhileContext):
                found = context
            context = context.outer_context
        return None if found is None else found.outer_context

    def context_for(self, context: Context | None) -> Context | None:
        """The backward counterpart of a context inside the forward loop."""
        if context is self.forward:
            return self.context
        if context is None or not is_inside(context, self.forward):
            return self.context
        if not isinstance(context, CondBase):
            return self.context_for(context.outer_context)
        key = (context.pred, context.branch)
        found = self.contexts.get(key)
        if found is None:
            outer = self.context_for(context.outer_context)
            assert outer is not None
            with in_context(self.graph, outer):
                pred = outer.capture(self.value(context.pred))
            made = branch_context(pred, context.branch, context.name, outer)
            made.backward = self
            found = self.contexts[key] = made
        return found


class LoopTape(Tape):
    """The backward pass over one loop body."""

    def __init__(self, backward: _Backward) -> None:
        super().__init__(backward.graph)
        self.backward = backward

    def context_for(self, context: Context | None) -> Context | None:
        return self.backward.context_for(context)

    def frame(self) -> Context | None:
        return self.backward.forward

    def enters(self, op: Operation) -> bool:
        return is_inside(op._context, self.backward.forward)

    def order(self, between: set[Operation]) -> list[Any]:
        """The body's units; the loop around them is this tape's own."""
        from headrace.core.schedule import Loop

        units = super().order(between)
        for unit in _all_loops(units):
            if unit.context is self.backward.forward:
                return list(unit.units)
        return [u for u in units if not isinstance(u, Loop)]

    def switch(self, op: Operation, out_grads: list[Any]) -> Any:
        inner = op._cond_context
        if inner is None:
            return out_grads[1]  # a loop variable entering the body
        branch = 1 if out_grads[1] is not None else 0
        outer = self.context_for(op._context)
        assert outer is not None
        with in_context(self.graph, outer):
            pred = outer.capture(self.backward.value(inner.pred))
            other = branch_context(pred, 1 - branch, inner.name, outer)
            other.backward = self.backward
            with in_context(self.graph, self.context_for(inner)):
                good = as_dense(out_grads[branch])
            good = guarded(good, pred, branch, outer)
            with in_context(self.graph, other):
                source = op._inputs[0]
                if source._dtype is dtypes.resource:
                    source = apply_op("ReadVariableOp", source, dtype=variable_dtype(source))
                zero = zeros_like(source)
            pair = (zero, good) if branch else (good, zero)
            from headrace.ops.control.control_flow import merge_on

            return merge_on(pair[0], pair[1], pred)


def _is_passed(op: Operation) -> bool:
    """Whether gradients pass an operation, or their way is known only when they are made."""
    try:
        return gradient_function(op) is not None
    except LookupError:
        return True


def _all_loops(units: list[Any]) -> list[Any]:
    from headrace.core.schedule import Loop

    found, stack = [], list(units)
    while stack:
        unit = stack.pop()
        if isinstance(unit, Loop):
            found.append(unit)
            stack.extend(unit.units)
    return found
