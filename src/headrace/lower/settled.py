"""Runs whose shapes have settled: the same plan, again and again, with feeds of the same shapes.

A pure plan that calls the kernel library is bound to its shapes when it first sees them
(settling.py): every value gets memory of its own that stays where it is, views are made once, what
depends on shapes alone is computed once, and a step becomes a primitive whose arguments are in
place. Such a run is a straight line of calls of C, about a microsecond each around the work.

What depends on variables (packed weights, folded normalisations) is bound as well, and bound again
when a variable was written. Variables are not held between runs, so that training can go on
overwriting them where they lie. Results are the caller's own: they never lie in the settled memory.

A training step is bound up to its first write (lower/before_writes.py); the writes come after that
as they always do, and take their arguments out of the settled memory.

A few signatures (shapes, for each calling thread) are settled at first sight; one more only after
it has come often, in place of the one that was longest ago. All others, and whatever goes wrong
here, take the general way, which computes the same and says what is wrong.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from threading import get_ident, local
from typing import TYPE_CHECKING, Any

from headrace.kernels.accel import library, tell_threads
from headrace.kernels.numpy.openblas import hold_blas
from headrace.lower.before_writes import split
from headrace.lower.codegen import Compiled, compile_plan
from headrace.lower.kept_part import KeptPart, is_within_bounds
from headrace.lower.plan import Plan, make_plan
from headrace.lower.session_state import State
from headrace.lower.settling import Binding, Unsettled, settle, why_unbound
from headrace.lower.step_threads import in_turn
from headrace.program.nodes import Node, walk
from headrace.program.verify import checked
from headrace.runtime.thread_pool import thread_count

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["SettledRuns", "settled_runs", "settled_training"]

#: Signatures that are settled at first sight, and how often a further one must have come.
AT_ONCE, OFTEN = 4, 8
#: Training steps come with ever new batch sizes, too: theirs must have come so often.
STEPS = 3
#: Signatures that are counted.
MAX_COUNTED = 256
#: Memory that all bindings of a session may take.
MOST_BYTES = 512 << 20
#: Larger programs are not split: it would take as long again to plan them.
MOST_STATEMENTS = 2000

Run = Callable[..., tuple[Any, ...]]
_NONE = id(None)


class _General:
    """A signature that takes the general way, and why."""

    __slots__ = ("reason",)

    #: No kernel library is this one.
    library: Any = object()

    def __init__(self, reason: str) -> None:
        self.reason = reason


class _Doubtful(_General):
    """Binding failed; perhaps it is the feeds that are wrong: the general way will tell."""

    __slots__ = ()


_unwanted = _General("it has not come often enough")


class _Here(local):
    """The calling thread.

    Its number may be an earlier thread's, whose bindings it then takes over with the same setting
    of OpenMP.
    """

    def __init__(self) -> None:
        self.ident = get_ident()
        tell_threads()


_here = _Here()


class _Settled:
    """A binding to shapes, with the variables that it was last brought up to date with."""

    __slots__ = (
        "binding",
        "dead",
        "failure",
        "failures",
        "ids",
        "kept",
        "keys",
        "library",
        "n_steady",
        "overwrites",
        "run",
        "versions",
        "watched",
    )

    def __init__(self, binding: Binding, kept: KeptPart | None, kernels: Any) -> None:
        self.binding = binding
        self.kept = kept
        self.library = kernels
        self.run, self.keys = binding.run, binding.keys
        self.n_steady = binding.n_steady
        self.ids: list[int] | None = None
        self.overwrites = -1
        self.versions: list[int] = []
        self.dead = [
            False
        ]  # set when one of the arrays is gone, whose number may then be another's
        self.watched: list[Any] = []
        self.failures = 0
        self.failure = ""  # what the last one said

    def held(self, state: State, values: dict[str, Any]) -> list[Any]:
        """The variables' arrays, with everything up to date.

        Nobody overwrites them while they are held.
        """
        held = [*map(values.get, self.keys)]
        ids = [*map(id, held)]
        if _NONE in ids or ids[: self.n_steady] != self.ids or self.dead[0]:
            return self._renewed(state, values)
        if state.overwrites != self.overwrites and not self._as_before(state):
            return self._renewed(state, values)
        self.good()
        return held

    def good(self) -> None:
        """What is kept was good once more."""
        if self.kept is not None:
            self.kept.counts.hits += 1

    def _as_before(self, state: State) -> bool:
        """Whether what was overwritten are other variables."""
        now = state.overwrites
        if self._versions(state) != self.versions:
            return False
        self.overwrites = now
        return True

    def _versions(self, state: State) -> list[int]:
        return [state.versions.get(key, 0) for key in self.keys[: self.n_steady]]

    def _renewed(self, state: State, values: dict[str, Any]) -> list[Any]:
        with state.lock:  # no write may come between what is remembered and what is computed
            held = self.binding.current(state)
            steady = held[: self.n_steady]
            ids = [*map(id, steady)]
            if ids != self.ids or self.dead[0] or self._versions(state) != self.versions:
                self.binding.renew(held, () if self.kept is None else self.kept(state, values))
                dead = [False]
                self.watched = [_watch(array, dead) for array in steady]
                self.dead = dead
                self.ids, self.versions = ids, self._versions(state)
            self.overwrites = state.overwrites
        return held


def _watch(value: object, dead: list[bool]) -> Any:
    """A weak reference that tells of the array's end.

    Of a scalar (which nobody can change) itself.
    """

    def tell(_: object) -> None:
        dead[0] = True

    try:
        return weakref.ref(value, tell)
    except TypeError:
        return value


class SettledRuns:
    """What an executable calls instead of its general function, ``general(state, values, *feeds)``.

    ``rest(state, values, *feeds, *results)`` is what comes after the plan: the writes of a training
    step.
    """

    __slots__ = (
        "__weakref__",
        "counts",
        "evicted",
        "general",
        "kept",
        "plan",
        "rest",
        "takes_turns",
    )

    def __init__(
        self,
        plan: Plan,
        general: Run,
        kept: KeptPart | None,
        rest: Run | None = None,
        takes_turns: bool = False,
    ) -> None:
        self.plan = plan
        self.general = general
        self.kept = kept
        self.rest = rest
        self.takes_turns = takes_turns  # with large steps of other threads
        self.counts: dict[Any, int] = {}
        self.evicted = 0

    def __call__(self, state: State, values: dict[str, Any], *feeds: object) -> tuple[Any, ...]:
        return self.within(state)(state, values, *feeds)

    def bound(self, state: State) -> list[tuple[list[tuple[int, ...]], dict[str, int]]]:
        """What a session has settled: the shapes of the feeds, and the binding's notes."""
        table: dict[Any, Any] = state.settled.get(self, {})
        return [([*s[2:]], f.binding.notes) for s, f in [*table.items()] if type(f) is _Settled]

    def refused(self, state: State) -> list[tuple[list[tuple[int, ...]], str]]:
        """What a session has not settled, or had to leave again: shapes of feeds, and why."""
        table: dict[Any, Any] = state.settled.get(self, {})
        found = [([*s[2:]], f.reason) for s, f in [*table.items()] if isinstance(f, _General)]
        left = [(s, f) for s, f in [*table.items()] if type(f) is _Settled and f.failures]
        return found + [([*s[2:]], f"a run took the general way: {f.failure}") for s, f in left]

    def codes(self, state: State) -> list[tuple[Any, dict[int, Any]]]:
        """The code of each binding, and the step that each line belongs to."""
        table: dict[Any, Any] = state.settled.get(self, {})
        bound = [f.binding for f in [*table.values()] if type(f) is _Settled]
        return [(b.run.__code__, b.lines) for b in bound]

    def within(self, state: State) -> Run:
        """The same for one session, without the look-up of what it has settled."""
        table: dict[Any, Any] = state.settled.setdefault(self, {})
        general, first, rest = self.general, self._first, self.rest

        def run(state: State, values: dict[str, Any], *feeds: Any) -> tuple[Any, ...]:
            signature = (_here.ident, thread_count(), *[f.shape for f in feeds])
            found = table.get(signature)
            if found is None:
                found = first(table, state, values, signature, feeds)
            if found.library is not library():
                made = general(state, values, *feeds)
                if type(found) is _Doubtful:  # the feeds were right
                    _put(table, signature, _General(found.reason))
                return made
            try:
                made = found.run(found.held(state, values), *feeds)
            except Exception as error:  # if the feeds are wrong, the general way says how
                made = general(state, values, *feeds)
                found.failures, found.failure = found.failures + 1, _said(error)
                if found.failures >= OFTEN:
                    _put(table, signature, _General(f"runs failed: {found.failure}"))
                return made
            return made if rest is None else rest(state, values, *feeds, *made)

        def run_in_turn(state: State, values: dict[str, Any], *feeds: Any) -> tuple[Any, ...]:
            made: tuple[Any, ...] = in_turn(run, state, values, *feeds)
            return made

        # the commonest case, and the one in which microseconds count
        def run_one(state: State, values: dict[str, Any], feed: Array) -> tuple[Any, ...]:
            found = table.get((_here.ident, thread_count(), feed.shape))
            if found is None or found.library is not library():
                return run(state, values, feed)
            held = [*map(values.get, found.keys)]
            same = [*map(id, held)] == found.ids and state.overwrites == found.overwrites
            if not same or found.dead[0]:
                return run(state, values, feed)
            found.good()
            try:
                return found.run(held, feed)  # type: ignore[no-any-return]
            except Exception:
                return run(state, values, feed)

        one = rest is None and len(self.plan.program.feeds) - self.plan.kept == 1
        if one:
            return run_one
        return run_in_turn if self.takes_turns else run

    def _first(
        self,
        table: dict[Any, Any],
        state: State,
        values: dict[str, Any],
        signature: object,
        feeds: tuple[Any, ...],
    ) -> Any:
        """The binding for a signature that has none yet, if it is to have one."""
        kernels = library()
        if kernels is None or not self._wanted(signature, len(table)):
            return _unwanted
        tell_threads()  # primitives are made for a number of threads
        hold_blas()  # the library's threads are started with this setting
        try:
            lends = self.rest is not None
            binding = settle(self.plan, state, values, feeds, self.kept, lends)
            made: Any = _Settled(binding, self.kept, kernels)
            if not is_within_bounds(state):
                state.kept.clear()
                made = _General("packed weights would take too much memory")
            elif _bytes(state) + binding.notes["bytes"] > MOST_BYTES:
                made = _General("the session's bindings would take too much memory")
        except Unsettled as reason:
            made = _General(str(reason))
        except Exception as error:
            return _Doubtful(f"binding failed: {_said(error)}")
        self.evicted += _put(table, signature, made)
        return made

    def _wanted(self, signature: Any, have: int) -> bool:
        training, room = self.rest is not None, have < AT_ONCE
        if room and not training:
            return True
        if len(self.counts) >= MAX_COUNTED:
            self.counts.clear()
        count = self.counts[signature] = self.counts.get(signature, 0) + 1
        # those that take turns are not bound again and again
        if count < (STEPS if room else OFTEN * (1 + self.evicted)):
            return False
        self.counts.pop(signature, None)
        return True


