"""TensorFlow's random numbers (kernels/numpy/philox.py) in one pass over their memory.

A kernel computes as many groups of four words at once as a register has 32-bit lanes: the ten
rounds of Philox, the conversion to numbers, and an interleaving store. Groups are independent, so a
stretch of the stream can be cut anywhere between them. The numbers are the same bits as NumPy's:

- words and uniforms are integer operations and one exact subtraction;
- a normal number's logarithm, sine and cosine are computed in double and rounded to float32. There
  are 2**23 arguments of each, and a test compares all of them.

``sizes`` are (position, key, stream, numbers of a run, runs, positions between runs); the one
operand is the result; items are groups.

    fill("normal", Philox(seed, seed2, 0), out)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from headrace.kernels.native.element_loops import load_operands
from headrace.kernels.native.ir_builder import Function, module
from headrace.kernels.native.ir_values import Type, Value
from headrace.kernels.native.kernel import Kernel
from headrace.kernels.native.llvm_library import load

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["KINDS", "fill"]

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
#: Groups that a thread takes at least.
_GRAIN = 4096
#: Positions that a group of a truncated normal has to itself.
_STRETCH = 256
_SMALLEST = 1.0000000116860974e-07  # float32(1e-7)
_LN2_HIGH = float.fromhex("0x1.62e42fefa38p-1")  # ends in zeros: times an exponent it is exact
_LN2_LOW = float.fromhex("0x1.ef35793c7673p-45")
#: atanh(s) = s + s**3/3 + …: of |s| < 0.172, to 2**-56.
_ATANH = [1 / (2 * k + 1) for k in range(10, 0, -1)]
_SIN = [(-1.0) ** k / math.factorial(2 * k + 1) for k in range(6)]
_COS = [(-1.0) ** k / math.factorial(2 * k) for k in range(7)]

Words = tuple[Value, Value, Value, Value]
Convert = Callable[[Function, Words], Value]


def _round_keys(f: Function, key: Value) -> list[tuple[Value, Value]]:
    low, high = f.convert(key, "u32"), f.convert(key >> 32, "u32")
    return [
        (
            f.convert(low + i * _WEYL[0] % 2**32, "u64"),
            f.convert(high + i * _WEYL[1] % 2**32, "u64"),
        )
        for i in range(_ROUNDS)
    ]


def _halves(f: Function, x: Value) -> tuple[Value, Value]:
    """The lower and upper 32 bits of u64, each in a lane of its own."""
    return x & 0xFFFFFFFF, x >> 32


def _philox(
    f: Function, positions: Value, stream: Value, keys: Sequence[tuple[Value, Value]]
) -> Words:
    """The groups at some positions (u64), a lane each; words are the lower halves of u64.

    A product of 32 bits is one instruction of 64-bit lanes, so nothing is packed or unpacked.
    """
    a, b = _halves(f, positions)
    c, d = (f.like(v, a) for v in _halves(f, stream))
    for first, second in keys:
        (low_p, high_p), (low_q, high_q) = (_halves(f, x * m) for x, m in zip((a, c), _MULTIPLIERS))
        a, b, c, d = high_q ^ b ^ first, low_q, high_p ^ d ^ second, low_p
    return a, b, c, d


# numbers ----------------------------------------------------------------------------------------


def _uniform(f: Function, words: Words) -> Value:
    return f.from_bits(_words(f, words) & 0x7FFFFF | 0x3F800000) - 1.0


def _unit(f: Function, word: Value) -> Value:
    """A uniform number of float32 as float64: 23 bits of a word."""
    return f.from_bits((word & 0x7FFFFF) << 29 | 1023 << 52) - 1.0


def _log(f: Function, x: Value) -> Value:
    """Of doubles in [1e-7, 1]."""
    root = 0x3FE6A09E667F3BCD  # sqrt(1/2)
    bits = f.bits(x) - root
    mantissa = f.from_bits((bits & ((1 << 52) - 1)) + root)
    exponent = f.convert(f.convert(bits >> 52, "i32"), "f64")
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square = s * s
    series = f.polynomial(square, _ATANH) * square * s
    small = f.fma(exponent, _LN2_LOW, series * 2.0)
    return f.fma(exponent, _LN2_HIGH, f.fma(s, 2.0, small))


def _sincos(f: Function, angle: Value) -> tuple[Value, Value]:
    """Of doubles in [0, 2 pi], as philox.py does it."""
    quarter = f.round(angle * (2 / math.pi))
    rest = angle - quarter * (math.pi / 2)
    square = rest * rest
    sine = f.polynomial(square, _SIN[::-1]) * rest
    cosine = f.polynomial(square, _COS[::-1])
    turn = f.bits(quarter + 2.0**52)
    swap = f.compare("ne", turn & 1, 0)
    sine, cosine = f.select(swap, cosine, sine), f.select(swap, sine, cosine)
    minus = f.bits(sine) ^ ((turn & 2) << 62)
    return f.from_bits(minus), f.from_bits(f.bits(cosine) ^ (((turn + 1) & 2) << 62))


def _box_muller(f: Function, first: Value, second: Value) -> list[Value]:
    """Two words to two normals of float32."""
    unit, angle = _unit(f, first), _unit(f, second)
    unit = f.select(unit < _SMALLEST, _SMALLEST, unit)
    radius = f.sqrt(f.convert(_log(f, unit), "f32") * -2.0)
    angle = f.convert(f.convert(angle * (2 * math.pi), "f32"), "f64")
    sine, cosine = (f.convert(v, "f32") for v in _sincos(f, angle))
    return [sine * radius, cosine * radius]


def _normals(f: Function, words: Words) -> list[Value]:
    return _box_muller(f, words[0], words[1]) + _box_muller(f, words[2], words[3])


def _normal(f: Function, words: Words) -> Value:
    return _interleave(f, _normals(f, words))


def _words(f: Function, words: Words) -> Value:
    """The words themselves: two of a group are one number of 64 bits in memory."""
    pairs = _zip(f, words[1] << 32 | words[0], words[3] << 32 | words[2])
    return f.reinterpret(pairs, "u32")


def _double(f: Function, words: Words) -> Value:
    """Uniforms of float64: 20 bits of one word above the 32 bits of the next."""
    found = []
    for high, low in (words[:2], words[2:]):
        bits = (high & 0xFFFFF) << 32 | low | 1023 << 52
        found.append(f.from_bits(bits) - 1.0)
    return _zip(f, *found)


def _interleave(f: Function, parts: Sequence[Value]) -> Value:
    """Vectors x, y, … to x0 y0 … x1 y1 …"""
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [_zip(f, a, b) for a, b in zip(parts[:half], parts[half:])]
    return parts[0]


def _zip(f: Function, a: Value, b: Value) -> Value:
    lanes = a.type.lanes
    order = ", ".join(f"i32 {k}" for i in range(lanes) for k in (i, i + lanes))
    kind = Type(a.type.element, 2 * lanes)
    mask = f"<{2 * lanes} x i32> <{order}>"
    return f.new(f"shufflevector {a!r}, {b!r}, {mask}", kind)


# kernels ----------------------------------------------------------------------------------------


class _Stretch(NamedTuple):
    """What a kernel is told of the stream and the memory."""

    out: Value
    position: Value
    keys: list[tuple[Value, Value]]
    stream: Value
    numbers: Value  # of a run
    runs: Value
    stride: Value  # positions between the starts of two runs
    first: Value  # groups of each run
    end: Value


def _begin() -> tuple[Function, _Stretch]:
    f = Function(
        "philox", [("operands", "ptr"), ("sizes", "ptr"), ("first", "i64"), ("end", "i64")]
    )
    operands, at, first, end = f.arguments
    (out,) = load_operands(f, operands, 1)
    position, key, stream = (f.load(at, "u64", k) for k in range(3))
    count, runs, stride = (f.load(at, "i64", k) for k in range(3, 6))
    keys = _round_keys(f, key)
    return f, _Stretch(out, position, keys, stream, count, runs, stride, first, end)


def _source(convert: Convert, width: int, is_truncated: bool = False) -> str:
    """A kernel of groups of ``width`` numbers: one after the other, or each with a stretch of the
    stream to itself and numbers outside of (-2, 2) drawn again.
    """
    f, s = _begin()
    lanes = load().vector_bits // 32
    apart = _STRETCH if is_truncated else 1
    flags = f.local("bool", lanes) if is_truncated else None
    with f.loop(0, s.runs) as run:
        start = s.position + f.view(run.index * s.stride, "u64")
        offset = run.index * s.numbers
        limit = f.minimum(s.end * width, s.numbers)
        with f.loop(s.first, s.end, lanes) as loop:
            group = loop.index
            positions = f.ramp("u64", lanes) + f.view(group, "u64")
            positions = positions * apart + start
            words = _philox(f, positions, s.stream, s.keys)
            made = _normals(f, words) if is_truncated else [convert(f, words)]
            _store(f, _interleave(f, made), s.out, offset, group * width, limit)
            if flags is not None:
                is_open = [f.compare("ge", f.abs(x), 2.0) for x in made]
                any_open = functools.reduce(Value.__or__, is_open)
                _draw_again(f, s, flags, any_open, (start, offset, group, limit))
    return module(f)


def _store(f: Function, numbers: Value, out: Value, offset: Value, at: Value, limit: Value) -> None:
    """Numbers ``at`` and after, as far as they are below the limit."""
    lanes = numbers.type.lanes
    is_whole = at + lanes <= limit
    with f.when(is_whole):
        f.store(numbers, out, offset + at)
    with f.when(~is_whole):
        f.store(numbers, out, offset + at, f.lanes_below(limit - at, lanes))


def _draw_again(
    f: Function,
    s: _Stretch,
    flags: Value,
    is_open: Value,
    place: tuple[Value, Value, Value, Value],
) -> None:
    """Groups with a number outside (one in six) look for their numbers one after the other."""
    start, offset, group, limit = place
    lanes = is_open.type.lanes
    f.store(is_open, flags)
    bits = f.new(f"bitcast {is_open!r} to i{lanes}", Type(f"u{lanes}"))
    with f.when(f.compare("ne", bits, 0)), f.loop(0, lanes) as lane:
        number = (group + lane.index) * 4
        with f.when(f.load(flags, "bool", lane.index) & (number < limit)):
            own = start + f.view((group + lane.index) * _STRETCH, "u64")
            with _until_found(f) as (offset_in_stretch, found, following):
                at = own + f.view(offset_in_stretch, "u64")
                words = _philox(f, at, s.stream, s.keys)
                for x in _normals(f, words):
                    is_inside = (f.abs(x) < 2.0) & (found < 4)
                    with f.when(is_inside & (number + found < limit)):
                        f.store(x, s.out, offset + number + found)
                    found = found + f.select(is_inside, f.constant("i64", 1), 0)
                following.append(found)


@contextmanager
def _until_found(f: Function) -> Iterator[tuple[Value, Value, list[Value]]]:
    """Repeats until four numbers are found: how often it was done, how many were found before, and
    a list for how many there are then.
    """
    head, after = f.fresh_label("search"), f.fresh_label("found")
    before = f.block
    f.emit(f"br label %{head}")
    f.label(head)
    at = len(f.lines)
    turn, found = (Value(f, f"%{head}.{n}", Type("i64")) for n in ("turn", "count"))
    following: list[Value] = []
    yield turn, found, following
    (count,) = following
    next_turn = turn + 1
    last = f.block
    more = count < 4
    f.emit(f"br {more!r}, label %{head}, label %{after}")
    f.lines[at:at] = [
        f"  {v.name} = phi i64 [0, %{before}], [{n.name}, %{last}]"
        for v, n in ((turn, next_turn), (found, count))
    ]
    f.label(after)


#: How a kind of number is made of words, and how many of them of a group.
KINDS: dict[str, tuple[Convert, int]] = {
    "words": (_words, 4),
    "uniform": (_uniform, 4),
    "uniform double": (_double, 2),
    "normal": (_normal, 4),
    "truncated normal": (_normal, 4),
}


@functools.cache
def _kernel(kind: str) -> Kernel:
    convert, width = KINDS[kind]
    return Kernel(_source(convert, width, kind == "truncated normal"), "philox")


def fill(kind: str, generator: tuple[int, int, int], out: Array, runs: int, stride: int) -> None:
    """Numbers of a kind from (key, stream, position) on, in a flat array of ``runs`` runs."""
    if not out.size:
        return
    key, stream, position = generator
    width = KINDS[kind][1]
    count = out.size // runs
    kernel = _kernel(kind)
    sizes = [_signed(position), _signed(key), _signed(stream), count, runs, stride]
    groups = -(-count // width)
    kernel.run([out], sizes, groups, _GRAIN if runs == 1 else groups + 1)


def _signed(x: int) -> int:
    return x - (1 << 64) if x >> 63 else x
