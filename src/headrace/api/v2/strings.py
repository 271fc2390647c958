"""``tf.strings``: strings, with TF 2's signatures."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace.api.v2.name_lookup import module_getattr
from headrace.api.v2.adapted import (
    string_length as length, string_to_hash_bucket as to_hash_bucket,
    string_to_number as to_number,
)
from headrace.ops.io.printing import string_format as format
from headrace.ops.ragged.ragged_strings import bytes_split, split_v2 as split
from headrace.ops.strings.string_ops import (
    reduce_join_v2 as reduce_join, regex_full_match, regex_replace,
    string_join as join, string_lower as lower,
    string_strip as strip, string_upper as upper, substr_v2 as substr,
)
from headrace.ops.strings.string_encoding import (
    string_to_hash_bucket_fast as to_hash_bucket_fast,
    string_to_hash_bucket_strong as to_hash_bucket_strong,
)
from headrace.ops.ragged.ragged_unicode import (
    ngrams, unicode_decode, unicode_decode_with_offsets, unicode_encode, unicode_split,
    unicode_split_with_offsets, unicode_transcode, unsorted_segment_join,
)
from headrace.ops.strings.string_numbers import as_string

__all__ = [
    "as_string", "bytes_split", "format", "join", "length", "lower", "ngrams", "reduce_join",
    "regex_full_match",
    "regex_replace", "split", "strip", "substr", "to_hash_bucket", "to_hash_bucket_fast",
    "to_hash_bucket_strong", "to_number", "unicode_decode", "unicode_decode_with_offsets",
    "unicode_encode", "unicode_split", "unicode_split_with_offsets", "unicode_transcode",
    "unsorted_segment_join", "upper",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("strings", __name__)
