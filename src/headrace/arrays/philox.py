"""TensorFlow's random bits and the numbers that it makes of them.

The generator is Philox 4x32-10: a 128-bit counter, encrypted under a 64-bit key, gives four 32-bit words. Position p of a
stream is one such group of four, so any part of a stream can be computed by itself, in blocks and on all cores, and
the result never depends on how the work was split.

TensorFlow's key is the op's ``seed``, the upper half of its counter is ``seed2``, and an op that makes n numbers moves
its position on by 256 n. The conversions below (23 mantissa bits, Box-Muller, groups of a truncated normal that are 256
positions apart) are TensorFlow's as well, so equal seeds give equal numbers: exactly for uniforms and
integers, to the last bit or two of a float for what goes through log, sin and cos.

    >>> Guarded(seed=87654321, seed2=1).reserve(256 * 3)
    Philox(key=87654321, stream=1, position=0)
    >>> uniform(Philox(87654321, 1, 0), 3, np.dtype(np.float32))
    array([0.2390374 , 0.92039955, 0.05051243], dtype=float32)
"""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.arrays import blocks

__all__ = [
    "Guarded", "Philox", "box_muller_double", "groups", "groups_at", "normal", "stateless", "truncated_normal",
    "uniform", "uniform_double", "uniform_float", "uniform_int",
]  # fmt: skip

Array = NDArray[Any]

_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIERS = np.array([[0xD2511F53], [0xCD9E8D57]], np.uint64)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_U64 = (1 << 64) - 1
#: Groups computed at once: the working arrays of a block fit into a core's L2 cache.
_BLOCK = 8192
#: Below this many groups plain integers are faster than arrays.
_FEW = 4


class Philox(NamedTuple):
    """A place in a random stream. ``position`` counts groups of four words."""

    key: int
    stream: int
    position: int

    def skip(self, count: int) -> Philox:
        return Philox(self.key, self.stream, (self.position + count) & _U64)


class Guarded:
    """The generator of one op in one session: concurrent runs get disjoint stretches of the stream."""

    def __init__(self, seed: int, seed2: int) -> None:
        if seed == 0 and seed2 == 0:  # TensorFlow's way to say "anything"
            seed, seed2 = secrets.randbits(64), secrets.randbits(64)
        self._next = Philox(seed & _U64, seed2 & _U64, 0)
        self._lock = threading.Lock()

    def reserve(self, count: int) -> Philox:
        """The next ``count`` groups are the caller's."""
        with self._lock:
            start = self._next
            self._next = start.skip(count)
        return start


def stateless(seed: Any) -> Philox:
    """The stream of the stateless ops: the two seeds are scrambled by one Philox call into key and counter."""
    first, second = (int(s) & _U64 for s in seed)
    a, b, c, d = _one_group(0x02461E293EC8F720, second, first)
    return Philox(a | b << 32, c | d << 32, 0)


# the generator ----------------------------------------------------------------------------------


@lru_cache(64)
def _round_keys(key: int) -> tuple[list[tuple[int, int]], list[Array]]:
    """The ten round keys, as integers and as columns."""
    low, high = key & 0xFFFFFFFF, key >> 32
    pairs = [((low + i * _WEYL[0]) & 0xFFFFFFFF, (high + i * _WEYL[1]) & 0xFFFFFFFF) for i in range(10)]
    return pairs, [np.array([[a], [b]], np.uint64) for a, b in pairs]


def _one_group(key: int, stream: int, position: int) -> tuple[int, int, int, int]:
    a, b, c, d = position & 0xFFFFFFFF, position >> 32, stream & 0xFFFFFFFF, stream >> 32
    for k0, k1 in _round_keys(key)[0]:
        p, q = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (q >> 32) ^ b ^ k0, q & 0xFFFFFFFF, (p >> 32) ^ d ^ k1, p & 0xFFFFFFFF
    return a, b, c, d


def _encrypt(gen: Philox, positions: Array) -> tuple[Array, Array]:
    """Words (0, 2) and words (1, 3) of the groups at ``positions``, each (2, n) in uint64.

    The upper halves of the second array are not cleared.
    """
    n = positions.size
    even = np.empty((2, n), np.uint64)
    odd = np.empty((2, n), np.uint64)
    spare = np.empty((2, n), np.uint64)
    np.bitwise_and(positions, _MASK, out=even[0])
    np.right_shift(positions, _HALF, out=odd[0])
    even[1] = gen.stream & 0xFFFFFFFF
    odd[1] = gen.stream >> 32
    for key in _round_keys(gen.key)[1]:
        np.multiply(even, _MULTIPLIERS, out=spare)
        product = spare[::-1]
        np.right_shift(product, _HALF, out=even)
        np.bitwise_xor(even, odd, out=even)
        np.bitwise_xor(even, key, out=even)
        np.bitwise_and(even, _MASK, out=even)
        odd, spare = product, odd
    return even, odd


