"""Byte strings to tensors and back: padded raw bytes, compressed data, serialized tensors. (CSV:
decoding_csv.)

>>> tf.io.parse_tensor(tf.io.serialize_tensor([1.0, 2.0]), tf.float32)
"""

from __future__ import annotations

import math
import re
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import dtypes, shape_fns, shapes
from headrace.core.build import apply
from headrace.core.dispatch import dispatched
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import invalid
from headrace.ops.strings.string_numbers import decode_raw
from headrace.ops.strings.string_ops import mapped

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, DTypeLike, TensorLike
    from headrace.core.dtypes import DType

__all__ = ["decode_compressed", "decode_raw_v2", "parse_tensor", "serialize_tensor"]


# raw bytes ----------------------------------------------------------------------------------------


def _padded_kernel(
    xp: ArrayNamespace, x: Array, length: Array, *, out_type: DType, little_endian: bool
) -> Array:
    dtype, size = out_type.np_dtype, int(length)
    if size <= 0:
        raise invalid(f"fixed_length ({size}) must be greater than zero.")
    if size % dtype.itemsize:
        raise invalid(
            f"fixed_length ({size}) must be a multiple of the size of out_type ({dtype.itemsize})"
        )
    rows = [s[:size].ljust(size, b"\0") for s in x.reshape(-1).tolist()]
    flat = np.frombuffer(b"".join(rows), dtype if little_endian else dtype.newbyteorder(">"))
    return flat.astype(dtype).reshape((*x.shape, size // dtype.itemsize))


def _padded_shape(c: Inference) -> list[Shape]:
    shape, size = c.shape(0), c.value(1)
    item = c.attr("out_type").np_dtype.itemsize
    if size is not None and int(size) % item:
        raise ValueError(f"Dimension size must be evenly divisible by {item} but is {int(size)}")
    if shape is None:
        return [None]
    return [(*shape, None if size is None else int(size) // item)]


DECODE_PADDED_RAW = define(
    "DecodePaddedRaw",
    "input_bytes: string, fixed_length: int32 -> output: out_type; out_type: type, "
    "little_endian: bool=True",
    shape=_padded_shape,
    kernel=_padded_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)


def decode_raw_v2(
    input_bytes: Tensor,
    out_type: DTypeLike,
    little_endian: bool = True,
    fixed_length: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """The bytes of each string as a vector of numbers, cut or padded with zeros to
    ``fixed_length`` bytes if given.
    """
    if fixed_length is None:
        return decode_raw(input_bytes, out_type, little_endian, name)
    return apply(
        DECODE_PADDED_RAW,
        input_bytes,
        fixed_length,
        out_type=out_type,
        little_endian=little_endian,
        name=name,
    )


# compressed data ----------------------------------------------------------------------------------

_WINDOW_BITS = {"ZLIB": 15, "GZIP": 31}
#: A string may become this long; a thousand times less, compressed, would otherwise take all
#: memory.
MAX_INFLATED = 1 << 30


def _inflate(data: bytes, bits: int) -> bytes:
    inflater = zlib.decompressobj(bits)
    try:
        out = inflater.decompress(data, MAX_INFLATED)
    except zlib.error as error:
        text = re.sub(
            r"Error (-\d+) while \w+ data: ", r"inflate() failed with error \1: ", str(error)
        )
        raise errors.DataLossError(None, None, text) from None
    if inflater.unconsumed_tail:
        raise errors.ResourceExhaustedError(
            None, None, f"{len(data)} compressed bytes hold more than {MAX_INFLATED} bytes."
        )
    return out


def _compressed_kernel(xp: ArrayNamespace, x: Array, *, compression_type: str) -> Array:
    if not compression_type:
        return x
    bits = _WINDOW_BITS.get(compression_type)
    if bits is None:
        raise invalid("Only ZLIB, GZIP or NONE are supported compressions")
    return mapped(lambda s: _inflate(s, bits), x)


DECODE_COMPRESSED = define(
    "DecodeCompressed",
    "bytes: string -> output: string; compression_type: str=''",
    shape=shape_fns.unchanged,
    kernel=_compressed_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    view=True,
)


@dispatched("unary")
def decode_compressed(
    bytes: TensorLike, compression_type: str = "", name: str | None = None
) -> Tensor:
    """Strings decompressed.

    ``compression_type`` is "ZLIB", "GZIP" or "" (strings stay as they are).
    """
    return apply(DECODE_COMPRESSED, bytes, compression_type=compression_type, name=name)


# serialized tensors -------------------------------------------------------------------------------
# TensorProto {1: dtype, 2: TensorShapeProto {2: Dim {1: size}}*, 4: tensor_content, 8: string_val*}


def _number(value: int) -> bytes:
    """A variable-length integer of the wire format."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _part(tag: int, data: bytes) -> bytes:
    return bytes([tag]) + _number(len(data)) + data


def tensor_bytes(array: Array, dtype: dtypes.DType, packed: bool = False) -> bytes:
    """A serialized TensorProto, byte for byte as TensorFlow writes it.

    ``packed`` keeps strings as raw bytes, too: all lengths, then all characters.
    """
    dims = b"".join(_part(0x12, b"\x08" + _number(d) if d else b"") for d in array.shape)
    head = b"\x08" + _number(dtype.as_datatype_enum) + _part(0x12, dims)
    if dtype is dtypes.string:
        strings = array.reshape(-1).tolist()
        if not packed:
            return head + b"".join(_part(0x42, s) for s in strings)
        lengths = b"".join(_number(len(s)) for s in strings)
        return head + (_part(0x22, lengths + b"".join(strings)) if strings else b"")
    content = np.ascontiguousarray(array).tobytes()
    return head + (_part(0x22, content) if content else b"")


def _serialize_kernel(xp: ArrayNamespace, x: Array, *, T: DType) -> Array:
    out = np.empty((), object)
    out[()] = tensor_bytes(np.asarray(x), T)
    return out


def _parse_kernel(xp: ArrayNamespace, serialized: Array, *, out_type: DType) -> Array:
    if serialized.shape:
        shown = shapes.show(serialized.shape)
        raise invalid(f"Expected `serialized` to be a scalar, got shape: {shown}")
    data = serialized.item()
    message = _message(data)
    have = dtypes.as_dtype(message.dtype)
    if have is not out_type:
        names = [_TYPE_NAMES.get(d, d.name) for d in (have, out_type)]
        raise invalid(f"Type mismatch between parsed tensor ({names[0]}) and dtype ({names[1]})")
    return _array(message, out_type)


def parse_bytes(data: bytes) -> tuple[Array, DType]:
    """The array and the type of a serialized TensorProto, whose strings may be packed."""
    message = _message(data)
    dtype = dtypes.as_dtype(message.dtype)
    if dtype is not dtypes.string or not message.tensor_content:
        return _array(message, dtype), dtype
    return _unpacked(message), dtype


def _unpacked(message: Any) -> Array:
    content, at, lengths = message.tensor_content, 0, []
    dims = [d.size for d in message.tensor_shape.dim]
    for _ in range(math.prod(dims)):
        length = shift = 0
        while at < len(content) and content[at] & 0x80:
            length |= (content[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
        if at == len(content):
            raise _damaged("its strings end too early")
        lengths.append(length | content[at] << shift)
        at += 1
    if sum(lengths) != len(content) - at:
        raise _damaged("its strings do not have the declared lengths")
    out = np.empty(len(lengths), object)
    for i, length in enumerate(lengths):
        out[i] = content[at : at + length]
        at += length
    return out.reshape(dims)


_TYPE_NAMES = {dtypes.float32: "float", dtypes.float64: "double", dtypes.float16: "half"}


def _message(data: bytes) -> Any:
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    message = TensorProto()
    try:
        message.ParseFromString(data)
        if message.dtype:
            return message
    except DecodeError:
        pass
    text = data[:200].decode("utf-8", "backslashreplace")
    raise invalid(f"Could not parse `serialized` as TensorProto: '{text}'")


#: Where a TensorProto keeps the values of a type that it does not keep as raw bytes.
_VALUES = {
    "float64": "double_val",
    "float32": "float_val",
    "int64": "int64_val",
    "uint64": "uint64_val",
    "uint32": "uint32_val",
    "bool": "bool_val",
}


def _array(message: Any, dtype: dtypes.DType) -> Array:
    dims = [d.size for d in message.tensor_shape.dim]
    if message.tensor_shape.unknown_rank or any(d < 0 for d in dims):
        raise _damaged(f"its shape is {dims}")
    if message.tensor_content:
        return _from_content(message.tensor_content, dtype, dims)
    if dtype is dtypes.string:
        values: Any = np.empty(len(message.string_val), object)
        values[:] = list(message.string_val)
    elif dtype.is_complex:
        pairs = message.scomplex_val if dtype is dtypes.complex64 else message.dcomplex_val
        values = np.array(pairs, dtype.real_dtype.np_dtype).view(dtype.np_dtype)
    elif dtype in (dtypes.float16, dtypes.bfloat16):
        values = np.array(message.half_val, np.uint16).view(dtype.np_dtype)
    else:
        values = np.array(getattr(message, _VALUES.get(dtype.name, "int_val")), dtype.np_dtype)
    return _filled(values, dims)


def _from_content(content: bytes, dtype: dtypes.DType, dims: list[int]) -> Array:
    if dtype is dtypes.string or dtype._kind == "r":
        raise _damaged(f"{dtype.name} values are not kept as raw bytes")
    size = math.prod(dims) * dtype.np_dtype.itemsize
    if size and len(content) != size:
        raise _damaged(f"{size} bytes are declared and {len(content)} are there")
    return np.frombuffer(content[:size], dtype.np_dtype).reshape(dims).copy()


def _damaged(reason: str) -> Exception:
    return invalid(f"Cannot parse tensor from proto: {reason}")


#: A few values may stand for many that are the same, for this many bytes of them.
MAX_REPEATED = 1 << 30


def _filled(values: Array, dims: list[int]) -> Array:
    """Fewer values than elements: the last one is repeated. More: TensorFlow drops them."""
    count = math.prod(dims)
    values = values[:count]
    if len(values) < count:
        if count * values.dtype.itemsize > MAX_REPEATED:
            raise _damaged(f"it holds {len(values)} values, and {count} elements are declared")
        last = values[-1:] if len(values) else _zero(values.dtype)
        values = np.concatenate([values, np.repeat(last, count - len(values))])
    return values.reshape(dims)


def _zero(dtype: Any) -> Array:
    if dtype.kind != "O":
        return np.zeros(1, dtype)
    out = np.empty(1, object)
    out[0] = b""
    return out


SERIALIZE_TENSOR = define(
    "SerializeTensor",
    "tensor: T -> serialized: string",
    shape=shape_fns.scalar,
    kernel=_serialize_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
PARSE_TENSOR = define(
    "ParseTensor",
    "serialized: string -> output: out_type; out_type: type",
    shape=shape_fns.unknown,
    kernel=_parse_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)


def serialize_tensor(tensor: TensorLike, name: str | None = None) -> Tensor:
    """A tensor as a serialized TensorProto."""
    return apply(SERIALIZE_TENSOR, tensor, name=name)


def parse_tensor(serialized: TensorLike, out_type: DTypeLike, name: str | None = None) -> Tensor:
    """The tensor that a serialized TensorProto holds."""
    return apply(PARSE_TENSOR, serialized, out_type=out_type, name=name)
