"""What TF 1.15 makes of damaged pictures and of sizes that are only declared: ``<python of TF 1.15>
make_hostile_images.py`` writes hostile_images.json: for each case the shape and a checksum of the
pixels, or the class of the error.
"""

import json
import os
import random
import struct
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = [
    "gray.png",
    "gray16.png",
    "gray_alpha.png",
    "palette.png",
    "rgb.png",
    "rgba.png",
    "gray.bmp",
    "rgb.bmp",
    "rgba.bmp",
]


def contents(name):
    with open(os.path.join(HERE, "images", name), "rb") as file:
        return file.read()


def png(width, height, rows, depth=8, color=2):
    def chunk(name, d):
        return struct.pack(">I", len(d)) + name + d + struct.pack(">I", zlib.crc32(name + d))

    head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    parts = [chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def jpeg(height, width):
    data = contents("420.jpg")
    at = data.index(b"\xff\xc0") + 5
    return data[:at] + struct.pack(">HH", height, width) + data[at + 4 :]


def gif(frames, width, height, data=b"\x02\x02\x44\x01\0", left=0):
    """A screen of 10 x 10, which TensorFlow does not look at."""
    out = b"GIF89a" + struct.pack("<HH", 10, 10) + b"\x80\0\0" + b"\0\0\0\xff\xff\xff"
    for _ in range(frames):
        out += b"\x2c" + struct.pack("<HHHH", left, 0, width, height) + b"\0" + data
    return out + b";"


def bmp(width, height, bits, size):
    head = struct.pack("<IHHIIiiHH", 0, 0, 0, 54, 40, width, height, 1, bits)
    return b"BM" + head + b"\0" * 24 + bytes(range(size))


def declared():
    for height, width in (
        (300, 200),
        (23170, 23170),
        (23171, 23171),
        (60000, 60000),
        (1, 65500),
        (0, 10),
    ):
        yield "decode_jpeg", jpeg(height, width)
        yield "crop", jpeg(height, width)
    for width, height in ((1, 1), (3000, 3000), (23171, 23171), (1 << 27, 1), (1, 1 << 31), (0, 5)):
        yield "decode_png", png(width, height, b"\0\1\2\3")
    yield "decode_png", png(1, 1, b"\0" * 100000)
    for depth, color in ((16, 2), (16, 6), (16, 0), (16, 4), (2, 2), (16, 3), (8, 5)):
        yield "decode_png", png(2, 2, bytes(range(40)), depth, color)
    for arguments in (
        (1, 1, 1),
        (3, 1, 1),
        (1, 5, 5),
        (1, 0, 0),
        (0, 1, 1),
        (1, 65535, 65535),
        (1, 1, 1, b"\x02\x02\x44\x01\0", 1),
    ):
        yield "decode_gif", gif(*arguments)
        yield "decode_png", gif(*arguments)
    for arguments in (
        (1, 1, 24, 4),
        (2, 2, 24, 16),
        (2, 2, 24, 14),
        (2, 2, 24, 13),
        (0, 1, 24, 9),
        (1, 0, 24, 9),
        (1 << 30, 1, 24, 9),
        (-1, 1, 24, 9),
        (1, -(1 << 31), 24, 9),
        (1, 1, 16, 9),
        (1, -1, 24, 4),
    ):
        yield "decode_bmp", bmp(*arguments)


def mutated():
    r = random.Random(3)
    for _ in range(400):
        name = r.choice(NAMES)
        data = bytearray(contents(name))
        for _ in range(r.choice([1, 1, 2, 4])):
            at = r.randrange(len(data))
            kind = r.random()
            if kind < 0.6:
                data[at] ^= 1 << r.randrange(8)
            elif kind < 0.8:
                data[at] = r.choice([0, 127, 255])
            elif kind < 0.9:
                del data[at : at + r.randrange(1, 9)]
            else:
                del data[at + 1 :]
        yield "decode_" + name[-3:], bytes(data)


def cases():
    return [*declared(), *mutated()]


def outcome(tf, function, data):
    with tf.Graph().as_default(), tf.Session() as sess:
        try:
            if function == "crop":
                value = sess.run(tf.image.decode_and_crop_jpeg(data, [0, 0, 5, 5]))
            else:
                value = sess.run(getattr(tf.image, function)(data))
        except tf.errors.OpError as error:
            return type(error).__name__
    return [list(value.shape), zlib.crc32(value.tobytes())]


if __name__ == "__main__":
    import tensorflow as tf

    found = [outcome(tf, *case) for case in cases()]
    with open(os.path.join(HERE, "hostile_images.json"), "w") as file:
        json.dump(found, file)
