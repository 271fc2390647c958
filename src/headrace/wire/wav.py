"""WAV files of sixteen-bit samples, as TensorFlow writes them.

>>> wav_bytes(np.zeros((4, 1), np.float32), 8000)[:4]
b'RIFF'
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

__all__ = ["wav_bytes"]

_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")


def wav_bytes(samples: Any, sample_rate: int) -> bytes:
    """The file of ``samples``, an array of frames x channels with values from -1 to 1.

    Values beyond are cut off. ValueError for what a WAV file cannot hold.
    """
    frames, channels = samples.shape
    if not 0 < channels < 1 << 16:
        raise ValueError(f"num_channels must be in (0, 2^16), got: {channels}")
    if frames == 0:
        raise ValueError("num_frames must be positive.")
    size = 2 * frames * channels
    if size + _HEADER.size >= 1 << 32:
        raise ValueError("Provided channels and frames cannot be encoded as a WAV.")
    scaled = samples.astype(np.float32) * np.float32(1 << 15)
    whole = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))  # halves go away from zero
    data = np.clip(whole, -(1 << 15), (1 << 15) - 1).astype("<i2").tobytes()
    rate_bytes = (sample_rate * 2 * channels) & 0xFFFFFFFF
    head = _HEADER.pack(
        b"RIFF",
        size + _HEADER.size - 8,
        b"WAVE",
        b"fmt ",
        16,
        1,
        channels,
        sample_rate,
        rate_bytes,
        2 * channels,
        16,
        b"data",
        size,
    )
    return head + data
