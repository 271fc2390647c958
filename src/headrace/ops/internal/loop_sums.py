"""Operations that only rewriting makes: sums over the rounds of a loop whose terms are products, or
sums, over few rows.

``a.T @ b`` over a few rows is a large matrix that is made, added and forgotten in every round. The
rows of many rounds are kept instead and multiplied at once, which is the same sum in another order.

    handle = _RowSum()
    while …: _AddProduct(handle, a, b)            # kept
    total = _SumOfProducts(handle, start)         # start + concat(a).T @ concat(b)

A handle is made anew whenever its loop is entered, so runs at the same time have nothing in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape, show
from headrace.kernels.numpy import gemm

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace

__all__ = ["MAX_BYTES", "MAX_ROWS", "RowSum"]

#: Rows are multiplied when there are so many: then nothing is gained by waiting.
MAX_ROWS = 4096
MAX_BYTES = 64 << 20


class RowSum:
    """The sum so far, and rows that are not in it yet.

    Without left sides it is the sum of the rows themselves.
    """

    __slots__ = ("lefts", "n_bytes", "n_rows", "rights", "total")

    def __init__(self) -> None:
        self.lefts: list[Any] = []
        self.rights: list[Any] = []
        self.n_rows = 0
        self.n_bytes = 0
        self.total: Any = None

    def add(self, left: Any, right: Array) -> None:
        """Rows of both; they are kept as they are, nobody may write to them."""
        if left is not None:
            self.lefts.append(left)
            self.n_bytes += left.nbytes
        self.rights.append(right)
        self.n_bytes += right.nbytes
        self.n_rows += right.shape[0]
        if self.n_rows >= MAX_ROWS or self.n_bytes >= MAX_BYTES:
            self.add_kept_rows()

    def add_kept_rows(self) -> None:
        """Take the rows that were kept into the sum."""
        if not self.rights:
            return
        left, right = _joined(self.lefts), _joined(self.rights)
        self.lefts, self.rights, self.n_rows, self.n_bytes = [], [], 0, 0
        if left is None:
            rows = gemm.column_sums(right)
            self.total = rows if self.total is None else self.total + rows
        elif self.total is None:
            self.total = gemm.matmul(left.T, right)
        else:
            gemm.add_product(left.T, right, self.total)


def _joined(parts: list[Any]) -> Any:
    if len(parts) > 1:
        return np.concatenate(parts)
    return parts[0] if parts else None


# kernels ------------------------------------------------------------------------------------------


def _add_product(xp: ArrayNamespace, handle: RowSum, a: Array, b: Array) -> None:
    if a.ndim != 2 or b.ndim != 2 or a.shape[0] != b.shape[0]:
        text = f"Matrix size-incompatible: In[0]: {show(a.shape)}, In[1]: {show(b.shape)}"
        raise errors.InvalidArgumentError(None, None, text)
    _same_columns(handle.lefts, a)
    _same_columns(handle.rights, b)
    handle.add(a, b)


def _add_rows(xp: ArrayNamespace, handle: RowSum, b: Array) -> None:
    _same_columns(handle.rights, b)
    handle.add(None, b)


def _same_columns(kept: list[Any], new: Array) -> None:
    if kept and kept[-1].shape[1:] != new.shape[1:]:
        text = f"Incompatible shapes: {show(kept[-1].shape)} vs. {show(new.shape)}"
        raise errors.InvalidArgumentError(None, None, text)


def _sum(xp: ArrayNamespace, handle: RowSum, start: Array, *, from_zero: bool) -> Any:
    handle.add_kept_rows()
    total = handle.total
    if total is None:  # no round
        return np.array(start)
    handle.total = None
    if total.shape != start.shape:
        text = f"Incompatible shapes: {show(start.shape)} vs. {show(total.shape)}"
        raise errors.InvalidArgumentError(None, None, text)
    if not from_zero:
        total += start
    return total


# definitions --------------------------------------------------------------------------------------


def _shape_of_start(c: Inference) -> list[Shape]:
    return [c.shape(1)]


ROW_SUM = define(
    "_RowSum",
    "-> handle: variant",
    shape=lambda c: [()],
    kernel=lambda xp: RowSum(),
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    host_only=True,
)
ADD_PRODUCT = define(
    "_AddProduct",
    "handle: variant, a: T, b: T ->; T: type(float)",
    shape=lambda c: [],
    kernel=_add_product,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    host_only=True,
)
ADD_ROWS = define(
    "_AddRows",
    "handle: variant, b: T ->; T: type(float)",
    shape=lambda c: [],
    kernel=_add_rows,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    host_only=True,
)
SUM_OF_PRODUCTS = define(
    "_SumOfProducts",
    "handle: variant, start: T -> total: T; from_zero: bool=False, T: type(float)",
    shape=_shape_of_start,
    kernel=_sum,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