def _interleave(even: Array, odd: Array, out: Array) -> None:
    """Write the words in their order; ``out`` is (n, 2) uint64, two words in each."""
    np.left_shift(odd, _HALF, out=odd)
    np.bitwise_or(odd, even, out=odd)
    out[...] = odd.T


def groups_at(gen: Philox, offsets: Array) -> Array:
    """The groups at ``gen.position + offsets``: (n, 4) uint32."""
    words = np.empty((offsets.size, 2), np.uint64)
    _interleave(*_encrypt(gen, offsets.astype(np.uint64) + np.uint64(gen.position)), words)
    return words.view(np.uint32)


def groups(gen: Philox, n: int) -> Array:
    """The next n groups: (n, 4) uint32."""
    if n <= _FEW:
        few = [_one_group(gen.key, gen.stream, (gen.position + i) & _U64) for i in range(n)]
        return np.array(few, np.uint32).reshape(n, 4)
    words = np.empty((n, 2), np.uint64)
    _fill(gen, n, lambda lo, hi, even, odd: _interleave(even, odd, words[lo:hi]))
    return words.view(np.uint32)


def _fill(gen: Philox, n: int, write: Callable[[int, int, Array, Array], None]) -> None:
    """Call ``write(lo, hi, even, odd)`` for blocks of the next n groups."""

    def work(lo: int, hi: int) -> None:
        positions = np.arange(lo, hi, dtype=np.uint64)
        positions += np.uint64(gen.position)
        write(lo, hi, *_encrypt(gen, positions))

    _over_ranges(work, n)


