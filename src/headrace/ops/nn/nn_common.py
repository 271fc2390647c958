"""What the ``tf.nn`` modules share: short spellings of arithmetic ops, and TF's ways of reading
their arguments.

>>> loss = mul(expand_last(grad), backprop)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, shapes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.seeds import count_more
from headrace.core.tensor import Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, AxisLike, TensorLike
    from headrace.core.dtypes import DType
    from headrace.variables.variable import Variable

__all__ = [
    "add",
    "cast",
    "cond_where",
    "deprecated",
    "div",
    "expand",
    "expand_last",
    "mul",
    "neg",
    "of_equal_shapes",
    "ones_like",
    "rank_of",
    "reduce_mean",
    "reduce_sum",
    "reshape",
    "scalar_const",
    "sequence_of",
    "shape_of",
    "squeeze",
    "sub",
    "transpose",
    "zeros_like",
]


def _binary(op_type: str, default: str) -> Callable[..., Tensor]:
    """An arithmetic op that takes a plain number on either side."""

    def build(x: Tensor, y: float | Tensor | Variable, name: str | None = None) -> Tensor:
        if isinstance(y, Tensor) and isinstance(x, (int, float)):
            return apply_op(op_type, x, y, T=y._dtype._base, name=name or default)
        return apply_op(op_type, x, y, name=name or default)

    return build


add = _binary("AddV2", "add")
sub = _binary("Sub", "sub")
mul = _binary("Mul", "mul")
div = _binary("RealDiv", "truediv")


def neg(x: TensorLike) -> Tensor:
    return apply_op("Neg", x)


def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor:
    """A tensor of the type; no op where it has it already."""
    want = dtypes.as_dtype(dtype).base_dtype
    tensor = x if isinstance(x, Tensor) else convert_to_tensor(x, name="x")
    if tensor._dtype._base is want:
        return tensor
    return apply_op("Cast", tensor, DstT=want, name=name)


def cond_where(mask: Tensor, x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    return apply_op("Select", mask, x, y, name=name)


def zeros_like(x: TensorLike) -> Tensor:
    return apply_op("ZerosLike", x, name="zeros_like")


def ones_like(x: Tensor) -> Tensor:
    """Ones in the shape of a tensor: a constant where the shape is known."""
    known = shapes.known(x._shape)
    if known is not None and int(np.prod(known)) <= 1000:
        count_more(x._op.graph, 2)  # TF fills a shape
        return convert_to_tensor(np.ones(known, x._dtype._base.np_dtype), name="ones_like")
    return apply_op("Fill", shape_of(x), scalar_const(1, x), name="ones_like")


def scalar_const(value: float, like: Tensor, name: str = "Const") -> Tensor:
    return convert_to_tensor(value, like._dtype._base, name=name)


def shape_of(x: object, out_type: DType = dtypes.int32, name: str | None = None) -> Tensor:
    """``tf.shape``: a constant where every dimension is known."""
    known = shapes.known(x._shape) if isinstance(x, Tensor) else None
    if known is not None:
        dtype = dtypes.as_dtype(out_type)
        return convert_to_tensor(np.array(known, dtype.np_dtype), name=name or "Shape")
    return apply_op("Shape", x, out_type=out_type, name=name)


def rank_of(x: Tensor) -> int | None:
    return None if x._shape is None else len(x._shape)


def reshape(x: TensorLike, shape: TensorLike, name: str | None = None) -> Tensor:
    return apply_op("Reshape", x, shape, name=name)


def transpose(x: object, perm: TensorLike, name: str | None = None) -> Tensor:
    return apply_op("Transpose", x, perm, name=name or "transpose")


def expand(x: object, axis: int, name: str | None = None) -> Tensor:
    return apply_op("ExpandDims", x, axis, name=name)


def expand_last(x: TensorLike) -> Tensor:
    return apply_op("ExpandDims", x, -1)


def squeeze(x: TensorLike, axes: AxisLike, name: str | None = None) -> Tensor:
    return apply_op("Squeeze", x, squeeze_dims=axes, name=name)


def reduce_sum(
    x: object, axes: object = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    return _scalar_if(
        axes is None and not keepdims,
        apply_op("Sum", x, _axes(x, axes), keep_dims=keepdims, name=name),
    )


def reduce_mean(
    x: Tensor, axes: TensorLike | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    return _scalar_if(
        axes is None and not keepdims,
        apply_op("Mean", x, _axes(x, axes), keep_dims=keepdims, name=name),
    )


def _scalar_if(scalar: bool, tensor: Tensor) -> Tensor:
    """Reducing a tensor of unknown rank over all axes gives a scalar all the same."""
    if scalar:
        tensor.set_shape(())
    return tensor


def _axes(x: object, axes: object) -> Any:
    """The axes to reduce over; None means all of them."""
    if axes is not None:
        return (
            np.array(axes, np.int32)
            if isinstance(axes, (list, tuple, range)) and not axes
            else axes
        )
    tensor = x if isinstance(x, Tensor) else convert_to_tensor(x)
    if tensor._shape is not None:
        return np.arange(len(tensor._shape), dtype=np.int32)
    return apply_op("Range", 0, apply_op("Rank", tensor), 1)


# arguments --------------------------------------------------------------------------------------


def deprecated(new_name: str, new: object, old_name: str, old: object) -> Any:
    """The value of an argument with a deprecated second name; ValueError if both are given."""
    if old is not None:
        if new is not None:
            raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'")
        return old
    return new


def sequence_of(value: Any, n: int, channel_index: int, name: str) -> list[Any]:
    """Strides, window sizes or dilations for every dimension, from 1, n or n + 2 numbers."""
    if value is None:
        value = [1]
    elif not hasattr(value, "__len__"):
        value = [value]
    given: Sequence[Any] = value
    if len(given) == n + 2:
        return list(given)
    if len(given) == 1:
        values = [given[0]] * n
    elif len(given) == n:
        values = list(given)
    else:
        raise ValueError(f"{name} should be of length 1, {n} or {n + 2} but was {len(given)}")
    return [1, 1, *values] if channel_index == 1 else [1, *values, 1]


def of_equal_shapes(
    op_type: str, kernel: Callable[..., Any], has_attrs: bool = False
) -> Callable[..., Any]:
    """The kernel of an activation's gradient, whose two inputs do not broadcast."""

    @functools.wraps(kernel)
    def plain(xp: ArrayNamespace, first: Array, second: Array) -> Any:
        if first.shape != second.shape:
            raise _other_shapes(op_type, first, second)
        return kernel(xp, first, second)

    @functools.wraps(kernel)
    def with_attrs(xp: ArrayNamespace, first: Array, second: Array, **attrs: float) -> Any:
        if first.shape != second.shape:
            raise _other_shapes(op_type, first, second)
        return kernel(xp, first, second, **attrs)

    return with_attrs if has_attrs else plain


def _other_shapes(op_type: str, first: Array, second: Array) -> Exception:
    given = f"Input 0: {shapes.show(first.shape)} != input 1: {shapes.show(second.shape)}"
    return errors.InvalidArgumentError(
        None,
        None,
        f"Inputs to operation {op_type} of type {op_type} must have the same size and "
        f"shape.  {given}",
    )
