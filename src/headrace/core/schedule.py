"""The order in which the needed operations run, structured by branches and loops.

A graph without control flow runs in the order in which it was built, which is a topological order.
With control flow each loop is one unit of its surrounding frame; units are sorted by their
dependencies, and among those that are ready the ones under the branch that is open already come
first, so that branches stay in one piece.

Where a run has operations that wait for each other (an enqueue and a dequeue), what they depend on
comes first, an enqueue before a dequeue, and what depends on them last.
"""

from __future__ import annotations

import heapq
import sys
from collections import defaultdict
from collections.abc import Container, Iterable
from typing import Union

from headrace import errors
from headrace.core.contexts import CondBase, Context, WhileBase, frame_of, guards_of
from headrace.core.tensor import Operation, Tensor

__all__ = ["Loop", "Unit", "needed_ops", "order_units", "schedule"]


#: More than the number of any operation.
_LATER = sys.maxsize


class Loop:
    """A loop as a unit of the frame around it."""

    def __init__(self, context: WhileBase) -> None:
        self.context = context
        self.units: list[Unit] = []
        self.test: list[Unit] = []
        self.body: list[Unit] = []


Unit = Union[Operation, Loop]


def needed_ops(
    roots: Iterable[Operation],
    fed: Container[Tensor],
    done: Container[Operation] = (),
    limit: int = sys.maxsize,
) -> set[Operation]:
    """Everything that the roots depend on, not looking behind fed tensors nor waiting for what is
    done.

    If it is more than ``limit``, only a part of it, which is more than ``limit`` too.
    """
    seen: set[Operation] = set(roots)
    stack = list(seen)
    while stack and len(seen) <= limit:
        op = stack.pop()
        for t in op._inputs:
            producer = t._op
            if producer not in seen and t not in fed:
                seen.add(producer)
                stack.append(producer)
        extra: Iterable[Operation] = op._control_inputs
        if extra and fed:  # waiting for a placeholder that is fed means nothing
            extra = [
                c for c in extra if not (c.type.startswith("Placeholder") and c._outputs[0] in fed)
            ]
        if extra and done:
            extra = [c for c in extra if c not in done]
        if op._context is not None:
            extra = (*extra, *_preds(guards_of(op._context), fed))
        for producer in extra:
            if producer not in seen:
                seen.add(producer)
                stack.append(producer)
    return seen


def _preds(guards: tuple[CondBase, ...], fed: Container[Tensor]) -> Iterable[Operation]:
    """What decides over a branch: the innermost predicate, which itself waits for those around
    it.
    """
    for guard in reversed(guards):
        if guard.pred not in fed:
            yield guard.pred._op
            return


def schedule(needed: set[Operation]) -> list[Unit]:
    """The units of the outermost frame in running order; loops carry their own order inside."""
    ordered = sorted(needed, key=lambda op: op._id)
    if (
        all(op._context is None for op in ordered)
        and _is_topological(ordered)
        and not _has_both_ends(ordered)
    ):
        return list(ordered)
    frames: dict[Context | None, list[Operation]] = defaultdict(list)
    for op in ordered:
        frames[frame_of(op._context)].append(op)
    loops: dict[Context, Loop] = {}
    for context in frames:
        while isinstance(context, WhileBase) and context not in loops:
            loops[context] = Loop(context)
            context = frame_of(context.outer_context)
    order: dict[Context | None, list[Unit]] = {}
    for frame in [None, *loops]:
        children = [loop for c, loop in loops.items() if frame_of(c.outer_context) is frame]
        order[frame] = order_units(frame, [*frames.get(frame, ()), *children], frames, loops)
    for context, loop in loops.items():
        loop.units = order[context]
        loop.test, loop.body = _split_test(loop)
    return order[None]


def _is_topological(ordered: list[Operation]) -> bool:
    for op in ordered:
        own = op._id
        for c in op._control_inputs:
            if c._id > own:
                return False
    if ordered and ordered[0].graph._reordered:
        return all(t._op._id < op._id for op in ordered for t in op._inputs)
    return True


def _has_both_ends(ordered: list[Operation]) -> bool:
    """Whether some operation waits for something to arrive (a dequeue), another for a place to put
    something (an enqueue).
    """
    ends = {bool(op._outputs) for op in ordered if op._opdef.traits.blocking}
    return len(ends) == 2


class _Places:
    """The units of one frame that operations belong to."""

    def __init__(self, frame: Context | None, loops: dict[Context, Loop]) -> None:
        self.frame, self.loops = frame, loops
        #: By contexts: the loop, None outside of the frame, True where operations are units.
        self.found: dict[Context | None, Loop | bool | None] = {}
        self.preds: dict[Context | None, list[Unit]] = {}

    def look(self, context: Context | None) -> Loop | bool | None:
        """Find a context that was not looked for yet."""
        found = self.found[context] = self._place(context)
        return found

    def _place(self, context: Context | None) -> Loop | bool | None:
        inner = frame_of(context)
        if inner is self.frame:
            return True
        while inner is not None:
            parent = frame_of(inner.outer_context)
            if parent is self.frame:
                return self.loops[inner]
            inner = parent
        return None

    def add_sources(self, sources: set[Unit], op: Operation) -> None:
        """Add the units that an operation takes from, or waits for."""
        found = self.found
        for t in op._inputs:
            source = t._op
            where = found.get(source._context, False)
            if where is False:
                where = self.look(source._context)
            if where is True:
                # a loop's Merge does not wait for what comes from the round before
                if source._opdef.role != "next" or op._opdef.role != "merge":
                    sources.add(source)
            elif where:
                sources.add(where)
        for source in op._control_inputs:
            where = found.get(source._context, False)
            if where is False:
                where = self.look(source._context)
            if where:
                sources.add(source if where is True else where)
        if op._context is not None:
            sources.update(self.preds_of(op._context))

    def preds_of(self, context: Context | None) -> list[Unit]:
        """What decides over the branch that a context is."""
        found = self.preds.get(context)
        if found is None:
            found = self.preds[context] = []
            for pred in _preds(guards_of(context), ()):
                where = self.look(pred._context)
                if where:
                    found.append(pred if where is True else where)
        return found


