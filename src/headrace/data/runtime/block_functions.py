"""Functions that are called once for a block of elements, and blocks as elements.

A *block* is some elements stacked: a tuple of arrays with one length. A ``BlockFunction`` takes a
block. It may fail (values that an operation refuses, rows of unequal lengths); then the elements of
the block are computed one by one.

    found = call(block)                  # None: it failed, or failed too often to be tried
    rows_of(block)                       # its elements, each with arrays of its own
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.data.runtime.file_stages import text_scalar
from headrace.data.runtime.stacking import stack
from headrace.data.runtime.stages import Element, Pass

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Failure", "BlockFunction", "pulled", "rows_of", "stacked", "taken_block"]

#: After so many failures in a row it is not tried again.
MAX_FAILURES = 2


class Failure:
    """An error in an element's place."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


class BlockFunction:
    """A function of blocks, for one pass; ``sure`` says that it never fails."""

    __slots__ = ("_attempt", "_misses", "sure")

    def __init__(self, attempt: Callable[..., Element | None], sure: bool) -> None:
        self._attempt = attempt
        self._misses = 0
        self.sure = sure

    @property
    def given_up(self) -> bool:
        return self._misses >= MAX_FAILURES

    def __call__(self, block: Element) -> Element | None:
        if self.given_up:
            return None
        found = self._attempt(*block)
        self._misses = self._misses + 1 if found is None else 0
        return found


def rows_of(block: Element) -> list[Element]:
    """The elements of a block. Keeping one of them does not keep the block alive."""
    return list(zip(*[_rows(column) for column in block]))


def _rows(column: Array) -> Sequence[Any]:
    if column.ndim > 1:
        return [row.copy() for row in column]
    if column.dtype.kind == "O":
        return list(map(text_scalar, column))
    return list(column)


def stacked(elements: Sequence[Element]) -> Element | None:
    """The elements as a block; None if their shapes differ."""
    try:
        return stack(elements)
    except errors.InvalidArgumentError:
        return None


def taken_block(items: deque[Any], n: int) -> Element:
    """Up to n elements from the front, stacked, as far as their shapes are equal.

    An error comes alone.
    """
    first = items.popleft()
    if type(first) is Failure:
        raise first.error
    alike, shapes = [first], _shapes(first)
    while items and len(alike) < n and type(items[0]) is tuple and _shapes(items[0]) == shapes:
        alike.append(items.popleft())
    return stack(alike)


def _shapes(element: Element) -> list[tuple[int, ...]]:
    return [part.shape for part in element]


def pulled(source: Pass, n: int) -> list[Any]:
    """Up to n elements one by one, fewer at the end, or before an error, which is the last item
    then.
    """
    found: list[Any] = []
    try:
        found.extend(islice(source, n))  # what came before an error is in it
    except Exception as error:
        found.append(Failure(error))
    return found
