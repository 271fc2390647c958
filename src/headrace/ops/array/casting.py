"""Changing types: ``tf.cast``, ``tf.bitcast``, and complex numbers from and to their parts.

``Cast`` follows C: floats lose their fraction toward zero, a complex number its imaginary part.

    >>> mask = tf.cast(labels > 0, tf.float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from headrace import errors
from headrace.core import dtypes, shape_fns, shapes
from headrace.core.build import apply, apply_op
from headrace.core.convert import convert, convert_to_tensor
from headrace.core.dispatch import dispatched
from headrace.core.dtypes import DType
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.infer import Inference
from headrace.core.opdef import GROUPS, NOT_DIFFERENTIABLE, define
from headrace.core.scopes import name_scope
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.internal import gradient_helpers as gu
from headrace.ops.math.unary import is_sparse

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, DTypeLike, TensorLike
    from headrace.ops.sparse.sparse_tensor import SparseTensor

__all__ = [
    "angle",
    "bitcast",
    "cast",
    "complex",
    "conj",
    "imag",
    "real",
    "saturate_cast",
    "to_bfloat16",
    "to_complex128",
    "to_complex64",
    "to_double",
    "to_float",
    "to_int32",
    "to_int64",
]

_INEXACT = GROUPS["inexact"] or frozenset()
#: Bits of the mantissa and the integer type of the same width, for casts that truncate.
_MANTISSA: dict[str, tuple[int, Any]] = {
    "float64": (52, np.uint64),
    "float32": (23, np.uint32),
    "float16": (10, np.uint16),
    "bfloat16": (7, np.uint16),
}


# Cast -------------------------------------------------------------------------------------------


def _cast(xp: ArrayNamespace, x: Array, *, SrcT: DType, DstT: DType, Truncate: bool) -> Array:
    source = SrcT._kind
    if source == "c" and DstT._kind != "c":
        x = x.real
    elif source == "s" or DstT._kind == "s":
        raise errors.UnimplementedError(
            None,
            None,
            f"Cast {SrcT.name} to {DstT.name} is not supported; use tf.strings.to_number "
            "or tf.as_string",
        )
    elif Truncate:
        x = _without_low_bits(x, SrcT.name, DstT.name)
    return x.astype(DstT.np_dtype)


def _without_low_bits(x: Array, source: str, target: str) -> Any:
    """Clear the bits of the mantissa that the target does not have, so that nothing is left to
    round.
    """
    if source not in _MANTISSA or target not in _MANTISSA:
        return x
    bits, integer = _MANTISSA[source]
    lost = bits - _MANTISSA[target][0]
    if lost <= 0:
        return x
    keep = integer(np.iinfo(integer).max - ((1 << lost) - 1))
    return (x.view(integer) & keep).view(x.dtype)


def _cast_grad(op: Operation, g: Tensor) -> list[Any]:
    source, target = op._attrs["SrcT"], op._attrs["DstT"]
    if source not in _INEXACT or target not in _INEXACT:
        return [None]
    return [apply(CAST, g, DstT=source)]


CAST = define(
    "Cast",
    "x: SrcT -> y: DstT; SrcT: type, DstT: type, Truncate: bool=False",
    shape=shape_fns.unchanged,
    kernel=_cast,
    grad=_cast_grad,
    elementwise=True,
    fails="never",
    native_attrs=("DstT", "Truncate"),
    static_value=True,
)


# Bitcast ----------------------------------------------------------------------------------------


def _bitcast_shape(c: Inference) -> list[Shape]:
    shape = c.shape(0)
    have, want = c.attr("T").size, c.attr("type").size
    if have == want or shape is None:
        return [shape]
    if have > want:
        return [(*shape, have // want)]
    if not shape:
        raise ValueError(
            f"Cannot bitcast due to shape. A scalar of {have} bytes does not hold {want} bytes"
        )
    last = shape[-1]
    if last is not None and last != want // have:
        raise ValueError(f"Cannot bitcast due to shape. {last} does not match {want // have}")
    return [shape[:-1]]


def _bitcast(xp: ArrayNamespace, x: Array, *, type: DType) -> Array:
    target = type.np_dtype
    have, want = x.dtype.itemsize, target.itemsize
    if have == want:
        return x.view(target)
    shape = x.shape
    x = np.ascontiguousarray(
        x
    )  # at least one axis, contiguous: what view needs to change the width
    if have > want:
        return x.view(target).reshape(*shape, have // want)
    if shape[-1:] != (want // have,):
        raise errors.InvalidArgumentError(
            None, None, f"Cannot bitcast from {x.dtype} to {type.name}: shape {shapes.show(shape)}"
        )
    return x.view(target).reshape(shape[:-1])


BITCAST = define(
    "Bitcast",
    "input: T -> output: type; T: type, type: type",
    shape=_bitcast_shape,
    kernel=_bitcast,
    grad=NOT_DIFFERENTIABLE,
    view=True,
)


# complex numbers --------------------------------------------------------------------------------


def _complex(xp: ArrayNamespace, real: Array, imag: Array, *, Tout: DType) -> Array:
    if xp.name != "numpy":
        return (real + 1j * imag).astype(Tout.np_dtype)
    out = np.empty(np.broadcast_shapes(real.shape, imag.shape), Tout.np_dtype)
    out.real = real  # not real + 1j * imag, which turns an infinite part into NaN
    out.imag = imag
    return out


def _complex_grad(op: Operation, g: Tensor) -> list[Any]:
    part = op._inputs[0]._dtype._base
    return gu.unbroadcast(op, apply(REAL, g, Tout=part), apply(IMAG, g, Tout=part))


def _real_grad(op: Operation, g: Tensor) -> list[Any]:
    return [apply(COMPLEX, g, gu.zeros_like(g), Tout=op._inputs[0]._dtype._base)]


def _imag_grad(op: Operation, g: Tensor) -> list[Any]:
    return [apply(COMPLEX, gu.zeros_like(g), g, Tout=op._inputs[0]._dtype._base)]


def _angle_grad(op: Operation, g: Tensor) -> list[Any]:
    x = op._inputs[0]
    dtype, part = x._dtype._base, gu.real_dtype(x)
    swapped = apply(COMPLEX, apply(IMAG, x, Tout=part), apply(REAL, x, Tout=part), Tout=dtype)
    wide = apply(COMPLEX, g, gu.zeros_like(g), Tout=dtype)
    return [gu.mul(gu.neg(wide), apply_op("Reciprocal", swapped))]


COMPLEX = define(
    "Complex",
    "real: T, imag: T -> out: Tout; T: type(wide)=float32, Tout: type(complex)=complex64",
    shape=shape_fns.broadcast,
    kernel=_complex,
    grad=_complex_grad,
    elementwise=True,
)
REAL = define(
    "Real",
    "input: T -> output: Tout; T: type(complex)=complex64, Tout: type(wide)=float32",
    shape=shape_fns.unchanged,
    kernel=lambda xp, x: x.real,
    grad=_real_grad,
    elementwise=True,
    view=True,
)
IMAG = define(
    "Imag",
    "input: T -> output: Tout; T: type(complex)=complex64, Tout: type(wide)=float32",
    shape=shape_fns.unchanged,
    kernel=lambda xp, x: x.imag,
    grad=_imag_grad,
    elementwise=True,
    view=True,
)
CONJ = define(
    "Conj",
    "input: T -> output: T; T: type(complex)=complex64",
    shape=shape_fns.unchanged,
    ufunc="conjugate",
    grad=lambda op, g: [gu.conj(g)],
    elementwise=True,
)
ANGLE = define(
    "Angle",
    "input: T -> output: Tout; T: type(complex)=complex64, Tout: type(wide)=float32",
    shape=shape_fns.unchanged,
    kernel=lambda xp, x: xp.arctan2(x.imag, x.real),
    grad=_angle_grad,
    elementwise=True,
)


# what users call --------------------------------------------------------------------------------


@overload
def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor: ...
@overload
def cast(x: SparseTensor, dtype: DTypeLike, name: str | None = None) -> SparseTensor: ...
@dispatched("unary")
def cast(x: Any, dtype: DTypeLike, name: str | None = None) -> object:
    """x with another type.

    A Tensor, SparseTensor or IndexedSlices. The type that it has already gives x itself.
    """
    target = dtypes.as_dtype(dtype)._base
    if isinstance(x, Tensor):
        return x if x._dtype is target else _cast_tensor(x, target, name)
    with name_scope(name, "Cast", [x]) as scope:
        if is_sparse(x):
            return type(x)(x.indices, cast(x.values, target, scope), x.dense_shape)
        if isinstance(x, IndexedSlices):
            return IndexedSlices(cast(x.values, target, scope), x.indices, x.dense_shape)
        return _cast_tensor(convert_to_tensor(x, name="x"), target, scope)


def _cast_tensor(x: Tensor, target: DType, name: str | None) -> Tensor:
    if x._dtype._base is target:
        return x
    return apply(CAST, x, DstT=target, name=name)


@dispatched("unary")
def saturate_cast(value: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """A cast that stops at the ends of the target's range instead of wrapping around."""
    target = dtypes.as_dtype(dtype)._base
    with name_scope(name, "saturate_cast", [value]) as scope:
        value = convert_to_tensor(value, name="value")
        source = value.dtype.base_dtype
        if source is dtypes.bool or target is dtypes.bool:
            raise TypeError("Cannot find minimum value of <dtype: 'bool'>.")
        if source.min < target.min:
            value = apply_op("Maximum", value, convert(target.min, source, "min"))
        if source.max > target.max:
            value = apply_op("Minimum", value, convert(target.max, source, "max"))
        return cast(value, target, name=scope)


