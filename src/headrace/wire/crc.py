"""The checksum of TensorFlow's files: CRC-32C, *masked* where it is stored next to the data that it
covers.

>>> hex(value(b"123456789"))
'0xe3069283'
>>> unmask(mask(7))
7
"""

from __future__ import annotations

from google_crc32c import extend, value

__all__ = ["extend", "mask", "masked", "unmask", "value"]

_DELTA = 0xA282EAD8
_WORD = 0xFFFFFFFF


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
