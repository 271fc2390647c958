"""Inputs for fuzz_readers.py: good files of each kind, what a mutation does to one, and files that
declare more than they hold.

Everything depends on a ``random.Random`` alone: the same seed makes the same inputs.
"""

from __future__ import annotations

import gzip
import io
import random
import struct
import zlib
from collections.abc import Callable
from typing import Any

__all__ = ["BOMBS", "SEEDS", "mutated"]

_NUMBERS = (
    0,
    1,
    2,
    127,
    128,
    255,
    256,
    32767,
    65535,
    2**24,
    2**28,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**40,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
)


# mutations --------------------------------------------------------------------------------------


def _flip(r: random.Random, d: bytearray) -> None:
    d[r.randrange(len(d))] ^= 1 << r.randrange(8)


def _set(r: random.Random, d: bytearray) -> None:
    d[r.randrange(len(d))] = r.choice((0, 1, 0x22, 0x2C, 0x0A, 0x7F, 0x80, 0xFF))


def _number(r: random.Random, d: bytearray) -> None:
    width = r.choice((1, 2, 4, 8))
    at = r.randrange(len(d))
    value = r.choice(_NUMBERS) & (1 << 8 * width) - 1
    d[at : at + width] = value.to_bytes(width, r.choice(("little", "big")))


def _drop(r: random.Random, d: bytearray) -> None:
    at = r.randrange(len(d))
    del d[at : at + r.choice((1, 2, 4, 16, 100))]


def _repeat(r: random.Random, d: bytearray) -> None:
    at = r.randrange(len(d))
    piece = d[at : at + r.choice((1, 4, 12, 64))]
    d[at:at] = piece * r.choice((1, 2, 50))


def _truncate(r: random.Random, d: bytearray) -> None:
    del d[r.randrange(len(d)) :]


def _insert(r: random.Random, d: bytearray) -> None:
    at = r.randrange(len(d))
    d[at:at] = r.randbytes(r.choice((1, 3, 8)))


_MUTATIONS: tuple[Callable[[random.Random, bytearray], None], ...] = (
    _flip,
    _flip,
    _set,
    _set,
    _number,
    _number,
    _drop,
    _repeat,
    _truncate,
    _insert,
)


def mutated(r: random.Random, kind: str) -> bytes:
    """A good input of a kind with some changes.

    Checksums are put right in half of those formats that have some.
    """
    data = bytearray(r.choice(SEEDS[kind]()))
    inner = kind in _REPAIRS and r.random() < 0.5
    unwrap, wrap = _REPAIRS[kind] if inner else (bytearray, bytes)
    body = unwrap(data)
    for _ in range(r.choice((0, 1, 1, 1, 2, 3, 6))):
        if body:
            r.choice(_MUTATIONS)(r, body)
    return wrap(body)


# good inputs ------------------------------------------------------------------------------------


def _pictures(format: str, **options: Any) -> bytes:
    from PIL import Image

    image = Image.frombytes("RGB", (23, 17), bytes(i * 7 % 256 for i in range(23 * 17 * 3)))
    mode = options.pop("mode", "RGB")
    out = io.BytesIO()
    image.convert(mode).save(out, format, **options)
    return out.getvalue()


def _jpegs() -> list[bytes]:
    kinds: list[dict[str, Any]] = [
        {},
        {"progressive": True},
        {"mode": "L"},
        {"subsampling": 0},
        {"mode": "CMYK"},
    ]
    return [_pictures("JPEG", **k) for k in kinds]


def _pngs() -> list[bytes]:
    import numpy as np

    from headrace.ops.image import png as image_png

    wide = [np.arange(5 * 4 * c, dtype=np.uint16).reshape(5, 4, c) * 999 for c in (1, 2, 3, 4)]
    made = [image_png.write_png(w) for w in wide]
    return made + [_pictures("PNG", mode=m) for m in ("RGB", "RGBA", "L", "LA", "P", "1")]


def _gifs() -> list[bytes]:
    from PIL import Image

    frames = [Image.new("P", (9, 8), i) for i in range(3)]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:])
    return [_pictures("GIF"), out.getvalue()]


def _tensors() -> list[bytes]:
    import numpy as np

    from headrace.core import dtypes
    from headrace.ops.io.decoding import tensor_bytes

    strings = np.empty(2, object)
    strings[:] = [b"ab", b""]
    floats = np.arange(6, dtype=np.float32).reshape(2, 3)
    return [tensor_bytes(floats, dtypes.float32), tensor_bytes(strings, dtypes.string)]


