"""One update of many small variables (lower/select_updates.py).

Their values lie one after the other in one array for each slot, and each variable is a view of its
part. As long as nobody else has written one of them (by their version stamps), the next update
takes the whole arrays as they are; else it puts them together anew. Like every writer it makes new
arrays and replaces the values under the lock: readers keep what they have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.lower.session_state import State
from headrace.ops.training.native_updates import GroupUpdate
from headrace.runtime.interrupts import uninterrupted

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["GroupWriter"]


class _Whole(NamedTuple):
    """The arrays of the last update, and the stamps of the variables after it."""

    arrays: tuple[Any, ...]
    stamps: list[int]


class GroupWriter:
    """``writer(state, shared, gradients)`` returns the new values, variable by variable, slot by
    slot.
    """

    __slots__ = ("__weakref__", "at", "count", "kernel", "keys", "native", "ops", "parts")

    def __init__(
        self,
        kernel: Callable[..., Any],
        keys: Sequence[Sequence[str]],
        ops: Sequence[Sequence[Any]],
        shapes: Sequence[tuple[int, ...]],
        at: int,
        native: GroupUpdate | None = None,
    ) -> None:
        self.kernel, self.native = kernel, native
        self.keys = tuple(k for one in keys for k in one)  # variable by variable
        self.ops = tuple(o for one in ops for o in one)
        self.count = len(keys[0])  # slots: the variable itself and what belongs to it
        self.at = at - self.count  # where the gradient stands among the other inputs
        ends = np.cumsum([int(np.prod(s)) for s in shapes]).tolist()
        self.parts = tuple(
            (slice(start, end), None if len(s) == 1 else s)
            for start, end, s in zip([0, *ends], ends, shapes)
        )

    @uninterrupted
    def __call__(
        self, state: State, shared: tuple[Any, ...], gradients: tuple[Any, ...]
    ) -> tuple[Array, ...]:
        values = state.values
        with state.lock:
            if state.busy:
                state.wait_until_idle(self.keys)
            whole: _Whole | None = state.groups.get(self)
            stamps = state.stamps(self.keys)
            kept = whole if whole is not None and whole.stamps == stamps else None
            arrays = self._join_variables(state) if kept is None else kept.arrays
            made = None
            if self.native is not None:
                made = self.native(state.hot, arrays, shared, gradients)
            if made is None:
                grad = np.concatenate([g.reshape(-1) for g in gradients])
                result = self.kernel(*arrays, *shared[: self.at], grad, *shared[self.at :])
                made = result if type(result) is tuple else (result,)
            views = self._views(made)
            # (one number for all is made faster than a list; each variable's goes up)
            stamp = 1 + (max(stamps) if kept is None else kept.stamps[0])
            state.versions.update(dict.fromkeys(self.keys, stamp))
            values.update(zip(self.keys, views))
            state.groups[self] = _Whole(made, [stamp] * len(stamps))
        return views

    def _join_variables(self, state: State) -> tuple[Any, ...]:
        flat = []
        for key, op in zip(self.keys, self.ops):
            value = state.values.get(key)
            flat.append((state.need(key, op) if value is None else value).reshape(-1))
        return tuple(np.concatenate(flat[i :: self.count]) for i in range(self.count))

    def _views(self, made: tuple[Any, ...]) -> tuple[Any, ...]:
        views = []
        for where, shape in self.parts:
            for array in made:
                part = array[where]
                views.append(part if shape is None else part.reshape(shape))
        return tuple(views)
