"""``Dataset.reduce``: one value of all elements, in one run that a closing session ends.

reduce_stage(Context(), stage, [0], lambda total, x: [total + x], closing)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace import errors
from headrace.data.runtime.stages import Context, Element, Stage

__all__ = ["Closing", "reduce_stage"]

Function = Callable[..., Element]


class Closing:
    """Whether the session that works on a dataset is being closed."""

    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        """The session closes."""
        self.cancelled = True


def reduce_stage(
    ctx: Context, stage: Stage, initial: Sequence[Any], function: Function, closing: Closing
) -> Element:
    """The last state of a scan without outputs."""
    state = tuple(initial)
    source = ctx.start(stage)
    try:
        for element in source:
            if closing.cancelled:
                text = "Dataset.reduce was cancelled: the session was closed"
                raise errors.CancelledError(None, None, text)
            state = function(*state, *element)
    finally:
        source.close()
    return state
