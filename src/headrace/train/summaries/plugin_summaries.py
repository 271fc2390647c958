"""``tf.summary.scalar``, ``image``, ``histogram``, ``audio`` and ``text`` of TF 2.

Each writes one tensor in the form that its TensorBoard plugin reads.
"""

from __future__ import annotations

from typing import Any

from headrace.core.annotations import TensorLike
from headrace.core.convert import convert_to_tensor
from headrace.core.dtypes import float32, float64, int32, string, uint8
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import reshape, shape, size, transpose
from headrace.ops.array.basic import stop_gradient
from headrace.ops.array.casting import cast
from headrace.ops.array.filling import fill, zeros
from headrace.ops.array.joining import concat, stack
from headrace.ops.array.one_hot import one_hot
from headrace.ops.array.ranges import linspace
from headrace.ops.control.assertions import assert_non_negative, assert_rank, assert_scalar
from headrace.ops.control.control_flow import cond
from headrace.ops.control.functional import map_fn
from headrace.ops.image.color_convert import convert_image_dtype
from headrace.ops.image.encode import encode_png
from headrace.ops.io.audio_ops import encode_wav
from headrace.ops.math.binary import maximum, minimum
from headrace.ops.math.comparison import equal, less_equal, logical_or
from headrace.ops.math.reductions import reduce_max, reduce_min, reduce_sum
from headrace.ops.math.unary import floor
from headrace.ops.strings.string_numbers import as_string
from headrace.train.summaries.summary_writers import summary_scope, write

__all__ = ["audio", "histogram", "image", "scalar", "text"]

_BUCKETS = 30


def _metadata(plugin: str, description: str | None, **more: object) -> Any:
    from importlib import import_module

    module = import_module(f"tensorboard.plugins.{plugin}.metadata")
    return module.create_summary_metadata(display_name=None, description=description, **more)


def scalar(
    name: str, data: TensorLike, step: TensorLike | None = None, description: str | None = None
) -> Any:
    """Write one number (as float32).

    Args:
      name: the tag, below the open name scopes.
      data: the number.
      step: the step; the default one (``set_step``) without this.
      description: Markdown that TensorBoard shows with it.
    """
    with summary_scope(name, "scalar_summary", [data, step]) as (tag, _):
        number = assert_scalar(convert_to_tensor(data))
        return write(tag, cast(number, float32), step, _metadata("scalar", description))


def text(
    name: str, data: TensorLike, step: TensorLike | None = None, description: str | None = None
) -> Any:
    """Write strings (any shape), which TensorBoard shows as Markdown.

    A vector is shown as rows, a matrix as a table. ``step`` defaults to
    ``tf.summary.experimental.set_step``'s, ``description`` is Markdown. The result is whether it
    was written.
    """
    with summary_scope(name, "text_summary", [data, step]) as (tag, _):
        strings = convert_to_tensor(data)
        if strings.dtype != string:
            raise TypeError(f"tf.summary.text takes strings, not {strings.dtype.name}")
        return write(tag, strings, step, _metadata("text", description))


def image(
    name: str,
    data: TensorLike,
    step: TensorLike | None = None,
    max_outputs: TensorLike = 3,
    description: str | None = None,
) -> Any:
    """Write up to ``max_outputs`` images of ``data`` (batch x height x width x channels).

    Floating-point values go from 0 to 1 and are clipped; other types are scaled to uint8.
    """
    with summary_scope(name, "image_summary", [data, max_outputs, step]) as (tag, _):

        def encoded() -> Tensor:
            images = convert_to_tensor(data)
            assert_rank(images, 4)
            assert_non_negative(max_outputs)
            pixels = convert_image_dtype(images, uint8, saturate=True)
            sizes = shape(pixels)
            files = map_fn(encode_png, pixels[:max_outputs], dtype=string)
            return concat([stack([as_string(sizes[2]), as_string(sizes[1])]), files], 0)

        return write(tag, encoded, step, _metadata("image", description))


def audio(
    name: str,
    data: TensorLike,
    sample_rate: TensorLike,
    step: TensorLike | None = None,
    max_outputs: int = 3,
    encoding: str | None = None,
    description: str | None = None,
) -> Any:
    """Write up to ``max_outputs`` clips of ``data`` (batch x frames x channels, from -1 to 1).

    ``sample_rate`` is in Hertz; ``encoding`` is None or "wav". ``step`` defaults to
    ``tf.summary.experimental.set_step``'s, ``description`` is Markdown. The result is whether it
    was written.
    """
    if encoding not in (None, "wav"):
        raise ValueError(f"Unknown encoding: {encoding!r}")
    from tensorboard.plugins.audio.metadata import Encoding

    metadata = _metadata("audio", description, encoding=Encoding.Value("WAV"))
    with summary_scope(name, "audio_summary", [data, sample_rate, max_outputs, step]) as (tag, _):

        def encoded() -> Tensor:
            clips = convert_to_tensor(data, float32)
            assert_rank(clips, 3)
            assert_non_negative(max_outputs)
            files = map_fn(lambda c: encode_wav(c, sample_rate), clips[:max_outputs], dtype=string)
            return transpose(stack([files, fill(shape(files), "")]))

        return write(tag, encoded, step, metadata)


def histogram(
    name: str,
    data: TensorLike,
    step: TensorLike | None = None,
    buckets: TensorLike | None = None,
    description: str | None = None,
) -> Any:
    """Write the distribution of ``data`` in ``buckets`` (30) intervals of one width.

    ``data`` has any shape. ``step`` defaults to ``tf.summary.experimental.set_step``'s,
    ``description`` is Markdown. The result is whether it was written.
    """
    with summary_scope(name, "histogram_summary", [data, buckets, step]) as (tag, _):
        values = stop_gradient(convert_to_tensor(data))
        return write(
            tag, lambda: _buckets(values, buckets), step, _metadata("histogram", description)
        )


def _buckets(data: Tensor, count: object) -> Tensor:
    """Rows of left edge, right edge and number of values, float64."""
    count = assert_scalar(convert_to_tensor(_BUCKETS if count is None else count, int32))
    count = maximum(0, count)
    values = cast(reshape(data, [-1]), float64)

    def of_values() -> Tensor:
        low, high = reduce_min(values), reduce_max(values)
        return cond(
            equal(low, high),
            lambda: _single_bucket(high, count, size(values)),
            lambda: _equal_buckets(values, low, high, count),
        )

    nothing = logical_or(equal(size(values), 0), less_equal(count, 0))
    return cond(nothing, lambda: zeros(stack([count, 3]), float64), of_values)


def _single_bucket(value: Tensor, count: Tensor, number: Tensor) -> Tensor:
    edges = fill([count], value)
    counts = concat([fill([count - 1], 0), [number]], 0)
    return transpose(stack([edges, edges, cast(counts, float64)]))


def _equal_buckets(values: Tensor, low: Tensor, high: Tensor, count: Tensor) -> Tensor:
    width = (high - low) / cast(count, float64)
    places = minimum(cast(floor((values - low) / width), int32), count - 1)
    counts = reduce_sum(one_hot(places, count, dtype=float64), 0)
    edges = concat([linspace(low, high, count + 1)[:-1], [high]], 0)
    return transpose(stack([edges[:-1], edges[1:], counts]))
