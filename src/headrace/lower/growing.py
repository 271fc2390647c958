"""A loop variable that grows: ``past = tf.concat([past, present], axis)`` without copying the past.

The values of all iterations lie in one array with room at the end of the axis. An iteration writes
its part behind what is there and goes on with a longer view. What was written is never changed, so
views of earlier iterations stay good, whoever holds them; when the room is used up, an array twice
as long takes over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Growing"]

#: Room for so many more when nothing is known yet.
SPARE = 16


class Growing:
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
