"""``tf.one_hot``: the definition of OneHot and its function.

>>> tf.one_hot([0, 2], depth=3)  # [[1, 0, 0], [0, 0, 1]]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply
from headrace.core.convert import (
    make_ndarray,
)
from headrace.core.dispatch import dispatched
from headrace.core.dtypes import DType
from headrace.core.graph import get_default_graph
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.seeds import count_more
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.ops.array.index_kernels import (
    one_hot_kernel,
)

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike

__all__ = ["one_hot"]


# masks and one-hot ------------------------------------------------------------------------------


def _one_hot_shape(c: Inference) -> list[Shape]:
    indices, depth, axis = c.shape(0), c.value(1), c.attr("axis")
    if depth is not None and depth.ndim:
        raise ValueError(f"Input must be scalar but has rank {depth.ndim}")
    if indices is None:
        return [None]
    if axis < -1:
        raise ValueError(f"axis must be >= -1, but got {axis}")
    if depth is not None and depth.item() < 0:
        raise ValueError(f"depth must be non-negative, got {depth.item()}")
    if axis > len(indices):  # refused when it runs
        return [(None,) * (len(indices) + 1)]
    at = len(indices) if axis == -1 else axis
    return [indices[:at] + (None if depth is None else depth.item(),) + indices[at:]]


ONE_HOT = define(
    "OneHot",
    "indices: TI, depth: int32, on_value: T, off_value: T -> output: T; axis: int=-1, TI: "
    "type(int)=int64",
    shape=_one_hot_shape,
    kernel=one_hot_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(1,),
    dense=True,
)


@dispatched("one_hot")
def one_hot(
    indices: TensorLike,
    depth: TensorLike,
    on_value: TensorLike | None = None,
    off_value: TensorLike | None = None,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """``on_value`` (1) at the positions given, ``off_value`` (0) elsewhere, on a new ``axis``
    (last).

    An index outside of [0, depth) gives no ``on_value``. ``dtype`` is float32 unless the values say
    it.

        tf.one_hot([0, 2], 3)                                   # [[1, 0, 0], [0, 0, 1]]
    """
    wanted = _one_hot_dtype(on_value, off_value, dtype)
    given = sum(v is not None and not isinstance(v, Tensor) for v in (on_value, off_value))
    if given:
        count_more(get_default_graph(), given)  # TF makes tensors of them twice
    on = _with_dtype(1 if on_value is None else on_value, wanted)
    off = _with_dtype(0 if off_value is None else off_value, wanted)
    at = -1 if axis is None else axis
    return apply(ONE_HOT, indices, depth, on, off, axis=at, name=name or "one_hot")


def _with_dtype(value: TensorLike, dtype: DType) -> Any:
    """A tensor as it is, a number as an array (which becomes a constant below the op)."""
    return value if hasattr(value, "dtype") and hasattr(value, "op") else make_ndarray(value, dtype)


def _one_hot_dtype(on: TensorLike | None, off: TensorLike | None, dtype: object) -> DType:
    found = [_dtype_of(v) for v in (on, off) if v is not None]
    if dtype is None:
        if len(found) == 2 and found[0] is not found[1]:
            raise TypeError(
                f"dtype {found[0]} of on_value does not match dtype {found[1]} of off_value"
            )
        return found[0] if found else dtypes.float32
    wanted = dtypes.as_dtype(dtype).base_dtype
    for label, value in (("on_value", on), ("off_value", off)):
        if value is not None and _dtype_of(value) is not wanted:
            raise TypeError(
                f"dtype {_dtype_of(value)} of {label} does not match dtype parameter {wanted}"
            )
    if wanted._kind in "sb" and (on is None or off is None):
        raise TypeError(f"on_value and off_value must be given for a one_hot of type {wanted.name}")
    return wanted


def _dtype_of(value: TensorLike) -> DType:
    if hasattr(value, "dtype"):
        return dtypes.as_dtype(value.dtype).base_dtype
    return dtypes.FROM_NUMPY[make_ndarray(value, None).dtype]
