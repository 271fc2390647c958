"""Pictures of other sizes as TF 2 makes them: ``python tests/golden/resize_v2_programs.py`` with
TensorFlow 2 writes resize_v2.npz; tests/ops/image/test_image.py makes them with Headrace.
"""

import os

import numpy as np

METHODS = ("bilinear", "nearest", "bicubic", "area")
METHODS += ("lanczos3", "lanczos5", "gaussian", "mitchellcubic")
SIZES = ([4, 3], [9, 11], [1, 20])


def results(tf):
    """name -> array."""
    pictures = np.random.RandomState(0).rand(2, 7, 6, 2).astype(np.float32)
    found = {}
    for method in METHODS:
        for antialias in (False, True):
            name = "%s-%d" % (method, antialias)
            for size in SIZES:
                out = tf.image.resize(pictures, size, method, antialias=antialias)
                found["%s-%dx%d" % (name, size[0], size[1])] = out
            found[name + "-pad"] = tf.image.resize_with_pad(
                pictures, 5, 9, method, antialias=antialias
            )
            if method != "area":
                with tf.GradientTape() as tape:
                    given = tf.constant(pictures)
                    tape.watch(given)
                    out = tf.image.resize(given, [4, 8], method, antialias=antialias)
                    loss = tf.reduce_sum(out * out)
                found[name + "-grad"] = tape.gradient(loss, given)
    return {k: np.asarray(v) for k, v in found.items()}


if __name__ == "__main__":
    import tensorflow

    here = os.path.dirname(os.path.abspath(__file__))
    np.savez_compressed(os.path.join(here, "resize_v2.npz"), **results(tensorflow))
