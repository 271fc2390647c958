"""Branches and loops of an imported graph: contexts from the operations alone.

A GraphDef has TF-1 control flow as flat Switch / Merge / Enter / Exit / NextIteration nodes. A
Program is structured by the contexts that ``tf.cond`` and ``tf.while_loop`` leave on operations
(core/contexts.py). This module finds them again:

* ``Enter`` opens the frame of its name, ``Exit`` leaves it; an operation is in the innermost frame
  of its inputs.
* an output of a ``Switch`` is guarded by (predicate, output); an operation is guarded by all guards
  of its inputs, data and control; a ``Merge`` of two values that are guarded by the two sides of
  one predicate is free of that guard.

Predicates are compared behind ``Identity``: ``tf.cond`` switches its pivot by ``pred`` and
everything else by ``pred_id``. The Switches of a loop's own condition (``LoopCond``) are the loop,
not a guard.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from headrace.core.contexts import Context
from headrace.core.graph import Graph
from headrace.core.tensor import Operation, Tensor
from headrace.ops.control.control_contexts import CondContext, WhileContext
from headrace.ops.control.control_flow import _note_gradient_context
from headrace.ops.control.while_loops import _LoopVariable

__all__ = ["find_structure", "place_flat_operations"]


#: Deeper nesting than this is not a program but an attack.
MAX_NESTING = 256

#: (root of the predicate, 0 or 1)
Guard = tuple[Tensor, int]


class _Place(NamedTuple):
    """Where an operation is.

    Its frame, and the guards between the frame and itself, outermost first.
    """

    frame: _Frame | None
    guards: tuple[Guard, ...]


class _Frame:
    """A loop."""

    def __init__(self, name: str, outer: _Place) -> None:
        self.name = name
        self.outer = outer
        self.depth: int = 1 if outer.frame is None else outer.frame.depth + 1
        self.context: WhileContext | None = None
        self.enters: list[Operation] = []
        self.merges: list[Operation] = []
        self.members: list[Operation] = []
        self.parallel_iterations = 10


_TOP = _Place(None, ())


def find_structure(ops: Sequence[Operation], outer: Context | None = None) -> None:
    """Give the operations (inputs before users, but for loops) their contexts.

    Those at the top keep ``outer``.
    """
    _Finder(ops, outer).run()


def place_flat_operations(graph: Graph) -> None:
    """Contexts for what lies between Switch and Merge operations that a program made itself.

    Operations may be added later, so that everything is placed anew each time.
    """
    for op in graph._flat_placed:
        op._context = None
        op._cond_context = op._cond_pred = None
        op._merge_swapped = False
    flat = dict.fromkeys(graph._flat_flow)
    inside: dict[Operation, None] = {}
    for op in graph._ops:
        if op in flat or (
            op._context is None
            and any(t._op in inside and t._op._opdef.role != "merge" for t in op._inputs)
        ):
            inside[op] = None
    graph._flat_placed = inside
    find_structure(list(inside))


class _Finder:
    def __init__(self, ops: Sequence[Operation], outer: Context | None) -> None:
        self.ops = ops
        self.outer = outer
        self.places: dict[Operation, _Place] = {}
        self.roots: dict[Tensor, Tensor] = {}
        self.frames: dict[tuple[_Frame | None, str], _Frame] = {}
        self.contexts: dict[_Place, Context | None] = {_TOP: outer}
        self.used_sides: dict[Operation, int] = {}
        self.readers: dict[Tensor, Operation] = {}
        self.exits: dict[Tensor, Operation] = {}
        self.loop_switches: dict[Tensor, Operation] = {}

    def run(self) -> None:
        for op in self.ops:
            self.places[op] = self._place(op)
        self._index()
        for frame in sorted(self.frames.values(), key=lambda f: f.depth):
            frame.context = WhileContext(
                frame.name, self._context(frame.outer), frame.parallel_iterations
            )
            self.contexts[_Place(frame, ())] = frame.context
        for op in self.ops:
            place = self.places[op]
            if place != _TOP:
                op._context = self._context(place)
        self._mark_branches()
        for frame in self.frames.values():
            self._finish(frame)

    def _index(self) -> None:
        """Who reads what, as far as it is asked for below."""
        for op in self.ops:
            for t in op._inputs:
                if t._op._opdef.role == "switch":
                    self.used_sides.setdefault(t._op, t._value_index)
            if op._opdef.role == "identity":
                self.readers.setdefault(op._inputs[0], op)
            elif op._opdef.role == "exit":
                self.exits[op._inputs[0]] = op
            elif op._opdef.role == "switch" and op._inputs[0]._op._opdef.role == "merge":
                self.loop_switches.setdefault(op._inputs[0], op)

    # places ---------------------------------------------------------------------------------------
    def _place(self, op: Operation) -> _Place:
        kind = op.type
        if op._opdef.role == "merge":
            return self._merge_place(op)
        place = self._joined([self._place_of(t) for t in op._inputs], op)
        if op._control_inputs:
            controls = [self.places.get(c, _TOP) for c in op._control_inputs]
            place = self._joined([place, *controls], op)
        if kind == "ControlTrigger":  # runs whichever of its inputs there are
            return _Place(place.frame, ()) if place.frame is not None else _TOP
        if op._opdef.role == "enter":
            return self._enter(op, place)
        if op._opdef.role == "exit":
            if place.frame is None:
                raise ValueError(f"'{op.name}' (Exit) leaves a loop that nothing entered")
            return place.frame.outer
        return place

    def _place_of(self, tensor: Tensor) -> _Place:
        """Where a tensor is: an output of a Switch is inside its branch."""
        op = tensor._op
        place = self.places.get(op, _TOP)
        if op._opdef.role != "switch" or op not in self.places:
            return place
        root = self._root(op._inputs[1])
        if root._op._opdef.role == "loop condition":
            return place
        guard = (root, tensor._value_index)
        if guard in place.guards:
            return place
        if len(place.guards) >= MAX_NESTING:
            raise ValueError(
                f"'{op.name}' (Switch): branches are nested more than {MAX_NESTING} deep"
            )
        return _Place(place.frame, (*place.guards, guard))

    def _root(self, pred: Tensor) -> Tensor:
        """The predicate behind identities."""
        known = self.roots.get(pred)
        if known is None:
            known = pred
            while known._op._opdef.role == "identity" and known._op in self.places:
                known = known._op._inputs[0]
            self.roots[pred] = known
        return known

    def _joined(self, places: list[_Place], op: Operation) -> _Place:
        """The place of what needs values of all these places."""
        best = _TOP
        for place in places:
            if place is best or place is _TOP:
                continue
            depth, have = _depth(place.frame), _depth(best.frame)
            if depth > have:
                best = place
            elif place.frame is best.frame and place.guards != best.guards:
                longer, other = (
                    (place, best) if len(place.guards) >= len(best.guards) else (best, place)
                )
                extra = tuple(g for g in other.guards if g not in longer.guards)
                best = _Place(longer.frame, (*longer.guards, *extra)) if extra else longer
        return best

    def _enter(self, op: Operation, place: _Place) -> _Place:
        key = (place.frame, op._attrs["frame_name"])
        frame = self.frames.get(key)
        if frame is None:
            frame = self.frames[key] = _Frame(key[1], place)
            if frame.depth > MAX_NESTING:
                raise ValueError(
                    f"'{op.name}' (Enter): loops are nested more than {MAX_NESTING} deep"
                )
            frame.parallel_iterations = op._attrs["parallel_iterations"]
        else:
            frame.outer = self._joined([frame.outer, place], op)
        frame.enters.append(op)
        return _Place(frame, ())

    def _merge_place(self, op: Operation) -> _Place:
        back = [t for t in op._inputs if t._op._opdef.role == "next"]
        if back:
            if (
                len(op._inputs) != 2
                or op._inputs[0]._op._opdef.role != "enter"
                or not op._inputs[1:] == tuple(back)
            ):
                raise ValueError(
                    f"'{op.name}' (Merge) of a loop must have an Enter and a "
                    "NextIteration as its inputs"
                )
            place = self._joined(
                [self._place_of(t) for t in op._inputs if t._op._opdef.role != "next"], op
            )
            if place.frame is not None:
                place.frame.merges.append(op)
            return place
        places = [self._place_of(t) for t in op._inputs]
        if all(t is op._inputs[0] and t._op._opdef.role == "enter" for t in op._inputs):
            return self._joined(places, op)  # a loop that was written while it was being built
        if len(places) == 2:
            found = self._chosen_by(places[0], places[1])
            if found is not None:
                place, pred, is_swapped = found
                op._cond_pred = pred
                if is_swapped:
                    op._merge_swapped = True
                controls = [self.places.get(c, _TOP) for c in op._control_inputs]
                return self._joined([place, *controls], op) if controls else place
        raise ValueError(
            f"'{op.name}' (Merge) does not join the two branches of a condition: Headrace "
            "runs the control flow that tf.cond, "
            "tf.case and tf.while_loop make"
        )

    @staticmethod
    def _chosen_by(a: _Place, b: _Place) -> tuple[_Place, Tensor, bool] | None:
        """(where the Merge is, the predicate that chooses, whether the first value is the true
        one).
        """
        if a.frame is not b.frame:
            return None
        for i, (pred, side) in enumerate(a.guards):
            if (pred, 1 - side) not in b.guards:
                continue
            rest_a = {g for g in a.guards[:i]}
            shared = tuple(g for g in a.guards[:i] if g in b.guards)
            if len(shared) == len(rest_a):
                return _Place(a.frame, shared), pred, side == 1
        return None

    # contexts -------------------------------------------------------------------------------------
    def _context(self, place: _Place) -> Context | None:
        guards = place.guards
        known = len(guards)
        while (_Place(place.frame, guards[:known])) not in self.contexts:
            known -= 1
        context = self.contexts[_Place(place.frame, guards[:known])]
        for n in range(known, len(guards)):
            context = self._branch(place.frame, guards[: n + 1], context)
        return context

    def _branch(
        self, frame: _Frame | None, guards: tuple[Guard, ...], outer: Context | None
    ) -> CondContext:
        pred, side = guards[-1]
        made = CondContext(pred, pred, side, f"cond_{'ft'[side]}", outer)
        self.contexts[_Place(frame, guards)] = made
        sibling = self.contexts.get(_Place(frame, (*guards[:-1], (pred, 1 - side))))
        if isinstance(sibling, CondContext):
            _note_gradient_context(made, sibling)
        return made

    def _mark_branches(self) -> None:
        """A Switch knows the branch that it leads into; a branch its pivot."""
        for op in self.ops:
            if op._opdef.role == "switch":
                root = self._root(op._inputs[1])
                if root._op._opdef.role == "loop condition":
                    continue
                frame, guards = self.places[op]
                guard = (root, self.used_sides.get(op, 1))
                inner = guards if guard in guards else (*guards, guard)
                context = self._context(_Place(frame, inner))
                assert isinstance(context, CondContext)
                op._cond_context = context
            elif op._opdef.role == "identity" and op._inputs[0]._op._opdef.role == "switch":
                context = op._context
                if isinstance(context, CondContext) and context.pivot is context.pred:
                    context.pivot = op._outputs[0]

    def _finish(self, frame: _Frame) -> None:
        """What gradients of the loop need to know."""
        context = frame.context
        assert context is not None
        context.enters = list(frame.enters)
        for enter in frame.enters:
            if enter._attrs["is_constant"]:
                context.invariants[enter._outputs[0]] = enter._inputs[0]
                context.captured[enter._inputs[0]] = enter._outputs[0]
        variables: list[Any] = []
        for merge in frame.merges:
            switch = self.loop_switches.get(merge._outputs[0])
            if switch is None:
                continue
            leave = self.exits.get(switch._outputs[0])
            context.pivot = context.pivot or self.readers.get(switch._outputs[1])
            exit_tensor = None if leave is None else leave._outputs[0]
            variables.append(
                _LoopVariable(
                    merge._inputs[0],
                    merge._outputs[0],
                    switch._outputs[1],
                    merge._inputs[1],
                    exit_tensor,
                )
            )
        context.loop_variables = variables


def _depth(frame: _Frame | None) -> int:
    return 0 if frame is None else frame.depth