def to_float(x: TensorLike, name: str = "ToFloat") -> Tensor:
    """Cast to float32; new code writes ``tf.cast(x, tf.float32)``."""
    return cast(x, dtypes.float32, name)


def to_double(x: TensorLike, name: str = "ToDouble") -> Tensor:
    """Cast to float64; new code writes ``tf.cast(x, tf.float64)``."""
    return cast(x, dtypes.float64, name)


def to_int32(x: TensorLike, name: str = "ToInt32") -> Tensor:
    """Cast to int32, truncating towards zero; new code writes ``tf.cast(x, tf.int32)``."""
    return cast(x, dtypes.int32, name)


def to_int64(x: TensorLike, name: str = "ToInt64") -> Tensor:
    """Cast to int64, truncating towards zero; new code writes ``tf.cast(x, tf.int64)``."""
    return cast(x, dtypes.int64, name)


def to_bfloat16(x: TensorLike, name: str = "ToBFloat16") -> Tensor:
    """Cast to bfloat16; new code writes ``tf.cast(x, tf.bfloat16)``."""
    return cast(x, dtypes.bfloat16, name)


def to_complex64(x: TensorLike, name: str = "ToComplex64") -> Tensor:
    """Cast to complex64; new code writes ``tf.cast(x, tf.complex64)``."""
    return cast(x, dtypes.complex64, name)


