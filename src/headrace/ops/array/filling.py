"""Tensors of one value: ``tf.fill``, ``tf.zeros``, ``tf.ones`` and those of another's shape.

``tf.zeros`` and ``tf.ones`` of a small static shape are constants; larger ones are filled when they
run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes, shape_fns, shapes
from headrace.core.build import apply, apply_op
from headrace.core.convert import convert_to_tensor, make_const
from headrace.core.dispatch import dispatched
from headrace.core.dtypes import as_dtype
from headrace.core.graph import get_default_graph
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import (
    _MAX_CONSTANT_ELEMENTS,
    RESHAPE,
    const,
    invalid,
    rank,
    shape,
)

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, DTypeLike, TensorLike
    from headrace.core.dtypes import DType
    from headrace.ops.control.tensor_list_ops import TensorList

__all__ = ["fill", "ones", "ones_like", "ones_like_v2", "zeros", "zeros_like", "zeros_like_v2"]


# filling ----------------------------------------------------------------------------------------


def _fill_shape(c: Inference) -> list[Shape]:
    c.require_rank(0, 1)
    c.require_rank(1, 0)
    value = c.value(0)
    if (
        value is not None
        and value.size
        and value.min() < 0
        and (value.min() == -1 or c.op._inputs[0]._op.type == "Pack")
    ):
        raise ValueError(f"Fill dimensions must be >= 0, got {value.tolist()}")
    return [c.shape_value(0)]


def _fill_kernel(xp: ArrayNamespace, dims: Array, value: Array) -> Array:
    if xp.name != "numpy":
        return xp.full(tuple(dims.tolist()), value, dtype=value.dtype)
    if dims.ndim != 1:
        raise invalid(f"dims must be a vector, got shape {shapes.show(dims.shape)}")
    if value.ndim:
        raise invalid(f"value must be a scalar, got shape {shapes.show(value.shape)}")
    try:
        out = np.empty(dims.tolist(), value.dtype)
    except ValueError:
        low = next((d for d in dims.reshape(-1).tolist() if d < 0), None)
        if dims.ndim != 1 or low is None:
            raise invalid(
                f"dims must be a vector of int32 or int64, got shape {shapes.show(dims.shape)}"
            ) from None
        raise invalid(f"Dimension {low} must be >= 0") from None
    out[...] = value
    return out


FILL = define(
    "Fill",
    "dims: index_type, value: T -> output: T; index_type: type(index)=int32",
    shape=_fill_shape,
    kernel=_fill_kernel,
    grad=lambda op, g: [None, apply_op("Sum", g, _all_axes(g), keep_dims=False)],
    known_inputs=(0,),
    shape_input=0,
    dense=True,
    repeats=1,
    fails="arguments",
    rearranges=True,
    static_value=True,
)


def _all_axes(x: Tensor) -> Tensor:
    n = x._rank()
    return const(range(n)) if n is not None else apply_op("Range", const(0), rank(x), const(1))


def _zeros_like_kernel(xp: ArrayNamespace, x: Array | TensorList) -> Array | TensorList:
    if hasattr(x, "zeros_like"):  # a tensor list
        return x.zeros_like
    if x.dtype.kind != "O":
        return xp.zeros(x.shape, x.dtype)
    out = np.empty(x.shape, object)
    out[...] = b""
    return out


ZEROS_LIKE = define(
    "ZerosLike",
    "x: T -> y: T",
    shape=shape_fns.unchanged,
    kernel=_zeros_like_kernel,
    grad=NOT_DIFFERENTIABLE,
    dense=True,
    like_elementwise=True,
    fails="never",
    batching="same",
)
ONES_LIKE = define(
    "OnesLike",
    "x: T -> y: T",
    shape=shape_fns.unchanged,
    kernel=lambda xp, x: xp.ones(x.shape, x.dtype),
    grad=NOT_DIFFERENTIABLE,
    like_elementwise=True,
    fails="never",
    batching="same",
)


def fill(dims: TensorLike, value: TensorLike, name: str | None = None) -> Tensor:
    """A tensor of shape ``dims`` filled with one value."""
    return apply(FILL, dims, value, name=name)


def _filled(shape: object, value: object, dtype: DType, name: str | None, default: str) -> Tensor:
    dtype = as_dtype(dtype).base_dtype
    if not isinstance(shape, Tensor):
        if isinstance(shape, float) and not shape.is_integer():
            raise TypeError(f"Expected int32, got {shape!r} of type 'float' instead.")
        if isinstance(shape, (list, tuple)):  # TensorFlow takes 2.5 for 2 here, and only here
            shape = [int(d) if isinstance(d, (float, np.floating)) else d for d in shape]
        try:
            plain = _plain_or_none(shape)
        except TypeError:  # not a shape, but perhaps a tensor: [2.0, 3.0]
            shape = convert_to_tensor(shape, dtypes.int32)
            plain = None
        if plain is not None:
            count = shapes.num_elements(plain)
            if count is not None and count < _MAX_CONSTANT_ELEMENTS:
                array = np.full(plain, value, dtype.np_dtype)  # type: ignore[type-var]
                graph = get_default_graph()
                if isinstance(shape, (int, np.integer)):
                    count_more(graph, 2)  # TF fills where the shape is a number
                return make_const(graph, array, dtype, graph._full_name(name or default))
    with name_scope(name, default, [shape]) as scope:
        if not isinstance(shape, Tensor):
            plain = _plain_or_none(shape)
            if plain is None and isinstance(shape, (list, tuple)):
                count_more(get_default_graph(), _ops_to_compare(shape))
            shape = convert_to_tensor(shape if plain is None else shapes.from_plain(plain))
        if shape._shape == ():
            shape = apply(RESHAPE, shape, const([-1]))
        return apply(FILL, shape, convert_to_tensor(value, dtype), name=scope)


def _ops_to_compare(shape: Sequence[Any]) -> int:
    """TF multiplies the sizes, tensors among them, and compares the product with a limit."""
    product, *others = [isinstance(d, Tensor) for d in shape]
    count = 2
    for other in others:
        if product or other:
            count += 1 if product and other else 2
            product = True
    return count


def _plain_or_none(shape: object) -> Shape:
    """The static shape that a Python value is, or None if it has tensors in it."""
    if isinstance(shape, (list, tuple)) and any(
        hasattr(d, "_graph_anchor") or isinstance(d, Tensor) for d in shape
    ):
        return None
    if hasattr(shape, "_graph_anchor"):
        return None
    if isinstance(shape, (list, tuple)) and any(_is_word(d) for d in shape):
        return None  # (as a tensor it is refused)
    plain = shapes.to_plain(shape)
    if plain is None or None in plain:
        raise ValueError(
            f"Cannot convert a partially known TensorShape to a Tensor: {shapes.from_plain(plain)}"
        )
    return plain


def _is_word(d: object) -> bool:
    return isinstance(d, (str, bytes)) and not d.strip().isdigit()


def _zero_and_one(dtype: DTypeLike) -> tuple[Any, Any]:
    base = as_dtype(dtype).base_dtype
    if base is dtypes.string:
        return b"", 1  # which is an error: TensorFlow has no string for one
    return (False, True) if base is dtypes.bool else (0, 1)


def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """Zeros (False, empty strings) of a shape, which may be a tensor."""
    return _filled(shape, _zero_and_one(dtype)[0], dtype, name, "zeros")


def ones(shape: TensorLike, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """Ones (True) of a shape, which may be a tensor."""
    one = _zero_and_one(dtype)[1]
    if as_dtype(dtype).base_dtype is dtypes.string:
        raise TypeError(f"Expected string, got {one} of type 'int' instead.")
    return _filled(shape, one, dtype, name, "ones")


@dispatched("unary")
def zeros_like(
    tensor: TensorLike,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    optimize: bool = True,
) -> Tensor:
    """Zeros (False, empty strings) in the shape of another tensor.

    ``dtype`` defaults to that of ``tensor``. ``optimize`` makes a constant where the shape is
    known; without it the graph reads the shape of ``tensor``.

        tf.zeros_like([[1.5, 2.0]])  # [[0.0, 0.0]]
    """
    tensor = convert_to_tensor(tensor)
    same = dtype is None or as_dtype(dtype).base_dtype is tensor._dtype._base
    wanted = tensor._dtype._base if same else as_dtype(dtype)
    known = shapes.known(tensor._shape)
    if optimize and known is not None and wanted is not dtypes.variant:
        return zeros(known, wanted, name or "zeros_like")
    if not same:
        with name_scope(name, "zeros_like", [tensor]) as scope:
            out = zeros(shape(tensor), wanted, scope)
        out.set_shape(tensor.shape)
        return out
    return apply(ZEROS_LIKE, tensor, name=name or "zeros_like")


@dispatched("unary")
def ones_like(
    tensor: TensorLike,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    optimize: bool = True,
) -> Tensor:
    """Ones of a tensor's shape and, unless ``dtype`` is given, of its type.

    With ``optimize`` a static shape is used while the graph is built.
    """
    tensor = convert_to_tensor(tensor)
    wanted = tensor._dtype._base if dtype is None else as_dtype(dtype)
    known = shapes.known(tensor._shape)
    if optimize and known is not None:
        count_more(tensor._op.graph, 2)  # TF fills a shape
        return ones(known, wanted, name or "ones_like")
    with name_scope(name, "ones_like", [tensor]) as scope:
        out = ones(shape(tensor), wanted, scope)
    out.set_shape(tensor.shape)
    return out


def zeros_like_v2(
    input: TensorLike, dtype: DTypeLike | None = None, name: str | None = None
) -> Tensor:
    """Zeros of a tensor's shape and, unless ``dtype`` is given, of its type."""
    return zeros_like(input, dtype, name)


def ones_like_v2(
    input: TensorLike, dtype: DTypeLike | None = None, name: str | None = None
) -> Tensor:
    """Ones of a tensor's shape and, unless ``dtype`` is given, of its type."""
    return ones_like(input, dtype, name)
