"""Stages and passes.

A *stage* is what a dataset op computes: a description with its arrays and functions bound, which
may be gone through any number of times. ``ctx.start(stage)`` gives a *pass*: a Python iterator of
elements, each a tuple of arrays.

    >>> stage = RangeStage(0, 3, 1)
    >>> list(Context().start(stage))
    [(0,), (1,), (2,)]

A pass ends with StopIteration. Any other exception is the error of one element: the next call goes
on with the element after it. ``close`` gives threads and files back; dropping a pass does the same.

Three things let whole batches go by without Python work for each element:

* ``block(n)`` of a pass gives up to n elements at once, stacked (StopIteration if there is none
  left); passes that cannot have ``block = None``. The error of an element comes alone, after the
  elements before it;
* an :class:`~headrace.data.runtime.indexed.IndexPass` is a sequence of row numbers over arrays;
* ``fresh`` says that nothing else references the arrays of an element, so that they need no copy
  for the user.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from headrace import errors

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["INFINITE", "UNKNOWN", "Context", "Element", "Pass", "Stage", "StageStats", "counted"]

Element = tuple[Any, ...]

#: Cardinalities that are no numbers, TensorFlow's values.
INFINITE = -1
UNKNOWN = -2


class Pass:
    """One pass over a stage."""

    fresh = False
    block: Callable[[int], Element] | None = None
    #: Reading ahead costs nothing, has no effects and cannot fail.
    instant = False
    #: Elements come from the user's code: reading further than was asked for would be seen, and may
    #: block.
    live = False

    def __iter__(self) -> Iterator[Element]:
        return self

    def __next__(self) -> Element:
        raise NotImplementedError

    def many(self, n: int) -> list[Element]:
        """Up to n elements, fewer only at the end.

        The error of an element drops those that were read before it.
        """
        return list(islice(self, n))

    def waits(self) -> float | None:
        """Seconds spent waiting for threads behind this pass; None if there are none."""
        return None

    def close(self) -> None:
        """Stop threads and close files; the pass is not used again. Closing twice is allowed."""


class Stage:
    """A dataset at run time. ``inputs`` are the stages that it reads from."""

    inputs: tuple[Stage, ...] = ()

    def start(self, ctx: Context) -> Pass:
        """A new pass. Call it through ``ctx.start``, which can measure it."""
        raise NotImplementedError

    def cardinality(self) -> int:
        """The number of elements if it is known without going through them."""
        return UNKNOWN

    def rows(self) -> Any:
        """Random access to the elements (indexed.Rows), if there is any."""
        return None

    @property
    def label(self) -> str:
        return type(self).__name__.removesuffix("Stage")


class StageStats:
    """What was measured of one stage during a pass.

    Its time includes that of the stages it reads from.
    """

    __slots__ = ("elements", "inputs", "label", "seconds", "waits_of")

    def __init__(self, label: str) -> None:
        self.label = label
        self.elements = 0
        self.seconds = 0.0  # inside next(), inputs included
        self.waits_of: Callable[[], float | None] = lambda: None
        self.inputs: list[StageStats] = []

    @property
    def waits(self) -> float:
        """Of its seconds, those without an element ready from a thread."""
        return self.waits_of() or 0.0

    @property
    def own_seconds(self) -> float:
        """Without the stages it reads from in the same thread."""
        waits = self.waits_of()
        others = sum(i.seconds for i in self.inputs) if waits is None else waits
        return max(0.0, self.seconds - others)

    def as_dict(self) -> dict[str, Any]:
        return {
            "stage": self.label,
            "elements": self.elements,
            "seconds": self.seconds,
            "own_seconds": self.own_seconds,
            "waiting_seconds": self.waits,
            "inputs": [i.as_dict() for i in self.inputs],
        }


class Context:
    """What the passes of one iterator share: seed generators, measurements, settings."""

    __slots__ = ("deterministic", "generators", "measure", "parent", "threads")

    def __init__(
        self,
        own_seeds: bool = False,
        measure: bool = False,
        deterministic: bool = True,
        threads: int = 0,
    ) -> None:
        #: by stage, for iterators whose shuffles all begin alike (TF 1); None: the stage keeps its
        #: generator (TF 2)
        self.generators: WeakKeyDictionary[Stage, Any] | None = (
            WeakKeyDictionary() if own_seeds else None
        )
        self.measure = measure
        self.deterministic = deterministic
        self.threads = threads
        self.parent: StageStats | None = None

    def start(self, stage: Stage | Array) -> Pass:
        if isinstance(stage, np.ndarray):
            stage = _single(stage)
        if not self.measure:
            return stage.start(self)
        outer, stats = self.parent, StageStats(stage.label)
        if outer is not None:
            outer.inputs.append(stats)
        self.parent = stats
        try:
            made = stage.start(self)
        finally:
            self.parent = outer
        return Measured(made, stats)


def _single(variant: Array) -> Stage:
    """The dataset that an array of rank 0 holds: one of a batch of datasets."""
    if variant.ndim or not isinstance(variant[()], Stage):
        raise errors.InvalidArgumentError(
            None, None, "Function must return a single scalar of dtype DT_VARIANT."
        )
    stage: Stage = variant[()]
    return stage


class Measured(Pass):
    """A pass with a clock beside it."""

    def __init__(self, inner: Pass, stats: StageStats) -> None:
        self.inner = inner
        self.stats = stats
        self.fresh = inner.fresh
        self.instant = inner.instant
        self.live = inner.live
        stats.waits_of = inner.waits
        if inner.block is not None:
            self.block = self._block

    def __next__(self) -> Element:
        start = time.perf_counter()
        try:
            element = next(self.inner)
        finally:
            self.stats.seconds += time.perf_counter() - start
        self.stats.elements += 1
        return element

    def many(self, n: int) -> list[Element]:
        start = time.perf_counter()
        try:
            elements = self.inner.many(n)
        finally:
            self.stats.seconds += time.perf_counter() - start
        self.stats.elements += len(elements)
        return elements

    def _block(self, n: int) -> Element:
        start = time.perf_counter()
        try:
            element = block_of(self.inner)(n)
        finally:
            self.stats.seconds += time.perf_counter() - start
        self.stats.elements += len(element[0]) if element else 0
        return element

    def close(self) -> None:
        self.inner.close()


def block_of(a_pass: Pass) -> Callable[[int], Element]:
    """The ``block`` of a pass that is known to have one."""
    block = a_pass.block
    assert block is not None, "the pass gives no blocks"
    return block


def unmeasured(a_pass: Pass) -> Pass:
    """The pass itself, without the clock.

    For stages that look at what kind of pass they read from.
    """
    return a_pass.inner if isinstance(a_pass, Measured) else a_pass


def counted(count: int, of: int) -> int:
    """How many of ``of`` elements (a cardinality) ``count`` of them are.

    A negative count means all.
    """
    if count < 0 or of == UNKNOWN:
        return of
    return count if of == INFINITE else min(count, of)
