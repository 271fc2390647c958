"""Names for what users pass and what kernels take, for annotations.

``TensorLike`` is anything that becomes a tensor: a tensor, a variable, an array, a number, a
string, or nested sequences of them. ``ShapeLike`` and ``DTypeLike`` are what the arguments
``shape`` and ``dtype`` accept. ``Array`` is what kernels compute with and ``ArrayNamespace`` is the
library that they are given as ``xp`` (NumPy, or jax.numpy under XLA).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np

if TYPE_CHECKING:
    from headrace.core.dtypes import DType
    from headrace.core.indexed_slices import IndexedSlices
    from headrace.core.shapes import Dimension, TensorShape
    from headrace.core.tensor import Operation, Tensor
    from headrace.ops.sparse.sparse_tensor import SparseTensor
    from headrace.variables.variable import Variable

__all__ = [
    "Array",
    "ArrayNamespace",
    "AxisLike",
    "DTypeLike",
    "DeviceLike",
    "Fetchable",
    "FeedDict",
    "Scalar",
    "ShapeLike",
    "TensorLike",
]

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
ArrayNamespace: TypeAlias = ModuleType
Scalar: TypeAlias = "bool | int | float | complex | str | bytes | np.generic"
TensorLike: TypeAlias = Union[
    "Tensor", "Variable", "IndexedSlices", "Array", "Scalar", "Sequence[TensorLike]"
]
DTypeLike: TypeAlias = Union["DType", "np.dtype[Any]", "type[Any]", str, int]
ShapeLike: TypeAlias = Union[
    "TensorShape",
    "Tensor",
    "Array",
    int,
    "Sequence[int | Dimension | Tensor | np.integer[Any] | None]",
]
DeviceLike: TypeAlias = "str | Callable[[Operation], str | None] | object | None"
AxisLike: TypeAlias = Union[int, "Sequence[int]", "Tensor", "Array", "np.integer[Any]"]
FeedDict: TypeAlias = "Mapping[Any, Any]"
Fetchable: TypeAlias = Union[
    "Tensor", "Operation", "Variable", "SparseTensor", "IndexedSlices", str
]
