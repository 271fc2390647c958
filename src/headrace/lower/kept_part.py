"""The part of a plan that depends on variables alone (lower/kept_values.py), with its results from
the last time.

The results belong to a session's state, not to the plan. They are good as long as every variable is
the same array as then and was not overwritten since. Arrays are remembered weakly, so that an
optimizer can go on updating them in place.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.kernels.packed_weights import Held
from headrace.lower.executable import Executable
from headrace.lower.session_state import State

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Counts", "KeptPart", "is_within_bounds"]


#: Bytes that a session may keep in any case.
LEAST = 64 << 20


class Counts:
    """How often kept values were good, and how often they had to be made."""

    __slots__ = ("hits", "misses")

    def __init__(self) -> None:
        self.hits = 0
        self.misses = 0


class _Entry(NamedTuple):
    sources: tuple[tuple[str, Callable[[], Any], int], ...]
    values: tuple[Any, ...]


class KeptPart:
    """``part(state, values)`` gives the kept results, computed anew if a variable was written."""

    __slots__ = ("__weakref__", "executable", "keys", "run")

    counts = Counts()

    def __init__(self, executable: Executable) -> None:
        self.executable = executable
        self.run = executable.run
        program = executable.plan.program
        used = {i for node in program.body for i in node.inputs}  # type: ignore[union-attr]
        self.keys = tuple(v.key for v in program.variables if v.start in used)

    def __call__(self, state: State, values: dict[str, Any]) -> tuple[Any, ...]:
        entry: _Entry | None = state.kept.get(self)
        if entry is not None:
            versions = state.versions
            for key, source, version in entry.sources:
                if values.get(key) is not source() or versions.get(key, 0) != version:
                    break
            else:
                self.counts.hits += 1
                return entry.values
        return self._make(state, values)

    def _make(self, state: State, values: dict[str, Any]) -> tuple[Any, ...]:
        with state.lock:  # no write may come between what is remembered and what is computed
            sources = []
            for key in self.keys:
                held = values.get(key)
                if held is not None:
                    sources.append((key, _holder(held), state.versions.get(key, 0)))
            made = self.run(state, values)
            before = state.kept.get(self)
            if before is not None:
                _tell_holders(before.values, made)
            if _make_room(state, made):
                state.kept[self] = _Entry(tuple(sources), made)
        self.counts.misses += 1
        return made


def _make_room(state: State, made: tuple[Any, ...]) -> bool:
    """Whether the values may be kept.

    All of a session's take no more than twice what its variables do, or LEAST.
    """
    most = max(LEAST, 2 * state.nbytes())
    wanted = _bytes(made)
    if wanted > most:
        return False
    if wanted + sum(_bytes(e.values) for e in state.kept.values()) > most:
        state.kept.clear()
    return True


def is_within_bounds(state: State) -> bool:
    """Whether what a session keeps is within its bounds still.

    Weights that are packed later make it more.
    """
    return sum(_bytes(e.values) for e in state.kept.values()) <= max(LEAST, 2 * state.nbytes())


def _tell_holders(before: tuple[Any, ...], made: tuple[Any, ...]) -> None:
    """Packed weights that are made anew know how often the last ones were used."""
    for old, new in zip(before, made):
        if isinstance(old, np.ndarray) and old.dtype == object and old.ndim == 0:
            old, new = old[()], new[()]
        if isinstance(old, Held) and isinstance(new, Held):
            new.follow(old)


def _bytes(values: tuple[Any, ...]) -> int:
    return sum(int(getattr(v, "nbytes", 0)) for v in values)


def _holder(value: Array | np.generic) -> Callable[[], Any]:
    if isinstance(value, np.ndarray):
        return weakref.ref(value)
    return lambda: value  # a scalar, which nobody can change
