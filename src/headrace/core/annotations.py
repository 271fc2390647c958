"""Names for what users pass and what kernels take, for annotations.

``TensorLike`` is anything that becomes a tensor: a tensor, a variable, an array, a number, a
string, a static shape, or nested sequences of them. ``ShapeLike`` and ``DTypeLike`` are what the
arguments ``shape`` and ``dtype`` accept. ``SparseLike`` is a sparse tensor or its value.

``InitializerLike``, ``RegularizerLike``, ``ConstraintLike``, ``Activation`` and ``Partitioner`` are
the functions that variables and layers take.

``Array`` is what kernels compute with: NumPy's array, and what behaves as one (a NumPy scalar in
place of an array without dimensions, jax's array under XLA). ``ArrayNamespace`` is the library that
kernels are given as ``xp`` (NumPy, or jax.numpy under XLA): functions from arrays to arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, Union

import numpy as np

if TYPE_CHECKING:
    from headrace.core.dtypes import DType
    from headrace.core.indexed_slices import IndexedSlices
    from headrace.core.shapes import Dimension, TensorShape
    from headrace.core.tensor import Operation, Tensor
    from headrace.ops.sparse.sparse_tensor import SparseTensor, SparseTensorValue
    from headrace.variables.variable import Variable
    from headrace.variables.variable_store import ReuseMode

__all__ = [
    "Activation",
    "Array",
    "ArrayNamespace",
    "AxisLike",
    "ConstraintLike",
    "DTypeLike",
    "DeviceLike",
    "FeedDict",
    "Fetchable",
    "Fetches",
    "Hyperparameter",
    "InitializerLike",
    "Partitioner",
    "RegularizerLike",
    "ReuseLike",
    "Scalar",
    "ShapeLike",
    "SparseLike",
    "SupportsArray",
    "TensorLike",
]

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


class ArrayNamespace(Protocol):
    """What is not listed is a function that returns an array, or a tuple of them that can be used
    as one: ``xp.tanh(x)``, ``xp.where(mask, x, y)``.
    """

    name: str
    fft: Any
    linalg: Any
    pooling: Any
    resample: Any
    windows: Any

    def __getattr__(self, name: str, /) -> Callable[..., Array]: ...


class SupportsArray(Protocol):
    """An object of another library that NumPy can read."""

    def __array__(self) -> Any: ...


Scalar: TypeAlias = "bool | int | float | complex | str | bytes | np.generic"
TensorLike: TypeAlias = Union[
    "Tensor",
    "Variable",
    "IndexedSlices",
    "Array",
    "Scalar",
    "TensorShape",
    "Dimension",
    "SupportsArray",
    "Sequence[TensorLike]",
]
SparseLike: TypeAlias = Union["SparseTensor", "SparseTensorValue"]
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
#: What ``run`` takes: one thing to fetch, or any nesting of them.
Fetches: TypeAlias = Union["Fetchable", "Sequence[Fetches]", "Mapping[Any, Fetches]", None]
#: A learning rate: a value, or a function that gives it when an update is built.
Hyperparameter: TypeAlias = Union["TensorLike", "Callable[[], TensorLike]"]
#: ``activation(x)``, as tf.nn.relu.
Activation: TypeAlias = "Callable[..., Tensor]"
#: ``initializer(shape, dtype=..., partition_info=...)``, or the value itself.
InitializerLike: TypeAlias = Union["Callable[..., TensorLike]", "TensorLike"]
#: ``regularizer(weights)``: a scalar loss, or None if there is none.
RegularizerLike: TypeAlias = "Callable[..., Tensor | None]"
#: ``constraint(weights)``: the weights that are allowed, after an optimizer's step.
ConstraintLike: TypeAlias = "Callable[..., TensorLike]"
#: ``partitioner(shape=..., dtype=...)``: the number of parts of every dimension.
Partitioner: TypeAlias = "Callable[..., Sequence[int]]"
#: ``reuse`` of scopes and layers: False, True, tf.AUTO_REUSE, or None for what the scope says.
ReuseLike: TypeAlias = Union[bool, "ReuseMode", None]
