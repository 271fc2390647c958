"""Unicode: ``tf.strings.unicode_decode``, ``unicode_encode``, ``unicode_split``,
``unicode_transcode``.

Bytes that are no text count as one wrong character for each part that could not begin a right one,
as in the Unicode standard (and in TensorFlow).
"""

from __future__ import annotations

import codecs
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors as tf_errors
from headrace.core import shape_fns
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.ops.strings.string_ops import define_string_op, mapped, object_array

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.core.dtypes import DType

__all__: list[str] = []


def _codec(name: str) -> codecs.CodecInfo:
    try:
        return codecs.lookup(name)
    except LookupError:
        raise tf_errors.InvalidArgumentError(
            None, None, f"Could not create converter for input encoding: {name}"
        ) from None


class _Reader:
    """Characters of strings with where they begin, under the rules for what is wrong."""

    def __init__(self, encoding: str, how: str, replacement: int, controls: bool) -> None:
        self.codec = _codec(encoding)
        self.how, self.replacement, self.controls = how, replacement, controls

    def _wrong(self) -> list[int]:
        if self.how == "strict":
            raise tf_errors.InvalidArgumentError(None, None, "Invalid formatting on input string")
        return [self.replacement] if self.how == "replace" else []

    def read(self, text: bytes) -> tuple[list[int], list[int]]:
        points: list[int] = []
        starts: list[int] = []
        at = 0
        while at < len(text):
            good, bad = self._run(text[at:])
            for character in good:
                point = ord(character)
                if self.controls and point <= 0x1F:
                    point = self.replacement
                points.append(point)
                starts.append(at)
                at += len(self.codec.encode(character)[0])
            if bad:
                for point in self._wrong():
                    points.append(point)
                    starts.append(at)
                at += bad
        return points, starts

    def _run(self, text: bytes) -> tuple[str, int]:
        """The good characters in front, and how many wrong bytes follow."""
        try:
            return self.codec.decode(text)[0], 0
        except UnicodeDecodeError as e:
            good = self.codec.decode(text[: e.start])[0] if e.start else ""
            return good, max(e.end - e.start, 1)


def _rows(texts: list[bytes], reader: _Reader) -> tuple[list[int], list[int], list[int]]:
    splits, points, starts = [0], list[int](), list[int]()
    for text in texts:
        found = reader.read(text)
        points += found[0]
        starts += found[1]
        splits.append(len(points))
    return splits, points, starts


def _decode_kernel(
    xp: ArrayNamespace,
    x: Array,
    *,
    input_encoding: str,
    errors: str,
    replacement_char: int,
    replace_control_characters: bool,
    Tsplits: DType,
) -> tuple[Array, Array]:
    reader = _Reader(input_encoding, errors, replacement_char, replace_control_characters)
    splits, points, _ = _rows(x.reshape(-1).tolist(), reader)
    return np.array(splits, Tsplits.np_dtype), np.array(points, np.int32)


def _decode_with_offsets_kernel(
    xp: ArrayNamespace,
    x: Array,
    *,
    input_encoding: str,
    errors: str,
    replacement_char: int,
    replace_control_characters: bool,
    Tsplits: DType,
) -> tuple[Array, Array, Array]:
    reader = _Reader(input_encoding, errors, replacement_char, replace_control_characters)
    splits, points, starts = _rows(x.reshape(-1).tolist(), reader)
    return (
        np.array(splits, Tsplits.np_dtype),
        np.array(points, np.int32),
        np.array(starts, np.int64),
    )


class _Writer:
    """Characters as bytes of one of the three output encodings."""

    def __init__(self, encoding: str, how: str, replacement: int) -> None:
        self.codec = encoding
        # halves of surrogate pairs, which only UTF-8 has no form for
        self.halves = "replace" if encoding == "UTF-8" else "surrogatepass"
        self.how, self.replacement = how, replacement

    def write(self, points: list[int]) -> bytes:
        kept = []
        for point in points:
            if 0xD800 <= point <= 0xDFFF and self.halves == "replace":
                kept.append(0xFFFD)
            elif 0 <= point <= 0x10FFFF:
                kept.append(point)
            elif self.how == "strict":
                raise tf_errors.InvalidArgumentError(
                    None, None, "Code point is out of range for Unicode, or a noncharacter."
                )
            elif self.how == "replace":
                kept.append(self.replacement)
        return "".join(map(chr, kept)).encode(self.codec, self.halves)


def _encode_kernel(
    xp: ArrayNamespace,
    values: Array,
    splits: Array,
    *,
    output_encoding: str,
    errors: str,
    replacement_char: int,
) -> Array:
    writer = _Writer(output_encoding, errors, replacement_char)
    bounds = splits.tolist()
    points = values.tolist()
    rows = [writer.write(points[a:b]) for a, b in itertools.pairwise(bounds)]
    return object_array(rows, len(rows))


def _transcode_kernel(
    xp: ArrayNamespace,
    x: Array,
    *,
    input_encoding: str,
    output_encoding: str,
    errors: str,
    replacement_char: int,
    replace_control_characters: bool,
) -> Array:
    reader = _Reader(input_encoding, errors, replacement_char, replace_control_characters)
    writer = _Writer(output_encoding, errors, replacement_char)
    return mapped(lambda text: writer.write(reader.read(text)[0]), x)


