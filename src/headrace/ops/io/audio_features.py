"""Spectrograms and mel-frequency cepstral coefficients (``contrib.framework`` ``audio_ops``).

>>> from tensorflow.contrib.framework.python.ops import audio_ops
>>> spectrogram = audio_ops.audio_spectrogram(sound, window_size=480, stride=160)
>>> features = audio_ops.mfcc(spectrogram, sample_rate)
"""

from __future__ import annotations

import numpy as np

from headrace.core.annotations import Array, ArrayNamespace
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.ops.array.array_shape import invalid

__all__ = ["AUDIO_SPECTROGRAM", "MFCC"]

_SMALLEST_MEL = 1e-12  # the logarithm of less than this is taken of this


def _transform_size(window_size: int) -> int:
    """The least power of two that holds a window."""
    return 1 << max(window_size - 1, 0).bit_length()


def _frame_count(samples: int, window_size: int, stride: int) -> int:
    return 0 if samples < window_size else 1 + (samples - window_size) // stride


def _spectrogram_shape(c: Inference) -> list[Shape]:
    samples, channels = c.require_rank(0, 2)
    window_size, stride = c.attr("window_size"), c.attr("stride")
    frames = None if samples is None else _frame_count(samples, window_size, stride)
    return [(channels, frames, 1 + _transform_size(window_size) // 2)]


def _spectrogram_kernel(
    xp: ArrayNamespace, sound: Array, *, window_size: int, stride: int, magnitude_squared: bool
) -> Array:
    if np.ndim(sound) != 2:
        raise invalid(f"input must be 2-dimensional[{','.join(map(str, np.shape(sound)))}]")
    if window_size < 2 or stride < 1:
        raise invalid(
            f"Spectrogram initialization failed for window size {window_size} and stride {stride}"
        )
    frames = _frame_count(sound.shape[0], window_size, stride)
    bins = 1 + _transform_size(window_size) // 2
    if not frames:
        return np.zeros((sound.shape[1], 0, bins), np.float32)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window_size) / window_size)
    starts = np.arange(frames)[:, None] * stride
    cut = sound.astype(np.float64).T[:, starts + np.arange(window_size)] * window
    spectrum = np.fft.rfft(cut, _transform_size(window_size))
    power = np.square(spectrum.real) + np.square(spectrum.imag)
    return (power if magnitude_squared else np.sqrt(power)).astype(np.float32)


def _mel(hertz: Array | float) -> Array:
    mel: Array = 1127.0 * np.log1p(np.asarray(hertz, np.float64) / 700.0)
    return mel


def _mel_weights(bins: int, rate: float, low: float, high: float, channels: int) -> Array:
    """bins x channels: triangles that overlap by half, evenly spaced on the mel scale."""
    first, last = float(_mel(low)), float(_mel(high))
    spacing = (last - first) / (channels + 1)
    width = 0.5 * rate / (bins - 1)  # hertz from bin to bin
    used = np.arange(int(1.5 + low / width), int(high / width) + 1)
    place = (_mel(used * width) - first) / spacing  # in triangles; a peak is at i + 1
    below = np.clip(np.ceil(place).astype(int) - 2, -1, channels - 1)
    share = (below + 2) - place  # of the triangle below; the one above has the rest
    weights: Array = np.zeros((bins, channels))
    for triangle, part in ((below, share), (below + 1, 1.0 - share)):
        good = (triangle >= 0) & (triangle < channels)
        weights[used[good], triangle[good]] += part[good]
    return weights


def _cosines(channels: int, count: int) -> Array:
    """channels x count: the first rows of the discrete cosine transform."""
    angles = np.pi / channels * np.outer(np.arange(channels) + 0.5, np.arange(count))
    cosines: Array = np.sqrt(2.0 / channels) * np.cos(angles)
    return cosines


def _mfcc_kernel(
    xp: ArrayNamespace,
    spectrogram: Array,
    sample_rate: Array,
    *,
    upper_frequency_limit: float,
    lower_frequency_limit: float,
    filterbank_channel_count: int,
    dct_coefficient_count: int,
) -> Array:
    if np.ndim(spectrogram) != 3:
        raise invalid(
            f"spectrogram must be 3-dimensional[{','.join(map(str, np.shape(spectrogram)))}]"
        )
    bins, rate = spectrogram.shape[2], float(sample_rate)
    low, high = lower_frequency_limit, upper_frequency_limit
    sound = 0 <= low < high and 1 <= dct_coefficient_count <= filterbank_channel_count
    if bins < 2 or rate <= 0 or not sound:
        raise invalid(
            f"Mfcc initialization failed for channel count {bins} and sample rate {rate:g}"
        )
    if int(high / (0.5 * rate / (bins - 1))) >= bins:  # above what the spectrogram holds
        return np.zeros((*spectrogram.shape[:2], dct_coefficient_count), np.float32)
    weights = _mel_weights(bins, rate, low, high, filterbank_channel_count)
    energy = np.sqrt(spectrogram.astype(np.float64)) @ weights
    cosines = _cosines(filterbank_channel_count, dct_coefficient_count)
    coefficients: Array = np.log(np.maximum(energy, _SMALLEST_MEL)) @ cosines
    return coefficients.astype(np.float32)


def _mfcc_shape(c: Inference) -> list[Shape]:
    channels, frames, _ = c.require_rank(0, 3)
    c.require_rank(1, 0)
    return [(channels, frames, c.attr("dct_coefficient_count"))]


AUDIO_SPECTROGRAM = define(
    "AudioSpectrogram",
    "input: float32 -> spectrogram: float32; "
    "window_size: int, stride: int, magnitude_squared: bool=False",
    shape=_spectrogram_shape,
    kernel=_spectrogram_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
MFCC = define(
    "Mfcc",
    "spectrogram: float32, sample_rate: int32 -> output: float32; "
    "upper_frequency_limit: float=4000.0, lower_frequency_limit: float=20.0, "
    "filterbank_channel_count: int=40, dct_coefficient_count: int=13",
    shape=_mfcc_shape,
    kernel=_mfcc_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