def _members(loop: Loop, frames: dict[Context | None, list[Operation]]) -> list[Operation]:
    found = []
    for context, ops in frames.items():
        c = context
        while c is not None:
            if c is loop.context:
                found.extend(ops)
                break
            c = frame_of(c.outer_context)
    return found


def order_units(
    frame: Context | None,
    units: list[Unit],
    frames: dict[Context | None, list[Operation]],
    loops: dict[Context, Loop],
) -> list[Unit]:
    """Topological order of one frame's units."""
    users: dict[Unit, list[Unit]] = defaultdict(list)
    waiting: dict[Unit, int] = {}
    position: dict[Unit, int] = {}
    present = set(units)
    places = _Places(frame, loops)
    for unit in units:
        sources: set[Unit] = set()
        if isinstance(unit, Operation):
            position[unit] = unit._id
            places.add_sources(sources, unit)
        else:
            members = _members(unit, frames)
            position[unit] = min([m._id for m in members], default=0)
            for m in members:
                places.add_sources(sources, m)
            sources.update(places.preds_of(unit.context.outer_context))
            sources.discard(unit)
        sources &= present
        waiting[unit] = len(sources)
        for s in sources:
            users[s].append(unit)
    if _has_both_ends([u for u in units if isinstance(u, Operation)]):
        _put_waiting_first(units, users, position)
    return _sorted_by_guard(units, users, waiting, position)


def _put_waiting_first(
    units: list[Unit], users: dict[Unit, list[Unit]], position: dict[Unit, int]
) -> None:
    """Move dequeues behind enqueues, and behind both what no blocking operation needs."""
    sources: dict[Unit, list[Unit]] = defaultdict(list)
    for source, found in users.items():
        for user in found:
            sources[user].append(source)
    blocking = [u for u in units if isinstance(u, Operation) and u._opdef.traits.blocking]
    needed: set[Unit] = set(blocking)
    stack: list[Unit] = list(blocking)
    while stack:
        for source in sources[stack.pop()]:
            if source not in needed:
                needed.add(source)
                stack.append(source)
    for unit in units:
        if unit not in needed:
            position[unit] += 2 * _LATER
        elif isinstance(unit, Operation) and unit._opdef.traits.blocking and unit._outputs:
            position[unit] += _LATER


def guard_of(unit: Unit) -> tuple[CondBase, ...]:
    if isinstance(unit, Loop):
        return guards_of(unit.context.outer_context)
    return guards_of(unit._context)


def _sorted_by_guard(
    units: list[Unit],
    users: dict[Unit, list[Unit]],
    waiting: dict[Unit, int],
    position: dict[Unit, int],
) -> list[Unit]:
    ready: dict[tuple[tuple[int, int], ...], list[tuple[int, int, Unit]]] = defaultdict(list)
    everywhere: list[
        tuple[int, int, tuple[tuple[int, int], ...], Unit]
    ] = []  # of all guards, some done already
    done: set[Unit] = set()
    count = 0

    def push(unit: Unit) -> None:
        nonlocal count
        guards = guard_of(unit)
        key = tuple([(id(g.pred), g.branch) for g in guards]) if guards else ()
        heapq.heappush(ready[key], (position[unit], count, unit))
        heapq.heappush(everywhere, (position[unit], count, key, unit))
        count += 1

    for unit in units:
        if waiting[unit] == 0:
            push(unit)
    out: list[Unit] = []
    current: tuple[tuple[int, int], ...] = ()
    while len(out) < len(units):
        if not ready.get(current):
            while everywhere and everywhere[0][3] in done:
                heapq.heappop(everywhere)
            if not everywhere:
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    f"Graph is invalid, contains a cycle with {len(units) - len(out)} nodes "
                    "that is not a tf.while_loop.",
                )
            current = everywhere[0][2]
        unit = heapq.heappop(ready[current])[2]
        done.add(unit)
        out.append(unit)
        for user in users[unit]:
            waiting[user] -= 1
            if waiting[user] == 0:
                push(user)
    return out


def _split_test(loop: Loop) -> tuple[list[Unit], list[Unit]]:
    """What the loop condition needs comes before it, the rest after."""
    present = set(loop.units)
    conds = [
        u for u in loop.units if isinstance(u, Operation) and u._opdef.role == "loop condition"
    ]
    wanted: set[Unit] = set(conds)
    stack: list[Unit] = list(conds)
    places = _Places(loop.context, {u.context: u for u in loop.units if isinstance(u, Loop)})
    while stack:
        unit = stack.pop()
        sources: set[Unit] = set()
        for m in [unit] if isinstance(unit, Operation) else _deep_ops(unit):
            places.add_sources(sources, m)
        if isinstance(unit, Loop):
            sources.update(places.preds_of(unit.context.outer_context))
        new = (sources & present) - wanted
        wanted |= new
        stack.extend(new)
    test = [u for u in loop.units if u in wanted]
    body = [u for u in loop.units if u not in wanted]
    return test, body


def _deep_ops(loop: Loop) -> list[Operation]:
    out: list[Operation] = []
    stack: list[Unit] = [loop]
    while stack:
        unit = stack.pop()
        if isinstance(unit, Loop):
            stack.extend(unit.units)
        else:
            out.append(unit)
    return out
