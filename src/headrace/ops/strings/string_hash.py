"""The three string hashes that TensorFlow buckets by: FarmHash fingerprint, its own Hash64 (Murmur
2), and SipHash-2-4.

    >>> fingerprint64(b"hello") % 10

All arithmetic is modulo 2**64 on Python integers.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["fingerprint64", "hash64", "sip_hash"]

_M = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def _word(s: bytes, at: int) -> int:
    return int.from_bytes(s[at : at + 8], "little")


def _half(s: bytes, at: int) -> int:
    return int.from_bytes(s[at : at + 4], "little")


def _rotate(x: int, by: int) -> int:
    x &= _M
    return ((x >> by) | (x << (64 - by))) & _M


def _mix(x: int) -> int:
    x &= _M
    return x ^ (x >> 47)


def _pair(u: int, v: int, mul: int) -> int:
    """Two words into one."""
    a = _mix((u ^ v) * mul)
    b = _mix(((v & _M) ^ a) * mul)
    return b * mul & _M


def fingerprint64(s: bytes) -> int:
    """FarmHash's Fingerprint64: ``StringToHashBucketFast``."""
    n = len(s)
    if n <= 16:
        return _up_to_16(s, n)
    if n <= 32:
        return _up_to_32(s, n)
    if n <= 64:
        return _up_to_64(s, n)
    return _long(s, n)


def _up_to_16(s: bytes, n: int) -> int:
    mul = _K2 + n * 2
    if n >= 8:
        a, b = _word(s, 0) + _K2, _word(s, n - 8)
        c = _rotate(b, 37) * mul + a
        d = (_rotate(a, 25) + b) * mul
        return _pair(c & _M, d & _M, mul)
    if n >= 4:
        return _pair(n + (_half(s, 0) << 3), _half(s, n - 4), mul)
    if n:
        y = s[0] + (s[n >> 1] << 8)
        z = n + (s[n - 1] << 2)
        return _mix((y * _K2) ^ (z * _K0)) * _K2 & _M
    return _K2


def _up_to_32(s: bytes, n: int) -> int:
    mul = _K2 + n * 2
    a, b = _word(s, 0) * _K1, _word(s, 8)
    c, d = _word(s, n - 8) * mul, _word(s, n - 16) * _K2
    return _pair(
        (_rotate(a + b, 43) + _rotate(c, 30) + d) & _M, (a + _rotate(b + _K2, 18) + c) & _M, mul
    )


def _up_to_64(s: bytes, n: int) -> int:
    mul = _K2 + n * 2
    a, b = _word(s, 0) * _K2, _word(s, 8)
    c, d = _word(s, n - 8) * mul, _word(s, n - 16) * _K2
    y = (_rotate(a + b, 43) + _rotate(c, 30) + d) & _M
    z = _pair(y, (a + _rotate(b + _K2, 18) + c) & _M, mul)
    e, f = _word(s, 16) * mul, _word(s, 24)
    g, h = (y + _word(s, n - 32)) * mul, (z + _word(s, n - 24)) * mul
    return _pair(
        (_rotate(e + f, 43) + _rotate(g, 30) + h) & _M, (e + _rotate(f + a, 18) + g) & _M, mul
    )


def _weak(s: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = (_word(s, at + i) for i in (0, 8, 16, 24))
    a += w
    b = _rotate(b + a + z, 21)
    c = a
    a += x + y
    b += _rotate(a, 44)
    return (a + z) & _M, (b + c) & _M


def _long(s: bytes, n: int) -> int:
    seed = 81
    y = (seed * _K1 + 113) & _M
    z = _mix(y * _K2 + 113) * _K2 & _M
    v, w = (0, 0), (0, 0)
    x = (seed * _K2 + _word(s, 0)) & _M
    end = (n - 1) // 64 * 64
    for at in range(0, end, 64):
        x, y, z, v, w = _round(s, at, x, y, z, v, w, _K1, 1)
    mul = _K1 + ((z & 0xFF) << 1)
    w = ((w[0] + ((n - 1) & 63)) & _M, w[1])
    v = ((v[0] + w[0]) & _M, v[1])
    w = ((w[0] + v[0]) & _M, w[1])
    x, y, z, v, w = _round(s, n - 64, x, y, z, v, w, mul, 9)
    first = _pair(v[0], w[0], mul) + _mix(y) * _K0 + z
    return _pair(first & _M, (_pair(v[1], w[1], mul) + x) & _M, mul)


def _round(
    s: bytes,
    at: int,
    x: int,
    y: int,
    z: int,
    v: tuple[int, int],
    w: tuple[int, int],
    mul: int,
    weight: int,
) -> tuple[int, int, int, tuple[int, int], tuple[int, int]]:
    """64 bytes into the state; the last round weighs v and w more."""
    x = _rotate(x + y + v[0] + _word(s, at + 8), 37) * mul & _M
    y = _rotate(y + v[1] + _word(s, at + 48), 42) * mul & _M
    x ^= w[1] * weight & _M
    y = (y + v[0] * weight + _word(s, at + 40)) & _M
    z = _rotate(z + w[0], 33) * mul & _M
    v = _weak(s, at, v[1] * mul & _M, (x + w[0]) & _M)
    w = _weak(s, at + 32, (z + w[1]) & _M, (y + _word(s, at + 16)) & _M)
    return z, y, x, v, w


def hash64(s: bytes, seed: int = 0xDECAFCAFFE) -> int:
    """Murmur 2 in 64 bits: ``StringToHashBucket``."""
    m, r = 0xC6A4A7935BD1E995, 47
    h = seed ^ (len(s) * m & _M)
    whole = len(s) // 8 * 8
    for at in range(0, whole, 8):
        k = _word(s, at) * m & _M
        k = (k ^ (k >> r)) * m & _M
        h = (h ^ k) * m & _M
    if len(s) > whole:
        h = (h ^ int.from_bytes(s[whole:], "little")) * m & _M
    h = (h ^ (h >> r)) * m & _M
    return h ^ (h >> r)


def sip_hash(s: bytes, key: Sequence[int]) -> int:
    """SipHash-2-4 with a key of two words: ``StringToHashBucketStrong``."""
    k0, k1 = key[0] & _M, key[1] & _M
    v = [
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    ]
    whole = len(s) // 8 * 8
    words = [_word(s, at) for at in range(0, whole, 8)]
    words.append(int.from_bytes(s[whole:], "little") | (len(s) & 0xFF) << 56)
    for m in words:
        v[3] ^= m
        _sip_round(v)
        _sip_round(v)
        v[0] ^= m
    v[2] ^= 0xFF
    for _ in range(4):
        _sip_round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _sip_round(v: list[int]) -> None:
    left = (64 - 13, 64 - 16, 64 - 21, 64 - 17)
    v[0] = (v[0] + v[1]) & _M
    v[2] = (v[2] + v[3]) & _M
    v[1] = _rotate(v[1], left[0]) ^ v[0]
    v[3] = _rotate(v[3], left[1]) ^ v[2]
    v[0] = _rotate(v[0], 32)
    v[2] = (v[2] + v[1]) & _M
    v[0] = (v[0] + v[3]) & _M
    v[1] = _rotate(v[1], left[3]) ^ v[2]
    v[3] = _rotate(v[3], left[2]) ^ v[0]
    v[2] = _rotate(v[2], 32)
