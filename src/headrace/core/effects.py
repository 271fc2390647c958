"""Program order for what a function does besides computing: automatic control dependencies.

While a function is traced, every operation that reads a variable, writes one or has another effect
(prints, checks, calls Python, advances an iterator) is noted here, and waits for the effects before
it that it must not overtake:

* a read waits for the last write of its variable,
* a write waits for the last write of its variable, the reads since, and the last other effect,
* another effect waits for the one before it and the writes since.

A branch or a loop body is a region with a list of its own. When the ``cond`` or ``while_loop`` is
finished it is noted in the region around it like one operation that does all of what happens
inside: where it starts waits for what came before, its results wait for the effects inside, and
what follows waits for its results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core.opdef import FLOW
from headrace.core.tensor import Operation, Tensor

if TYPE_CHECKING:
    from headrace.core.contexts import Context

__all__ = ["Effects", "Entry", "variable_of"]

#: Roles of operations that pass a handle on.
_FORWARDS = FLOW | {"identity"}
#: Roles of stateful operations whose order is given by their data, or that do nothing themselves.
_QUIET = _FORWARDS | {"handle", "variable", "placeholder", "loop condition", "nothing"}
_QUIET_PREFIXES = ("Stack", "TensorArray")


def variable_of(handle: Tensor) -> Tensor | str:
    """What identifies the variable behind a handle.

    Its key, or the tensor by which the handle came in.
    """
    op = handle._op
    while op._opdef.role in _FORWARDS:
        handle = op._inputs[0]
        op = handle._op
    if op._opdef.role in ("handle", "variable"):
        return f"{op._attrs.get('container') or ''}/{op._attrs.get('shared_name') or op.name}"
    return handle


class Entry(NamedTuple):
    """An effect of a region.

    Where it starts, the operation that what follows waits for, and what it touches.
    """

    op: Operation
    starts: tuple[Operation, ...]
    reads: frozenset[Any]
    writes: frozenset[Any]
    other: bool

    @property
    def must_run(self) -> bool:
        return bool(self.writes) or self.other


class _Region:
    """The effects of one branch, one loop or the function itself, in program order."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.last_write: dict[Any, Operation] = {}
        self.reads_since: dict[Any, list[Operation]] = {}
        self.last_other: Operation | None = None
        self.writes_since_other: list[Operation] = []

    def before(self, reads: Iterable[Any], writes: Iterable[Any], other: bool) -> list[Operation]:
        """What such an effect has to wait for."""
        found: dict[Operation, None] = {}
        for variable in reads:
            if variable in self.last_write:
                found[self.last_write[variable]] = None
        for variable in writes:
            if variable in self.last_write:
                found[self.last_write[variable]] = None
            found.update(dict.fromkeys(self.reads_since.get(variable, ())))
        if (writes or other) and self.last_other is not None:
            found[self.last_other] = None
        if other:
            found.update(dict.fromkeys(self.writes_since_other))
        return list(found)

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        op = entry.op
        for variable in entry.reads:
            self.reads_since.setdefault(variable, []).append(op)
        for variable in entry.writes:
            self.last_write[variable] = op
            self.reads_since.pop(variable, None)
        if entry.other:
            self.last_other = op
            self.writes_since_other = []
        elif entry.writes:
            self.writes_since_other.append(op)

    def pending(self) -> list[Operation]:
        return list(dict.fromkeys(e.op for e in self.entries if e.must_run))


class Effects:
    """The effects of a function's graph, region by region."""

    def __init__(self) -> None:
        self.regions: dict[Context | None, _Region] = {None: _Region()}
        self.noting = True

    @property
    def entries(self) -> list[Entry]:
        """Of the function itself."""
        return self.regions[None].entries

    def pending(self, context: Context | None = None) -> list[Operation]:
        """The operations of a region that have to have run when it is left."""
        region = self.regions.get(context)
        return [] if region is None else region.pending()

    # single operations --------------------------------------------------------------------------
    def note(self, op: Operation) -> None:
        """Give a new operation its place in the order, if it has one."""
        traits = op._opdef.traits
        if not self.noting or op._opdef.role in _QUIET or (traits.random and not traits.writes):
            return
        if op.type.startswith(_QUIET_PREFIXES) or op.type == "GuaranteeConst":
            return
        writes = frozenset([variable_of(op._inputs[i]) for i in traits.writes])
        reads = frozenset([variable_of(op._inputs[i]) for i in traits.reads]) - writes
        other = traits.stateful and not writes and not reads
        if not (writes or reads or other):
            return
        region = self.regions.get(op._context)
        if region is None:
            self._note_late(op, reads, writes, other)
            return
        wait_for(op, region.before(reads, writes, other))
        region.add(Entry(op, (op,), reads, writes, other))

    def _note_late(
        self, op: Operation, reads: Iterable[Any], writes: Iterable[Any], other: bool
    ) -> None:
        """An operation made in a branch that is finished, as gradients are.

        It comes after what is there now.
        """
        context = op._context
        while context is not None and context not in self.regions:
            context = context.outer_context
        wait_for(op, self.regions[context].before(reads, writes, other))

    # branches and loops -------------------------------------------------------------------------
    def open(self, context: Context) -> None:
        self.regions.setdefault(context, _Region())

    def close(
        self,
        contexts: Sequence[Context],
        outer: Context | None,
        starts: Sequence[Operation],
        end: Operation | None,
    ) -> None:
        """The branches or the loop ``contexts`` are built.

        From here on they are one entry of ``outer``.
        """
        inside = [e for c in contexts for e in self.regions.pop(c).entries]
        region = self.regions.get(outer)
        if not inside or region is None or end is None:
            return
        writes = frozenset().union(*(e.writes for e in inside))
        reads = frozenset().union(*(e.reads for e in inside)) - writes
        self.note_part(region, end, tuple(starts), reads, writes, any(e.other for e in inside))

    @staticmethod
    def note_part(
        region: _Region,
        end: Operation,
        starts: tuple[Operation, ...],
        reads: frozenset[Any],
        writes: frozenset[Any],
        other: bool,
    ) -> None:
        before = region.before(reads, writes, other)
        for start in starts:
            wait_for(start, before)
        region.add(Entry(end, starts, reads, writes, other))


def wait_for(op: Operation, others: Sequence[Operation]) -> None:
    """Control dependencies on those of ``others`` that the operation does not use anyway."""
    if not others:
        return
    have = {*op._control_inputs, *(t._op for t in op._inputs), op}
    new = tuple(o for o in others if o not in have)
    if new:
        op._control_inputs = (*op._control_inputs, *new)