def _over_ranges(work: Callable[[int, int], None], n: int) -> None:
    """Call ``work(lo, hi)`` for blocks of range(n), on all cores when there are several."""

    def several(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            for lo in range(start, stop, _BLOCK):
                work(lo, min(lo + _BLOCK, stop))

    threads = min(blocks.thread_count(), -(-n // _BLOCK))
    if threads <= 1:
        several(0, n)
        return
    step = -(-n // threads)
    futures = [blocks.pool().submit(several, lo, min(lo + step, n)) for lo in range(step, n, step)]
    try:
        several(0, step)
    finally:
        for future in futures:
            future.result()


# uniform ----------------------------------------------------------------------------------------


def uniform(gen: Philox, count: int, dtype: np.dtype[Any]) -> Array:
    """``count`` numbers in [0, 1) of a floating type: random mantissa bits under the exponent of 1, less 1."""
    if dtype == np.float64:
        return uniform_double(groups(gen, -(-count // 2))).reshape(-1)[:count]
    words = groups(gen, -(-count // 4)).reshape(-1)[:count]
    if dtype == np.float32:
        return uniform_float(words)
    bits, exponent = (10, 15) if dtype == np.float16 else (7, 127)
    words &= np.uint32((1 << bits) - 1)
    words |= np.uint32(exponent << bits)
    return words.astype(np.uint16).view(dtype) - dtype.type(1)  # type: ignore[no-any-return]


def uniform_float(words: Array) -> Array:
    """Overwrites the words."""
    words &= np.uint32(0x7FFFFF)
    words |= np.uint32(0x3F800000)
    out = words.view(np.float32)
    out -= np.float32(1)
    return out


def uniform_double(words: Array) -> Array:
    """(n, 4) words to (n, 2) numbers: 20 bits of the first word of a pair above the 32 bits of the second."""
    pairs = words.view(np.uint64)
    bits = (pairs & np.uint64(0xFFFFF)) << _HALF
    bits |= pairs >> _HALF
    bits |= np.uint64(1023 << 52)
    out = bits.view(np.float64)
    out -= 1.0
    return out


def uniform_int(gen: Philox, count: int, low: int, high: int, dtype: np.dtype[Any]) -> Array:
    """``count`` integers in [low, high) of int32 or int64, by the remainder (slightly biased, as TensorFlow's are)."""
    per_group, unsigned = (4, np.uint32) if dtype == np.int32 else (2, np.uint64)
    words = groups(gen, -(-count // per_group)).view(unsigned).reshape(-1)[:count]
    words %= unsigned(high - low)
    words += np.array(low, dtype).view(unsigned)
    return words.view(dtype)


# normal -----------------------------------------------------------------------------------------


def normal(gen: Philox, count: int, dtype: np.dtype[Any]) -> Array:
    """``count`` standard normal numbers of a floating type."""
    if dtype == np.float64:
        return box_muller_double(groups(gen, -(-count // 2))).reshape(-1)[:count]
    n = -(-count // 4)
    out = np.empty((n, 2, 2), np.float32)

    def write(lo: int, hi: int, even: Array, odd: Array) -> None:
        _box_muller(even, odd, out[lo:hi].transpose(1, 0, 2))

    if n <= _FEW:
        words = groups(gen, n).reshape(n, 2, 2).astype(np.uint64)
        _box_muller(words[..., 0], words[..., 1], out)
    else:
        _fill(gen, n, write)
    flat = out.reshape(-1)[:count]
    return flat if dtype == np.float32 else flat.astype(dtype)


_TWO_PI = 2 * math.pi
_SMALLEST = float(np.float32(1e-7))
_TO_UNIT = 2.0**-23


def _box_muller(first: Array, second: Array, out: Array) -> None:
    """Pairs of words (uint64, lower halves) to pairs of float32 normals in ``out[..., 2]``.

    log, sin and cos are computed in double and rounded once: what a good C library gives for floats.
    """
    radius = (first & np.uint64(0x7FFFFF)).astype(np.float64)
    radius *= _TO_UNIT
    np.maximum(radius, _SMALLEST, out=radius)
    np.log(radius, out=radius)
    single = radius.astype(np.float32)
    single *= np.float32(-2)
    np.sqrt(single, out=single)
    angle = (second & np.uint64(0x7FFFFF)).astype(np.float64)
    angle *= _TO_UNIT * _TWO_PI
    sine, cosine = _sincos(angle.astype(np.float32).astype(np.float64))
    np.multiply(sine.astype(np.float32), single, out=out[..., 0])
    np.multiply(cosine.astype(np.float32), single, out=out[..., 1])


_SIN = [(-1.0) ** k / math.factorial(2 * k + 1) for k in range(6)]
_COS = [(-1.0) ** k / math.factorial(2 * k) for k in range(7)]


def _polynomial(coefficients: list[float], x: Array) -> Array:
    out = x * coefficients[-1]
    for c in coefficients[-2:0:-1]:
        out += c
        out *= x
    out += coefficients[0]
    return out


def _sincos(angle: Array) -> tuple[Array, Array]:
    """Sine and cosine of angles in [0, 2 pi], good to float32: the quarter turn's remainder through a series."""
    quarter = angle * (2 / math.pi)
    np.rint(quarter, out=quarter)
    rest = quarter * (math.pi / 2)
    np.subtract(angle, rest, out=rest)
    square = rest * rest
    sine = _polynomial(_SIN, square)
    sine *= rest
    cosine = _polynomial(_COS, square)
    turn = quarter.astype(np.int8)
    swap = (turn & 1).astype(bool)
    sine, cosine = np.where(swap, cosine, sine), np.where(swap, sine, cosine)
    np.negative(sine, out=sine, where=(turn & 2).astype(bool))
    np.negative(cosine, out=cosine, where=((turn + 1) & 2).astype(bool))
    return sine, cosine


def box_muller_double(words: Array) -> Array:
    """(n, 4) words to (n, 2) float64 normals."""
    numbers = uniform_double(words)
    radius = np.sqrt(-2.0 * np.log(np.maximum(numbers[:, 0], 1e-7)))
    angle = numbers[:, 1] * _TWO_PI
    out = np.empty_like(numbers)
    np.multiply(np.sin(angle), radius, out=out[:, 0])
    np.multiply(np.cos(angle), radius, out=out[:, 1])
    return out


def _normals_at(gen: Philox, offsets: Array, double: bool) -> Array:
    """All normals of the groups at the given offsets, (n, 4) float32 or (n, 2) float64."""
    if double:
        return box_muller_double(groups_at(gen, offsets))
    even, odd = _encrypt(gen, offsets + np.uint64(gen.position))
    out = np.empty((offsets.size, 2, 2), np.float32)
    _box_muller(even, odd, out.transpose(1, 0, 2))
    return out.reshape(-1, 4)


def truncated_normal(gen: Philox, count: int, dtype: np.dtype[Any]) -> Array:
    """``count`` standard normal numbers, those outside (-2, 2) drawn again.

    A group of outputs has a stretch of the stream to itself and takes the first numbers in it that are inside.
    """
    double = dtype == np.float64
    width, stretch = (2, 128) if double else (4, 256)
    n = -(-count // width)
    out = np.empty((n, width), np.float64 if double else np.float32)

    def work(lo: int, hi: int) -> None:
        _truncated_groups(gen.skip(lo * stretch), out[lo:hi], stretch, double)

    _over_ranges(work, n)
    flat = out.reshape(-1)[:count]
    return flat if dtype == out.dtype else flat.astype(dtype)


def _truncated_groups(gen: Philox, out: Array, stretch: int, double: bool) -> None:
    """Fill the rows of ``out``. Most rows are done with their first group; the others look further, ever wider."""
    n, width = out.shape
    starts = np.arange(n, dtype=np.uint64) * np.uint64(stretch)
    out[...] = _normals_at(gen, starts, double)
    open_rows = np.flatnonzero((np.abs(out) >= 2).any(axis=1))
    look = 2
    while open_rows.size:
        offsets = starts[open_rows, None] + np.arange(look, dtype=np.uint64)
        found = _normals_at(gen, offsets.reshape(-1), double).reshape(open_rows.size, -1)
        inside = np.abs(found) < 2
        enough = inside.sum(axis=1) >= width
        take = inside & (inside.cumsum(axis=1) <= width) & enough[:, None]
        out[open_rows[enough]] = found[take].reshape(-1, width)
        open_rows = open_rows[~enough]
        look *= 4
