"""Makes the tensor bundles with TensorFlow 1.15.

``python tests/golden/bundles/make.py``. Runs in TensorFlow's environment.
"""

import os

import numpy as np
import tensorflow.compat.v1 as tf

HERE = os.path.dirname(os.path.abspath(__file__))
VALUES = {
    "w": np.arange(12, dtype=np.float32).reshape(3, 4),
    "b/Adam": np.array([1, 2], np.int64),
    "s": np.array([b"abc", b"", b"x" * 300], object),
    "sc": np.float64(3.0),
    "e": np.zeros([0, 3], np.int32),
    "flag": np.array([True, False]),
}

if __name__ == "__main__":
    with tf.Graph().as_default(), tf.Session() as session:
        names = sorted(VALUES)
        save = tf.raw_ops.SaveV2(
            prefix=os.path.join(HERE, "tf1"),
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            tensors=[tf.constant(VALUES[k]) for k in names],
        )
        session.run(save)
        rows = tf.constant_initializer(np.arange(30.0))
        tf.get_variable("p", [10, 3], partitioner=tf.fixed_size_partitioner(3), initializer=rows)
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(
            session, os.path.join(HERE, "parts"), write_meta_graph=False, write_state=False
        )
