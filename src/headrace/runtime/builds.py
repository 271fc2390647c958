"""Work of the compiler that another thread does, with a result that is asked for later.

Who starts a build decides by counting runs when to take its result: ``result()`` waits if need be,
so that which run changes over does not depend on how long compiling took.

    build = Build(lambda: compile(source))
    ...                                # some runs later
    function = build.result()
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Build"]

Made = TypeVar("Made")


class Build(Generic[Made]):
    """``make()`` on a thread of its own."""

    __slots__ = ("_error", "_made", "_make", "_process", "_thread")

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._made: list[Made] = []
        self._error: BaseException | None = None
        self._process = os.getpid()
        # not a daemon: a process ends after its compilers do, not in the middle of them
        self._thread: threading.Thread | None = threading.Thread(
            target=self._run, name="headrace build"
        )
        try:
            self._thread.start()
        except RuntimeError:  # no further thread, or the interpreter is ending
            self._thread = None
            self._run()

    def _run(self) -> None:
        try:
            self._made.append(self._make())
        except BaseException as error:
            self._error = error

    def result(self) -> Made:
        """What was made; raises what making it raised."""
        if os.getpid() != self._process and not self._made:
            return self._make()  # a forked process has not got the thread
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error
        return self._made[0]
