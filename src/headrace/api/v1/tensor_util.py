"""``tensorflow.python.framework.tensor_util``: static values of tensors."""

from __future__ import annotations

from headrace.core.convert import is_tensor
from headrace.core.infer import constant_value, partial_shape
from headrace.core.shapes import TensorShape, from_plain
from headrace.core.tensor import Tensor
from headrace.formats.tensor_proto import make_ndarray as MakeNdarray
from headrace.formats.tensor_proto import make_tensor_proto

__all__ = [
    "MakeNdarray",
    "constant_value",
    "constant_value_as_shape",
    "is_tensor",
    "make_tensor_proto",
]


def constant_value_as_shape(tensor: Tensor) -> TensorShape:
    """What is known of a shape tensor's value when the graph is built."""
    return from_plain(partial_shape(tensor))
