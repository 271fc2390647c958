"""Makes ``tests/golden/jpeg.json`` in an environment with TensorFlow: ``python
tests/golden/make_jpeg.py``.

For every file of ``images/jpeg`` and every way of decoding it: the size and a digest of the pixels,
or nothing for an error. Importable without TensorFlow, under Python 3.7.
"""

import hashlib
import itertools
import json
import os

FOLDER = os.path.dirname(os.path.abspath(__file__))
PICTURES = os.path.join(FOLDER, "images", "jpeg")
GOLDEN = os.path.join(FOLDER, "jpeg.json")


def names():
    return sorted(n[:-4] for n in os.listdir(PICTURES))


def contents(name):
    with open(os.path.join(PICTURES, name + ".jpg"), "rb") as file:
        return file.read()


def ways():
    """Attributes of DecodeJpeg by a name of theirs."""
    methods = ("", "INTEGER_FAST", "INTEGER_ACCURATE")
    for channels, ratio, fancy, method in itertools.product(
        (0, 1, 3), (1, 2, 4, 8), (True, False), methods
    ):
        key = "%d 1/%d %s%s" % (channels, ratio, "fancy " if fancy else "", method)
        yield (
            key.strip(),
            dict(channels=channels, ratio=ratio, fancy_upscaling=fancy, dct_method=method),
        )


def digest(image):
    return "%s %s" % (
        "x".join(map(str, image.shape)),
        hashlib.sha256(image.tobytes()).hexdigest()[:16],
    )


def digests(tf):
    """``tf`` is a module with TensorFlow 1's names."""
    found = {}
    with tf.Graph().as_default(), tf.Session() as session:
        data = tf.placeholder(tf.string, [])
        images = {key: tf.image.decode_jpeg(data, **attrs) for key, attrs in ways()}
        for name in names():
            found[name] = {}
            for key, image in images.items():
                try:
                    found[name][key] = digest(session.run(image, {data: contents(name)}))
                except tf.errors.InvalidArgumentError:
                    found[name][key] = None
    return found


if __name__ == "__main__":
    import tensorflow

    with open(GOLDEN, "w") as file:
        json.dump(digests(tensorflow.compat.v1), file, indent=0, sort_keys=True)
        file.write("\n")
