"""The checksum of TensorFlow's files: CRC-32C, *masked* where it is stored next to the data that it
covers.

>>> hex(value(b"123456789"))
'0xe3069283'
>>> unmask(mask(7))
7
>>> combine(value(b"1234"), value(b"56789"), 5) == value(b"123456789")
True
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from google_crc32c import extend, value

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["combine", "extend", "extend_array", "mask", "masked", "unmask", "value"]

_DELTA = 0xA282EAD8
_WORD = 0xFFFFFFFF
#: The polynomial, reflected: bit 31 is the coefficient of x^0.
_POLYNOMIAL = 0x82F63B78
_ONE, _X = 1 << 31, 1 << 30


def mask(crc: int) -> int:
    """A checksum in its stored form: a checksum of data that holds checksums would be a weak
    one.
    """
    return ((crc >> 15 | crc << 17) + _DELTA) & _WORD


def unmask(stored: int) -> int:
    """The checksum that was stored as ``stored``."""
    rotated = (stored - _DELTA) & _WORD
    return (rotated >> 17 | rotated << 15) & _WORD


def masked(data: bytes) -> int:
    """The checksum of ``data``, as it is stored."""
    return mask(value(data))


# arrays -------------------------------------------------------------------------------------------


def extend_array(crc: int, array: Array) -> int:
    """The checksum of what ``crc`` covers and of a contiguous array after it.

    The array is neither copied nor changed, and other threads run meanwhile.
    """
    if not array.nbytes:
        return crc
    return _of_memory()(crc, array.ctypes.data, array.nbytes)


@functools.cache
def _of_memory() -> Callable[[int, int, int], int]:
    """(checksum, address, bytes) -> checksum.

    google_crc32c takes only ``bytes`` and holds the interpreter's lock. The C library that it
    brings does neither; where its function cannot be reached, pieces are copied.
    """
    import ctypes

    try:
        from google_crc32c import _crc32c

        function = ctypes.CDLL(_crc32c.__file__).crc32c_extend  # of a library that it is linked to
    except (ImportError, OSError, AttributeError):
        return _extend_copies
    function.argtypes = [ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t]
    function.restype = ctypes.c_uint32
    return function


def _extend_copies(crc: int, address: int, size: int) -> int:
    import ctypes

    piece = 1 << 16  # the copy is read from the cache
    for at in range(0, size, piece):
        crc = extend(crc, ctypes.string_at(address + at, min(piece, size - at)))
    return crc


# joining ------------------------------------------------------------------------------------------


def combine(first: int, second: int, size: int) -> int:
    """The checksum of two neighbouring pieces from theirs; ``size``: bytes of the second."""
    return _product(_power(8 * size), first) ^ second


def _product(a: int, b: int) -> int:
    """a(x) b(x) modulo the polynomial."""
    out = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            out ^= b
        b = b >> 1 ^ _POLYNOMIAL if b & 1 else b >> 1
    return out


@functools.lru_cache(256)
def _power(n: int) -> int:
    """x^n modulo the polynomial."""
    out, square = _ONE, _X
    while n:
        if n & 1:
            out = _product(square, out)
        square = _product(square, square)
        n >>= 1
    return out
