"""A loop variable that grows: ``past = tf.concat([past, present], axis)`` without copying the past.

The values of all iterations lie in one array with room at the end of the axis. An iteration writes
its part behind what is there and goes on with a longer view. What was written is never changed, so
views of earlier iterations stay valid; when the room is used up, an array twice
as long takes over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.lower.fusion import PlanBlock, PlanWhile, statements
from headrace.program.constants import one_integer
from headrace.program.nodes import Node, Program

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Appended", "find_appends"]

#: Room for so many more when nothing is known yet.
SPARE = 16


def find_appends(block: PlanBlock, program: Program) -> dict[int, int]:
    """Results of ``tf.concat([past, present], axis)`` that are the next value of the loop variable
    ``past``, and the axis.
    """
    found: dict[int, int] = {}
    for s in statements(block):
        if isinstance(s, PlanWhile):
            found.update(_appends_of(s, program))
    return found


def _appends_of(loop: PlanWhile, program: Program) -> dict[int, int]:
    found: dict[int, int] = {}
    nexts = {v.next: v.value for v in loop.loop.values}
    for node in loop.body:
        if not isinstance(node, Node) or node.opdef.role != "concat" or len(node.inputs) != 3:
            continue
        axis = one_integer(program.constants, node.inputs[-1])
        value = nexts.get(node.outputs[0])
        if axis is None or value is None or value != node.inputs[0] or value == node.inputs[1]:
            continue
        if program.values[value].dtype._kind in "fiuc":
            found[node.outputs[0]] = axis
    return found


class Appended:
    """``append(old, new)`` in the place of a concatenation of both, one object for each run of a
    loop.
    """

    __slots__ = ("axis", "buffer", "used", "view")

    def __init__(self, axis: int) -> None:
        self.axis = axis
        self.buffer: Any = None
        self.view: Any = None
        self.used = 0

    def append(self, old: Array, new: Array) -> Any:
        """``np.concatenate([old, new], axis)`` for the ``old`` that the last call returned (or the
        first one).
        """
        axis = self.axis % old.ndim
        if old is not self.view:
            self._take(old, axis)
        end = self.used + new.shape[axis]
        if end > self.buffer.shape[axis]:
            self._take(old, axis, 2 * end)
        self.buffer[self._slice(axis, self.used, end)] = new
        self.used = end
        self.view = self.buffer[self._slice(axis, 0, end)]
        return self.view

    def _take(self, old: Any, axis: int, room: int = 0) -> None:
        """Begin a new array with a copy of what there is."""
        self.used = old.shape[axis]
        shape = list(old.shape)
        shape[axis] = max(room, self.used + SPARE)
        self.buffer = np.empty(shape, old.dtype)
        self.buffer[self._slice(axis, 0, self.used)] = old

    def _slice(self, axis: int, start: int, end: int) -> tuple[slice, ...]:
        return (slice(None),) * axis + (slice(start, end),)
