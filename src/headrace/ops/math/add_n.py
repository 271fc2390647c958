"""Sums of many tensors: ``tf.add_n``, ``tf.accumulate_n`` and polynomials."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core import dtypes, shapes
from headrace.core.build import apply, apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.dispatch import dispatched
from headrace.core.infer import Inference
from headrace.core.opdef import define
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, ShapeLike, TensorLike

__all__ = ["accumulate_n", "add_n"]


def _add_n(xp: ArrayNamespace, *inputs: Any) -> Array:
    first = inputs[0]
    if hasattr(first, "zeros_like"):  # tensor lists
        return functools.reduce(operator.add, inputs)
    shape = first.shape
    for i, other in enumerate(inputs):
        if other.shape != shape:
            raise errors.InvalidArgumentError(
                None,
                None,
                "Inputs to operation AddN of type AddN must have the same size and shape.  "
                f"Input 0: {shapes.show(shape)} != input {i}: {shapes.show(other.shape)}",
            )
    if len(inputs) == 1:
        return xp.positive(first)
    total = xp.add(first, inputs[1])
    for other in inputs[2:]:
        total += other
    return total


def _add_n_shape(c: Inference) -> list[Shape]:
    out: Shape = None
    for i, shape in enumerate(c.shapes()):
        try:
            out = shapes.merge(out, shape)
        except ValueError as error:
            raise ValueError(f"{error}\n\tFrom merging shape {i - 1} with other shapes.") from None
    return [out]


ADD_N = define(
    "AddN",
    "inputs: N*T -> sum: T; N: int, T: type(addn)",
    shape=_add_n_shape,
    kernel=_add_n,
    grad=lambda op, g: [g] * len(op._inputs),
    elementwise=True,
    same_shapes=True,
)


ACCUMULATE_N = define(
    "AccumulateNV2",
    "inputs: N*T -> sum: T; N: int, T: type(number), shape: shape",
    shape=lambda c: [c.attr("shape")],  # TensorFlow's asks for no more
    kernel=_add_n,
    grad=lambda op, g: [g] * len(op._inputs),
    elementwise=True,
    same_shapes=True,
)


def _list_of_tensors(inputs: Any, function: str) -> list[Any]:
    wanted = (
        f"{function}: inputs must be an iterable of at least one Tensor/IndexedSlices with "
        "the same dtype and shape"
    )
    single = isinstance(inputs, (Tensor, str, bytes)) or not isinstance(inputs, Iterable)
    items = [] if single else list(inputs)
    if not items:
        raise ValueError(wanted)
    try:
        return [t if isinstance(t, Tensor) else convert_to_tensor(t, name="inputs") for t in items]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{wanted}: {error}") from error


@dispatched("add_n")
def add_n(inputs: TensorLike, name: str | None = None) -> Tensor:
    """The sum of tensors of one shape. IndexedSlices among them are made dense."""
    tensors = _list_of_tensors(inputs, "add_n")
    if len(tensors) == 1:
        return apply_op("Identity", tensors[0], name=name) if name else tensors[0]
    return apply(ADD_N, tensors, name=name)


def accumulate_n(
    inputs: TensorLike,
    shape: ShapeLike | None = None,
    tensor_dtype: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Like ``add_n``, with the shape and type to be checked.

    ``inputs`` is a list of tensors of one shape and type; ``shape`` and ``tensor_dtype`` are what
    they must be. Unlike in TensorFlow nothing is saved in memory over ``add_n``.

        tf.accumulate_n([[1, 2], [3, 4]])  # [4, 6]
    """
    tensors = _list_of_tensors(inputs, "accumulate_n")
    dtype = tensors[0].dtype.base_dtype
    if any(t.dtype.base_dtype is not dtype for t in tensors):
        raise ValueError(
            "inputs must be a list of at least one Tensor with the same dtype and shape"
        )
    if tensor_dtype is not None and dtypes.as_dtype(tensor_dtype) is not dtype:
        raise TypeError(f"tensor_dtype is {tensor_dtype}, but input is of type {dtype}")
    merged = shapes.to_plain(shape)
    for tensor in tensors:
        merged = shapes.merge(merged, tensor._shape)
    if len(tensors) == 1:
        return apply_op("Identity", tensors[0], name=name) if name else tensors[0]
    return apply(ACCUMULATE_N, tensors, shape=merged, name=name)
