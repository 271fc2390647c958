"""What a bound run has made of variables that the program does not write, and makes again.

Packed weights, products of two variables: when a watched variable has another array or another
version, the functions that were registered for it run before the lines of the run do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.lower.bound_values import MOVING, look_of, outputs_of
from headrace.lower.storage_arena import NotBound
from headrace.program.nodes import VariableInfo

if TYPE_CHECKING:
    from headrace.lower.select_bound import Binder
    from headrace.lower.session_state import State
    from headrace.lower.write_stage import WriteStage

__all__ = ["Renewal"]


class Renewal:
    """Brings what depends on unwritten variables up to date, when one of their stamps has changed.

    ``renewal(S, V, variables)`` gives those variables, as they were then. It holds the primitives
    and their memory; ``stamps`` are those of the variables that the binder was given.
    """

    __slots__ = ("binder", "keeper", "kept_alive", "scratch", "stamps", "wanted")

    def __init__(self, binder: Binder, stamps: list[int], keeper: WriteStage | None) -> None:
        self.binder, self.stamps, self.keeper = binder, stamps, keeper
        self.wanted: Sequence[int] = ()  # steady values that lines take
        self.kept_alive: list[Any] = []  # their arrays
        self.scratch: Any = None

    def __del__(self) -> None:
        self.binder.renewals.clear()  # they refer to it: its memory goes at once

    def hold(self, wanted: Sequence[int]) -> None:
        """Once everything is bound."""
        self.scratch = self.binder.library.give_scratch(self.binder.calls)
        self.wanted = wanted
        self._done()

    def __call__(
        self, state: State, values: dict[str, Any], variables: Sequence[VariableInfo]
    ) -> list[Any]:
        with state.lock:  # no write may come between what is remembered and what is computed
            stamps = state.stamps(self.binder.watched)
            if stamps != self.stamps:
                arrays = [state.need(v.key, v.op) for v in self.binder.variables]
                kept = () if self.keeper is None else self.keeper(state, values)
                self._renew(arrays[: self.binder.n_steady], kept)
                self.stamps = stamps
            return [state.need(v.key, v.op) for v in variables]

    def _renew(self, arrays: Sequence[Any], kept: Sequence[Any]) -> None:
        s = self.binder
        if [look_of(v) for v in arrays] != s.variable_shapes:
            raise NotBound("a variable has another shape")
        if [look_of(v) for v in kept] != s.kept_shapes:
            raise NotBound("a kept value has another shape")
        for v, array in zip(s.variables, arrays):
            s.env[v.start] = s.env[v.current] = array
        s.env.update(zip(s.kept_values, kept))
        for function, step in s.steady:
            s.env.update(zip(outputs_of(step), s.results(function, step)))
        for renew in s.renewals:
            renew()
        self._done()

    def _done(self) -> None:
        """Variables, and views of them, are not kept between runs."""
        s = self.binder
        self.kept_alive[:] = [s.env[v] for v in self.wanted]
        for value, lies in s.of_variable.items():
            if lies:
                s.env[value] = None
        for value, kind in s.kinds.items():
            if kind == MOVING:
                s.env[value] = None
