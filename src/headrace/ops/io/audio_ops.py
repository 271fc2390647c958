"""``tf.audio``: WAV files of sixteen-bit samples to numbers from -1 to 1, and back.

>>> sound, rate = tf.audio.decode_wav(tf.read_file("speech.wav"))
"""

from __future__ import annotations

import numpy as np

from headrace import errors
from headrace.core import shapes
from headrace.core.annotations import Array, ArrayNamespace, TensorLike
from headrace.core.build import apply, apply_many
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import invalid, one_number
from headrace.wire.wav import read_wav, wav_bytes

__all__ = ["DECODE_WAV", "ENCODE_WAV", "decode_wav", "encode_wav"]


def _encode_kernel(xp: ArrayNamespace, audio: Array, sample_rate: Array) -> bytes:
    if np.ndim(audio) != 2:
        raise invalid(f"audio must be 2-dimensional{shapes.show(np.shape(audio))}")
    rate = int(sample_rate)
    if rate <= 0:  # TensorFlow reads a negative rate as a size
        shown = rate if rate == 0 else rate + (1 << 64)
        raise invalid(f"sample_rate must be in (0, 2^32), got: {shown}")
    try:
        return wav_bytes(np.asarray(audio), rate)
    except ValueError as error:
        raise errors.InvalidArgumentError(None, None, str(error)) from None


def _decode_kernel(
    xp: ArrayNamespace, contents: Array, *, desired_channels: int, desired_samples: int
) -> tuple[Array, Array]:
    data = one_number(contents, "contents must be scalar, got shape {shape}")
    try:
        samples, rate = read_wav(data)
    except ValueError as error:
        raise errors.InvalidArgumentError(None, None, str(error)) from None
    frames = samples.shape[0] if desired_samples == -1 else desired_samples
    channels = samples.shape[1] if desired_channels == -1 else desired_channels
    out = np.zeros((frames, channels), np.float32)
    kept = samples[:frames, np.minimum(np.arange(channels), samples.shape[1] - 1)]
    out[: len(kept)] = kept
    return out, np.array(rate, np.uint32).astype(np.int32)


def _encode_shape(c: Inference) -> list[Shape]:
    c.require_rank(0, 2)
    c.require_rank(1, 0)
    return [()]


def _decode_shape(c: Inference) -> list[Shape]:
    c.require_rank(0, 0)
    sizes = []
    for what in ("samples", "channels"):
        size = c.attr(f"desired_{what}")
        if size < -1:
            raise ValueError(f"{what} must be non-negative, got {size}")
        sizes.append(None if size == -1 else size)
    return [tuple(sizes), ()]


ENCODE_WAV = define(
    "EncodeWav",
    "audio: float32, sample_rate: int32 -> contents: string",
    shape=_encode_shape,
    kernel=_encode_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
DECODE_WAV = define(
    "DecodeWav",
    "contents: string -> audio: float32, sample_rate: int32; "
    "desired_channels: int=-1, desired_samples: int=-1",
    shape=_decode_shape,
    kernel=_decode_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)


def encode_wav(audio: TensorLike, sample_rate: TensorLike, name: str | None = None) -> Tensor:
    """The WAV file (a string) of ``audio``, frames x channels with values from -1 to 1."""
    return apply(ENCODE_WAV, audio, sample_rate, name=name)


def decode_wav(
    contents: TensorLike,
    desired_channels: int = -1,
    desired_samples: int = -1,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """(audio, sample_rate) of a WAV file with sixteen-bit samples.

    Args:
      contents: the file, a scalar string.
      desired_channels: how many channels to give; the last one is repeated. -1: as in the file.
      desired_samples: how many frames to give; missing ones are zero. -1: as in the file.
      name: of the operation.
    """
    audio, sample_rate = apply_many(
        DECODE_WAV,
        contents,
        desired_channels=desired_channels,
        desired_samples=desired_samples,
        name=name,
    )
    return audio, sample_rate
