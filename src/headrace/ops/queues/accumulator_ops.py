"""Conditional accumulators: gradients of several runs, summed until enough have come.

``apply`` adds a gradient unless it is stale (computed before the accumulator's step); ``take``
waits for ``num_required`` gradients, gives their mean (or sum), and the accumulator's step goes
on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.annotations import Array, ArrayNamespace
from headrace.core.dtypes import DType
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, KernelNode, OpDef, define
from headrace.core.shapes import Shape, to_plain
from headrace.ops.queues.waiting_resource import WaitingResource, boxed, resource_key, unboxed

if TYPE_CHECKING:
    from headrace.lower.session_state import RunContext

__all__ = [
    "ACCUMULATOR", "APPLY", "NUM_ACCUMULATED", "SET_STEP", "SPARSE_ACCUMULATOR", "SPARSE_APPLY",
    "SPARSE_NUM_ACCUMULATED", "SPARSE_SET_STEP", "SPARSE_TAKE", "TAKE",
]  # fmt: skip


#: Index, sum, and of how many gradients.
Row = tuple[int, Any, int]


def _invalid(text: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, text)


class Accumulator(WaitingResource):
    """Dense gradients of one shape."""

    def __init__(self, name: str, dtype: DType, shape: Shape, mean: bool) -> None:
        super().__init__(name)
        self.dtype, self.shape, self.mean = dtype, shape, mean
        self.count = 0
        self.step = 0

    def set_step(self, step: int) -> None:
        """Gradients from before ``step`` are stale from now on."""
        with self.lock:
            self.step = step

    def apply(self, step: int, *gradient: object) -> None:
        """Add a gradient that was computed at ``step``; nothing happens if it is stale."""
        with self.lock:
            if step < self.step:
                return
            self._add(*gradient)
            self.count += 1
            self.changed()

    def take(self, required: int) -> np.ndarray[Any, Any]:
        """The mean (or sum) of all gradients that have come, once there are ``required``."""
        if required <= 0:
            raise _invalid(f"Argument num_required must be positive: {required}")
        with self.lock:
            self.wait_until(lambda: self.count >= required, "TakeGrad")
            result = self._result()
            self.count = 0
            self.step += 1
            return result

    def _check(self, shape: tuple[int, ...], wanted: Shape, what: str = "Shape") -> None:
        fits = wanted is None or (
            len(wanted) == len(shape) and all(w is None or w == s for w, s in zip(wanted, shape))
        )
        if not fits:
            expected = ["?" if d is None else d for d in wanted or ()]
            raise _invalid(f"{what} mismatch: expected {_text(expected)}, got {_text(list(shape))}")

    def _add(self, *parts: Any) -> None:
        (gradient,) = parts
        self._check(gradient.shape, self.shape)
        if self.count == 0:
            self._sum = np.array(gradient)
        else:
            self._check(gradient.shape, self._sum.shape)
            self._sum = self._sum + gradient

    def _result(self) -> Array:
        total = self._sum
        if self.mean:
            total = total / np.asarray(self.count, total.dtype)
        return total.astype(self.dtype.as_numpy_dtype, copy=False)


def _text(shape: list[Any]) -> str:
    return "[" + ",".join(str(d) for d in shape) + "]"


class SparseAccumulator(Accumulator):
    """Gradients as rows: each row of the result is the mean of the gradients that have the row."""

    _rows: list[Row]

    def _add(self, *parts: Any) -> None:
        indices, values, shape, known = parts
        if indices.ndim != 1:
            raise _invalid(f"Input indices should be vector but received shape: {indices.shape}")
        if values.ndim == 0:
            raise _invalid("Values cannot be 0-dimensional.")
        if len(values) != len(indices):
            raise _invalid(
                f"Expected {len(indices)} non-empty input values, got {len(values)}: one row for "
                "each index"
            )
        wanted = self.shape or ()
        if values.ndim < len(wanted):
            raise _invalid(
                f"Shape mismatch: expected shape rank at least {len(wanted)}, got {values.ndim}"
            )
        self._check(values.shape[1 : len(wanted)], wanted[1:], "Shape")  # (more axes may follow)
        if known and self.shape:
            self._check(tuple(int(d) for d in shape), self.shape)
        rows = [(int(i), row.copy(), 1) for i, row in zip(indices, values)]
        if self.count == 0:
            self._rows = rows
            self._value_shape = values.shape[1:]
        else:
            self._check(values.shape[1:], self._value_shape)
            self._rows = _merged(self._rows, rows)

    def _result(self) -> Any:
        dtype = self.dtype.as_numpy_dtype
        values = np.empty((len(self._rows), *self._value_shape), dtype)
        for at, (_, row, count) in enumerate(self._rows):
            values[at] = row / np.asarray(count, dtype) if self.mean else row
        return np.array([r[0] for r in self._rows], np.int64), values, self._result_shape()

    def _result_shape(self) -> Array:
        known = self.shape or ()
        first = -1 if not known or known[0] is None else known[0]
        return np.array([first, *self._value_shape], np.int64)


def _merged(have: list[Row], new: list[Row]) -> list[Row]:
    """Two lists of rows in the order of their indices; rows of equal index are added.

    As in TensorFlow a list is read once from its start: an index that occurs twice in both lists
    stays twice.
    """
    merged: list[Row] = []
    i = j = 0
    while i < len(have) and j < len(new):
        a, b = have[i], new[j]
        if a[0] == b[0]:
            merged.append((a[0], a[1] + b[1], a[2] + 1))
            i, j = i + 1, j + 1
        elif a[0] < b[0]:
            merged.append(a)
            i += 1
        else:
            merged.append(b)
            j += 1
    return merged + have[i:] + new[j:]


def _make(kind: type[Accumulator]) -> Callable[..., Array]:
    def kernel(xp: ArrayNamespace, *, node: KernelNode, rt: RunContext) -> Array:
        attrs = node.attrs
        name = attrs["shared_name"] or f"_0_{node.name}"
        shape, mean = to_plain(attrs["shape"]), attrs["reduction_type"] == "MEAN"
        return boxed(
            rt.session_resource(
                resource_key("accumulator", node), lambda: kind(name, attrs["dtype"], shape, mean)
            )
        )

    return kernel


def _apply(xp: ArrayNamespace, handle: Array, step: Array, gradient: Array) -> tuple[()]:
    _accumulator_of(handle).apply(int(step), np.asarray(gradient))
    return ()


def _apply_sparse(
    xp: ArrayNamespace,
    handle: Array,
    step: Array,
    indices: Array,
    values: Array,
    shape: Array,
    *,
    has_known_shape: bool,
) -> tuple[()]:
    _accumulator_of(handle).apply(int(step), indices, values, shape, has_known_shape)
    return ()


def _accumulator_of(handle: Array) -> Accumulator:
    found = unboxed(handle)
    assert isinstance(found, Accumulator)
    return found


def _take(xp: ArrayNamespace, handle: Array, required: Array) -> np.ndarray[Any, Any]:
    return _accumulator_of(handle).take(int(required))


def _set_step(xp: ArrayNamespace, handle: Array, step: Array) -> tuple[()]:
    _accumulator_of(handle).set_step(int(step))
    return ()


def _number(xp: ArrayNamespace, handle: Array) -> np.int32:
    return np.int32(_accumulator_of(handle).count)


def _define(
    name: str,
    signature: str,
    kernel: Callable[..., Any],
    results: list[Shape],
    blocking: bool = False,
) -> OpDef:
    def shapes(c: Inference) -> list[Shape]:
        return results

    return define(
        name,
        signature,
        shape=shapes,
        kernel=kernel,
        grad=NOT_DIFFERENTIABLE,
        stateful=True,
        host_only=True,
        blocking=blocking,
    )


_ATTRS = (
    "dtype: type(number), shape: shape, container: str='', shared_name: str='', "
    "reduction_type: str='MEAN'"
)
ACCUMULATOR = _define(
    "ResourceConditionalAccumulator", f"-> handle: resource; {_ATTRS}", _make(Accumulator), [()]
)
APPLY = _define(
    "ResourceAccumulatorApplyGradient",
    "handle: resource, local_step: int64, gradient: dtype -> ; dtype: type(number)",
    _apply,
    [],
)
TAKE = _define(
    "ResourceAccumulatorTakeGradient",
    "handle: resource, num_required: int32 -> average: dtype; dtype: type(number)",
    _take,
    [None],
    blocking=True,
)
SET_STEP = _define(
    "ResourceAccumulatorSetGlobalStep",
    "handle: resource, new_global_step: int64 ->",
    _set_step,
    [],
)
NUM_ACCUMULATED = _define(
    "ResourceAccumulatorNumAccumulated",
    "handle: resource -> num_accumulated: int32",
    _number,
    [()],
)
SPARSE_ACCUMULATOR = _define(
    "SparseConditionalAccumulator",
    f"-> handle: &string; {_ATTRS}",
    _make(SparseAccumulator),
    [(2,)],
)
SPARSE_APPLY = _define(
    "SparseAccumulatorApplyGradient",
    "handle: &string, local_step: int64, gradient_indices: int64, gradient_values: dtype, "
    "gradient_shape: int64 -> ; dtype: type(number), has_known_shape: bool",
    _apply_sparse,
    [],
)
SPARSE_TAKE = _define(
    "SparseAccumulatorTakeGradient",
    "handle: &string, num_required: int32 -> indices: int64, values: dtype, shape: int64; "
    "dtype: type(number)",
    _take,
    [(None,), None, (None,)],
    blocking=True,
)
SPARSE_SET_STEP = _define(
    "AccumulatorSetGlobalStep", "handle: &string, new_global_step: int64 ->", _set_step, []
)
SPARSE_NUM_ACCUMULATED = _define(
    "AccumulatorNumAccumulated", "handle: &string -> num_accumulated: int32", _number, [()]
)
