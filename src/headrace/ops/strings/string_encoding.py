"""Strings to hash buckets and to base64 text.

>>> tf.string_to_hash_bucket_fast(words, num_buckets=1000)
>>> tf.encode_base64(tf.constant(b"bytes"))
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from headrace import errors
from headrace.core.build import apply
from headrace.core.dispatch import dispatched
from headrace.core.opdef import add_traits
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import invalid, one_of
from headrace.ops.strings.string_hash import fingerprint64, hash64, sip_hash
from headrace.ops.strings.string_ops import define_string_op, mapped

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = [
    "decode_base64",
    "encode_base64",
    "string_to_hash_bucket",
    "string_to_hash_bucket_fast",
    "string_to_hash_bucket_strong",
    "string_to_hash_bucket_v1",
]


def _bucketed(function: Callable[[bytes], int], x: Array, count: int) -> Array:
    return np.array([function(s) % count for s in x.reshape(-1).tolist()], np.int64).reshape(
        x.shape
    )


STRING_TO_HASH_BUCKET_FAST = define_string_op(
    "StringToHashBucketFast",
    "input: string -> output: int64; num_buckets: int",
    lambda xp, x, *, num_buckets: _bucketed(fingerprint64, x, num_buckets),
)


STRING_TO_HASH_BUCKET = define_string_op(
    "StringToHashBucket",
    "string_tensor: string -> output: int64; num_buckets: int",
    lambda xp, x, *, num_buckets: _bucketed(hash64, x, num_buckets),
)


def _strong_kernel(xp: ArrayNamespace, x: Array, *, num_buckets: int, key: list[int]) -> Array:
    if len(key) != 2:
        raise errors.InvalidArgumentError(None, None, "Key must have 2 elements")
    return _bucketed(lambda s: sip_hash(s, key), x, num_buckets)


STRING_TO_HASH_BUCKET_STRONG = define_string_op(
    "StringToHashBucketStrong",
    "input: string -> output: int64; num_buckets: int, key: list(int)",
    _strong_kernel,
)


@dispatched("unary")
def string_to_hash_bucket_fast(
    input: TensorLike, num_buckets: int, name: str | None = None
) -> Tensor:
    """A bucket from 0 to ``num_buckets - 1`` for each string (FarmHash; the same everywhere)."""
    return apply(STRING_TO_HASH_BUCKET_FAST, input, num_buckets=num_buckets, name=name)


@dispatched("unary")
def string_to_hash_bucket_strong(
    input: TensorLike, num_buckets: int, key: TensorLike, name: str | None = None
) -> Tensor:
    """As ``string_to_hash_bucket_fast`` with a secret key of two integers (SipHash).

    Nobody without the key can choose strings that fall into one bucket.
    """
    return apply(STRING_TO_HASH_BUCKET_STRONG, input, num_buckets=num_buckets, key=key, name=name)


@dispatched("unary")
def string_to_hash_bucket(input: TensorLike, num_buckets: int, name: str | None = None) -> Tensor:
    """A bucket from 0 to ``num_buckets - 1`` for each string, equal for equal strings."""
    return apply(STRING_TO_HASH_BUCKET, input, num_buckets=num_buckets, name=name)


@dispatched("unary")
def string_to_hash_bucket_v1(
    string_tensor: TensorLike | None = None,
    num_buckets: int | None = None,
    name: str | None = None,
    input: object = None,
) -> Tensor:
    """A bucket from 0 to ``num_buckets - 1`` for each string, equal for equal strings.

    ``input`` is the newer name of ``string_tensor``.
    """
    source = one_of("input", input, "string_tensor", string_tensor)
    return apply(STRING_TO_HASH_BUCKET, source, num_buckets=num_buckets, name=name)


def _encode(s: bytes, pad: bool) -> bytes:
    text = base64.urlsafe_b64encode(s)
    return text if pad else text.rstrip(b"=")


def _decode(s: bytes) -> bytes:
    body = s
    if len(s) % 4 == 0:  # whole groups may end with padding
        body = s[:-2] if s.endswith(b"==") else s.removesuffix(b"=")
    if len(body) % 4 == 1:
        raise invalid("Base64 string length cannot be 1 modulo 4.")
    if re.fullmatch(rb"[A-Za-z0-9_-]*", body) is None:
        raise invalid("Invalid character found in base64.")
    return base64.urlsafe_b64decode(body + b"=" * (-len(body) % 4))


ENCODE_BASE64 = define_string_op(
    "EncodeBase64",
    "input: string -> output: string; pad: bool=False",
    lambda xp, x, *, pad: mapped(lambda s: _encode(s, pad), x),
)


DECODE_BASE64 = define_string_op(
    "DecodeBase64", "input: string -> output: string", lambda xp, x: mapped(_decode, x)
)


@dispatched("unary")
def encode_base64(input: TensorLike, pad: bool = False, name: str | None = None) -> Tensor:
    """Strings as web-safe base64 (``-`` and ``_``); ``pad`` adds ``=`` at the end."""
    return apply(ENCODE_BASE64, input, pad=pad, name=name)


@dispatched("unary")
def decode_base64(input: TensorLike, name: str | None = None) -> Tensor:
    """The bytes that web-safe base64 encodes (``-`` and ``_``), padded or not."""
    return apply(DECODE_BASE64, input, name=name)


add_traits("StringToHashBucketFast", batching="same")
