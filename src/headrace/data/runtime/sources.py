"""Where elements come from: tensors, slices of tensors, ranges, Python generators, random
numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import errors
from headrace.data.runtime.indexed import ArrayRows, IndexPass, RangeRows, Rows, Span
from headrace.data.runtime.random_words import SeedGenerator, Words, seeds_or_any
from headrace.data.runtime.stages import INFINITE, Context, Element, Pass, Stage

__all__ = [
    "RandomStage",
    "RangeStage",
    "SliceStage",
    "SparseSliceStage",
    "TensorStage",
]


class RowsStage(Stage):
    """A source with random access."""

    def start(self, ctx: Context) -> Pass:
        rows = self.rows()
        return IndexPass(rows, Span(range(len(rows))))

    def cardinality(self) -> int:
        return len(self.rows())

    def rows(self) -> Rows:
        raise NotImplementedError


class TensorStage(Stage):
    """``from_tensors``: one element."""

    def __init__(self, components: Sequence[Any]) -> None:
        self.element = tuple(components)

    def start(self, ctx: Context) -> Pass:
        return ListPass([self.element])

    def cardinality(self) -> int:
        return 1


class ListPass(Pass):
    """Elements that are there already."""

    def __init__(self, elements: Any) -> None:
        self._iter = iter(elements)

    def __next__(self) -> Element:
        return next(self._iter)


class SliceStage(RowsStage):
    """``from_tensor_slices``: the rows of arrays."""

    def __init__(self, components: Sequence[Any]) -> None:
        length = len(components[0])
        for i, c in enumerate(components):
            if len(c) != length:
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    "All components must have the same size in the 0th dimension: "
                    f"component 0 has {length}, "
                    f"component {i} has {len(c)}",
                )
        self._rows = ArrayRows(components)

    def rows(self) -> Rows:
        return self._rows


class RangeStage(RowsStage):
    """``range``."""

    def __init__(self, start: int, stop: int, step: int, dtype: Any = np.int64) -> None:
        if step == 0:
            raise errors.InvalidArgumentError(None, None, "step must be a non-zero integer.")
        self._rows = RangeRows(range(start, stop, step), dtype)

    def rows(self) -> Rows:
        return self._rows


class SparseSliceStage(Stage):
    """``from_sparse_tensor_slices``: (indices, values, shape) of each row of a sparse tensor."""

    def __init__(self, indices: Any, values: Any, dense_shape: object) -> None:
        at = np.asarray(indices)[:, 0]
        if (np.diff(at) < 0).any():
            i = int(np.argmax(np.diff(at) < 0)) + 1
            raise errors.UnimplementedError(
                None,
                None,
                "The SparseTensor must be ordered in the batch dimension; handling "
                "arbitrarily ordered input is not "
                f"currently supported (entry {i} is out of order).",
            )
        self.indices, self.values, self.dense_shape = indices, values, np.asarray(dense_shape)
        self.bounds = np.searchsorted(at, np.arange(int(self.dense_shape[0]) + 1))

    def start(self, ctx: Context) -> Pass:
        return ListPass(self._rows())

    def _rows(self) -> Any:
        for lo, hi in zip(self.bounds[:-1].tolist(), self.bounds[1:].tolist()):
            yield self.indices[lo:hi, 1:], self.values[lo:hi], self.dense_shape[1:]

    def cardinality(self) -> int:
        return int(self.dense_shape[0])


class RandomStage(Stage):
    """Random 32-bit words as int64, without end; ``again``: others in every pass."""

    def __init__(self, seed: int, seed2: int, again: bool = False) -> None:
        self.seeds = seeds_or_any(seed, seed2)
        self.generator = SeedGenerator(*self.seeds) if again else None

    def start(self, ctx: Context) -> Pass:
        return RandomPass(Words(*(self.seeds if self.generator is None else self.generator.pair())))

    def cardinality(self) -> int:
        return INFINITE


class RandomPass(Pass):
    fresh = True

    def __init__(self, words: Words) -> None:
        self.words = words

    def __next__(self) -> Element:
        return (np.int64(self.words.one()),)

    def block(self, n: int) -> Element:
        return (self.words.take(n).astype(np.int64),)
