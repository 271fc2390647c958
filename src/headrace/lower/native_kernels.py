"""Steps of one op that has a compiled kernel of its own (``Traits.compiled``).

Until it has proved hot in a session NumPy runs it, as with fused groups (native_groups.py): the
work of its runs is counted, no clock is asked. The compiled kernel answers None for shapes, types
and layouts that it does not know; those runs are NumPy's.

    step = NativeKernel(node, kernel)
    h, c_new, gates, tanh_c = step(state, product, c)
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from headrace.env import native_setting
from headrace.lower.native_groups import (
    COST_OF_CALL,
    HEAVY_COST,
    HOT_WORK,
    MAX_COUNTED,
    native_state,
    not_hot_yet,
)
from headrace.program.nodes import Node

__all__ = ["NativeKernel", "Warming", "reason_compiled"]


def _key(node: Node) -> Any:
    """Steps with the same key count together: one op with the same attributes, in one session."""
    return "compiled", node.opdef.name, repr(sorted(_attributes(node).items()))


def _attributes(node: Node) -> dict[str, Any]:
    return {p: node.attrs[p] for p in node.opdef.kernel_params}


def reason_compiled(node: Node, counts: dict[Any, Any]) -> str:
    """Why a session with these counts does not run it natively; empty if it does."""
    done = counts.get(_key(node), 0)
    if done is True:
        return ""
    return native_state() or not_hot_yet(done)


class NativeKernel:
    """A step of a plan, called with the session's state and the inputs."""

    __slots__ = ("attrs", "compiled", "key", "numpy", "path")

    def __init__(self, node: Node, numpy: Callable[..., Any]) -> None:
        self.numpy = numpy
        self.path = node.opdef.traits.compiled
        self.attrs, self.key = _attributes(node), _key(node)
        self.compiled: Callable[..., Any] | None = None

    def __call__(self, state: Any, *inputs: Any) -> Any:
        hot = state.hot.get(self.key, 0)
        if hot is True or (hot is not False and self._count(state.hot, hot, inputs)):
            made = (self.compiled or self._load())(*inputs, **self.attrs)
            if made is not None:
                return made
        return self.numpy(*inputs)

    def _count(self, counts: dict[Any, Any], done: int, inputs: tuple[Any, ...]) -> bool:
        """Count a run; True if it is the one from which on the kernel is used."""
        elements = max(getattr(x, "size", 1) for x in inputs)
        done += HEAVY_COST * (elements + COST_OF_CALL)
        setting = native_setting()
        if setting == "hot" and done < HOT_WORK:
            if len(counts) >= MAX_COUNTED:
                counts.clear()
            counts[self.key] = done
            return False
        is_native = counts[self.key] = not native_state()
        return is_native

    def _load(self) -> Callable[..., Any]:
        module, _, name = self.path.partition(":")
        found: Callable[..., Any] = getattr(
            import_module(f"headrace.kernels.native.{module}"), name
        )
        self.compiled = found
        return found


class Warming:
    """A step of a bound run (select_bound.py) on its way to compiled code, for which its work is
    counted. A call counts a run, and says whether it is compiled.
    """

    __slots__ = ("_done", "_work")

    def __init__(self, elements: int) -> None:
        self._done, self._work = 0, HEAVY_COST * (elements + COST_OF_CALL)

    def __call__(self) -> bool:
        if 0 <= self._done < HOT_WORK:
            self._done = HOT_WORK if native_setting() == "always" else self._done + self._work
            if self._done >= HOT_WORK and native_state():
                self._done = -1
        return self._done >= HOT_WORK

    @property
    def reason(self) -> str:
        """Why it is not compiled; empty if it is."""
        if self._done >= HOT_WORK:
            return ""
        return native_state() or not_hot_yet(self._done)
