"""TensorFlow's random bits and the numbers that it makes of them.

The generator is Philox 4x32-10: a 128-bit counter, encrypted under a 64-bit key, gives four 32-bit
words. Position p of a stream is one such group of four, so any part of a stream can be computed by
itself, in blocks and on all cores, and the result never depends on how the work was split.

TensorFlow's key is the op's ``seed``, the upper half of its counter is ``seed2``, and an op that
makes n numbers moves its position on by 256 n. The conversions below (23 mantissa bits, Box-Muller,
groups of a truncated normal that are 256 positions apart) are TensorFlow's as well, so equal seeds
give equal numbers: exactly for uniforms and integers, to the last bit or two of a float for what
goes through log, sin and cos.

    >>> Guarded(seed=87654321, seed2=1).reserve(256 * 3)
    Philox(key=87654321, stream=1, position=0)
    >>> uniform(Philox(87654321, 1, 0), 3, np.dtype(np.float32))
    array([0.2390374 , 0.92039955, 0.05051243], dtype=float32)
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from headrace.kernels.hot_work import HotWork
from headrace.runtime import thread_pool as pool
from headrace.runtime.fork_locks import held_at_fork

__all__ = [
    "PER_NUMBER",
    "Guarded",
    "Maker",
    "Philox",
    "box_muller_double",
    "groups",
    "groups_at",
    "into_range",
    "normal",
    "stateless",
    "truncated_normal",
    "uniform",
    "uniform_double",
    "uniform_float",
    "words",
]

Array = np.ndarray[Any, Any]
#: ``(start, count, dtype, runs, stride)`` to the numbers of runs whose starts are ``stride`` apart.
Maker = Callable[["Philox", int, "np.dtype[Any]", int, int], Array]

_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIERS = np.array([[0xD2511F53], [0xCD9E8D57]], np.uint64)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_U64 = (1 << 64) - 1
#: Groups computed at once: the working arrays of a block fit into a core's L2 cache.
_BLOCK = 16384
#: Positions of the stream that TensorFlow sets aside for each number that an op makes.
PER_NUMBER = 256
#: Numbers that are computed ahead for an op, at most.
_MAX_AHEAD = 4096
_NONE = np.empty((0, 0))
#: Below this many groups plain integers are faster than arrays.
_MIN_ARRAY_GROUPS = 4
#: What a call of the NumPy code costs beside its numbers, in numbers: ten rounds of operations.
_CALL_COST = 1024
#: Computed in one pass once so many were drawn (kernels/native/philox_kernels.py): the same bits.
NATIVE = HotWork("random numbers", 1 << 19, "headrace.kernels.native.philox_kernels")


class Philox(NamedTuple):
    """A place in a random stream. ``position`` counts groups of four words."""

    key: int
    stream: int
    position: int

    def skip(self, count: int) -> Philox:
        return Philox(self.key, self.stream, (self.position + count) & _U64)


class Guarded:
    """The generator of one op in one session: concurrent runs get disjoint stretches of the stream.

    An op that makes a few numbers in every run would spend its time on the way to them, so
    ``numbers`` computes more and more runs ahead. What a run gets does not depend on that.
    """

    def __init__(self, seed: int, seed2: int) -> None:
        if seed == 0 and seed2 == 0:  # TensorFlow's way to say "anything"
            seed, seed2 = (int.from_bytes(os.urandom(8), "little") for _ in range(2))
        self._next = Philox(seed & _U64, seed2 & _U64, 0)
        self._lock = held_at_fork(threading.Lock())
        self._ahead = _NONE  # the numbers of coming runs, a row each
        self._row = 0
        self._returned: list[tuple[int, Philox]] = []  # stretches that were given back

    def reserve(self, count: int) -> Philox:
        """The next ``count`` groups are the caller's."""
        with self._lock:
            if self._returned:
                found = self._take_returned(count)
                if found is not None:
                    return found
            start = self._next
            self._next = start.skip(count)
            self._ahead = _NONE
        return start

    def numbers(self, make: Maker, count: int, dtype: np.dtype[Any]) -> Array:
        """``count`` numbers by a function below, always the same one for one generator."""
        return self.drawn(make, count, dtype)[0]

    def drawn(self, make: Maker, count: int, dtype: np.dtype[Any]) -> tuple[Array, Philox]:
        """The same, and where in the stream the numbers begin."""
        stride = PER_NUMBER * count
        if not 0 < count <= _MAX_AHEAD // 2:
            start = self.reserve(stride)
            return make(start, count, dtype, 1, 0), start
        with self._lock:
            if self._returned:
                found = self._take_returned(stride)
                if found is not None:
                    return make(found, count, dtype, 1, 0), found
            ahead = self._ahead
            if self._row == len(ahead) or ahead.shape[1] != count:
                runs = min(2 * len(ahead), _MAX_AHEAD // count) if ahead.shape[1] == count else 1
                ahead = make(self._next, count, dtype, runs, stride).reshape(runs, count)
                self._ahead, self._row = ahead, 0
            row: Array = ahead[self._row].copy()
            self._row += 1
            start = self._next
            self._next = start.skip(stride)
        return row, start

    def give_back(self, start: Philox, count: int) -> None:
        """Numbers that were drawn for nothing: who draws as many next gets the same again."""
        stride = PER_NUMBER * count
        with self._lock:
            if self._next != start.skip(stride):  # another thread has drawn since
                self._returned.append((stride, start))
                return
            self._next = start
            if self._row and self._ahead.shape[1] == count:
                self._row -= 1
            else:
                self._ahead = _NONE

    def _take_returned(self, stride: int) -> Philox | None:
        for n, (length, start) in enumerate(self._returned):
            if length == stride:
                del self._returned[n]
                return start
        return None


def stateless(seed: Sequence[int]) -> Philox:
    """The stream of the stateless ops: the seeds, encrypted once, are key and counter."""
    first, second = (int(s) & _U64 for s in seed)
    a, b, c, d = _one_group(0x02461E293EC8F720, second, first)
    return Philox(a | b << 32, c | d << 32, 0)


# the generator ----------------------------------------------------------------------------------


@lru_cache(64)
def _round_keys(key: int) -> tuple[list[tuple[int, int]], list[Array]]:
    """The ten round keys, as integers and as columns."""
    low, high = key & 0xFFFFFFFF, key >> 32
    pairs = [
        ((low + i * _WEYL[0]) & 0xFFFFFFFF, (high + i * _WEYL[1]) & 0xFFFFFFFF) for i in range(10)
    ]
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


def groups(gen: Philox, n: int, runs: int = 1, stride: int = 0) -> Array:
    """The next n groups, of each run: (runs * n, 4) uint32."""
    if runs * n <= _MIN_ARRAY_GROUPS:
        at = [(gen.position + r * stride + i) & _U64 for r in range(runs) for i in range(n)]
        return np.array([_one_group(gen.key, gen.stream, p) for p in at], np.uint32).reshape(-1, 4)
    found = _native("words", gen, (runs, 4 * n), np.uint32, stride)
    if found is not None:
        return found.reshape(-1, 4)
    if runs > 1:
        return groups_at(gen, _offsets(n, 1, runs, stride))
    words = np.empty((n, 2), np.uint64)
    _fill(gen, n, lambda lo, hi, even, odd: _interleave(even, odd, words[lo:hi]))
    return words.view(np.uint32)


def _native(
    kind: str, gen: Philox, shape: tuple[int, int], dtype: np.dtype[Any] | type[Any], stride: int
) -> Array | None:
    """(runs, count) numbers end to end by compiled code; None while NumPy is to compute them."""
    kernels = NATIVE.kernels(shape[0] * shape[1] + _CALL_COST)
    if kernels is None:
        return None
    out = np.empty(shape[0] * shape[1], dtype)
    kernels.fill(kind, gen, out, shape[0], stride)
    return out


def _offsets(n: int, step: int, runs: int, stride: int) -> Array:
    """Where the groups of several runs are, ``step`` apart within a run."""
    within = np.arange(n, dtype=np.uint64) * np.uint64(step)
    return (np.arange(runs, dtype=np.uint64)[:, None] * np.uint64(stride) + within).reshape(-1)


def _cut(values: Array, count: int, runs: int) -> Array:
    """The first ``count`` of each run's values, end to end."""
    return values.reshape(runs, -1)[:, :count].reshape(-1)


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

    threads = min(pool.thread_count(), -(-n // _BLOCK))
    if threads <= 1:
        several(0, n)
        return
    step = -(-n // threads)
    pool.parallel([partial(several, lo, min(lo + step, n)) for lo in range(0, n, step)])


# uniform ----------------------------------------------------------------------------------------


_UNIFORM_KINDS = {np.dtype(np.float32): "uniform", np.dtype(np.float64): "uniform double"}


def uniform(gen: Philox, count: int, dtype: np.dtype[Any], runs: int = 1, stride: int = 0) -> Array:
    """``count`` numbers in [0, 1): random mantissa bits under the exponent of 1, less 1."""
    kind = _UNIFORM_KINDS.get(dtype)
    if kind is not None and runs * count > 4 * _MIN_ARRAY_GROUPS:
        found = _native(kind, gen, (runs, count), dtype, stride)
        if found is not None:
            return found
    if dtype == np.float64:
        return _cut(uniform_double(groups(gen, -(-count // 2), runs, stride)), count, runs)
    words = _cut(groups(gen, -(-count // 4), runs, stride), count, runs)
    if dtype == np.float32:
        return uniform_float(words)
    bits, exponent = (10, 15) if dtype == np.float16 else (7, 127)
    words &= np.uint32((1 << bits) - 1)
    words |= np.uint32(exponent << bits)
    halves: np.ndarray[Any, Any] = words.astype(np.uint16).view(dtype) - dtype.type(1)
    return halves


def uniform_float(words: Array) -> Array:
    """Overwrites the words."""
    words &= np.uint32(0x7FFFFF)
    words |= np.uint32(0x3F800000)
    out = words.view(np.float32)
    out -= np.float32(1)
    return out


def uniform_double(words: Array) -> Array:
    """(n, 4) words to (n, 2) numbers: 20 bits of one word above the 32 bits of the next."""
    pairs = words.view(np.uint64)
    bits = (pairs & np.uint64(0xFFFFF)) << _HALF
    bits |= pairs >> _HALF
    bits |= np.uint64(1023 << 52)
    out = bits.view(np.float64)
    out -= 1.0
    return out


def words(gen: Philox, count: int, dtype: np.dtype[Any], runs: int = 1, stride: int = 0) -> Array:
    """``count`` random words as wide as ``dtype`` (int32 or int64), unsigned."""
    per_group, unsigned = (4, np.uint32) if dtype == np.int32 else (2, np.uint64)
    return _cut(groups(gen, -(-count // per_group), runs, stride).view(unsigned), count, runs)


def into_range(bits: Array, low: int, high: int, dtype: np.dtype[Any]) -> Array:
    """Words to integers in [low, high), by the remainder as in TensorFlow. Overwrites the words."""
    bits %= bits.dtype.type(high - low)
    bits += np.array(low, dtype).view(bits.dtype)
    return bits.view(dtype)


# normal -----------------------------------------------------------------------------------------


def normal(gen: Philox, count: int, dtype: np.dtype[Any], runs: int = 1, stride: int = 0) -> Array:
    """``count`` standard normal numbers of a floating type."""
    if dtype == np.float64:
        return _cut(box_muller_double(groups(gen, -(-count // 2), runs, stride)), count, runs)
    n = -(-count // 4)
    found = (
        _native("normal", gen, (runs, count), np.float32, stride)
        if n * runs > _MIN_ARRAY_GROUPS
        else None
    )
    if found is not None:
        return found if dtype == np.float32 else found.astype(dtype)
    out = np.empty((runs * n, 2, 2), np.float32)

    def write(lo: int, hi: int, even: Array, odd: Array) -> None:
        _box_muller(even, odd, out[lo:hi].transpose(1, 0, 2))

    if runs > 1 or n <= _MIN_ARRAY_GROUPS:
        pairs = groups(gen, n, runs, stride).reshape(-1, 2, 2).astype(np.uint64)
        _box_muller(pairs[..., 0], pairs[..., 1], out)
    else:
        _fill(gen, n, write)
    flat = _cut(out, count, runs)
    return flat if dtype == np.float32 else flat.astype(dtype)


_TWO_PI = 2 * math.pi
_SMALLEST = float(np.float32(1e-7))


def _unit(bits: Array) -> Array:
    """The float64 that equals :func:`uniform_float` of the lower halves."""
    mantissa = bits & np.uint64(0x7FFFFF)
    mantissa <<= np.uint64(29)
    mantissa |= np.uint64(1023 << 52)
    out = mantissa.view(np.float64)
    out -= 1.0
    return out


def _box_muller(first: Array, second: Array, out: Array) -> None:
    """Pairs of words (uint64, lower halves) to pairs of float32 normals in ``out[..., 2]``.

    log, sin and cos are computed in double and rounded once: what a good C library gives for
    floats.
    """
    radius = _unit(first)
    np.maximum(radius, _SMALLEST, out=radius)
    np.log(radius, out=radius)
    single = radius.astype(np.float32)
    single *= np.float32(-2)
    np.sqrt(single, out=single)
    angle = _unit(second)
    angle *= _TWO_PI
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
    """Sine and cosine of angles in [0, 2 pi], good to float32: a series within a quarter turn."""
    quarter = angle * (2 / math.pi)
    np.rint(quarter, out=quarter)
    rest = quarter * (math.pi / 2)
    np.subtract(angle, rest, out=rest)
    square = rest * rest
    sine = _polynomial(_SIN, square)
    sine *= rest
    cosine = _polynomial(_COS, square)
    quarter += 2.0**52  # the number of quarter turns is now in the lowest bits
    turn = quarter.view(np.uint64)
    a, b = sine.view(np.uint64), cosine.view(np.uint64)
    swapped = np.uint64(0) - (turn & np.uint64(1))  # odd turns: all bits, exchange the two
    swapped &= a ^ b
    a ^= swapped
    b ^= swapped
    a ^= (turn & np.uint64(2)) << np.uint64(62)
    b ^= ((turn + np.uint64(1)) & np.uint64(2)) << np.uint64(62)
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


def truncated_normal(
    gen: Philox, count: int, dtype: np.dtype[Any], runs: int = 1, stride: int = 0
) -> Array:
    """``count`` standard normal numbers, those outside (-2, 2) drawn again.

    A group of outputs has a stretch of the stream to itself and takes the first numbers in it that
    are inside.
    """
    double = dtype == np.float64
    if not double:
        found = _native("truncated normal", gen, (runs, count), np.float32, stride)
        if found is not None:
            return found if dtype == np.float32 else found.astype(dtype)
    width, stretch = (2, 128) if double else (4, 256)
    n = -(-count // width)
    starts = _offsets(n, stretch, runs, stride)
    out = np.empty((runs * n, width), np.float64 if double else np.float32)

    def work(lo: int, hi: int) -> None:
        _truncated_groups(gen, starts[lo:hi], out[lo:hi])

    _over_ranges(work, runs * n)
    flat = _cut(out, count, runs)
    return flat if dtype == out.dtype else flat.astype(dtype)


def _truncated_groups(gen: Philox, starts: Array, out: Array) -> None:
    """Fill the rows of ``out``. Most are done with their first group; the others look further."""
    width = out.shape[1]
    double = width == 2
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
