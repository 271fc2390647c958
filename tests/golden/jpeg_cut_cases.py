"""JPEG files that were cut off, and ``acceptable_fraction``.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import os

import numpy as np

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "images", "jpeg")
_NAMES = ("411", "420", "422", "440", "444", "cmyk", "gray", "progressive", "restart", "rgb")


def _contents(name):
    with open(os.path.join(_FOLDER, name + ".jpg"), "rb") as file:
        return file.read()


def _decoded(tf, session, image, feeds):
    """Rows, the last one that is not black, and the sum; the error's class."""
    try:
        pixels = session.run(image, feeds).astype(np.int64)
    except tf.errors.OpError as error:
        return type(error).__name__
    filled = np.flatnonzero(pixels.reshape(len(pixels), -1).any(1))
    return [len(pixels), int(filled[-1]) + 1 if filled.size else 0, int(pixels.sum())]


def _cuts(tf, **attrs):
    data = tf.placeholder(tf.string, [])
    image = tf.image.decode_jpeg(data, acceptable_fraction=0.0, **attrs)
    found = {}
    with tf.Session() as session:
        for name in _NAMES:
            whole = _contents(name)
            parts = [whole[: len(whole) * i // 12] for i in range(1, 12)]
            parts += [whole[:-k] for k in (1, 2, 8)]
            found[name] = [_decoded(tf, session, image, {data: part}) for part in parts]
    return found


def smooth(tf):
    return _cuts(tf)


def simple(tf):
    return _cuts(tf, fancy_upscaling=False)


def gray(tf):
    return _cuts(tf, channels=1)


def half(tf):
    return [_cuts(tf, ratio=2), _cuts(tf, ratio=2, fancy_upscaling=False)]


def eighth(tf):
    return _cuts(tf, ratio=8)


def fractions(tf):
    data = tf.placeholder(tf.string, [])
    part = _contents("444")
    part = part[: len(part) * 3 // 4]
    found = []
    with tf.Session() as session:
        for fraction in (-1.0, 0.0, 0.25, 0.5, 0.6, 0.75, 0.9, 1.0, 2.0):
            image = tf.image.decode_jpeg(data, acceptable_fraction=fraction)
            found.append(_decoded(tf, session, image, {data: part}))
    return found
