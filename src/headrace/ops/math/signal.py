"""Signals: frames, windows, short-time Fourier transforms, cosine transforms, mel spectra
(``tf.signal``).

Built from other ops, so that everything has gradients. Framing is a gather with constant indices,
and its adjoint, adding overlapping frames, a segment sum.

    spectrogram = tf.abs(tf.signal.stft(audio, frame_length=400, frame_step=160))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import convert, dtypes, shapes
from headrace.core.build import apply_op
from headrace.core.graph import get_default_graph
from headrace.core.infer import static_value
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_more, counted_with
from headrace.core.tensor import Tensor
from headrace.ops.math.fft import irfft, rfft

if TYPE_CHECKING:
    from headrace.core.annotations import Array, DTypeLike, TensorLike
    from headrace.core.dtypes import DType

__all__ = [
    "dct",
    "frame",
    "hamming_window",
    "hann_window",
    "idct",
    "inverse_stft",
    "inverse_stft_window_fn",
    "linear_to_mel_weight_matrix",
    "mfccs_from_log_mel_spectrograms",
    "overlap_and_add",
    "stft",
]


def _known(value: Any) -> int | None:
    """A Python int, if the value is known while building."""
    if isinstance(value, Tensor):
        value = static_value(value)
    if value is not None and abs(value) > 2**31 - 1:
        raise TypeError(f"{value} has type int64, expected an int32.")
    return None if value is None else int(value)


def _scalar(value: object, what: str) -> Any:
    """A Python int if the value is known, else a scalar tensor of int32."""
    tensor = convert.convert(value, name=what)
    if tensor._shape is not None and tensor._shape:
        raise ValueError(f"Shape {shapes.from_plain(tensor._shape)} must have rank 0")
    if not tensor._dtype._base.is_integer:
        raise TypeError(f"{what} must be an integer, not of type {tensor._dtype._base.name}.")
    found = _known(value)
    return apply_op("Cast", tensor, DstT=dtypes.int32) if found is None else found


def _required(value: object, what: str) -> int:
    found = _known(value)
    if found is None:
        raise ValueError(f"{what} must be known when the graph is built.")
    return found


# windows ----------------------------------------------------------------------------------------


def _raised_cosine(
    name: str | None,
    default: str,
    length: TensorLike,
    periodic: bool,
    dtype: DTypeLike,
    a: float,
    b: float,
) -> Tensor:
    kind = dtypes.as_dtype(dtype)
    if not kind.is_floating:
        raise ValueError(f"dtype must be a floating point type. Found {kind}")
    with name_scope(name, default, [length, periodic]):
        if isinstance(length, float):
            raise TypeError(f"Expected int32, got {length} of type 'float' instead.")
        if periodic is None:
            raise ValueError("None values not supported.")
        if not isinstance(periodic, (bool, np.bool_)):
            raise TypeError(f"Expected bool, got {periodic!r} instead.")
        n = _known(length)
        if n is not None:
            count_more(get_default_graph(), 23)  # TF computes it in the graph
            last = max(n - 1 + (1 - n % 2 if periodic else 0), 1)
            values = a - b * np.cos(2 * np.pi * np.arange(n) / last) if n > 1 else np.ones(n)
            return convert.convert(values.astype(kind.np_dtype))
        size: Any = convert.convert(length, dtypes.int32)
        count_more(get_default_graph(), 12)  # TF branches on the length
        last = size - 1 + (1 - apply_op("FloorMod", size, 2) if periodic else 0)
        count = apply_op("Cast", apply_op("Range", 0, size, 1), DstT=kind)
        return a - b * apply_op("Cos", 2 * np.pi * count / apply_op("Cast", last, DstT=kind))


def hann_window(
    window_length: TensorLike,
    periodic: bool = True,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """A raised cosine from 0 to 1 and back; ``periodic=False`` makes it symmetric, for filters.

    ``window_length`` is the number of values; a periodic window is for spectra.

        tf.signal.hann_window(4)  # [0.0, 0.5, 1.0, 0.5]
    """
    return _raised_cosine(name, "hann_window", window_length, periodic, dtype, 0.5, 0.5)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    dtype: DType = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """A raised cosine from 0.08 to 1 and back; ``periodic=False`` makes it symmetric.

    ``window_length`` is the number of values. Periodic windows are for spectra: the value after the
    last would be the first.

        tf.signal.hamming_window(4)  # [0.08, 0.54, 1.0, 0.54]
    """
    return _raised_cosine(name, "hamming_window", window_length, periodic, dtype, 0.54, 0.46)


def inverse_stft_window_fn(
    frame_step: TensorLike,
    forward_window_fn: Callable[..., Any] = hann_window,
    name: str | None = None,
) -> Callable[..., Any]:
    """A window for ``inverse_stft`` with which it undoes ``stft``."""

    def window(frame_length: int, dtype: DType) -> Any:
        with name_scope(name, "inverse_stft_window_fn", [forward_window_fn]):
            length, step = (
                _required(frame_length, "frame_length"),
                _required(frame_step, "frame_step"),
            )
            forward = forward_window_fn(length, dtype=dtype)
            overlaps = -(-length // step)
            squares = apply_op("Pad", apply_op("Square", forward), [[0, overlaps * step - length]])
            total = apply_op("Sum", apply_op("Reshape", squares, [overlaps, step]), [0])
            return forward / apply_op("Tile", total, [overlaps])[:length]

    return window


# frames -----------------------------------------------------------------------------------------


def frame(
    signal: TensorLike,
    frame_length: object,
    frame_step: object,
    pad_end: bool = False,
    pad_value: TensorLike = 0,
    axis: int = -1,
    name: str | None = None,
) -> Tensor:
    """Overlapping pieces of an axis: [..., samples] gives [..., frames, frame_length].

    A new frame begins every ``frame_step`` elements; ``pad_end`` fills the last ones with
    ``pad_value``.
    """
    with name_scope(name, "frame", [signal, frame_length, frame_step, pad_value]):
        x = convert.convert(signal, name="signal")
        if x._shape == ():
            raise ValueError("Shape () must have rank at least 1")
        length, step = _scalar(frame_length, "frame_length"), _scalar(frame_step, "frame_step")
        if x._shape is None:
            return _frame_of_unknown_rank(x, length, step, pad_end, pad_value, int(axis))
        at = int(axis) % len(x._shape)
        size: Any = x._shape[at]
        # (a step of 0 fails when it is run)
        if size is None or not (isinstance(length, int) and isinstance(step, int) and step):
            size = apply_op("Shape", x)[at]
        count = -(-size // step) if pad_end else _at_least_zero(1 + (size - length) // step)
        if pad_end:
            x = _padded_end(x, at, _at_least_zero(length + step * (count - 1) - size), pad_value)
        return apply_op("GatherV2", x, _frame_indices(count, length, step), at, name="Reshape_4")


def _frame_of_unknown_rank(
    x: Tensor, length: int, step: int, pad_end: bool, pad_value: object, axis: int
) -> Tensor:
    rank = apply_op("Rank", x)
    at = rank + axis if axis < 0 else convert.convert(axis, dtypes.int32)
    size: Any = apply_op("GatherV2", apply_op("Shape", x), at, 0)
    if pad_end:
        count = -(-size // step)
        missing = _at_least_zero(length + step * (count - 1) - size)
        pads = apply_op("OneHot", at, rank, missing, 0)
        zeros = apply_op("ZerosLike", pads)
        pairs = apply_op("Pack", [zeros, pads], axis=1)
        x = apply_op("PadV2", x, pairs, convert.convert(pad_value, x._dtype._base))
    else:
        count = _at_least_zero(1 + (size - length) // step)
    return apply_op("GatherV2", x, _frame_indices(count, length, step), at, name="Reshape_4")


def _at_least_zero(value: int | Tensor) -> int | Tensor:
    return max(value, 0) if isinstance(value, int) else apply_op("Maximum", value, 0)


def _padded_end(x: Tensor, axis: int, missing: object, value: object) -> Tensor:
    rank = len(x._shape or ())
    rows: list[Any] = [[0, 0] for _ in range(rank)]
    rows[axis] = [0, missing]
    pads = (
        rows if isinstance(missing, int) else apply_op("Pack", [apply_op("Pack", r) for r in rows])
    )
    out = apply_op("PadV2", x, pads, convert.convert(value, x._dtype._base))
    out.set_shape([None if i == axis else d for i, d in enumerate(x._shape or ())])
    return out


def _frame_indices(count: int | Tensor, length: int | Tensor, step: int | Tensor) -> Any:
    """[count, length]: where each element of each frame comes from."""
    if isinstance(length, int) and length < 0:
        raise ValueError(f"Requires start <= limit when delta > 0: 0/{length}")
    within = _first_numbers(length)
    if isinstance(count, int):
        return np.arange(count, dtype=np.int32)[:, None] * step + within
    return apply_op("ExpandDims", _first_numbers(count) * step, 1) + within


def _first_numbers(count: int | Tensor) -> Any:
    """0, 1 … count - 1."""
    if isinstance(count, int):
        return np.arange(count, dtype=np.int32)
    return apply_op("Range", 0, count, 1)


def overlap_and_add(signal: TensorLike, frame_step: object, name: str | None = None) -> Tensor:
    """The signal that frames add up to: [..., frames, frame_length] -> [..., samples]."""
    with name_scope(name, "overlap_and_add", [signal, frame_step]):
        x = convert.convert(signal, name="signal")
        step = _scalar(frame_step, "frame_step")
        if x._shape is None:  # the outer axes are made one, and taken apart
            dims = apply_op("Shape", x)
            frames = apply_op("Reshape", x, apply_op("ConcatV2", [[-1], dims[-2:]], 0))
            frames.set_shape([None, None, None])
            added = overlap_and_add(frames, step)
            return apply_op("Reshape", added, apply_op("ConcatV2", [dims[:-2], [-1]], 0))
        if len(x._shape) < 2:
            raise ValueError(f"Shape {x.shape} must have rank at least 2")
        rank = len(x._shape)
        count, length = (_length_of(x, axis) for axis in (-2, -1))
        samples = (count - 1) * step + length
        front = apply_op("Transpose", x, [rank - 2, rank - 1, *range(rank - 2)]) if rank > 2 else x
        total = apply_op("UnsortedSegmentSum", front, _frame_indices(count, length, step), samples)
        return apply_op("Transpose", total, [*range(1, rank - 1), 0]) if rank > 2 else total


def _length_of(x: Tensor, axis: int) -> Any:
    """An int if it is known, else a scalar tensor."""
    known = None if x._shape is None else x._shape[axis]
    return apply_op("Shape", x)[axis] if known is None else known


# short-time transforms --------------------------------------------------------------------------


def _enclosing_power_of_two(n: int | Tensor) -> int | Tensor:
    if isinstance(n, int):
        return 1 << (n - 1).bit_length()
    exponent = apply_op("Ceil", apply_op("Log", apply_op("Cast", n, DstT=dtypes.float32)) / _LN2)
    return apply_op("Cast", apply_op("Pow", 2.0, exponent), DstT=dtypes.int32)


_LN2 = np.float32(math.log(2))


def stft(
    signals: TensorLike,
    frame_length: int,
    frame_step: TensorLike,
    fft_length: object = None,
    window_fn: Callable[..., Any] = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """Fourier transforms of windowed, overlapping frames of signals [..., samples].

    ``frame_length`` and ``frame_step`` are in samples; ``fft_length`` is the next power of two by
    default; ``window_fn`` (Hann) may be None; ``pad_end`` keeps the last, incomplete frames. The
    result is complex, [..., frames, fft_length // 2 + 1].
    """
    with name_scope(name, "stft", [signals, frame_length, frame_step]):
        length = _scalar(frame_length, "frame_length")
        size = (
            _enclosing_power_of_two(length)
            if fft_length is None
            else convert.convert(fft_length, dtypes.int32)
        )
        frames = frame(signals, length, frame_step, pad_end=pad_end)
        if window_fn is not None:
            frames = frames * window_fn(length, dtype=frames.dtype)
        return rfft(frames, [size])


def inverse_stft(
    stfts: TensorLike,
    frame_length: int,
    frame_step: TensorLike,
    fft_length: object = None,
    window_fn: Callable[..., Any] = hann_window,
    name: str | None = None,
) -> Tensor:
    """The signal whose ``stft`` is given, by overlapping and adding the frames.

    With ``inverse_stft_window_fn(frame_step)`` as ``window_fn`` the result is exact.
    """
    with name_scope(name, "inverse_stft", [stfts]):
        length = _required(frame_length, "frame_length")
        size = (
            _enclosing_power_of_two(length)
            if fft_length is None
            else _required(fft_length, "fft_length")
        )
        frames = irfft(stfts, [size])
        if length > size:
            frames = _padded_end(frames, len(frames._shape or ()) - 1, length - size, 0)
        elif length < size:
            frames = frames[..., :length]
        if window_fn is not None:
            frames = frames * window_fn(length, dtype=frames.dtype)
        return overlap_and_add(frames, frame_step)


# cosine transforms and mel spectra --------------------------------------------------------------


def dct(
    input: TensorLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The cosine transform of type I, II or III over the last axis, cut or padded to ``n``.

    ``norm="ortho"`` makes II and III orthogonal.
    """
    with name_scope(name, "dct", [input]):
        x = convert.convert(input, dtypes.float32)
        _check_dct(x, type, n, axis, norm)
        if n is not None:
            x = _cut_or_padded(x, n)
        if type == 1:
            return apply_op("Real", rfft(apply_op("ConcatV2", [x, x[..., -2:0:-1]], -1)))
        size = _length_of(x, -1)
        scale = 2 * _turns(size, -1 if type == 2 else 1)
        if type == 2:
            out = apply_op("Real", rfft(x, [2 * size])[..., :size] * scale)
            return out * _orthogonal(size, -0.5, 0.5, math.sqrt(2)) if norm == "ortho" else out
        if norm == "ortho":
            x = x * _orthogonal(size, 0.5, 1.0, math.sqrt(0.5))
        else:
            x = x * (np.float32(size) if isinstance(size, int) else _as_float(size))
        return irfft(apply_op("Complex", x, apply_op("ZerosLike", x)) * scale, [2 * size])[
            ..., :size
        ]


def _cut_or_padded(x: Tensor, n: int) -> Tensor:
    """The first ``n`` elements of the last axis, zeros after its end."""
    size = _length_of(x, -1)
    if isinstance(size, int) and n <= size:
        return x[..., :n]
    if isinstance(size, int):
        return _padded_end(x, len(x._shape or ()) - 1, n - size, 0)
    cut = x[..., :n]
    out = _padded_end(cut, len(x._shape or ()) - 1, n - _length_of(cut, -1), 0)
    out.set_shape([*(x._shape or ())[:-1], n])
    return out


def _as_float(value: Tensor) -> Tensor:
    return apply_op("Cast", value, DstT=dtypes.float32)


def _turns(size: int | Tensor, sign: int) -> Any:
    """exp(±i pi k / (2 size)) for all k below the size."""
    if isinstance(size, int):
        return np.exp(sign * 1j * np.pi * np.arange(size) / (2 * size)).astype(np.complex64)
    angles = apply_op("Range", 0.0, _as_float(size), 1.0) * (sign * np.pi * 0.5 / _as_float(size))
    return apply_op("Exp", apply_op("Complex", apply_op("ZerosLike", angles), angles))


def _orthogonal(size: int | Tensor, power: float, first: float, ratio: float) -> Any:
    """Weights that make a transform orthogonal: that of the mean, and those of the others."""
    if isinstance(size, int):
        weights = np.full(size, first * ratio * size**power, np.float32)
        weights[:1] = first * size**power
        return weights
    one = first * apply_op("Pow", _as_float(size), power)
    others = apply_op("Fill", apply_op("ExpandDims", size - 1, 0), one * ratio)
    return apply_op("ConcatV2", [apply_op("ExpandDims", one, 0), others], 0)


def _check_dct(x: Tensor, type: int, n: int | None, axis: int, norm: str | None) -> None:
    if axis != -1:
        raise NotImplementedError(f"axis must be -1. Got: {axis}")
    if n is not None and n < 1:
        raise ValueError("n should be a positive integer or None")
    if type not in (1, 2, 3):
        raise ValueError("Only Types I, II and III (I)DCT are supported.")
    if type == 1:
        if norm == "ortho":
            raise ValueError("Normalization is not supported for the Type-I DCT.")
        if x._shape is not None and x._shape[-1] in (0, 1):
            raise ValueError("Type-I DCT requires the dimension to be greater than one.")
    if norm not in (None, "ortho"):
        raise ValueError(f"Unknown normalization. Expected None or 'ortho', got: {norm}")


def idct(
    input: TensorLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The inverse of ``dct`` (but for a factor, unless ``norm="ortho"``).

    ``type`` is 1, 2 or 3; the other arguments are those of ``dct``. With ``norm="ortho"`` it undoes
    ``tf.signal.dct`` of the same type and norm.
    """
    if type not in (1, 2, 3):
        raise ValueError("Only Types I, II and III (I)DCT are supported.")
    return dct(input, {1: 1, 2: 3, 3: 2}[type], n, axis, norm, name)


def _mel(hertz: float | Array) -> Array:
    return 1127.0 * np.log1p(np.asarray(hertz, np.float64) / 700.0)


@counted_with(122)  # TF computes it in the graph
def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: int = 129,
    sample_rate: int = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Triangular bands of equal width on the mel scale, as a [num_spectrogram_bins, num_mel_bins]
    matrix.
    """
    with name_scope(name, "linear_to_mel_weight_matrix"):
        rate = (
            float(static_value(sample_rate))
            if isinstance(sample_rate, Tensor)
            else float(sample_rate)
        )
        if (
            num_mel_bins <= 0
            or rate <= 0
            or not 0 <= lower_edge_hertz < upper_edge_hertz <= rate / 2
        ):
            raise ValueError(
                "Need num_mel_bins > 0 and 0 <= lower_edge_hertz < upper_edge_hertz <= "
                "sample_rate / 2, got "
                f"{num_mel_bins}, {lower_edge_hertz}, {upper_edge_hertz} and sample rate {rate}."
            )
        # the bin of frequency zero has no place on the mel scale: it gets a row of zeros
        bins = _mel(np.linspace(0.0, rate / 2, num_spectrogram_bins)[1:])[:, None]
        edges = np.linspace(_mel(lower_edge_hertz), _mel(upper_edge_hertz), num_mel_bins + 2)
        low, center, high = edges[:-2], edges[1:-1], edges[2:]
        weights = np.maximum(
            0, np.minimum((bins - low) / (center - low), (high - bins) / (high - center))
        )
        return convert.convert(
            np.pad(weights, [[1, 0], [0, 0]]).astype(dtypes.as_dtype(dtype).np_dtype)
        )


def mfccs_from_log_mel_spectrograms(
    log_mel_spectrograms: TensorLike, name: str | None = None
) -> Tensor:
    """Mel-frequency cepstral coefficients of [..., frames, mel bins], as many as bins."""
    with name_scope(name, "mfccs_from_log_mel_spectrograms", [log_mel_spectrograms]):
        x = convert.convert(log_mel_spectrograms)
        bins = _required(None if x._shape is None else x._shape[-1], "The number of mel bins")
        if bins == 0:
            raise ValueError(f"num_mel_bins must be positive. Got: {x}")
        return dct(x) * np.float32(1 / math.sqrt(2 * bins))