def _example_bytes() -> list[bytes]:
    """tf.train.Example with a, b and c, written by hand.

    {features {feature {"a": bytes_list, "b": float_list, "c": int64_list}}}.
    """

    def part(tag: int, data: bytes) -> bytes:
        return bytes([tag, len(data)]) + data

    def feature(key: bytes, kind: int, values: bytes) -> bytes:
        return part(0x0A, part(0x0A, key) + part(0x12, part(kind, values)))

    features = (
        feature(b"a", 0x0A, part(0x0A, b"xyz") + part(0x0A, b""))
        + feature(b"b", 0x12, part(0x0A, struct.pack("<3f", 1, 2, 3)))
        + feature(b"c", 0x1A, part(0x0A, b"\x01\x80\x02\x05"))
    )
    lists = part(0x0A, part(0x0A, b"a") + part(0x12, part(0x0A, part(0x0A, part(0x0A, b"q")))))
    return [part(0x0A, features), part(0x0A, features) + part(0x12, lists)]


def _record(data: bytes) -> bytes:
    from headrace.wire import crc

    size = struct.pack("<Q", len(data))
    return size + struct.pack("<I", crc.masked(size)) + data + struct.pack("<I", crc.masked(data))


def _records() -> list[bytes]:
    return [b"".join(_record(b"x" * n) for n in (0, 3, 100, 5)), b""]


def _elements() -> list[bytes]:
    import numpy as np

    from headrace.wire.element_files import encode_element

    strings = np.empty(2, object)
    strings[:] = [b"ab", b""]
    parts = [encode_element((np.float32([1, 2]), strings)) for _ in range(3)]
    return [b"".join(map(_record, [b"headrace elements 1", *parts, b"headrace elements end 3"]))]


def _csv() -> list[bytes]:
    return [b'1,2.5,a\n2,,"b ""q"" b"\n3,1e3,"c\nd"\n', b"1,2,3", b"4,5,6\r\n7,8,9\r\n"]


def _texts() -> list[bytes]:
    return [
        b"first\nsecond\r\n\nlast",
        b"a b  c",
        "h\u00e9llo w\u00f6rld".encode(),
        b"12",
        b"-1.5e3",
        b"aGVsbG8",
        b"0x1F",
    ]


def _patterns() -> list[bytes]:
    return [
        b"(a+)+$",
        b"[[:alpha:]]+",
        b"(?i)h.llo",
        b"\\bw\\pL*",
        b"(a|b)*c{1,5}",
        b"^$",
        b"x{2}{3}",
        b"[^a-z]\\d+?",
    ]


def _specs() -> list[bytes]:
    return [
        b'{"tuple": [{"tensor": [[2], "float32"]}, {"dict": [["k", {"tensor": [null, '
        b'"string"]}]]}]}'
    ]


SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "jpeg": _jpegs,
    "png": _pngs,
    "gif": _gifs,
    "bmp": lambda: [_pictures("BMP"), _pictures("BMP", mode="L")],
    "tensor": _tensors,
    "example": _example_bytes,
    "records": _records,
    "records.gz": lambda: [gzip.compress(d) for d in _records()],
    "records.zlib": lambda: [zlib.compress(d) for d in _records()],
    "elements": _elements,
    "csv": _csv,
    "csv.gz": lambda: [gzip.compress(d) for d in _csv()],
    "text": _texts,
    "text.gz": lambda: [gzip.compress(d) for d in _texts()],
    "text.zlib": lambda: [zlib.compress(d) for d in _texts()],
    "pattern": _patterns,
    "spec": _specs,
}
SEEDS = {
    kind: (lambda make=make, kept=[]: kept or kept.extend(make()) or kept)
    for kind, make in SEEDS.items()
}  # type: ignore[misc]


# checksums put right ----------------------------------------------------------------------------


def _png_body(data: bytearray) -> bytearray:
    """IHDR's data and the inflated rows."""
    at, head, packed = 8, b"", b""
    while at + 8 <= len(data):
        size, name = struct.unpack_from(">I4s", data, at)
        if name == b"IHDR":
            head = bytes(data[at + 8 : at + 8 + size])
        if name == b"IDAT":
            packed += data[at + 8 : at + 8 + size]
        at += size + 12
    return bytearray(head + zlib.decompress(packed))


def png_file(head: bytes, packed: bytes) -> bytes:
    def chunk(name: bytes, d: bytes) -> bytes:
        return struct.pack(">I", len(d)) + name + d + struct.pack(">I", zlib.crc32(name + d))

    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
    )


def _record_body(data: bytearray) -> bytearray:
    """The second record's data, where there is one."""
    (first,) = struct.unpack_from("<Q", data)
    at = first + 16
    (size,) = struct.unpack_from("<Q", data, at)
    return data[at + 12 : at + 12 + size]


def _element_file(body: bytearray) -> bytes:
    return b"".join(map(_record, [b"headrace elements 1", bytes(body), b"headrace elements end 1"]))


