"""Numbers as strings, strings as numbers, and raw bytes as arrays of numbers.

>>> tf.as_string(3.5, precision=2)
>>> tf.string_to_number(["1.5", "2"])
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import dtypes
from headrace.core.build import apply
from headrace.core.dispatch import dispatched
from headrace.core.opdef import add_traits
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import invalid, one_of
from headrace.ops.strings.string_ops import define_string_op, object_array

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, DTypeLike, TensorLike
    from headrace.core.dtypes import DType

__all__ = ["as_string", "decode_raw", "string_to_number"]


def _number_format(
    kind: str, precision: int, scientific: bool, shortest: bool, width: int, fill: str
) -> str:
    spec = "%" + fill + (str(width) if width > -1 else "")
    if kind in "iu":
        return spec + "d"
    if precision > -1:
        spec += f".{precision}"
    return spec + ("e" if scientific else "g" if shortest else "f")


def _as_string_kernel(
    xp: ArrayNamespace,
    x: Array,
    *,
    precision: int,
    scientific: bool,
    shortest: bool,
    width: int,
    fill: str,
) -> Array:
    kind = x.dtype.kind
    if kind not in "fc":
        for given, what in (
            (precision > -1, "precision"),
            (scientific or shortest, "scientific and shortest format"),
        ):
            if given:
                raise invalid(f"{what} not supported for datatype {x.dtype.name}")
    values = x.reshape(-1).tolist()
    if kind == "b":
        spec = f"%{fill}{width if width > -1 else ''}s"
        return object_array([(spec % ("true" if v else "false")).encode() for v in values], x.shape)
    spec = _number_format(kind, precision, scientific, shortest, width, fill)
    if kind == "c":
        parts = [(_shown(spec, v.real, width), _shown(spec, v.imag, width)) for v in values]
        return object_array([f"({real},{imag})".encode() for real, imag in parts], x.shape)
    return object_array([_shown(spec, v, width).encode() for v in values], x.shape)


def _shown(spec: str, number: float, width: int) -> str:
    """What C prints: zeros do not fill up an infinity or a NaN."""
    if spec[1] == "0" and not math.isfinite(number):
        return (spec.replace("%0", "%", 1) % number).rjust(width)
    return spec % number


def _check_as_string(attrs: dict[str, Any]) -> None:
    if attrs["scientific"] and attrs["shortest"]:
        raise invalid("Cannot select both scientific and shortest notation")
    if len(attrs["fill"]) > 1:
        raise invalid("Fill string must be one or fewer characters")
    for name in ("width", "precision"):
        if not -(2**31) <= attrs[name] < 2**31:
            raise invalid(f"Attr {name} has value {attrs[name]} out of range for an int32")


AS_STRING = define_string_op(
    "AsString",
    "input: T -> output: string; precision: int=-1, scientific: bool=False, shortest: "
    "bool=False, width: int=-1, fill: str=''",
    _as_string_kernel,
    check_attrs=_check_as_string,
)


@dispatched("unary")
def as_string(
    input: TensorLike,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Numbers as strings, in the formats of C's printf.

    ``precision`` is the number of digits after the point; ``scientific`` writes an exponent,
    ``shortest`` whatever is shorter (%g). ``width`` is the smallest length, filled up with ``fill``
    (" ", "0", "+" or "-") in front, or behind for "-".

        tf.as_string([3.5, 12.0], precision=2)                  # [b"3.50", b"12.00"]
    """
    return apply(
        AS_STRING,
        input,
        precision=precision,
        scientific=scientific,
        shortest=shortest,
        width=width,
        fill=fill,
        name=name,
    )


def _to_number_kernel(xp: ArrayNamespace, x: Array, *, out_type: DType) -> Array:
    convert = _integer_of if out_type.is_integer else _float_of
    low, high = out_type.limits if out_type.is_integer else (-math.inf, math.inf)
    out = []
    for s in x.reshape(-1).tolist():
        value = convert(s.strip())
        if value is None or value < low or value > high:
            raise invalid(
                f"StringToNumberOp could not correctly convert string: {s.decode(errors='replace')}"
            )
        out.append(value)
    with np.errstate(over="ignore"):
        return np.array(out, out_type.np_dtype).reshape(x.shape)


_INTEGER = re.compile(rb"-?[0-9]+")


_HEX = re.compile(rb"([+-]?)(0[xX][0-9a-fA-F]+)")


_FLOAT = re.compile(rb"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf|nan)", re.IGNORECASE)


def _integer_of(text: bytes) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None


def _float_of(text: bytes) -> float | None:
    """Decimal numbers, inf and nan in any case, and whole hexadecimal numbers."""
    if _FLOAT.fullmatch(text):
        return float(text)
    whole = _HEX.fullmatch(text)
    if whole is None:
        return None
    return float(int(whole[2], 16)) * (-1.0 if whole[1] == b"-" else 1.0)


STRING_TO_NUMBER = define_string_op(
    "StringToNumber",
    "string_tensor: string -> output: out_type; out_type: type(number)=float32",
    _to_number_kernel,
)


@dispatched("unary")
def string_to_number(
    string_tensor: TensorLike | None = None,
    out_type: DTypeLike = dtypes.float32,
    name: str | None = None,
    input: object = None,
) -> Tensor:
    """The numbers that strings spell, as ``out_type``; text that is no number is an error.

    ``out_type`` is float32, float64, int32 or int64. ``input`` is the newer name of
    ``string_tensor``.

        tf.string_to_number(["1.5", "2"])  # [1.5, 2.0]
    """
    source = one_of("input", input, "string_tensor", string_tensor)
    return apply(STRING_TO_NUMBER, source, out_type=out_type, name=name)


def _decode_raw_kernel(
    xp: ArrayNamespace, x: Array, *, out_type: DType, little_endian: bool
) -> Array:
    strings = x.reshape(-1).tolist()
    dtype = out_type.np_dtype
    width = len(strings[0]) if strings else 0
    for i, s in enumerate(strings):
        if len(s) != width:
            raise invalid(
                "DecodeRaw requires input strings to all be the same size, but element "
                f"{i} has size {width} != {len(s)}"
            )
    if width % dtype.itemsize:
        raise invalid(
            f"Input to DecodeRaw has length {width} that is not a multiple of "
            f"{dtype.itemsize}, the size of {out_type.name}"
        )
    flat = np.frombuffer(b"".join(strings), dtype if little_endian else dtype.newbyteorder(">"))
    return flat.astype(dtype).reshape((*x.shape, width // dtype.itemsize))


DECODE_RAW = define_string_op(
    "DecodeRaw",
    "bytes: string -> output: out_type; out_type: type, little_endian: bool=True",
    _decode_raw_kernel,
    lambda c: [None if c.shape(0) is None else (*c.shape(0), None)],
)


def decode_raw(
    input_bytes: TensorLike | None = None,
    out_type: DTypeLike | None = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: object = None,
) -> Tensor:
    """The bytes of each string as a vector of numbers of ``out_type``.

    All strings have one length. The result has one more dimension than ``input_bytes``.
    ``little_endian=False`` reads the highest byte first. ``bytes`` is the old name of
    ``input_bytes``.

        tf.decode_raw(["ab", "cd"], tf.uint8)                    # [[97, 98], [99, 100]]
    """
    source = one_of("input_bytes", input_bytes, "bytes", bytes)
    if out_type is None:
        raise ValueError("decode_raw needs out_type")
    return apply(DECODE_RAW, source, out_type=out_type, little_endian=little_endian, name=name)


add_traits("AsString DecodeRaw StringToNumber", batching="same")
