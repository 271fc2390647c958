"""Runs that are bound to shapes: the same plan, again and again, with feeds of the same shapes.

A pure plan that calls the kernel library is bound to its shapes when it first sees them
(binding.py): every value gets memory of its own that stays where it is, views are made once,
what depends on shapes alone is computed once, and a step becomes a primitive whose arguments are in
place. Such a run is a straight line of calls of C, about a microsecond each around the work.

What depends on variables (packed weights, folded normalisations) is bound as well, and bound again
when the version stamp of a variable has changed. Variables are not referenced between runs, so that
training can go on overwriting them where they lie. Results are the caller's own: they never lie in
the bound memory.

A training step is bound up to its first write; the writes come after that, in the same function, as
they always do, and take their arguments out of the bound memory. A run that fails before that is
done again by the generic run; one that fails after it has had effects, and is not.

A few signatures (shapes, for each calling thread) are bound at first sight; one more only after
it has come often, in place of the one that was longest ago. All others, and whatever goes wrong
here, take the generic run, which computes the same and says what is wrong.
"""

from __future__ import annotations

import weakref
from threading import get_ident, local
from types import CodeType
from typing import TYPE_CHECKING, Any

from headrace.kernels.accel import library, tell_threads
from headrace.kernels.numpy.openblas import hold_blas
from headrace.lower.emit_lines import Compiled
from headrace.lower.executable import Run, SessionRun
from headrace.lower.listing import Listing
from headrace.lower.plan import Plan
from headrace.lower.select_bindable import why_unbound
from headrace.lower.session_state import State
from headrace.lower.signature_counts import SignatureCounts
from headrace.lower.step_threads import in_turn, most_threads
from headrace.lower.storage_arena import NotBound
from headrace.lower.write_stage import WriteStage, is_within_bounds
from headrace.program.nodes import Node, walk
from headrace.runtime.thread_pool import thread_count

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.lower.binding import Binding

__all__ = ["BoundRuns", "runs_for"]

#: Signatures that are bound at first sight, and how often a further one must have come. Steps that
#: threads of ours run (step_threads.py) have as many more as there are such threads.
MAX_BINDINGS, MIN_RUNS = 4, 8
#: Training steps come with ever new batch sizes, too: theirs must have come so often.
MIN_TRAINING_RUNS = 3
#: Memory that all bindings of a session may take.
MAX_BYTES = 512 << 20


class _Unbound:
    """A signature whose runs stay generic, and why."""

    __slots__ = ("reason",)

    #: No kernel library is this one.
    library: Any = object()

    def __init__(self, reason: str) -> None:
        self.reason = reason


class _BindingFailed(_Unbound):
    """Binding raised: run the generic path once to see whether the feeds are invalid."""

    __slots__ = ()


_unwanted = _Unbound("it has not come often enough")
_no_library = _Unbound("there is no kernel library")


class _Here(local):
    """The calling thread.

    Its number may be an earlier thread's, whose bindings it then takes over with the same setting
    of OpenMP.
    """

    def __init__(self) -> None:
        self.ident = get_ident()
        tell_threads()


_here = _Here()


class _Bound:
    """A binding to shapes, and what became of its runs."""

    __slots__ = ("binding", "failure", "failures", "library", "run")

    def __init__(self, binding: Binding, kernels: Any) -> None:
        self.binding = binding
        self.library = kernels
        self.run = binding.run
        self.failures = 0
        self.failure = ""  # what the last one said


