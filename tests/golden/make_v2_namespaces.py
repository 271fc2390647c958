"""Values of tf.image, tf.io and tf.test through TF 2's public API, arguments by position where TF
1's order is another: ``<python of TF 2.21> make_v2_namespaces.py`` writes v2_namespaces.npz; and
their signatures, v2_signatures.json.
"""

import inspect
import json
import os

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
_R = np.random.RandomState(4)
FLOATS = _R.uniform(0, 1, (2, 7, 9, 3)).astype(np.float32)
BYTES = _R.randint(0, 256, (6, 5, 3)).astype(np.uint8)
BOXES = np.array([[[0.1, 0.2, 0.7, 0.8], [0.0, 0.0, 0.5, 0.5]]] * 2, np.float32)
COLORS = np.array([[1.0, 0.0, 0.5]], np.float32)
SCORES = np.array([0.9, 0.3, 0.8, 0.1], np.float32)
CORNERS = np.array([[0, 0, 1, 1], [0, 0, 1, 0.9], [0, 0.5, 1, 1.5], [2, 2, 3, 3]], np.float32)
EXAMPLE = b"\n\x18\n\n\n\x01a\x12\x05\x12\x03\n\x01\x00\n\n\n\x01b\x12\x05\x1a\x03\n\x01\x05"


def cases(tf):
    image, io = tf.image, tf.io
    for method in ("bilinear", "nearest", "bicubic", "area"):
        for size in ((3, 4), (14, 18), (5, 20), (7, 9)):
            yield f"resize {method} {size}", lambda m=method, s=size: image.resize(FLOATS, s, m)
            yield (
                f"resize bytes {method} {size}",
                lambda m=method, s=size: image.resize(BYTES, s, m),
            )
            yield (
                f"pad {method} {size}",
                lambda m=method, s=size: image.resize_with_pad(FLOATS, s[0], s[1], m),
            )
    yield "aspect", lambda: image.resize(FLOATS, (10, 10), "bilinear", True)
    yield "crop or pad", lambda: image.resize_with_crop_or_pad(FLOATS, 5, 12)
    yield (
        "patches",
        lambda: image.extract_patches(FLOATS, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
    )
    yield "crops", lambda: image.crop_and_resize(FLOATS, BOXES[0], [0, 1], [4, 4], "bilinear", 0.5)
    yield "drawn", lambda: image.draw_bounding_boxes(FLOATS, BOXES, COLORS)
    yield "nms", lambda: image.non_max_suppression(CORNERS, SCORES, 3)
    yield (
        "nms padded",
        lambda: image.non_max_suppression_padded(CORNERS, SCORES, 3, 0.5, float("-inf"), True),
    )
    yield "gamma", lambda: image.adjust_gamma(FLOATS)
    yield "gamma 2", lambda: image.adjust_gamma(BYTES, 2)
    yield "gamma gain", lambda: image.adjust_gamma(FLOATS, 0.5, 2)
    yield "contrast", lambda: image.adjust_contrast(FLOATS, 1.5)
    yield "ssim", lambda: image.ssim(FLOATS, FLOATS[::-1].copy(), 1.0, 5)
    yield "yuv", lambda: image.rgb_to_yuv(FLOATS)
    yield "transpose", lambda: image.transpose(FLOATS)
    yield (
        "csv",
        lambda: io.decode_csv(["1;x;2", "3;NA;4"], [[0], [""], [0]], ";", True, "NA", [0, 1, 2]),
    )
    yield "raw", lambda: io.decode_raw([b"abcd", b"xy"], tf.uint8, True, 3)
    yield (
        "example",
        lambda: io.parse_example(
            [EXAMPLE], {"b": io.FixedLenFeature([1], tf.int64)}, ["n"], "here"
        )["b"],
    )
    yield (
        "single",
        lambda: io.parse_single_example(
            EXAMPLE, {"b": io.FixedLenFeature([1], tf.int64)}, None, "here"
        )["b"],
    )
    yield (
        "jacobian",
        lambda: tf.test.compute_gradient(
            lambda a, b: a * a * b, [np.float64([[1, 2]]), np.float64([3])]
        )[0][0],
    )
    yield (
        "differences",
        lambda: tf.test.compute_gradient(lambda a: a * a * a, [np.float64([1, 2])], 0.25)[1][0],
    )


def arrays(value):
    """Strings as fixed-length bytes: object arrays are stored as pickles."""
    found = [np.asarray(v) for v in (value if isinstance(value, (list, tuple)) else [value])]
    return [a.astype("S") if a.dtype == object else a for a in found]


def signatures(tf):
    """[name, default or None] of every parameter of the functions of these namespaces."""
    out = {}
    for space in ("image", "io", "test"):
        module = getattr(tf, space)
        for name in dir(module):
            function = getattr(module, name)
            if inspect.isfunction(function):
                found = inspect.signature(function).parameters.values()
                out[f"{space}.{name}"] = [
                    [p.name, None if p.default is p.empty else repr(p.default)] for p in found
                ]
    return out


if __name__ == "__main__":
    import tensorflow as tf

    found = {f"{key}/{i}": a for key, make in cases(tf) for i, a in enumerate(arrays(make()))}
    np.savez_compressed(os.path.join(HERE, "v2_namespaces.npz"), **found)
    with open(os.path.join(HERE, "v2_signatures.json"), "w") as file:
        json.dump(signatures(tf), file)