def to_complex128(x: TensorLike, name: str = "ToComplex128") -> Tensor:
    """Cast to complex128; new code writes ``tf.cast(x, tf.complex128)``."""
    return cast(x, dtypes.complex128, name)


def bitcast(input: TensorLike, type: DType, name: str | None = None) -> Tensor:
    """The same bytes read as another type.

    To a type of half the size a last dimension of 2 appears, to one of twice the size it goes.
    """
    return apply(BITCAST, input, type=type, name=name)


@dispatched("binary")
def complex(real: TensorLike, imag: TensorLike, name: str | None = None) -> Tensor:
    """A complex tensor from its real and imaginary parts, float32 or float64."""
    real = convert_to_tensor(real, name="real")
    imag = convert_to_tensor(imag, name="imag")
    both = (real.dtype.base_dtype, imag.dtype.base_dtype)
    if both == (dtypes.float64, dtypes.float64):
        target = dtypes.complex128
    elif both == (dtypes.float32, dtypes.float32):
        target = dtypes.complex64
    else:
        raise TypeError(f"real and imag have incorrect types: {both[0].name} {both[1].name}")
    return apply(COMPLEX, real, imag, Tout=target, name=name)


@dispatched("unary")
def real(input: TensorLike, name: str | None = None) -> Tensor:
    """The real part; a real tensor is returned as it is."""
    x = convert_to_tensor(input, name="input")
    return apply(REAL, x, Tout=gu.real_dtype(x), name=name) if x.dtype.is_complex else x


@dispatched("unary")
def imag(input: TensorLike, name: str | None = None) -> Tensor:
    """The imaginary part of a complex tensor; zeros for a real tensor."""
    x = convert_to_tensor(input, name="input")
    if x.dtype.is_complex:
        return apply(IMAG, x, Tout=gu.real_dtype(x), name=name)
    with name_scope(name, "Imag", [x]):
        return apply_op("ZerosLike", x, name="zeros_like")


@dispatched("unary")
def angle(input: TensorLike, name: str | None = None) -> Tensor:
    """The argument of complex numbers; zeros for a real tensor, as in TF 1.15."""
    x = convert_to_tensor(input, name="input")
    if x.dtype.is_complex:
        return apply(ANGLE, x, Tout=gu.real_dtype(x), name=name)
    with name_scope(name, "Angle", [x]):
        return apply_op("ZerosLike", x, name="zeros_like")


@dispatched("unary")
def conj(x: TensorLike, name: str | None = None) -> Tensor:
    """The complex conjugate; a real tensor is returned as it is."""
    x = convert_to_tensor(x, name="x")
    if x.dtype.is_complex:
        return apply(CONJ, x, name=name)
    if x.dtype.is_floating or x.dtype.is_integer:
        return x
    raise TypeError(f"Expected numeric or variant tensor, got dtype {x.dtype!r}")
