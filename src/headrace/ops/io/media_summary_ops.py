"""Summary ops of images (PNG files) and sound (WAV files).

Tags, pixels and bytes are TensorFlow's: floating-point images are scaled one by one so that their
largest value is 255, or, where they have negative values, so that zero is 128.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import errors
from headrace.core import shapes
from headrace.core.annotations import Array, ArrayNamespace
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.ops.array.array_shape import invalid
from headrace.ops.io.summary_ops import message_bytes, new_summary

__all__ = ["AUDIO_SUMMARY", "AUDIO_SUMMARY_V1", "IMAGE_SUMMARY", "add_audio", "add_images"]

#: A largest value below this counts as zero.
_ZERO = np.float32(1e-6)


def _scalar(_: Inference) -> list[Shape]:
    return [()]


def _tag_of(tag: Array, what: str) -> str:
    values = np.asarray(tag, object)
    if values.size != 1 or values.ndim > 1:
        raise invalid(f"{what} must be a scalar")
    text = values.item()
    return text.decode() if isinstance(text, bytes) else str(text)


def scale_to_bytes(image: Array, bad_color: Array) -> Array:
    """Pixels (height x width x channels, floating point) as uint8.

    Pixels that are not finite get ``bad_color``.
    """
    finite = np.isfinite(image).all(-1)
    used = image[finite].astype(np.float32)
    low, high = (used.min(), used.max()) if used.size else (np.float32(np.inf), -np.float32(np.inf))
    largest = max(abs(low), abs(high)) if low < 0 else high
    top, offset = (127, 128) if low < 0 else (255, 0)
    factor = np.float32(0) if largest < _ZERO else np.float32(top) / largest
    kind = image.dtype.type
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = image * kind(factor) + kind(offset)
        pixels: Array = scaled.astype(np.int32).astype(np.uint8)
    pixels[~finite] = bad_color
    return pixels


def _check_images(tensor: Array) -> None:
    shown = shapes.show(tensor.shape)
    if tensor.ndim != 4 or tensor.shape[3] not in (1, 3, 4):
        raise invalid(f"Tensor must be 4-D with last dim 1, 3, or 4, not {shown}")
    if tensor.shape[1] * tensor.shape[2] >= 1 << 29:
        raise invalid(f"Tensor too large for summary {shown}")
    if 0 in tensor.shape[1:]:
        dims = ", ".join(map(str, tensor.shape))
        raise invalid(f"input tensor must have non-zero dims. Found: [{dims}].")


def _check_color(bad_color: Array, depth: int | None) -> None:
    if bad_color.dtype != np.uint8:
        raise invalid(f"bad_color must be uint8, got {bad_color.dtype}")
    if bad_color.ndim != 1:
        raise invalid(f"bad_color must be a vector, got shape {shapes.show(bad_color.shape)}")
    if depth is not None and len(bad_color) < depth:
        raise invalid(
            f"expected depth <= bad_color.size, got depth = {depth}, "
            f"bad_color.size = {len(bad_color)}"
        )


def add_images(summary: Any, tag: Array, tensor: Array, max_images: int, bad_color: Array) -> None:
    """Add the first images of a batch to a Summary message."""
    from headrace.ops.image.png import write_png

    base, tensor, color = _tag_of(tag, "Tags"), np.asarray(tensor), np.asarray(bad_color)
    _check_images(tensor)
    _check_color(color, tensor.shape[3] if tensor.dtype != np.uint8 else None)
    for i, image in enumerate(tensor[:max_images]):
        height, width, depth = image.shape
        pixels = image if image.dtype == np.uint8 else scale_to_bytes(image, color[:depth])
        value = summary.value.add(tag=f"{base}/image/{i}" if max_images > 1 else f"{base}/image")
        value.image.height, value.image.width, value.image.colorspace = height, width, depth
        value.image.encoded_image_string = write_png(pixels)


def add_audio(
    summary: Any, tag: Array, tensor: Array, sample_rate: float, max_outputs: int
) -> None:
    """Add the first clips of a batch to a Summary message."""
    from headrace.wire.wav import wav_bytes

    base, tensor = _tag_of(tag, "Tag"), np.asarray(tensor)
    if tensor.ndim not in (2, 3):
        raise invalid(f"Tensor must be 3-D or 2-D, got: {shapes.show(tensor.shape)}")
    if not sample_rate > 0:
        raise invalid("sample_rate must be > 0")
    for i, clip in enumerate(tensor[:max_outputs]):
        frames = clip[:, None] if clip.ndim == 1 else clip
        value = summary.value.add(tag=f"{base}/audio/{i}" if max_outputs > 1 else f"{base}/audio")
        value.audio.sample_rate = sample_rate
        value.audio.num_channels, value.audio.length_frames = frames.shape[1], len(frames)
        value.audio.content_type = "audio/wav"
        try:
            value.audio.encoded_audio_string = wav_bytes(frames, max(round(sample_rate), 1))
        except ValueError as error:
            raise errors.InvalidArgumentError(None, None, str(error)) from None


def _image_kernel(
    xp: ArrayNamespace, tag: Array, tensor: Array, *, max_images: int, bad_color: Array
) -> bytes:
    summary = new_summary()
    add_images(summary, tag, tensor, max_images, bad_color)
    return message_bytes(summary)


def _audio_kernel(
    xp: ArrayNamespace, tag: Array, tensor: Array, sample_rate: Array, *, max_outputs: int
) -> bytes:
    summary = new_summary()
    add_audio(summary, tag, tensor, float(sample_rate), max_outputs)
    return message_bytes(summary)


def _audio_v1_kernel(
    xp: ArrayNamespace, tag: Array, tensor: Array, *, sample_rate: float, max_outputs: int
) -> bytes:
    return _audio_kernel(
        xp, tag, tensor, np.array(sample_rate, np.float32), max_outputs=max_outputs
    )


IMAGE_SUMMARY = define(
    "ImageSummary",
    "tag: string, tensor: T -> summary: string; max_images: int=3, T: type=float32, "
    "bad_color: tensor=uint8[255, 0, 0, 255]",
    shape=_scalar,
    kernel=_image_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
AUDIO_SUMMARY = define(
    "AudioSummaryV2",
    "tag: string, tensor: float32, sample_rate: float32 -> summary: string; max_outputs: int=3",
    shape=_scalar,
    kernel=_audio_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
AUDIO_SUMMARY_V1 = define(
    "AudioSummary",
    "tag: string, tensor: float32 -> summary: string; sample_rate: float, max_outputs: int=3",
    shape=_scalar,
    kernel=_audio_v1_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    removed=(15, "Use AudioSummaryV2."),
)
