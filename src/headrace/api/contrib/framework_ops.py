"""Checks and small functions of ``tf.contrib.framework``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import _graph_of
from headrace.core.convert import convert_to_tensor, is_tensor
from headrace.core.graph import Graph, get_default_graph
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.basic import identity
from headrace.ops.control.assertions import assert_equal, assert_same_float_dtype
from headrace.ops.math.binary import add_n
from headrace.ops.math.reductions import reduce_sum
from headrace.ops.nn.weights_broadcasting import (
    remove_squeezable_dimensions as squeeze_pair,
)
from headrace.ops.sparse.sparse_tensor import SparseTensor, SparseTensorValue

if TYPE_CHECKING:
    from headrace.core.dtypes import DType

__all__ = [
    "assert_same_float_dtype", "assert_scalar", "assert_scalar_int",
    "convert_to_tensor_or_sparse_tensor", "get_graph_from_inputs", "get_name_scope", "is_tensor",
    "reduce_sum_n", "remove_squeezable_dimensions", "with_same_shape", "with_shape",
]  # fmt: skip


def get_graph_from_inputs(op_input_list: Any, graph: Graph | None = None) -> Graph:
    """The graph of the inputs; ValueError if they have several."""
    return graph or _graph_of(list(op_input_list), get_default_graph())


def get_name_scope() -> str:
    """The name scope that is open."""
    return get_default_graph().get_name_scope()


def convert_to_tensor_or_sparse_tensor(
    value: Any, dtype: DType | None = None, name: str | None = None
) -> SparseTensor | Tensor:
    """A tensor, or a SparseTensor if one is given."""
    if isinstance(value, SparseTensorValue):
        value = SparseTensor(*value)
    if isinstance(value, SparseTensor):
        if dtype and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):
            raise RuntimeError(
                f"Sparse dtype: requested = {dtypes.as_dtype(dtype).name}, actual = "
                f"{value.dtype.name}"
            )
        return value
    return convert_to_tensor(value, dtype=dtype, name=name)


def assert_scalar(tensor: object, name: str | None = None) -> Tensor:
    """The tensor; ValueError unless it is a scalar."""
    with name_scope(name, "assert_scalar", [tensor]) as scope:
        tensor = convert_to_tensor(tensor, name=scope)
        shape = tensor.shape
        if shape.ndims != 0:
            raise ValueError(f"Unexpected shape {shape} for tensor {tensor.name}. Expected scalar.")
        return tensor


def assert_scalar_int(tensor: object, name: str | None = None) -> Tensor:
    """The tensor; ValueError unless it is a scalar of an integer type."""
    with name_scope(name, "assert_scalar_int", [tensor]) as scope:
        tensor = convert_to_tensor(tensor)
        if not tensor.dtype.base_dtype.is_integer:
            raise ValueError(
                f"Unexpected type {tensor.dtype} for tensor {tensor.name}. Expected integer."
            )
        return assert_scalar(tensor, name=scope)


def reduce_sum_n(tensors: Any, name: str | None = None) -> Tensor:
    """The sum of all elements of all tensors."""
    if not tensors:
        raise ValueError("No tensors provided.")
    with name_scope(name, "reduce_sum_n", tensors) as scope:
        tensors = [reduce_sum(t, name=f"{t.op.name}/sum") for t in tensors]
        return tensors[0] if len(tensors) == 1 else add_n(tensors, name=scope)


def with_shape(expected_shape: Any, tensor: object) -> Tensor:
    """The tensor; an error where its shape is another, while building if it is known."""
    tensor = convert_to_tensor(tensor)
    if not isinstance(expected_shape, Tensor):
        if tensor.shape.is_fully_defined():
            tensor.shape.assert_is_compatible_with(expected_shape)
            return tensor
        if -1 not in list(expected_shape) and None not in list(expected_shape):
            tensor.set_shape(expected_shape)
    with control_dependencies([assert_equal(shape_of(tensor), expected_shape)]):
        return identity(tensor)


def with_same_shape(expected_tensor: object, tensor: object) -> Tensor:
    """``tensor``, checked to have the shape of ``expected_tensor``."""
    expected_tensor = convert_to_tensor(expected_tensor)
    if expected_tensor.shape.is_fully_defined():
        return with_shape(expected_tensor.shape.as_list(), tensor)
    return with_shape(shape_of(expected_tensor), tensor)


def remove_squeezable_dimensions(
    predictions: object, labels: object, name: str | None = None
) -> tuple[Any, Any]:
    """Both, the one of higher rank without its last dimension of size 1."""
    labels, predictions = squeeze_pair(labels, predictions, name=name)
    return predictions, labels
