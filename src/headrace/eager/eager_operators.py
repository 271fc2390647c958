"""Python's operators between eager tensors, on the shortest way.

Two tensors of one numeric type (or a tensor and a plain number) and no tape: the NumPy function is
called at once. Everything else goes through the operators of :class:`Tensor`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.graph import get_default_graph
from headrace.core.stacks import default_graphs
from headrace.eager.eager_tensor import EagerTensor
from headrace.eager.tape_record import ACTIVE
from headrace.kernels.numpy.gemm import matmul
from headrace.kernels.numpy.openblas import blas_holders, release_blas
from headrace.ops.array.indexing import slice_helper
from headrace.ops.math.operators import OPERATORS
from headrace.runtime.float_errors import restore, silence

if TYPE_CHECKING:
    from headrace.core.dtypes import DType
    from headrace.core.tensor import Tensor

__all__ = ["install", "product"]

_new = EagerTensor.__new__
_bool = dtypes.bool
#: Types whose arithmetic is NumPy's own.
_ARITHMETIC = frozenset(
    [
        dtypes.float32,
        dtypes.float64,
        dtypes.int32,
        dtypes.int64,
        dtypes.float16,
        dtypes.complex64,
        dtypes.complex128,
    ]
)
_FACTORS = frozenset([dtypes.float32, dtypes.float64])
_FLOATS = frozenset([dtypes.float32, dtypes.float64, dtypes.float16])


def _binary(
    name: str, ufunc: Callable[..., Any], types: frozenset[Any], result: DType | None = None
) -> Callable[[Any, Any], Any]:
    general = OPERATORS[name]

    def operator(x: Tensor, y: Any) -> Any:
        kind = type(y)
        dtype = x._dtype
        if (
            ACTIVE[0]
            or dtype not in types
            or not (
                default_graphs.items[-1] if default_graphs.items else get_default_graph()
            )._is_eager
        ):
            return general(x, y)
        if kind is EagerTensor and y._dtype is dtype:
            b = y._static
        elif (kind is float or kind is int) and dtype in _FLOATS:
            b = dtype._np(y)
        else:
            read = getattr(kind, "_eager_read", None)  # a variable
            held = None if read is None else read(y)
            if type(held) is not EagerTensor or held._dtype is not dtype:
                return general(x, y)
            b = held._static
        token = silence()
        try:
            value = ufunc(x._static, b)
        except ValueError:
            return general(x, y)  # which fails in TensorFlow's words
        finally:
            restore(token)
        out = _new(EagerTensor)
        out._static = value
        out._dtype = dtype if result is None else result
        return out

    operator.__name__ = name
    return operator


def product(a: Any, b: Any) -> EagerTensor | None:
    """The product of two matrices of float32 or float64 that fit; None: the usual way."""
    if ACTIVE[0]:
        return None
    x, y = _tensor(a), _tensor(b)
    if x is None or y is None:
        return None
    dtype, left, right = x._dtype, x._static, y._static
    if dtype is not y._dtype or dtype not in _FACTORS or left.ndim != 2 or right.ndim != 2:
        return None
    if left.shape[1] != right.shape[0]:
        return None  # which fails in TensorFlow's words
    token = silence()
    try:
        value = matmul(left, right)
    finally:
        restore(token)
        if blas_holders[0]:
            release_blas()
    out = _new(EagerTensor)
    out._static = value
    out._dtype = dtype
    return out


def _tensor(x: Any) -> EagerTensor | None:
    """An eager tensor, or the value of a variable."""
    kind = type(x)
    if kind is EagerTensor:
        found: EagerTensor = x
        return found
    read = getattr(kind, "_eager_read", None)
    held = None if read is None else read(x)
    return held if type(held) is EagerTensor else None


def _negative(x: EagerTensor) -> Any:
    if ACTIVE[0] or x._dtype not in _ARITHMETIC or not get_default_graph()._is_eager:
        return OPERATORS["__neg__"](x)
    out = _new(EagerTensor)
    out._static = np.negative(x._static)
    out._dtype = x._dtype
    return out


def _getitem(x: EagerTensor, key: Any) -> Tensor:
    """Numbers, slices of numbers, ``...`` and ``None`` are NumPy's own.

    What it refuses fails in TensorFlow's words.
    """
    if (
        not ACTIVE[0]
        and x._dtype in _ARITHMETIC
        and (_is_plain(key) if type(key) is not tuple else all(map(_is_plain, key)))
        and get_default_graph()._is_eager
    ):
        try:
            value = x._static[key]
        except (IndexError, ValueError):
            return slice_helper(x, key)
        out = _new(EagerTensor)
        out._static = value
        out._dtype = x._dtype
        return out
    return slice_helper(x, key)


def _is_plain(key: Any) -> bool:
    kind = type(key)
    if kind is slice:
        return (
            type(key.start) in _BOUNDS and type(key.stop) in _BOUNDS and type(key.step) in _BOUNDS
        )
    return kind is int or key is None or key is Ellipsis


_BOUNDS = frozenset([int, type(None)])


def install() -> None:
    """Give EagerTensor its operators."""
    table = {
        "__add__": (np.add, _ARITHMETIC, None),
        "__sub__": (np.subtract, _ARITHMETIC, None),
        "__mul__": (np.multiply, _ARITHMETIC, None),
        "__truediv__": (np.divide, _FLOATS, None),
        "__lt__": (np.less, _FLOATS, _bool),
        "__le__": (np.less_equal, _FLOATS, _bool),
        "__gt__": (np.greater, _FLOATS, _bool),
        "__ge__": (np.greater_equal, _FLOATS, _bool),
    }
    for name, (ufunc, types, result) in table.items():
        setattr(EagerTensor, name, _binary(name, ufunc, types, result))
    setattr(EagerTensor, "__neg__", _negative)  # noqa: B010 (mypy takes them for operations on the class)
    setattr(EagerTensor, "__getitem__", _getitem)  # noqa: B010
