"""Fourier transforms over the last one, two or three axes.

Complex transforms keep the precision of their input; the real ones (RFFT, IRFFT) are float32 and
complex64, as TensorFlow's registered ops are. ``fft_length`` crops or pads with zeros.

    tf.signal.irfft(tf.signal.rfft(x))  # x again, if its length is even
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import convert, dtypes, shapes
from headrace.core.build import apply, apply_op, named_result
from headrace.core.infer import Inference, static_value
from headrace.core.opdef import GROUPS, OpDef, define
from headrace.core.scopes import name_scope
from headrace.core.shapes import Dim, Shape, all_known
from headrace.core.tensor import Operation, Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, AxisLike, TensorLike

__all__ = [
    "fft",
    "fft2d",
    "fft3d",
    "fftshift",
    "ifft",
    "ifft2d",
    "ifft3d",
    "ifftshift",
    "irfft",
    "irfft2d",
    "irfft3d",
    "rfft",
    "rfft2d",
    "rfft3d",
]

GROUPS["complex"] = frozenset([dtypes.complex64, dtypes.complex128])


def _axes(rank: int) -> tuple[int, ...]:
    return tuple(range(-rank, 0))


# complex transforms -----------------------------------------------------------------------------


def _complex_kernel(xp: ArrayNamespace, x: Array, rank: int, inverse: bool) -> Any:
    if x.size == 0:
        return x.copy()
    function = xp.fft.ifftn if inverse else xp.fft.fftn
    return function(x, axes=_axes(rank)).astype(x.dtype, copy=False)


def _complex_grad(op: Operation, g: Tensor, rank: int, inverse: bool) -> list[Any]:
    """The adjoint of a transform is the other one, but for the factor."""
    other = apply_op(_name(rank, not inverse), g)
    size = apply_op("Cast", _transform_size(g, rank), DstT=g.dtype)
    return [apply_op("RealDiv", other, size) if inverse else other * size]


def _transform_size(x: Tensor, rank: int) -> Tensor:
    """The number of elements of one transform."""
    return apply_op("Prod", apply_op("Shape", x)[-rank:], [0])


def _name(rank: int, inverse: bool) -> str:
    return ("I" if inverse else "") + ("FFT" if rank == 1 else f"FFT{rank}D")


def _complex_shape(c: Inference, rank: int) -> list[Shape]:
    return [c.require_rank_at_least(0, rank)]


def _define_complex(rank: int, inverse: bool) -> OpDef:
    return define(
        _name(rank, inverse),
        "input: Tcomplex -> output: Tcomplex; Tcomplex: type(complex)=complex64",
        shape=lambda c: _complex_shape(c, rank),
        kernel=lambda xp, x: _complex_kernel(xp, x, rank, inverse),
        grad=lambda op, g: _complex_grad(op, g, rank, inverse),
    )


# real transforms --------------------------------------------------------------------------------


def _lengths(fft_length: Array, rank: int) -> list[int]:
    lengths = fft_length.tolist()
    if not isinstance(lengths, list) or len(lengths) != rank:
        raise errors.InvalidArgumentError(None, None, f"fft_length must have shape [{rank}]")
    if min(lengths) < 0:
        raise errors.InvalidArgumentError(None, None, f"fft_length must be >= 0, got: {lengths}")
    return lengths


def _check_long_enough(x: Array, lengths: list[int]) -> None:
    for i, wanted in zip(range(x.ndim - len(lengths), x.ndim), lengths):
        if x.size and x.shape[i] < wanted:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Input dimension {i} must have length of at least {wanted} but got: {x.shape[i]}",
            )


def _real_kernel(xp: ArrayNamespace, x: Array, fft_length: Array, rank: int) -> Any:
    lengths = _lengths(fft_length, rank)
    _check_long_enough(x, lengths)
    if x.size == 0 or 0 in lengths:
        return xp.zeros(
            (*x.shape[:-rank], *lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0),
            np.complex64,
        )
    return xp.fft.rfftn(x, lengths, _axes(rank)).astype(np.complex64, copy=False)


def _inverse_real_kernel(xp: ArrayNamespace, x: Array, fft_length: Array, rank: int) -> Any:
    lengths = _lengths(fft_length, rank)
    _check_long_enough(x, [*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0])
    if x.size == 0 or 0 in lengths:
        return xp.zeros((*x.shape[:-rank], *lengths), np.float32)
    return xp.fft.irfftn(x, lengths, _axes(rank)).astype(np.float32, copy=False)


def _real_shape(c: Inference, rank: int, inverse: bool) -> list[Shape]:
    shape = c.require_rank_at_least(0, rank)
    length = c.require_rank(1, 1)
    if length is not None and length[0] not in (rank, None):
        raise ValueError(f"Dimension must be {rank} but is {length[0]}")
    if shape is None:
        return [None]
    value = c.value(1)
    last: list[Dim] = [None] * rank if value is None else value.tolist()
    if not inverse and last[-1]:
        last[-1] = last[-1] // 2 + 1
    return [(*shape[:-rank], *last)]


def _real_grad(op: Operation, g: Tensor, rank: int) -> list[Any]:
    """The real part of the complex inverse transform of the gradient, with the half that RFFT
    drops taken as zero.
    """
    x, length = op._inputs
    n = length[-1]
    missing = n - apply_op("Shape", g)[-1]
    full = apply_op(_name(rank, True), _padded_last(g, missing))
    size = apply_op("Cast", apply_op("Prod", length, [0]), DstT=dtypes.float32)
    out = apply_op("Real", full, Tout=dtypes.float32) * size
    return [_fitted(out, x), None]


def _padded_last(x: Tensor, missing: Tensor) -> Tensor:
    """Zeros behind the last axis."""
    zeros = apply_op("Fill", apply_op("Pack", [apply_op("Rank", x) * 2 - 1]), 0)
    flat = apply_op("ConcatV2", [zeros, apply_op("Reshape", missing, [1])], 0)
    return apply_op("Pad", x, apply_op("Reshape", flat, [-1, 2]))


def _fitted(g: Tensor, x: Tensor) -> Tensor:
    """Elements of the input that the transform cropped have no gradient."""
    lacking = apply_op("Shape", x) - apply_op("Shape", g)
    out = apply_op("Pad", g, apply_op("Pack", [apply_op("ZerosLike", lacking), lacking], axis=1))
    out.set_shape(x.shape)
    return out


def _inverse_real_grad(op: Operation, g: Tensor, rank: int) -> list[Any]:
    """The forward transform.

    Every frequency but the first (and the last of an even length) stands for two.
    """
    x, length = op._inputs
    odd = apply_op("FloorMod", length[-1], 2)
    bins = apply_op("FloorDiv", length[-1], 2) + 1
    middle = apply_op("Fill", apply_op("Pack", [bins - 2 + odd]), np.float32(2))
    end = apply_op("Fill", apply_op("Pack", [1 - odd]), np.float32(1))
    weights = apply_op("ConcatV2", [np.ones(1, np.float32), middle, end], 0)
    size = apply_op("Cast", apply_op("Prod", length, [0]), DstT=dtypes.float32)
    scale = apply_op("Cast", apply_op("RealDiv", weights, size), DstT=dtypes.complex64)
    forward = apply_op("R" + _name(rank, False), g, length)
    return [_fitted(forward * scale, x), None]


def _define_real(rank: int, inverse: bool) -> OpDef:
    types = ("complex64", "float32") if inverse else ("float32", "complex64")
    kernel = _inverse_real_kernel if inverse else _real_kernel
    grad = _inverse_real_grad if inverse else _real_grad
    return define(
        ("IRFFT" if inverse else "RFFT") + ("" if rank == 1 else f"{rank}D"),
        "input: {}, fft_length: int32 -> output: {}".format(*types),
        shape=lambda c: _real_shape(c, rank, inverse),
        kernel=lambda xp, x, n: kernel(xp, x, n, rank),
        grad=lambda op, g: grad(op, g, rank),
        known_inputs=(1,),
    )


FFT, FFT2D, FFT3D = (_define_complex(r, False) for r in (1, 2, 3))
IFFT, IFFT2D, IFFT3D = (_define_complex(r, True) for r in (1, 2, 3))
RFFT, RFFT2D, RFFT3D = (_define_real(r, False) for r in (1, 2, 3))
IRFFT, IRFFT2D, IRFFT3D = (_define_real(r, True) for r in (1, 2, 3))


# what users call --------------------------------------------------------------------------------


def fft(input: TensorLike, name: str | None = None) -> Tensor:
    """The discrete Fourier transform over the last axis."""
    return apply(FFT, input, name=name)


def ifft(input: TensorLike, name: str | None = None) -> Tensor:
    """The inverse discrete Fourier transform of the last dimension (complex)."""
    return apply(IFFT, input, name=name)


def fft2d(input: TensorLike, name: str | None = None) -> Tensor:
    """The discrete Fourier transform of the last two dimensions (complex)."""
    return apply(FFT2D, input, name=name)


def ifft2d(input: TensorLike, name: str | None = None) -> Tensor:
    """The inverse discrete Fourier transform of the last two dimensions (complex)."""
    return apply(IFFT2D, input, name=name)


def fft3d(input: TensorLike, name: str | None = None) -> Tensor:
    """The discrete Fourier transform of the last three dimensions (complex)."""
    return apply(FFT3D, input, name=name)


def ifft3d(input: TensorLike, name: str | None = None) -> Tensor:
    """The inverse discrete Fourier transform of the last three dimensions (complex)."""
    return apply(IFFT3D, input, name=name)


def _real_transform(
    opdef: OpDef, rank: int, input_tensor: TensorLike, fft_length: object, name: str | None
) -> Tensor:
    inverse = opdef.name.startswith("I")
    with name_scope(name, opdef.name.lower(), [input_tensor, fft_length]) as scope:
        x = convert.convert(input_tensor, dtypes.complex64 if inverse else dtypes.float32)
        if x._shape is not None and len(x._shape) < rank:
            raise ValueError(f"Shape {shapes.from_plain(x._shape)} must have rank at least {rank}")
        if fft_length is None:
            length = _inferred_length(x, rank, inverse)
        else:
            length = convert.convert(fft_length, dtypes.int32)
            x = _padded_for(x, length, rank, inverse)
        return apply(opdef, x, length, name=scope)


def _inferred_length(x: Tensor, rank: int, inverse: bool) -> Tensor:
    """The shape of one transform; an inverse one is taken to be of even length."""
    last = None if x._shape is None else x._shape[-rank:]
    if all_known(last):
        sizes = [int(d) for d in last]
        if inverse:
            sizes[-1] = max(0, 2 * (sizes[-1] - 1))
        return convert.convert(np.array(sizes, np.int32))
    dims = apply_op("Shape", x)[-rank:]
    if not inverse:
        return dims
    length = apply_op("Maximum", 2 * (dims[-1:] - 1), 0)
    return apply_op("ConcatV2", [dims[:-1], length], 0)


def _padded_for(x: Tensor, length: Tensor, rank: int, inverse: bool) -> Tensor:
    """Zeros behind the axes that are shorter than ``fft_length`` asks for."""
    wanted = static_value(length)
    if wanted is not None and x._shape is not None and None not in x._shape[-rank:]:
        needed = wanted.tolist()
        if inverse and needed[-1]:
            needed[-1] = needed[-1] // 2 + 1
        if all(have >= want for have, want in zip(x._shape[-rank:], needed)):
            return x
    need = length
    if inverse:
        half = apply_op("FloorDiv", need[-1:], 2) + 1
        need = apply_op("ConcatV2", [need[:-1], half], 0)
    short = apply_op("Maximum", need - apply_op("Shape", x)[-rank:], 0)
    front = apply_op("Fill", apply_op("Pack", [apply_op("Rank", x) - rank]), 0)
    behind = apply_op("ConcatV2", [front, short], 0)
    return apply_op("Pad", x, apply_op("Pack", [apply_op("ZerosLike", behind), behind], axis=1))


def rfft(
    input_tensor: TensorLike, fft_length: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """The transform of real numbers: the non-negative frequencies alone."""
    return _real_transform(RFFT, 1, input_tensor, fft_length, name)


def rfft2d(input_tensor: Tensor, fft_length: object = None, name: str | None = None) -> Tensor:
    """The Fourier transform of real numbers over the last two dimensions.

    The last dimension keeps the ``fft_length // 2 + 1`` frequencies that are not mirrored.
    """
    return _real_transform(RFFT2D, 2, input_tensor, fft_length, name)


def rfft3d(input_tensor: TensorLike, fft_length: object = None, name: str | None = None) -> Tensor:
    """The Fourier transform of real numbers over the last three dimensions; see ``rfft2d``."""
    return _real_transform(RFFT3D, 3, input_tensor, fft_length, name)


def irfft(
    input_tensor: TensorLike, fft_length: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """The real numbers whose ``rfft`` is the input; ``fft_length`` says how many, if it is odd."""
    return _real_transform(IRFFT, 1, input_tensor, fft_length, name)


def irfft2d(
    input_tensor: TensorLike, fft_length: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """The real numbers whose ``rfft2d`` is the input."""
    return _real_transform(IRFFT2D, 2, input_tensor, fft_length, name)


def irfft3d(
    input_tensor: TensorLike, fft_length: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """The real numbers whose ``rfft3d`` is the input."""
    return _real_transform(IRFFT3D, 3, input_tensor, fft_length, name)


def _shifted(x: TensorLike, axes: Any, name: str, inverse: bool) -> Tensor:
    x = convert.convert(x)
    if x._shape is None:
        raise ValueError(f"{name} needs a tensor of known rank.")
    if axes is None:
        axes = range(len(x._shape))
    elif isinstance(axes, int):
        axes = [axes]
    for a in axes:
        size = apply_op("Shape", x)[a]
        half = apply_op("FloorDiv", size, 2)
        cut = half if inverse else size - half
        order = apply_op("FloorMod", apply_op("Range", 0, size, 1) + cut, size)
        shape = x._shape
        x = apply_op("GatherV2", x, order, a)
        x.set_shape(shape)
    return x


def fftshift(x: TensorLike, axes: AxisLike | None = None, name: str | None = None) -> Tensor:
    """Move the zero frequency from the beginning to the middle along ``axes`` (all by default)."""
    with name_scope(name, "fftshift") as scope:
        return named_result(_shifted(x, axes, "fftshift", False), scope)


def ifftshift(x: Tensor, axes: object = None, name: str | None = None) -> Tensor:
    """The inverse of ``fftshift``: the zero frequency moved from the middle to the front."""
    with name_scope(name, "ifftshift") as scope:
        return named_result(_shifted(x, axes, "ifftshift", True), scope)
