"""``tf.strings.unicode_*`` and ``tf.strings.ngrams``: rows of characters and of words.

>>> sess.run(tf.strings.unicode_decode(["né"], "UTF-8")).to_list()
[[110, 233]]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply, apply_many, apply_op
from headrace.core.opdef import lookup
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import expand_dims, reshape
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.joining import concat, stack
from headrace.ops.ragged.ragged_tensor import (
    RaggedTensor,
    convert_to_tensor_or_ragged_tensor,
    is_ragged,
)

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = [
    "ngrams",
    "unicode_decode",
    "unicode_decode_with_offsets",
    "unicode_encode",
    "unicode_split",
    "unicode_split_with_offsets",
    "unicode_transcode",
    "unsorted_segment_join",
]

_REPLACEMENT = 0xFFFD


def _known_rank(value: Any, what: str) -> int:
    rank: int | None = value.shape.ndims
    if rank is None:
        raise ValueError(f"Rank of {what} must be statically known.")
    return rank


def _decoded(
    input: object, encoding: str, errors: str, replacement: int, controls: bool, offsets: bool
) -> list[Any]:
    """Code points, and if asked for where they begin, in rows."""
    given = convert_to_tensor_or_ragged_tensor(input, name="input")
    rank = _known_rank(given, "`input`")
    if rank > 1 and not is_ragged(given):
        given = RaggedTensor.from_tensor(given, ragged_rank=rank - 1)
    elif rank > 1 and given.ragged_rank < rank - 1:
        inner = RaggedTensor.from_tensor(
            given.flat_values, ragged_rank=rank - given.ragged_rank + 1
        )
        given = given.with_flat_values(inner)
    flat = reshape(given.flat_values if is_ragged(given) else given, [-1])
    splits, *values = apply_many(
        lookup("UnicodeDecodeWithOffsets" if offsets else "UnicodeDecode"),
        flat,
        input_encoding=encoding,
        errors=errors,
        replacement_char=replacement,
        replace_control_characters=controls,
    )
    if rank == 0:
        return values
    rows = [RaggedTensor.from_row_splits(v, splits, validate=False) for v in values]
    return [given.with_flat_values(r) for r in rows] if rank > 1 else rows


def unicode_decode(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = _REPLACEMENT,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """The code points of every string; ``errors`` is "replace", "ignore" or "strict".

    ``input_encoding`` is "UTF-8", "UTF-16-BE", "UTF-32-BE" or another name that TensorFlow knows.
    Bytes that are no character become ``replacement_char``, nothing, or an InvalidArgumentError;
    ``replace_control_characters`` replaces those as well. A vector gives a ragged tensor.

        tf.strings.unicode_decode(["ab", "c"], "UTF-8")  # [[97, 98], [99]]
    """
    with name_scope(name, "UnicodeDecode", [input]):
        return _decoded(
            input, input_encoding, errors, replacement_char, replace_control_characters, False
        )[0]


def unicode_decode_with_offsets(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = _REPLACEMENT,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """``unicode_decode``, and at which byte of its string every character begins.

    The arguments are ``unicode_decode``'s; both results have the same rows.
    """
    with name_scope(name, "UnicodeDecodeWithOffsets", [input]):
        points, starts = _decoded(
            input, input_encoding, errors, replacement_char, replace_control_characters, True
        )
        return points, starts


def _encode_rows(rows: RaggedTensor, encoding: str, errors: str, replacement: int) -> Tensor:
    return apply_op(
        "UnicodeEncode",
        rows.values,
        rows.row_splits,
        output_encoding=encoding,
        errors=errors,
        replacement_char=replacement,
    )


def unicode_encode(
    input: TensorLike,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = _REPLACEMENT,
    name: str | None = None,
) -> Any:
    """Rows of code points as strings, in "UTF-8", "UTF-16-BE" or "UTF-32-BE".

    ``input`` is int32 [..., length] or ragged; the result lacks the last dimension. A number that
    is no code point becomes ``replacement_char`` ("replace"), nothing ("ignore"), or an error
    ("strict").

        tf.strings.unicode_encode([[97, 98]], "UTF-8")  # ["ab"]
    """
    how = (output_encoding, errors, replacement_char)
    with name_scope(name, "UnicodeEncode", [input]):
        given = convert_to_tensor_or_ragged_tensor(input)
        rank = _known_rank(given, "input_tensor")
        if is_ragged(given):
            if given.flat_values.shape.ndims > 1:
                return given.with_flat_values(unicode_encode(given.flat_values, *how))
            if given.ragged_rank > 1:
                return given.with_values(unicode_encode(given.values, *how))
            return _encode_rows(given, *how)
        if rank == 0:
            raise ValueError("input_tensor's rank must be at least 1.")
        if rank == 1:
            length = shape_of(given)[0]
            rows = RaggedTensor.from_row_splits(given, stack([0, length]), validate=False)
            return reshape(_encode_rows(rows, *how), [])
        if rank == 2:
            return _encode_rows(RaggedTensor.from_tensor(given), *how)
        flat = reshape(given, stack([-1, shape_of(given)[-1]]))
        return reshape(unicode_encode(flat, *how), shape_of(given)[:-1])


def unicode_split(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = _REPLACEMENT,
    name: str | None = None,
) -> Any:
    """The characters of every string, each a string of its own.

    The arguments are ``unicode_decode``'s; characters are in the encoding of the input.

        tf.strings.unicode_split(["ab", "c"], "UTF-8")  # [["a", "b"], ["c"]]
    """
    with name_scope(name, "UnicodeSplit", [input]):
        points = _decoded(input, input_encoding, errors, replacement_char, False, False)[0]
        return unicode_encode(expand_dims(points, -1), input_encoding, errors, replacement_char)


def unicode_split_with_offsets(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = _REPLACEMENT,
    name: str | None = None,
) -> tuple[Any, Any]:
    """``unicode_split``, and at which byte of its string every character begins.

    The arguments are ``unicode_decode``'s; both results have the same rows.
    """
    with name_scope(name, "UnicodeSplitWithOffsets", [input]):
        points, starts = _decoded(input, input_encoding, errors, replacement_char, False, True)
        characters = expand_dims(points, -1)
        return unicode_encode(characters, input_encoding, errors, replacement_char), starts


def unicode_transcode(
    input: TensorLike,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = _REPLACEMENT,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Tensor:
    r"""Strings of one encoding in another one.

    ``output_encoding`` is "UTF-8", "UTF-16-BE" or "UTF-32-BE"; the other arguments are
    ``unicode_decode``'s. The shape stays.

        tf.strings.unicode_transcode(["a"], "UTF-8", "UTF-16-BE")  # [b"\x00a"]
    """
    return apply(
        lookup("UnicodeTranscode"),
        input,
        input_encoding=input_encoding,
        output_encoding=output_encoding,
        errors=errors,
        replacement_char=replacement_char,
        replace_control_characters=replace_control_characters,
        name=name,
    )


def _pads(pad_values: object, padding_width: int | None) -> tuple[str, str, int]:
    if isinstance(pad_values, str):
        left, right = pad_values, pad_values
    elif isinstance(pad_values, bytes):
        left = right = pad_values.decode()
    elif pad_values is None:
        left = right = ""
    elif isinstance(pad_values, (list, tuple)):
        if not all(isinstance(p, (str, bytes)) for p in pad_values):
            raise TypeError("pad_values must be a string, tuple of strings, or None.")
        left, right = (p.decode() if isinstance(p, bytes) else p for p in pad_values)
    else:
        raise TypeError("pad_values must be a string, tuple of strings, or None.")
    if padding_width is not None and padding_width < 1:
        raise ValueError("padding_width must be greater than 0.")
    if pad_values is None:
        return left, right, 0
    return left, right, -1 if padding_width is None else padding_width


def ngrams(
    data: TensorLike,
    ngram_width: int | Sequence[int],
    separator: str = " ",
    pad_values: str | tuple[str, str] | None = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Any:
    """Neighbouring words joined: every ``ngram_width`` of them, for one width or several.

    ``pad_values``: what stands before and after a row, ``padding_width`` times (one less than the
    width); ``preserve_short_sequences``: a row that is too short gives one, of all its words.
    """
    left, right, padding = _pads(pad_values, padding_width)
    widths = [ngram_width] if isinstance(ngram_width, int) else list(ngram_width)
    if any(w < 1 for w in widths):
        raise ValueError(f"All ngram_widths must be greater than 0. Got {ngram_width}")
    more = (separator, pad_values, padding_width, preserve_short_sequences)
    with name_scope(name, "StringNGrams", [data]):
        given = convert_to_tensor_or_ragged_tensor(data, dtypes.string, "data")
        dense = not is_ragged(given)
        outer: Any = None
        if dense:
            if given.shape.ndims is None:
                raise ValueError("Rank of data must be known.")
            if given.shape.ndims == 0:
                raise ValueError("Data must have rank>0")
            if given.shape.ndims == 1:
                row: Any = RaggedTensor.from_row_starts(given, [0], validate=False)
                return ngrams(row, widths, *more)[0]
            outer = concat([shape_of(given)[:-1], [-1]], 0)
            given = RaggedTensor.from_tensor(given, ragged_rank=given.shape.ndims - 1)
        if given.ragged_rank > 1:
            found = given.with_values(ngrams(given.values, widths, *more))
        else:
            texts, splits = apply_many(
                lookup("StringNGrams"),
                given.flat_values,
                given.row_splits,
                separator=separator,
                ngram_widths=widths,
                left_pad=left,
                right_pad=right,
                pad_width=padding,
                preserve_short_sequences=preserve_short_sequences,
            )
            found = RaggedTensor.from_row_splits(texts, splits, validate=False)
        return reshape(found.flat_values, outer) if dense else found


def unsorted_segment_join(
    inputs: TensorLike,
    segment_ids: TensorLike,
    num_segments: TensorLike,
    separator: str = "",
    name: str | None = None,
) -> Tensor:
    """The strings of each segment, joined in the order in which they come.

    ``segment_ids`` has the shape of the first dimensions of ``inputs``; the result has
    ``num_segments`` rows, "" where a segment has no strings. ``separator`` stands between two
    strings.

        tf.strings.unsorted_segment_join(["a", "b", "c"], [0, 1, 0], 2, "-")  # ["a-c", "b"]
    """
    return apply(
        lookup("UnsortedSegmentJoin"),
        inputs,
        segment_ids,
        num_segments,
        separator=separator,
        name=name,
    )
