"""Structures of specs and Python values as StructuredValue messages.

Signatures of functions in SavedModels of TF 2.
"""

from __future__ import annotations

import collections
from typing import Any

import numpy as np

from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import DType, as_dtype
from headrace.core.shapes import TensorShape
from headrace.core.specs import IndexedSlicesSpec, SparseTensorSpec, TensorSpec, TypeSpec
from headrace.eager.eager_tensor import EagerTensor
from headrace.formats.attr_values import encode_shape
from headrace.formats.tensor_proto import to_array, to_message, to_shape

__all__ = ["decode_structure", "encode_structure"]

#: Signatures are not nested deeper than this.
MAX_DEPTH = 64


def decode_structure(message: Any, depth: int = 0) -> Any:
    """The structure that a StructuredValue describes."""
    if depth > MAX_DEPTH:
        raise ValueError("a signature is nested too deep")
    kind = message.WhichOneof("kind")
    if kind is None or kind == "none_value":
        return None
    value = getattr(message, kind)
    if kind in ("float64_value", "int64_value", "string_value", "bool_value"):
        return value
    if kind in ("tensor_spec_value", "bounded_tensor_spec_value"):
        return TensorSpec(to_shape(value.shape), as_dtype(value.dtype), value.name or None)
    if kind == "tensor_dtype_value":
        return as_dtype(value)
    if kind == "tensor_shape_value":
        return TensorShape(to_shape(value))
    if kind == "list_value":
        return [decode_structure(v, depth + 1) for v in value.values]
    if kind == "tuple_value":
        return tuple([decode_structure(v, depth + 1) for v in value.values])
    if kind == "dict_value":
        return {k: decode_structure(v, depth + 1) for k, v in sorted(value.fields.items())}
    if kind == "named_tuple_value":
        pairs = [(p.key, decode_structure(p.value, depth + 1)) for p in value.values]
        made = collections.namedtuple(value.name or "Structure", [k for k, _ in pairs])  # type: ignore[misc]
        return made(*[v for _, v in pairs])
    if kind == "type_spec_value":
        return _type_spec(value, depth)
    if kind == "tensor_value":
        return convert_to_tensor(to_array(value))
    if kind == "numpy_value":
        return to_array(value)
    raise ValueError(f"a signature with a {kind}, which Headrace does not have")


def _type_spec(message: Any, depth: int) -> TypeSpec:
    """The spec of a SparseTensor, RaggedTensor and so on, from its class and its arguments."""
    from headrace.ops.control.tensor_array_spec import TensorArraySpec
    from headrace.ops.ragged.ragged_spec import RaggedTensorSpec

    made = {
        message.SPARSE_TENSOR_SPEC: (SparseTensorSpec, 2),
        message.INDEXED_SLICES_SPEC: (IndexedSlicesSpec, 5),
        message.RAGGED_TENSOR_SPEC: (RaggedTensorSpec, 4),
        message.TENSOR_ARRAY_SPEC: (TensorArraySpec, 4),
    }.get(message.type_spec_class)
    state = decode_structure(message.type_state, depth + 1)
    if made is None or not isinstance(state, tuple):
        raise ValueError(
            f"a signature with a {message.type_spec_class_name or message.type_spec_class}, which "
            "Headrace does not have"
        )
    kind, count = made
    found: TypeSpec = kind(*state[:count])
    return found


def _encode_type_spec(value: TypeSpec, message: Any) -> None:
    """The class of a spec and the arguments of its constructor."""
    from headrace.ops.ragged.ragged_spec import RaggedTensorSpec

    state: tuple[Any, ...]
    if isinstance(value, SparseTensorSpec):
        number, state = message.SPARSE_TENSOR_SPEC, (value.shape, value.dtype)
    elif isinstance(value, IndexedSlicesSpec):
        number = message.INDEXED_SLICES_SPEC
        shape, dtype, *rest, rows = value._key()
        state = (TensorShape(shape), dtype, *rest, TensorShape(rows))
    elif isinstance(value, RaggedTensorSpec):
        number = message.RAGGED_TENSOR_SPEC
        state = (value.shape, value.dtype, value.ragged_rank, value.row_splits_dtype)
    else:
        raise TypeError(f"{value!r} cannot be part of a saved signature")
    message.type_spec_class = number
    message.type_spec_class_name = type(value).__name__
    message.num_flat_components = len(value.component_specs)
    encode_structure(state, message.type_state)


def encode_structure(value: object, message: Any) -> None:
    """Fill in a StructuredValue."""
    if value is None:
        message.none_value.SetInParent()
    elif isinstance(value, bool):
        message.bool_value = value
    elif isinstance(value, int):
        message.int64_value = value
    elif isinstance(value, float):
        message.float64_value = value
    elif isinstance(value, str):
        message.string_value = value
    elif isinstance(value, TensorSpec):
        spec = message.tensor_spec_value
        spec.name, spec.dtype = value.name or "", value.dtype.as_datatype_enum
        encode_shape(value.shape, spec.shape)
    elif isinstance(value, EagerTensor):
        to_message(value.numpy(), value.dtype, message.tensor_value)
    elif isinstance(value, (np.ndarray, np.generic)):
        to_message(np.asarray(value), None, message.numpy_value)
    elif isinstance(value, TypeSpec):
        _encode_type_spec(value, message.type_spec_value)
    elif isinstance(value, DType):
        message.tensor_dtype_value = value.as_datatype_enum
    elif isinstance(value, TensorShape):
        encode_shape(value, message.tensor_shape_value)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        message.named_tuple_value.name = type(value).__name__
        for key, part in zip(value._fields, value):
            pair = message.named_tuple_value.values.add(key=key)
            encode_structure(part, pair.value)
    elif isinstance(value, (list, tuple)):
        target = message.list_value if isinstance(value, list) else message.tuple_value
        target.SetInParent()
        for part in value:
            encode_structure(part, target.values.add())
    elif isinstance(value, dict):
        message.dict_value.SetInParent()
        for key, part in value.items():
            encode_structure(part, message.dict_value.fields[str(key)])
    else:
        raise TypeError(f"{value!r} cannot be part of a saved signature")
