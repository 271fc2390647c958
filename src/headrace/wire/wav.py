"""WAV files of sixteen-bit samples, as TensorFlow writes them.

>>> wav_bytes(np.zeros((4, 1), np.float32), 8000)[:4]
b'RIFF'
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from headrace.core.annotations import Array


__all__ = ["read_wav", "wav_bytes"]

_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")
#: Size of the format chunk, encoding, channels, rate, bytes a second, bytes a frame, bits.
_FORMAT = struct.Struct("<IHHIIHH")


def wav_bytes(samples: Array, sample_rate: int) -> bytes:
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
    data: bytes = np.clip(whole, -(1 << 15), (1 << 15) - 1).astype("<i2").tobytes()
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


def read_wav(data: bytes) -> tuple[Any, int]:
    """(samples, sample rate) of a file: float32 of frames x channels, from -1 to 1.

    ValueError for anything but sixteen-bit PCM; sizes are checked against the bytes there are.
    """
    for at, text in ((0, b"RIFF"), (8, b"WAVE"), (12, b"fmt ")):
        found = data[at : at + 4]
        if len(found) < 4:
            raise ValueError("Data too short when trying to read string")
        if found != text:
            shown = found.decode("latin-1")
            raise ValueError(f"Header mismatch: Expected {text.decode()} but found {shown}")
    if len(data) < _FORMAT.size + 16:
        raise ValueError("Data too short when trying to read value")
    size, kind, channels, rate, rate_bytes, frame_bytes, bits = _FORMAT.unpack_from(data, 16)
    _check_format(size, kind, channels, rate, rate_bytes, frame_bytes, bits)
    samples, at = None, 20 + size
    while at < len(data):
        if at + 8 > len(data):
            raise ValueError("Data too short when trying to read string")
        name, length = struct.unpack_from("<4sI", data, at)
        at += 8
        if length > (1 << 31) - 1:
            raise ValueError(
                f"WAV data chunk '{name.decode('latin-1')}' is too large: {length} bytes, but the "
                "limit is 2147483647"
            )
        if name != b"data":
            at += length
            continue
        if samples is not None:
            raise ValueError("More than one data chunk found in WAV")
        count = length // frame_bytes * channels
        if at + 2 * count > len(data):
            raise ValueError("Data too short when trying to read string")
        samples = np.frombuffer(data, "<i2", count, at).reshape(-1, channels)
        at += 2 * count
    if samples is None:
        raise ValueError("No data chunk found in WAV")
    return samples.astype(np.float32) * np.float32(1 / (1 << 15)), rate


def _check_format(
    size: int, kind: int, channels: int, rate: int, rate_bytes: int, frame_bytes: int, bits: int
) -> None:
    if size not in (16, 18):
        raise ValueError(f"Bad file size for WAV: Expected 16 or 18, but got{size}")
    if kind != 1:
        raise ValueError(f"Bad audio format for WAV: Expected 1 (PCM), but got{kind}")
    if channels < 1:
        raise ValueError(f"Bad number of channels for WAV: Expected at least 1, but got {channels}")
    if bits != 16:
        raise ValueError(f"Can only read 16-bit WAV files, but received {bits}")
    if frame_bytes != 2 * channels & 0xFFFF:
        raise ValueError(
            f"Bad bytes per sample in WAV header: Expected {2 * channels} but got {frame_bytes}"
        )
    if rate_bytes != frame_bytes * rate & 0xFFFFFFFF:
        raise ValueError(
            f"Bad bytes per second in WAV header: Expected {frame_bytes * rate & 0xFFFFFFFF} but "
            f"got {rate_bytes} (sample_rate={rate}, bytes_per_sample={frame_bytes})"
        )
