"""The tapes that are recording, per thread: what reads of variables and eager operations look at.

``ACTIVE[0]`` counts the tapes of all threads, so that code in a hot path pays one comparison while
nothing records.
"""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["ACTIVE", "TAPES", "variable_accessed"]


class Tapes(threading.local):
    """The tapes that are recording on this thread."""

    def __init__(self) -> None:
        self.items: list[Any] = []


TAPES = Tapes()
#: How many tapes record, on all threads.
ACTIVE = [0]


def variable_accessed(variable: Any) -> None:
    """Tapes that watch what is used watch this variable from now on."""
    if not variable.trainable:
        return
    for tape in TAPES.items:
        if tape._watch_accessed_variables:
            tape._watch_variable(variable)