def _bytes(state: State) -> int:
    """What a session's bindings take."""
    found = [f for table in [*state.settled.values()] for f in [*table.values()]]
    return sum(f.binding.notes["bytes"] for f in found if type(f) is _Settled)


def _put(table: dict[Any, Any], signature: Any, made: object) -> int:
    """Remember it; how many had to go. Other threads may do the same at this moment."""
    old = [] if signature in table else [*table][: max(0, len(table) + 1 - AT_ONCE)]
    for s in old:
        table.pop(s, None)
    table[signature] = made
    return len(old)


def _said(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def settled_runs(plan: Plan, general: Run, kept: KeptPart | None) -> SettledRuns | str:
    """For plans that gain nothing or cannot be bound: why."""
    return why_unbound(plan) or SettledRuns(plan, general, kept)


def settled_training(plan: Plan, general: Run) -> tuple[SettledRuns, Compiled, Plan] | str:
    """For a plan that writes variables, or why not.

    With the code and the plan of what comes after the part that is bound.
    """
    if plan.kept:
        return "other results depend on variables alone and are kept"
    if len(plan.program.body) > MOST_STATEMENTS:
        return f"it has more than {MOST_STATEMENTS} operations"
    parts = split(plan.program)
    if parts is None:
        return "nothing comes before its writes, or it has branches or loops"
    checked(parts[0], "splitting before the writes (what comes before)")
    checked(parts[1], "splitting before the writes (what comes after)")
    first = make_plan(parts[0])
    why_not = why_unbound(first, training=True)
    if why_not is not None:
        return why_not
    last = make_plan(parts[1])
    rest = compile_plan(last)
    waits = any(_may_wait(n) for n in walk(plan.program.body))
    return SettledRuns(first, general, None, rest.run, not waits), rest, last


def _may_wait(node: Node) -> bool:
    """Whether an operation may wait for another thread, or call the user's code."""
    traits = node.opdef.traits
    return traits.blocking or traits.calls_user or traits.host_only
