"""``from_generator`` at run time: a Python iterator behind a pass.

Where a batch follows, each value is written into its row of the batch as it is yielded (a generator
may use its arrays again), so that it is copied once.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from headrace import errors
from headrace.core.trace import is_internal
from headrace.data.runtime.stacking import stack
from headrace.data.runtime.stages import Context, Element, Pass, Stage

__all__ = ["Converter", "GeneratorStage"]

#: Bytes of a batch that are reserved at once.
MAX_RESERVED = 64 << 20


class Converter(Protocol):
    """Makes an element of a yielded value (generators.py)."""

    leaves: Sequence[Callable[[Any], Any]]

    def parts(self, value: object) -> Sequence[Any]: ...
    def __call__(self, value: Any) -> Element: ...


class GeneratorStage(Stage):
    """``from_generator``.

    ``make`` starts a Python iterator, ``convert`` makes an element of what it yields.
    """

    def __init__(self, make: Callable[..., Any], convert: Converter, args: Sequence[Any]) -> None:
        self.make = make
        self.convert = convert
        self.args = tuple(args)

    def start(self, ctx: Context) -> Pass:
        return GeneratorPass(self)


class GeneratorPass(Pass):
    fresh = True
    live = True

    def __init__(self, stage: GeneratorStage) -> None:
        self.stage = stage
        self.convert = stage.convert
        self.values: Any = None
        self.done = False

    def __next__(self) -> Element:
        return self.convert(self._value())

    def _value(self) -> np.ndarray[Any, Any]:
        if self.values is None:  # the user's generator is asked for only when an element is wanted
            self._begin()
        try:
            return next(self.values)
        except StopIteration:
            self.done = True
            raise
        except Exception as error:
            raise user_error(error) from error

    def block(self, n: int) -> Element:
        first = next(self)
        if any(not isinstance(c, (np.ndarray, np.generic)) or c.dtype.kind == "O" for c in first):
            return stack([first, *self.many(n - 1)])
        size = sum(c.nbytes for c in first) + 1
        return self._filled(first, max(1, min(n, MAX_RESERVED // size)))

    def _filled(self, first: Element, n: int) -> Element:
        """The first element and n - 1 more, each put into its row."""
        columns = tuple([np.empty((n, *c.shape), c.dtype) for c in first])
        leaves = [
            _Row(column, make, part.shape)
            for column, make, part in zip(columns, self.convert.leaves, first)
        ]
        for column, part in zip(columns, first):
            column[0] = part
        parts, following = self.convert.parts, self._value
        i = 1
        while i < n:
            try:
                value = following()
            except StopIteration:
                break
            for leaf, part in zip(leaves, parts(value)):
                if not leaf.put(i, part):
                    done = [tuple([c[k] for c in columns]) for k in range(i)]
                    return stack([*done, self.convert(value), *self.many(n - i - 1)])
            i += 1
        return columns if i == n else tuple([c[:i] for c in columns])

    def _begin(self) -> None:
        try:
            self.values = iter(self.stage.make(*self.stage.args))
        except Exception as error:
            raise user_error(error) from error

    def close(self) -> None:
        finish = getattr(self.values, "close", None)
        if finish is not None and not self.done:
            with contextlib.suppress(ValueError):  # another thread is inside it right now
                finish()
        self.values = iter(())


class _Row:
    """One component of a batch that is being filled."""

    __slots__ = ("column", "dtype", "kinds", "make", "shape")

    def __init__(self, column: Any, make: Callable[[Any], Any], shape: tuple[int, ...]) -> None:
        self.column = column
        self.make = make
        self.shape = shape
        self.dtype = column.dtype
        #: types of numbers that go into the array as they are
        self.kinds = () if shape else _KINDS.get(self.dtype.char, (self.dtype.type,))

    def put(self, i: int, part: Any) -> bool:
        """False if its shape is another."""
        kind = type(part)
        if (kind is np.ndarray and part.dtype is self.dtype and part.shape == self.shape) or (
            kind in self.kinds and (kind is not int or -_LIMIT <= part < _LIMIT)
        ):
            self.column[i] = part
        else:
            made = self.make(part)
            if made.shape != self.shape:
                return False
            self.column[i] = made
        return True


_LIMIT = 1 << 63
#: Python's numbers beside NumPy's scalars.
_KINDS: dict[str, tuple[type, ...]] = {
    np.dtype(np.int64).char: (np.int64, int),
    np.dtype(np.float32).char: (np.float32, float),
    np.dtype(np.float64).char: (np.float64, float),
    np.dtype(np.bool_).char: (np.bool_, bool),
}


def _place(error: Exception) -> str:
    """The line of the user's that raised."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not is_internal(frame.filename):
            return f"\n\t raised at {frame.filename}:{frame.lineno} in {frame.name}: {frame.line}"
    return ""


def user_error(error: Exception) -> errors.OpError:
    """An exception of the user's Python code as an error of an op."""
    if isinstance(error, errors.OpError):
        return error
    text = f"{type(error).__name__}: {error}{_place(error)}"
    if isinstance(error, (TypeError, ValueError)):
        return errors.InvalidArgumentError(None, None, text)
    if isinstance(error, MemoryError):
        return errors.ResourceExhaustedError(None, None, text)
    if isinstance(error, NotImplementedError):
        return errors.UnimplementedError(None, None, text)
    return errors.UnknownError(None, None, text)
