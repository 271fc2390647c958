"""GIF files to arrays, with TensorFlow's rules: no disposal, no transparency, a canvas as large as
the largest frame.

The blocks of the file are found first: how many frames there are and how large they are is known
before one is decoded. Pillow's LZW decoder then makes colour numbers of each frame's bytes.

    >>> decode_gif(data).shape  # frames x height x width x 3
    (4, 32, 32, 3)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.ops.array.array_shape import invalid

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["decode_gif", "gif_frames"]

#: Pixels of all frames together; TensorFlow's limit for the other formats.
MAX_PIXELS = 1 << 29
#: The longest string that one LZW code stands for.
_MAX_RUN = 4096
_EXTENSION, _IMAGE, _TRAILER = 0x21, 0x2C, 0x3B


class GifFrame(NamedTuple):
    """Where a frame lies on the canvas, its colours (n x 3), and where its compressed bytes are."""

    left: int
    top: int
    width: int
    height: int
    colors: Any
    interlaced: bool
    start: int
    stop: int


class _Blocks:
    """Reads a file from front to back."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 6  # after the signature

    def problem(self, reason: str) -> Exception:
        return invalid(f"Invalid GIF data (size {len(self.data)}), {reason}")

    def take(self, n: int) -> bytes:
        piece = self.data[self.at : self.at + n]
        if len(piece) < n:
            raise self.problem("failed to slurp gif file: Failed to read from given file")
        self.at += n
        return piece

    def number(self) -> int:
        return int.from_bytes(self.take(2), "little")

    def colors(self, flags: int) -> Array | None:
        if not flags & 0x80:
            return None
        count = 2 << (flags & 7)
        return np.frombuffer(self.take(3 * count), np.uint8).reshape(count, 3)

    def skip_blocks(self) -> None:
        while size := self.take(1)[0]:
            self.take(size)

    def frame(self, colors: object) -> GifFrame:
        left, top, width, height = (self.number() for _ in range(4))
        flags = self.take(1)[0]
        own = self.colors(flags)
        start = self.at
        self.take(1)
        self.skip_blocks()
        palette = colors if own is None else own
        return GifFrame(left, top, width, height, palette, bool(flags & 0x40), start, self.at)


def gif_frames(data: bytes) -> list[GifFrame]:
    """The frames of a file, none of them decoded."""
    blocks = _Blocks(data)
    blocks.take(4)  # the size of the screen, which nobody asks for
    flags, _, _ = blocks.take(3)
    colors = blocks.colors(flags)
    frames: list[GifFrame] = []
    while (kind := blocks.take(1)[0]) != _TRAILER:
        if kind == _IMAGE:
            frames.append(blocks.frame(colors))
        elif kind == _EXTENSION:
            blocks.take(1)
            blocks.skip_blocks()
        else:
            raise blocks.problem("failed to slurp gif file: Wrong record type detected")
    _check(blocks, frames)
    return frames


def _check(blocks: _Blocks, frames: list[GifFrame]) -> None:
    if not frames:
        raise blocks.problem("gif file does not contain any image")
    width, height = _canvas(frames)
    if not width or not height:
        raise blocks.problem("failed to slurp gif file: a frame is empty")
    if len(frames) * width * height >= MAX_PIXELS:
        raise blocks.problem(f"{len(frames)} frames of {width} by {height} are too large")
    for frame in frames:
        if frame.width * frame.height > 4 * (frame.stop - frame.start) * _MAX_RUN:
            raise blocks.problem(
                "failed to slurp gif file: Image EOF detected before image complete"
            )
    if (frames[0].left, frames[0].top, frames[0].width, frames[0].height) != (0, 0, width, height):
        raise blocks.problem("the first frame does not fill the canvas")
    for k, frame in enumerate(frames):
        if frame.colors is None:
            raise blocks.problem(f"missing color map for frame {k}")


def _canvas(frames: list[GifFrame]) -> tuple[int, int]:
    return max(f.width for f in frames), max(f.height for f in frames)


def decode_gif(data: bytes, frames: list[GifFrame] | None = None) -> Array:
    """Frames x height x width x 3. What a frame does not cover is as in the frame before."""
    frames = gif_frames(data) if frames is None else frames
    width, height = _canvas(frames)
    out = np.empty((len(frames), height, width, 3), np.uint8)
    for k, frame in enumerate(frames):
        pixels = frame.colors[_color_numbers(data, frame)]
        if pixels.shape == out.shape[1:] and not (frame.left or frame.top):
            out[k] = pixels
            continue
        out[k] = out[k - 1]
        bottom, right = min(frame.top + frame.height, height), min(frame.left + frame.width, width)
        part = pixels[: max(0, bottom - frame.top), : max(0, right - frame.left)]
        out[k, frame.top : bottom, frame.left : right] = part
    return out


def _color_numbers(data: bytes, frame: GifFrame) -> Array:
    """Height x width numbers, each that of one of the frame's colours."""
    from PIL import Image

    problem = f"Invalid GIF data (size {len(data)}), "
    if not frame.width or not frame.height:
        return np.zeros((frame.height, frame.width), np.uint8)
    bits = data[frame.start]
    image = Image.new("L", (frame.width, frame.height))
    if not 1 <= bits <= 11:
        raise invalid(
            problem + "failed to slurp gif file: Image EOF detected before image complete"
        )
    decoder = Image._getdecoder("L", "gif", (bits, int(frame.interlaced), -1))
    decoder.setimage(image.im, (0, 0, frame.width, frame.height))
    consumed, error = decoder.decode(data[frame.start + 1 : frame.stop])
    if consumed >= 0 or error < 0:  # it waits for more, or stumbled
        raise invalid(
            problem + "failed to slurp gif file: Image EOF detected before image complete"
        )
    numbers = np.asarray(image)
    largest = int(numbers.max())
    if largest >= len(frame.colors):
        raise invalid(
            problem + f"found color index {largest} outside of color map range {len(frame.colors)}"
        )
    return numbers
