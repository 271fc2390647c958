"""Weights in the kernel library's own order, kept as long as they do not change.

A ``PackedForms`` belongs to the weights of one layer. The plan makes it together with what else
depends on variables alone (lower/stage_split.py), so there is a new, empty one whenever the weights
were written; the first product or convolution that uses it puts the packed weights in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.kernels.accel import library
from headrace.kernels.numpy import activation_kernels as activations
from headrace.kernels.numpy.activation_kernels import name_inside
from headrace.kernels.numpy.gemm import FEW_ROWS, FEW_ROWS_FROM, LIBRARY_FROM, matmul, matmul_bias
from headrace.kernels.numpy.openblas import hold_blas

__all__ = ["PackedForms", "WeightsForm", "product", "product_key"]

#: Orders that one layer keeps (a convolution's depends on the images' sizes).
MAX_KEPT = 4
#: Uses from which packing weights has paid.
PAYS = 4
#: Rows from which packed weights are faster.
MIN_ROWS = 16
_FLOAT32 = np.dtype(np.float32)


@dataclass(frozen=True)
class WeightsForm:
    """How products with weights of a type that the user asked for are computed on this machine."""

    asked: str  # "int8", "bfloat16"
    kind: str  # what ``product`` is told: "int8", "int7", "bfloat16", "float32"
    way: str  # the same in words
    reason: str
    error_bound: str  # of an element of the result against exact arithmetic
    max_inner: int | None = None  # terms of a sum beyond which float32 is used instead

    @property
    def falls_back(self) -> bool:
        """Whether it is another type than the one that was asked for."""
        return self.way != self.asked


class PackedForms:
    """Packed forms of one layer's weights, by all that they depend on beside the weights' values.

    A layer and its gradient share one: the key has to tell a matrix from its transpose, which may
    have the same shape.

    Packing costs about as much as a product. Weights that are written again before they were used
    ``PAYS`` times (another program trains them in turn with this one) are packed later from then
    on: ``follow`` tells a new holder of the one before it.
    """

    __slots__ = ("forms", "uses", "wait")

    def __init__(self) -> None:
        self.forms: dict[Hashable, Any] = {}
        self.uses = 0
        self.wait = 0  # uses before the weights are packed

    def follow(self, before: PackedForms) -> None:
        """The weights were written since ``before`` was made."""
        self.wait = PAYS if before.uses < PAYS else 0

    def get(self, key: Hashable, pack: Callable[[], Any], at_once: bool = False) -> Any:
        self.uses += 1
        found = self.forms.get(key)
        if found is None:
            if self.uses <= self.wait and not at_once:
                return None
            if len(self.forms) >= MAX_KEPT:
                self.forms.clear()
            found = pack()
            self.forms[key] = False if found is None else found
        return None if found is False else found

    @property
    def nbytes(self) -> int:
        return sum(int(getattr(f, "nbytes", 0)) for f in list(self.forms.values()))


def product_key(y: Any, pixels: bool, kind: str = "float32") -> Hashable:
    """Of the packed form of a matrix as the right factor of a product.

    ``pixels``: the rows that it is multiplied with are the library's ``as_pixels``.
    """
    return kind, y.shape, y.strides, pixels


def product(
    x: Any, y: Any, forms: PackedForms, bias: Any, activation: str | None, kind: str = "float32"
) -> Any:
    """``activation(x @ y + bias)`` for weights ``y`` whose packed form, of a type, is kept in
    ``forms``.
    """
    out = None
    if kind == "float32":
        if x.shape[0] <= FEW_ROWS and y.size >= FEW_ROWS_FROM:
            found = library()
            out = None if found is None else found.few_rows(x, y, bias)
            if out is not None and activation is not None:
                activations.in_place(activation, out)
    else:
        out = _packed_product(x, y, forms, bias, activation, kind)
    if out is None and x.shape[0] >= MIN_ROWS and x.size * y.shape[1] >= LIBRARY_FROM:
        out = _packed_product(x, y, forms, bias, activation, "float32")
    if out is not None:
        return out
    out = matmul(x, y) if bias is None else matmul_bias(x, y, bias)
    if activation is not None:
        activations.in_place(activation, out)
    return out


def _packed_product(
    x: Any, y: Any, forms: PackedForms, bias: Any, activation: str | None, kind: str
) -> Any:
    if x.dtype is not _FLOAT32:
        return None
    found = library()
    if found is None or not hold_blas():
        return None
    rows = x.shape[0]
    packed = forms.get(
        product_key(y, found.as_pixels(rows, y.shape, kind), kind),
        lambda: found.pack(np.ascontiguousarray(y), rows, kind, bias=True),
        at_once=kind != "float32",  # a type that was asked for
    )
    if packed is None:
        return None
    inside = None if activation is None else name_inside(activation)
    out = found.product(x, packed, bias, inside)
    if out is not None and inside == "gelu_erf" and math.isnan(np.vdot(out, out)):
        out, inside = found.product(x, packed, bias, None), None  # the library's is NaN at infinity
    if out is not None and activation is not None and inside is None:
        activations.in_place(activation, out)
    return out
