"""One iterator: a pass over a dataset with what a user sees of it, and where its time went."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.data.runtime.stages import Context, Element, Measured, Pass, Stage
from headrace.session.events import EVENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import TensorLike
    from headrace.core.dtypes import DType

__all__ = ["IteratorResource", "MEASURE"]

#: Whether new iterators measure each stage.
MEASURE = [False]


class IteratorResource:
    """Goes through datasets, one after the other, as it is (re)initialized."""

    __slots__ = (
        "__weakref__",
        "_last",
        "_lock",
        "_pass",
        "between_seconds",
        "elements",
        "ended",
        "name",
        "own_seeds",
        "shapes",
        "string_handle",
        "types",
        "waiting_seconds",
    )

    def __init__(
        self,
        name: str,
        types: Sequence[DType] = (),
        shapes: Sequence[Any] = (),
        own_seeds: bool = True,
    ) -> None:
        self.name = name
        self.types = types
        self.shapes = shapes
        self.own_seeds = own_seeds
        self.string_handle: bytes | None = None
        self._pass: Pass | None = None
        self._lock = threading.Lock()
        self._last = 0.0
        self.ended = False
        self.elements = 0
        self.waiting_seconds = 0.0
        self.between_seconds = 0.0

    def make(self, stage: Stage, ctx: Context | None = None) -> None:
        """Begin to go through ``stage``."""
        if ctx is None:
            ctx = Context(self.own_seeds, MEASURE[0])
        started = ctx.start(stage)
        with self._lock:
            old, self._pass = self._pass, started
            self.ended = False
            self.elements = 0
            self.waiting_seconds = self.between_seconds = self._last = 0.0
        if old is not None:
            old.close()

    def make_once(self, stage: Callable[[], Stage]) -> None:
        if self._pass is None:
            made = stage()
            with self._lock:
                if self._pass is None:
                    self._pass = Context(self.own_seeds, MEASURE[0]).start(made)

    def get_next(self) -> Element:
        """The next element, arrays of the caller's own; OutOfRangeError at the end."""
        with self._lock:
            element = self._advance()
            return element if self._pass.fresh else tuple([_copied(c) for c in element])  # type: ignore[union-attr]

    def next_shared(self) -> Element:
        """The next element, which the caller must not write to; StopIteration at the end."""
        with self._lock:
            try:
                return self._advance()
            except errors.OutOfRangeError:
                if self.ended:
                    raise StopIteration from None
                raise

    def _advance(self) -> Element:
        a_pass = self._pass
        if a_pass is None:
            raise errors.FailedPreconditionError(
                None,
                None,
                "GetNext() failed because the iterator has not been initialized. Ensure "
                "that you have run the "
                "initializer operation for this iterator before getting the next element.",
            )
        if self.ended:
            raise errors.OutOfRangeError(None, None, "End of sequence")
        start = time.perf_counter()
        if self._last:
            self.between_seconds += start - self._last
        try:
            element = next(a_pass)
        except StopIteration:
            self.ended = True
            if EVENTS.listeners:
                EVENTS.emit("iteration", iterator=self, stats=self.stats())
            a_pass.close()
            raise errors.OutOfRangeError(None, None, "End of sequence") from None
        except errors.OpError:
            raise
        except Exception as error:  # of a library that a stage uses
            raise errors.as_op_error(error) or error from None
        finally:
            self._last = now = time.perf_counter()
            self.waiting_seconds += now - start
        self.elements += 1
        return element

    def stats(self) -> dict[str, Any]:
        """Elements, seconds spent waiting for them, seconds between the calls, and the stages if
        they were measured.
        """
        total = self.waiting_seconds + self.between_seconds
        out: dict[str, Any] = {
            "elements": self.elements,
            "waiting_seconds": self.waiting_seconds,
            "between_seconds": self.between_seconds,
            "waiting_share": self.waiting_seconds / total if total else 0.0,
        }
        if isinstance(self._pass, Measured):
            out["stages"] = self._pass.stats.as_dict()
        return out

    def cancel(self) -> None:
        """End it while a thread waits for an element: without the lock, which that thread holds."""
        self.ended = True
        if self._pass is not None:
            self._pass.close()

    close = cancel

    def __del__(self) -> None:
        if self._pass is not None:
            self._pass.close()


def _copied(value: TensorLike) -> Any:
    return np.array(value) if type(value) is np.ndarray else value