_READING = (
    "input_encoding: str, errors: str='replace', replacement_char: int=65533, "
    "replace_control_characters: bool=False"
)


def _encode_shape(c: Inference) -> list[Any]:
    splits = c.shape(1)
    rows = splits[0] if splits else None
    return [(None if rows is None else rows - 1,)]


def _decode_shape(count: int) -> Any:
    def rule(c: Inference) -> list[Any]:
        given = c.shape(0)
        known = given is not None and None not in given
        rows = int(np.prod([d or 0 for d in given])) + 1 if known and given is not None else None
        return [(rows,), *[(None,)] * count]

    return rule


define_string_op(
    "UnicodeDecode",
    f"input: string -> row_splits: Tsplits, char_values: int32; {_READING}, "
    "Tsplits: type(index)=int64",
    _decode_kernel,
    _decode_shape(1),
)
define_string_op(
    "UnicodeDecodeWithOffsets",
    "input: string -> row_splits: Tsplits, char_values: int32, char_to_byte_starts: int64; "
    f"{_READING}, Tsplits: type(index)=int64",
    _decode_with_offsets_kernel,
    _decode_shape(2),
)
define_string_op(
    "UnicodeEncode",
    "input_values: int32, input_splits: Tsplits -> output: string; errors: str='replace', "
    "output_encoding: str, replacement_char: int=65533, Tsplits: type(index)=int64",
    _encode_kernel,
    _encode_shape,
)
define_string_op(
    "UnicodeTranscode",
    "input: string -> output: string; input_encoding: str, output_encoding: str, "
    "errors: str='replace', replacement_char: int=65533, replace_control_characters: bool=False",
    _transcode_kernel,
    shape_fns.unchanged,
)


def _ngrams_kernel(
    xp: ArrayNamespace,
    data: Array,
    splits: Array,
    *,
    separator: str,
    ngram_widths: list[int],
    left_pad: str,
    right_pad: str,
    pad_width: int,
    preserve_short_sequences: bool,
    Tsplits: DType,
) -> tuple[Array, Array]:
    words, bounds = data.tolist(), splits.tolist()
    left, right, between = left_pad.encode(), right_pad.encode(), separator.encode()
    out, ends = list[bytes](), [0]

    def windows(row: list[bytes], width: int) -> None:
        most = width - 1
        padding = most if pad_width < 0 else min(pad_width, most)
        padded = [left] * padding + row + [right] * padding
        out.extend(between.join(padded[i : i + width]) for i in range(len(padded) - width + 1))

    for first, last in itertools.pairwise(bounds):
        row = words[first:last]
        for width in ngram_widths:
            windows(row, width)
        if preserve_short_sequences and row and len(out) == ends[-1]:
            windows(row, len(row) + 2 * max(pad_width, 0))
        ends.append(len(out))
    return object_array(out, len(out)), np.array(ends, Tsplits.np_dtype)


define_string_op(
    "StringNGrams",
    "data: string, data_splits: Tsplits -> ngrams: string, ngrams_splits: Tsplits; "
    "separator: str, ngram_widths: list(int), left_pad: str, right_pad: str, pad_width: int, "
    "preserve_short_sequences: bool, Tsplits: type(index)=int64",
    _ngrams_kernel,
    lambda c: [(None,), c.shape(1)],
)


def _segment_join_kernel(
    xp: ArrayNamespace, inputs: Array, ids: Array, count: Array, *, separator: str
) -> Array:
    if inputs.shape[: ids.ndim] != ids.shape:
        raise tf_errors.InvalidArgumentError(
            None,
            None,
            "segment_ids' shape must be a prefix of the inputs' shape, but inputs.shape = "
            f"{list(inputs.shape)} and segment_ids.shape = {list(ids.shape)}",
        )
    inner = inputs.shape[ids.ndim :]
    lines = inputs.reshape(ids.size, -1).tolist() if ids.size else []
    width = int(np.prod(inner))
    joined: list[list[list[bytes]]] = [[[] for _ in range(width)] for _ in range(int(count))]
    for segment, line in zip(ids.reshape(-1).tolist(), lines, strict=True):
        if not 0 <= segment < int(count):
            raise tf_errors.InvalidArgumentError(
                None,
                None,
                "segment_ids are not allowed to exceed num_segments or to have negative values.",
            )
        for place, text in zip(joined[segment], line, strict=True):
            place.append(text)
    between = separator.encode()
    flat = [between.join(place) for row in joined for place in row]
    return object_array(flat, (int(count), *inner))


def _segment_join_shape(c: Inference) -> list[Any]:
    data, ids, count = c.shape(0), c.shape(1), c.value(2)
    if data is None or ids is None:
        return [None]
    for have, want in zip(data, ids):
        if None not in (have, want) and have != want:
            raise ValueError(f"Dimensions must be equal, but are {have} and {want}")
    return [(None if count is None else int(count), *data[len(ids) :])]


define(
    "UnsortedSegmentJoin",
    "inputs: string, segment_ids: Tindices, num_segments: Tnumsegments -> output: string; "
    "separator: str='', Tindices: type(index), Tnumsegments: type(index)=int32",
    shape=_segment_join_shape,
    kernel=_segment_join_kernel,
    grad=NOT_DIFFERENTIABLE,
    known_inputs=(2,),
    host_only=True,
)
