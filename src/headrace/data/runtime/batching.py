"""batch, padded_batch, unbatch, window, dense_to_sparse_batch."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.data.runtime.indexed import ArrayRows, IndexPass
from headrace.data.runtime.simple_stages import OnePass, exactly
from headrace.data.runtime.sources import ListPass
from headrace.data.runtime.stacking import pad_stack, stack
from headrace.data.runtime.stages import UNKNOWN, Context, Element, Pass, Stage, unmeasured

if TYPE_CHECKING:
    from headrace.core.annotations import Array, TensorLike

__all__ = [
    "BatchStage",
    "DenseToSparseBatchStage",
    "ElementsStage",
    "PaddedBatchStage",
    "SparseParts",
    "UnbatchStage",
    "WindowStage",
]


def check_batch_size(batch_size: int) -> int:
    if batch_size <= 0:
        raise errors.InvalidArgumentError(None, None, "Batch size must be greater than zero.")
    return batch_size


def batches(n: int, batch_size: int, drop_remainder: bool) -> int:
    """The number of batches of n elements (a cardinality)."""
    if n < 0:
        return n
    return n // batch_size if drop_remainder else -(-n // batch_size)


class BatchStage(Stage):
    def __init__(self, source: Stage, batch_size: int, drop_remainder: bool) -> None:
        self.inputs = (source,)
        self.batch_size = check_batch_size(batch_size)
        self.drop_remainder = drop_remainder

    def start(self, ctx: Context) -> Pass:
        source = ctx.start(self.inputs[0])
        kind = BatchPass if source.block is None else BlockBatchPass
        return kind(source, self.batch_size, self.drop_remainder)

    def cardinality(self) -> int:
        return batches(self.inputs[0].cardinality(), self.batch_size, self.drop_remainder)


class BatchPass(OnePass):
    """Element by element."""

    def __init__(self, source: Pass, batch_size: int, drop_remainder: bool) -> None:
        super().__init__(source)
        self.fresh = True
        self.batch_size = batch_size
        self.drop_remainder = drop_remainder

    def __next__(self) -> Element:
        elements = self.source.many(self.batch_size)
        if len(elements) < self.batch_size and (self.drop_remainder or not elements):
            raise StopIteration
        return stack(elements)


class BlockBatchPass(OnePass):
    """From a source that gives many elements at once."""

    def __init__(self, source: Pass, batch_size: int, drop_remainder: bool) -> None:
        super().__init__(source)
        plain = unmeasured(source)
        self.fresh = plain.stream.gathers if isinstance(plain, IndexPass) else source.fresh
        self.batch_size = batch_size
        self.drop_remainder = drop_remainder
        self._block = source.block if isinstance(plain, IndexPass) else None

    def __next__(self) -> Element:
        if self._block is not None:
            got = self._block(self.batch_size)  # exact, but at the end
        else:
            got = exactly(self.source, self.batch_size)
        if self.drop_remainder and len(got[0]) < self.batch_size:
            raise StopIteration
        return got


class PaddedBatchStage(Stage):
    def __init__(
        self, source: Stage, batch_size: int, shapes: Any, values: Any, drop_remainder: bool
    ) -> None:
        self.inputs = (source,)
        self.batch_size = check_batch_size(batch_size)
        self.shapes = [tuple(int(d) for d in s) for s in shapes]
        self.values = [v[()] if isinstance(v, np.ndarray) else v for v in values]
        self.drop_remainder = drop_remainder

    def start(self, ctx: Context) -> Pass:
        return PaddedBatchPass(ctx.start(self.inputs[0]), self)

    def cardinality(self) -> int:
        return batches(self.inputs[0].cardinality(), self.batch_size, self.drop_remainder)


class PaddedBatchPass(OnePass):
    def __init__(self, source: Pass, stage: PaddedBatchStage) -> None:
        super().__init__(source)
        self.fresh = True
        self.stage = stage

    def __next__(self) -> Element:
        stage = self.stage
        elements = self.source.many(stage.batch_size)
        if len(elements) < stage.batch_size and (stage.drop_remainder or not elements):
            raise StopIteration
        return pad_stack(elements, stage.shapes, stage.values)


class UnbatchStage(Stage):
    def __init__(self, source: Stage) -> None:
        self.inputs = (source,)

    def start(self, ctx: Context) -> Pass:
        return UnbatchPass(ctx.start(self.inputs[0]))

    def cardinality(self) -> int:
        rows = self.inputs[0].rows()
        if isinstance(rows, ArrayRows) and rows.arrays and rows.arrays[0].ndim > 1:
            return len(rows) * int(rows.arrays[0].shape[1])
        return UNKNOWN


class UnbatchPass(OnePass):
    def __init__(self, source: Pass) -> None:
        super().__init__(source)
        self.fresh = False
        self.rows = ArrayRows(())
        self.numbers: Any = iter(())

    def __next__(self) -> Element:
        while True:
            for i in self.numbers:
                return self.rows.row(i)
            element = next(self.source)
            length = _common_length(element)
            self.rows = ArrayRows(element)
            self.numbers = iter(range(length))

    def block(self, n: int) -> Element:
        """What is left of the current batch, or the next one."""
        while True:
            left = self.numbers.__length_hint__()
            if left:
                total = len(self.rows)
                start = total - left
                stop = min(start + n, total)
                self.numbers = iter(range(stop, total))
                return self.rows.take(range(start, stop))
            element = next(self.source)
            length = _common_length(element)
            self.rows = ArrayRows(element)
            self.numbers = iter(range(length))


def _common_length(element: Element) -> int:
    for part in element:
        if part.ndim == 0:
            raise errors.InvalidArgumentError(None, None, "Cannot unbatch scalar components.")
        if len(part) != len(element[0]):
            raise errors.InvalidArgumentError(
                None,
                None,
                "Input element must have the same batch size in each component. "
                "Component 0 had size "
                f"{len(element[0])} but component {element.index(part)} had size, {len(part)}.",
            )
    return len(element[0])


class ElementsStage(Stage):
    """Elements that were gone through already: a window, a group."""

    def __init__(self, elements: list[Element]) -> None:
        self.elements = elements

    def start(self, ctx: Context) -> Pass:
        return ListPass(self.elements)

    def cardinality(self) -> int:
        return len(self.elements)


class WindowStage(Stage):
    """``window``: a dataset for each component of each window."""

    def __init__(
        self, source: Stage, size: int, shift: int, stride: int, drop_remainder: bool
    ) -> None:
        for name, value in (("size", size), ("shift", shift), ("stride", stride)):
            if value <= 0:
                raise errors.InvalidArgumentError(
                    None, None, f"Window {name} must be greater than zero."
                )
        self.inputs = (source,)
        self.size, self.shift, self.stride = size, shift, stride
        self.drop_remainder = drop_remainder

    def start(self, ctx: Context) -> Pass:
        return WindowPass(ctx.start(self.inputs[0]), self)

    def cardinality(self) -> int:
        n = self.inputs[0].cardinality()
        if n < 0:
            return n
        span = (self.size - 1) * self.stride + 1
        if self.drop_remainder:
            return max(0, (n - span) // self.shift + 1)
        return -(-n // self.shift)


class WindowPass(OnePass):
    def __init__(self, source: Pass, stage: WindowStage) -> None:
        super().__init__(source)
        self.stage = stage
        self.span = (stage.size - 1) * stage.stride + 1
        #: An element that could not be computed matters only if a window takes it.
        self.buffer: deque[Element | errors.OpError] = deque()
        self.ended = False

    def _pull(self) -> bool:
        try:
            self.buffer.append(next(self.source))
        except StopIteration:
            self.ended = True
        except errors.OpError as error:
            self.buffer.append(error)
        return not self.ended

    def __next__(self) -> Element:
        stage, buffer = self.stage, self.buffer
        while len(buffer) < self.span and not self.ended:
            self._pull()
        if not buffer or (stage.drop_remainder and len(buffer) < self.span):
            raise StopIteration
        taken = list(buffer)[:: stage.stride]
        for _ in range(stage.shift):
            if not buffer and (self.ended or not self._pull()):
                break
            buffer.popleft()
        window: list[Element] = []
        for element in taken:
            if isinstance(element, errors.OpError):
                raise element
            window.append(element)
        return tuple([ElementsStage([(c,) for c in column]) for column in zip(*window)])


class DenseToSparseBatchStage(Stage):
    """Batches of arrays of different lengths as sparse tensors."""

    def __init__(self, source: Stage, batch_size: int, row_shape: Any) -> None:
        self.inputs = (source,)
        self.batch_size = check_batch_size(batch_size)
        self.row_shape = tuple(int(d) for d in row_shape)

    def start(self, ctx: Context) -> Pass:
        return DenseToSparseBatchPass(ctx.start(self.inputs[0]), self)

    def cardinality(self) -> int:
        return batches(self.inputs[0].cardinality(), self.batch_size, False)


class SparseParts:
    """The three parts of a sparse tensor as the variant vector that it travels in."""

    @staticmethod
    def vector(
        indices: TensorLike, values: TensorLike, dense_shape: TensorLike
    ) -> np.ndarray[Any, Any]:
        out = np.empty(3, object)
        out[0], out[1], out[2] = indices, values, dense_shape
        return out


class DenseToSparseBatchPass(OnePass):
    def __init__(self, source: Pass, stage: DenseToSparseBatchStage) -> None:
        super().__init__(source)
        self.fresh = True
        self.stage = stage

    def __next__(self) -> Element:
        rows = [e[0] for e in self.source.many(self.stage.batch_size)]
        if not rows:
            raise StopIteration
        shape = list(self.stage.row_shape)
        for row in rows:
            self._check(row)
            shape = [
                max(w, s) if k < 0 else k for w, s, k in zip(shape, row.shape, self.stage.row_shape)
            ]
        at = [np.indices(r.shape).reshape(r.ndim, -1).T for r in rows]
        indices = np.concatenate(
            [np.insert(a, 0, i, axis=1).astype(np.int64) for i, a in enumerate(at)]
        )
        values = np.concatenate([r.reshape(-1) for r in rows])
        return (SparseParts.vector(indices, values, np.array([len(rows), *shape], np.int64)),)

    def _check(self, row: Array) -> None:
        wanted = self.stage.row_shape
        if row.ndim != len(wanted):
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Input element had shape ({list(row.shape)}) that is incompatible with "
                f"the row shape ({list(wanted)}).",
            )
        for size, limit in zip(row.shape, wanted):
            if 0 <= limit < size:
                raise errors.DataLossError(
                    None,
                    None,
                    f"Input element had shape ({list(row.shape)}) that is larger than the "
                    f"row shape ({list(wanted)}).",
                )
