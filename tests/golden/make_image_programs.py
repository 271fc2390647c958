"""Makes ``image_programs.npz`` with TensorFlow 1.15.

``python tests/golden/make_image_programs.py``.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(HERE)))

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from tests.golden import image_programs  # noqa: E402


def main():
    arrays, shapes = {}, {}
    for key in image_programs.programs():
        values, shape = image_programs.run(tf, key)
        arrays.update(("%s|%d" % (key, i), v) for i, v in enumerate(values))
        shapes[key] = shape
    arrays["shapes"] = np.array(json.dumps(shapes, sort_keys=True))
    np.savez_compressed(os.path.join(HERE, "image_programs.npz"), **arrays)


if __name__ == "__main__":
    main()