class BoundRuns(SessionRun):
    """What an executable calls instead of its function ``general(state, values, *feeds)``."""

    __slots__ = (
        "__weakref__",
        "bindings",
        "counts",
        "evicted",
        "general",
        "kept",
        "plan",
        "takes_turns",
        "trains",
    )

    def __init__(self, plan: Plan, general: Run, kept: WriteStage | None) -> None:
        self.plan = plan
        self.general = general
        self.kept = kept
        self.trains = plan.program.writes
        # with large steps of other threads
        self.takes_turns = self.trains and not any(_may_wait(n) for n in walk(plan.program.body))
        self.counts = SignatureCounts()
        self.evicted = 0
        self.bindings: weakref.WeakSet[Binding] = weakref.WeakSet()

    def compiled(self) -> list[Compiled]:
        """The functions that were made, to find out where an error comes from."""
        return [b.compiled for b in self.bindings]

    def bound(self, state: State) -> list[tuple[list[tuple[int, ...]], dict[str, int]]]:
        """What a session has bound: the shapes of the feeds, and the binding's notes."""
        table: dict[Any, Any] = state.bindings.get(self, {})
        return [([*s[2:]], f.binding.notes) for s, f in [*table.items()] if type(f) is _Bound]

    def refused(self, state: State) -> list[tuple[list[tuple[int, ...]], str]]:
        """What a session has not bound, or had to leave again: shapes of feeds, and why."""
        table: dict[Any, Any] = state.bindings.get(self, {})
        found = [([*s[2:]], f.reason) for s, f in [*table.items()] if isinstance(f, _Unbound)]
        left = [(s, f) for s, f in [*table.items()] if type(f) is _Bound and f.failures]
        found += [([*s[2:]], f"a run was generic: {f.failure}") for s, f in left]
        often = self._runs_to_bind(len(table) < self._max_bindings())
        counts = [(s, n) for s, n in self.counts.items() if s not in table]
        return found + [([*s[2:]], f"it has come {n} of {often} times") for s, n in counts]

    def listings(self, state: State) -> list[tuple[CodeType, Listing]]:
        """The code of each binding, and what it does."""
        table: dict[Any, Any] = state.bindings.get(self, {})
        bound = [f.binding for f in [*table.values()] if type(f) is _Bound]
        return [(b.run.__code__, b.compiled.listing) for b in bound]

    def within(self, state: State) -> Run:
        """The same for one session, without the look-up of what it has bound."""
        table: dict[Any, Any] = state.bindings.setdefault(self, {})
        general, first, instead = self.general, self._first, self._instead

        def run(state: State, values: dict[str, Any], *feeds: Any) -> tuple[Any, ...]:
            signature = (_here.ident, thread_count(), *[f.shape for f in feeds])
            found = table.get(signature)
            if found is None:
                found = first(table, state, values, signature, feeds)
            if found.library is not library():
                made = general(state, values, *feeds)
                if type(found) is _BindingFailed:  # the feeds were right
                    _store_binding(table, signature, _Unbound(found.reason))
                elif found is _no_library and library() is not None:  # there is one now
                    table.pop(signature, None)
                return made
            try:
                results: tuple[Any, ...] = found.run(state, values, *feeds)
                return results
            except Exception as error:
                if found.binding.had_effects(error):
                    raise
                found.binding.give_back_draws(error)
                said = _said(error)
            # (the error, which holds variables, is gone)
            return instead(table, found, said, state, values, signature, feeds)

        def run_in_turn(state: State, values: dict[str, Any], *feeds: Any) -> tuple[Any, ...]:
            made: tuple[Any, ...] = in_turn(run, state, values, *feeds)
            return made

        # the commonest case, and the one in which microseconds count
        def run_one(state: State, values: dict[str, Any], feed: Array) -> tuple[Any, ...]:
            signature = (_here.ident, thread_count(), feed.shape)
            found = table.get(signature)
            if found is None or found.library is not library():
                return run(state, values, feed)
            try:
                results: tuple[Any, ...] = found.run(state, values, feed)
                return results
            except Exception as error:
                said = _said(error)
            return instead(table, found, said, state, values, signature, (feed,))

        one = not self.trains and len(self.plan.program.feeds) - self.plan.kept == 1
        if one:
            return run_one
        return run_in_turn if self.takes_turns else run

    def _instead(
        self,
        table: dict[Any, Any],
        found: _Bound,
        said: str,
        state: State,
        values: dict[str, Any],
        signature: object,
        feeds: tuple[Any, ...],
    ) -> tuple[Any, ...]:
        """A bound run failed: the generic run computes it, or says what is wrong with the feeds."""
        made = self.general(state, values, *feeds)
        found.failures, found.failure = found.failures + 1, said
        if found.failures >= MIN_RUNS:
            _store_binding(table, signature, _Unbound(f"runs failed: {found.failure}"))
        return made

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
        if kernels is None:
            _store_binding(table, signature, _no_library)
            return _no_library
        most = self._max_bindings()
        if not self._wanted(signature, len(table) < most):
            return _unwanted
        tell_threads()  # primitives are made for a number of threads
        hold_blas()  # the library's threads are started with this setting
        from headrace.lower.binding import bind_plan

        try:
            binding = bind_plan(self.plan, state, values, feeds, self.kept)
            made: Any = _Bound(binding, kernels)
            self.bindings.add(binding)
            if not is_within_bounds(state):
                state.kept.clear()
                made = _Unbound("packed weights would take too much memory")
            elif _bytes(state) + binding.notes["bytes"] > MAX_BYTES:
                made = _Unbound("the session's bindings would take too much memory")
        except NotBound as reason:
            made = _Unbound(str(reason))
        except Exception as error:
            return _BindingFailed(f"binding failed: {_said(error)}")
        self.evicted += _store_binding(table, signature, made, most)
        return made

    def _max_bindings(self) -> int:
        """How many bindings a session may have at a time."""
        return MAX_BINDINGS + (most_threads() if self.takes_turns else 0)

    def _wanted(self, signature: Any, room: bool) -> bool:
        if room and not self.trains:
            return True
        return self.counts.reaches(signature, self._runs_to_bind(room))

    def _runs_to_bind(self, room: bool) -> int:
        """Runs with the same shapes after which they are bound; those that take turns are not
        bound again and again.
        """
        return MIN_TRAINING_RUNS if room else MIN_RUNS * (1 + self.evicted)


def _bytes(state: State) -> int:
    """What a session's bindings take."""
    found = [f for table in [*state.bindings.values()] for f in [*table.values()]]
    return sum(f.binding.notes["bytes"] for f in found if type(f) is _Bound)


def _store_binding(
    table: dict[Any, Any], signature: Any, made: object, most: int = MAX_BINDINGS
) -> int:
    """Remember it; how many had to go. Other threads may do the same at this moment."""
    old = [] if signature in table else [*table][: max(0, len(table) + 1 - most)]
    for s in old:
        table.pop(s, None)
    table[signature] = made
    return len(old)


def _said(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def runs_for(plan: Plan, general: Run, kept: WriteStage | None) -> BoundRuns | str:
    """For plans that gain nothing or cannot be bound: why."""
    return why_unbound(plan) or BoundRuns(plan, general, kept)


def _may_wait(node: Node) -> bool:
    """Whether an operation may wait for another thread, or call the user's code."""
    traits = node.opdef.traits
    return traits.blocking or traits.calls_user or traits.host_only
