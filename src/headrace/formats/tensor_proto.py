"""Arrays as TensorProto messages and back.

    message = to_message(np.zeros([2, 3], np.float32))
    array = to_array(message)   # read-only where it shares the message's bytes

Written as TF 1.15's ``make_tensor_proto`` writes: one element in its typed field, more of them as
raw bytes (numbers of 16-bit floating point, complex numbers, bools and strings always in their
fields). Reading checks the declared shape against the bytes that are there, and the size against
``limit``, before anything is allocated: a message of twenty bytes may declare a tensor of a
petabyte.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes, shapes
from headrace.core.convert import make_ndarray as array_of
from headrace.core.dtypes import DType, as_dtype

if TYPE_CHECKING:
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    from headrace.core.annotations import Array, TensorLike

__all__ = [
    "MAX_REPEATED_BYTES",
    "make_ndarray",
    "make_tensor_proto",
    "to_array",
    "to_message",
    "to_shape",
]

#: A tensor whose last value is repeated to fill its shape may become this large when it is read.
MAX_REPEATED_BYTES = 1 << 30

#: The field of TensorProto that holds the values of a type.
_FIELDS = {
    dtypes.float32: "float_val",
    dtypes.float64: "double_val",
    dtypes.int64: "int64_val",
    dtypes.uint64: "uint64_val",
    dtypes.uint32: "uint32_val",
    dtypes.bool: "bool_val",
    dtypes.complex64: "scomplex_val",
    dtypes.complex128: "dcomplex_val",
    dtypes.string: "string_val",
    dtypes.float16: "half_val",
    dtypes.bfloat16: "half_val",
}
_LITTLE = sys.byteorder == "little"
_BITS = (dtypes.float16, dtypes.bfloat16)


def to_message(
    array: Array, dtype: DType | None = None, message: TensorProto | None = None
) -> TensorProto:
    """A TensorProto that holds ``array``; fills in ``message`` if one is given."""
    if message is None:
        from tensorboard.compat.proto.tensor_pb2 import TensorProto

        message = TensorProto()
    array = np.asarray(array)
    dtype = dtypes.FROM_NUMPY[array.dtype] if dtype is None else dtype._base
    message.dtype = dtype.as_datatype_enum
    dims = message.tensor_shape.dim
    for size in array.shape:
        dims.add().size = size
    if not array.shape:
        message.tensor_shape.SetInParent()
    if dtype is dtypes.string:
        message.string_val.extend([_as_bytes(v) for v in array.reshape(-1).tolist()])
    elif array.size > 1 and dtype._kind in "iuf" and dtype not in _BITS:
        message.tensor_content = np.ascontiguousarray(
            array, array.dtype.newbyteorder("<")
        ).tobytes()
    elif array.size:
        _set_values(message, array, dtype)
    return message


def _as_bytes(value: bytes) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _set_values(message: object, array: Array, dtype: DType) -> None:
    field = getattr(message, _FIELDS.get(dtype, "int_val"))
    flat = array.reshape(-1)
    if dtype in _BITS:
        flat = flat.view(np.uint16)
    elif dtype._kind == "c":
        flat = flat.view(dtype.real_dtype.np_dtype)
    elif dtype._kind == "q":
        flat = flat.view(dtype.np_dtype[0])
    field.extend(flat.tolist())


# reading ------------------------------------------------------------------------------------------


def to_shape(message: Any) -> shapes.Shape:
    """A TensorShapeProto as a plain shape; None if not even the rank is known."""
    if message.unknown_rank:
        return None
    return tuple([None if d.size < 0 else d.size for d in message.dim])


#: Types that a constant may have, by number.
_NUMERIC = {d._enum: d for d in dtypes._ALL if d._kind != "r" and not d._is_ref}


def to_array(message: TensorProto, limit: int = MAX_REPEATED_BYTES) -> np.ndarray[Any, Any]:
    """The array that a TensorProto holds. ValueError where its parts do not agree."""
    dtype = _dtype(message.dtype)
    dims = _dims(message.tensor_shape)
    count = math.prod(dims)
    content = message.tensor_content
    if dtype is dtypes.string:
        return _filled(_strings(message.string_val), dims, count, limit)
    if content:
        size = dtype.np_dtype.itemsize
        if len(content) != count * size:
            raise ValueError(
                f"a {dtype.name} tensor of shape {list(dims)} has {count * size} bytes, "
                "but the message holds "
                f"{len(content)}: the file is damaged"
            )
        if _LITTLE:
            return np.frombuffer(content, dtype.np_dtype).reshape(dims)
        return (
            np.frombuffer(content, dtype.np_dtype.newbyteorder("<"))
            .astype(dtype.np_dtype, copy=False)
            .reshape(dims)
        )
    return _filled(_values(message, dtype), dims, count, limit)


def _dtype(number: int) -> DType:
    known = _NUMERIC.get(number)
    if known is not None:
        return known
    try:
        dtype = as_dtype(number)._base
    except TypeError:
        raise ValueError(
            f"a tensor of type number {number}, which Headrace does not have"
        ) from None
    if dtype._kind == "r":
        raise ValueError(f"a tensor of type {dtype.name} cannot be a constant")
    return dtype


def _dims(message: Any) -> tuple[int, ...]:
    if message.unknown_rank:
        raise ValueError("the shape of a constant is not fully known")
    dims = tuple([d.size for d in message.dim])
    if any(d < 0 for d in dims):
        raise ValueError(f"the shape of a constant is not fully known: {list(dims)}")
    return dims


def _strings(values: Sequence[bytes]) -> Array:
    out = np.empty(len(values), object)
    out[:] = list(values)
    return out


def _values(message: object, dtype: DType) -> Array:
    field = getattr(message, _FIELDS.get(dtype, "int_val"))
    if dtype in _BITS:
        return np.array([v & 0xFFFF for v in field], np.uint16).view(dtype.np_dtype)
    if dtype._kind == "c":
        if len(field) % 2:
            raise ValueError("a complex tensor holds an odd number of parts")
        return np.array(field, dtype.real_dtype.np_dtype).view(dtype.np_dtype)
    if dtype._kind == "q":
        return np.array(field, dtype.np_dtype[0]).view(dtype.np_dtype)
    if dtype._kind in "iu":
        return np.array(list(field), np.int64 if dtype is not dtypes.uint64 else np.uint64).astype(
            dtype.np_dtype
        )
    return np.array(list(field), dtype.np_dtype)


def _filled(values: Array, dims: tuple[int, ...], count: int, limit: int) -> Array:
    """Fewer values than elements: the last one is repeated; none at all are zeros."""
    if len(values) == count:
        return values.reshape(dims)
    if len(values) > count:
        raise ValueError(f"{len(values)} values for a tensor of shape {list(dims)}")
    if count * values.dtype.itemsize > limit:
        raise ValueError(
            f"a constant of shape {list(dims)} needs {count * values.dtype.itemsize:,} "
            "bytes, though the message holds "
            f"{len(values)} values: more than the limit of {limit:,}"
        )
    empty: Any = b"" if values.dtype == object else 0
    out = np.full(count, values[-1] if len(values) else empty, values.dtype)
    out[: len(values)] = values
    return out.reshape(dims)


# tf.make_tensor_proto, tf.make_ndarray ------------------------------------------------------------


def make_tensor_proto(
    values: TensorLike,
    dtype: DType | None = None,
    shape: Any = None,
    verify_shape: bool = False,
    allow_broadcast: bool = False,
) -> TensorProto:
    """A TensorProto from a value, as ``tf.make_tensor_proto``.

    With ``shape``, the last element is repeated to fill it.

    ``verify_shape=True`` refuses values of another shape than ``shape``.
    """
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    if isinstance(values, TensorProto):
        return values
    if allow_broadcast and verify_shape:
        raise ValueError("allow_broadcast and verify_shape are not both allowed.")
    want = None if dtype is None else as_dtype(dtype).base_dtype
    array = array_of(values, want)
    have = want if want is not None else dtypes.FROM_NUMPY[array.dtype]
    if shape is None:
        return to_message(array, have)
    dims = tuple(int(d) for d in shape)
    count = math.prod(dims)
    if array.size == count and not (verify_shape and array.shape != dims):
        return to_message(array.reshape(dims), have)
    if verify_shape or array.size > count or (allow_broadcast and array.size not in (0, 1)):
        raise TypeError(f"Expected Tensor's shape: {dims}, got {array.shape}.")
    message = TensorProto(dtype=have.as_datatype_enum)
    for size in dims:
        message.tensor_shape.dim.add().size = size
    if have is dtypes.string:
        message.string_val.extend([_as_bytes(v) for v in array.reshape(-1).tolist()])
    else:
        _set_values(message, array, have)
    return message


def make_ndarray(tensor: object) -> np.ndarray[Any, Any]:
    """``tf.make_ndarray``: the array that a TensorProto holds, the caller's own."""
    return to_array(tensor).copy()