_REPAIRS: dict[str, tuple[Callable[[bytearray], bytearray], Callable[[bytearray], bytes]]] = {
    "png": (_png_body, lambda b: png_file(bytes(b[:13]), zlib.compress(bytes(b[13:])))),
    "elements": (_record_body, _element_file),
    "records.gz": (lambda d: bytearray(gzip.decompress(d)), lambda b: gzip.compress(bytes(b))),
    "records.zlib": (lambda d: bytearray(zlib.decompress(d)), lambda b: zlib.compress(bytes(b))),
    "csv.gz": (lambda d: bytearray(gzip.decompress(d)), lambda b: gzip.compress(bytes(b))),
}


# files that declare more than they hold ---------------------------------------------------------


def _jpeg_of(height: int, width: int) -> bytes:
    data = SEEDS["jpeg"]()[0]
    at = data.index(b"\xff\xc0") + 5
    return data[:at] + struct.pack(">HH", height, width) + data[at + 4 :]


def _png_of(width: int, height: int, depth: int, color: int, rows: bytes) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    return png_file(head, zlib.compress(rows, 9))


def _gif_of(width: int, height: int, frames: int) -> bytes:
    frame = b"\x2c" + struct.pack("<HHHH", 0, 0, width, height) + b"\0\x02\x02\x44\x01\0"
    screen = struct.pack("<HH", 65535, 65535) + b"\x80\0\0" + b"\0\0\0\xff\xff\xff"
    return b"GIF89a" + screen + frame * frames + b";"


def _tensor_of(dims: list[int], dtype: int = 1) -> bytes:
    def number(n: int) -> bytes:
        out = b""
        while n > 127:
            out, n = out + bytes([n & 127 | 128]), n >> 7
        return out + bytes([n])

    def part(tag: int, d: bytes) -> bytes:
        return bytes([tag]) + number(len(d)) + d

    shape = b"".join(part(0x12, b"\x08" + number(d)) for d in dims)
    return b"\x08" + bytes([dtype]) + part(0x12, shape)


def _record_head(size: int) -> bytes:
    from headrace.wire import crc

    head = struct.pack("<Q", size)
    return head + struct.pack("<I", crc.masked(head))


_MANY = 24 << 20

#: By kind: inputs that would take gigabytes or minutes if what they declare were believed.
BOMBS: dict[str, Callable[[], list[bytes]]] = {
    "jpeg": lambda: [_jpeg_of(30000, 30000), _jpeg_of(65500, 65500), _jpeg_of(65500, 300)],
    "png": lambda: [
        _png_of(1, 1, 16, 6, b"\0" * _MANY),
        _png_of(23000, 23000, 8, 6, b"\0" * 100),
        _png_of(999_999, 500, 16, 6, b"\4" * 100),
        _png_of(1500, 1500, 16, 2, b"\4" + b"\7" * 9000 + b"\3" * (9001 * 1499)),
    ],
    "gif": lambda: [_gif_of(65535, 65535, 1), _gif_of(30, 30, 50_000), _gif_of(4000, 4000, 1000)],
    "bmp": lambda: [
        b"BM" + struct.pack("<IHHIIiiHH", 0, 0, 0, 54, 40, w, h, 1, 32) + b"\0" * 24
        for w, h in ((2**30, 1), (16000, 16000), (1, -(2**31)))
    ],
    "tensor": lambda: [
        _tensor_of([2**33]),
        _tensor_of([2**31, 2**31]),
        _tensor_of([2**30], 7),
        _tensor_of([2**62, 2**62, 0]),
    ],
    "records": lambda: [_record_head(n) + b"\0" * 100 for n in (2**31, 2**40, 2**64 - 1)],
    "records.gz": lambda: [gzip.compress(_record_head(n) + b"\0" * _MANY) for n in (2**30, 2**40)],
    "records.zlib": lambda: [zlib.compress(_record_head(2**40) + b"\0" * _MANY)],
    "elements": lambda: [
        _element_file(bytearray(struct.pack("<IBBq", 2, 1, 0, n))) for n in (2**28, 2**62, -1)
    ],
    "text": lambda: [b"x" * (4 << 20), b"\n" * (1 << 20)],
    "text.gz": lambda: [gzip.compress(b"x" * _MANY)],
    "text.zlib": lambda: [zlib.compress(b"\0" * (4 << 20))],
    "csv": lambda: [
        b'"' + b"x" * _MANY,
        b'"a"' + b",b" * (1 << 17),
        b'""' * (1 << 18),
        b"9" * (1 << 20),
    ],
    "csv.gz": lambda: [gzip.compress(b'"' + b"x" * _MANY)],
    "pattern": lambda: [
        b"(a{1,100}){1,100}",
        b"((((a*)*)*)*)*$",
        b"(" * 2000 + b")" * 2000,
        b"[" * 5000,
        b"(?:a?){1000}a{1000}",
    ],
    "spec": lambda: [b"[" * 200_000, b'{"tuple":[' * 50_000],
}
