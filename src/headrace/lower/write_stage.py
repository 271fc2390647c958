"""The part of a plan that depends on variables alone (lower/stage_split.py), with its results from
the last time.

The results belong to a session's state, not to the plan. They are good as long as every variable
has the version stamp that it had then.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headrace.kernels.packed_weights import PackedForms
from headrace.lower.executable import Executable
from headrace.lower.session_state import State

__all__ = ["Counts", "WriteStage", "is_within_bounds"]


#: Bytes that a session may keep in any case.
MIN_BYTES_KEPT = 64 << 20
#: What it keeps in all, over what its variables take: weights that were computed from them (a norm
#: folded into a filter), the same in the kernel library's order, whose blocks may end in padding
#: (24 columns on AVX2: an eighth more for 64), and in a second order for shapes that want one.
MAX_COPIES = 4


class Counts:
    """How often kept values were good, and how often they had to be made."""

    __slots__ = ("hits", "misses")

    def __init__(self) -> None:
        self.hits = 0
        self.misses = 0


class _Entry(NamedTuple):
    stamps: list[int]
    values: tuple[Any, ...]


class WriteStage:
    """``part(state, values)`` gives the kept results, computed anew if a variable was written."""

    __slots__ = ("__weakref__", "executable", "keys", "run")

    counts = Counts()

    def __init__(self, executable: Executable) -> None:
        self.executable = executable
        self.run = executable.run
        program = executable.plan.program
        used = {i for node in program.body for i in node.inputs}  # type: ignore[union-attr]
        self.keys = tuple(v.key for v in program.variables if used & {v.start, v.current})

    def __call__(self, state: State, values: dict[str, Any]) -> tuple[Any, ...]:
        entry: _Entry | None = state.kept.get(self)
        if entry is not None and entry.stamps == state.stamps(self.keys):
            self.counts.hits += 1
            return entry.values
        return self._make(state, values)

    def _make(self, state: State, values: dict[str, Any]) -> tuple[Any, ...]:
        with state.lock:  # no write may come between what is remembered and what is computed
            stamps = state.stamps(self.keys)
            made = self.run(state, values)
            before = state.kept.get(self)
            if before is not None:
                _tell_holders(before.values, made)
            if _make_room(state, made):
                state.kept[self] = _Entry(stamps, made)
        self.counts.misses += 1
        return made


def _make_room(state: State, made: tuple[Any, ...]) -> bool:
    """Whether the values may be kept.

    All of a session's take no more than MAX_COPIES what its variables do, or MIN_BYTES_KEPT.
    """
    most = max(MIN_BYTES_KEPT, MAX_COPIES * state.nbytes())
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
    return sum(_bytes(e.values) for e in state.kept.values()) <= max(
        MIN_BYTES_KEPT, MAX_COPIES * state.nbytes()
    )


def _tell_holders(before: tuple[Any, ...], made: tuple[Any, ...]) -> None:
    """Packed weights that are made anew know how often the last ones were used."""
    for old, new in zip(before, made):
        if isinstance(old, np.ndarray) and old.dtype == object and old.ndim == 0:
            old, new = old[()], new[()]
        if isinstance(old, PackedForms) and isinstance(new, PackedForms):
            new.follow(old)


def _bytes(values: tuple[Any, ...]) -> int:
    return sum(int(getattr(v, "nbytes", 0)) for v in values)
