"""Runs nn_programs.py in TensorFlow 1.15 and writes nn_programs.npz.

``python tests/golden/make_nn.py``.
"""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
import tensorflow as tf1  # noqa: E402

from tests.golden.nn_programs import PROGRAMS  # noqa: E402

tf = tf1.compat.v1
tf.logging.set_verbosity(tf.logging.ERROR)


def results(name):
    """{key: array}.

    Outputs, and gradients of each floating output by the inputs that it depends on.
    """
    found = {}
    with tf.Graph().as_default():
        tf.inputs = []
        outputs = PROGRAMS[name](tf)
        fetches = {"%s/%02d" % (name, i): t for i, t in enumerate(outputs)}
        for i, t in enumerate(outputs):
            if not t.dtype.is_floating:
                continue
            for j, g in enumerate(tf.gradients(t, tf.inputs)):
                if g is not None:
                    fetches["%s/%02d/d%02d" % (name, i, j)] = tf.convert_to_tensor(g)
        with tf.Session() as session:
            found = session.run(fetches)
    return found


if __name__ == "__main__":
    table = {}
    for name in sorted(PROGRAMS):
        table.update(results(name))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nn_programs.npz")
    np.savez_compressed(path, **table)
    print("%d values, %.1f KB" % (len(table), os.path.getsize(path) / 1e3))
