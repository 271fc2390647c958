"""Images under projective transforms, contrib's optimizers, small parts of contrib.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import numpy as np


def _numbers(*shape, seed=0):
    return np.random.RandomState(seed).uniform(size=shape).astype(np.float32)


def projective_images(tf):
    m = tf.contrib.image
    images = tf.constant(_numbers(2, 5, 6, 3))
    whole = tf.constant((_numbers(4, 5) * 255).astype(np.uint8))
    rows = tf.constant(
        [[1.1, 0.2, -0.7, -0.1, 0.9, 0.3, 0.01, -0.02], [0.5, 0, 0, 0, 2.0, 1.0, 0, 0]]
    )
    built = [
        m.rotate(images, 0.4),
        m.rotate(images, [0.4, -1.2], interpolation="BILINEAR"),
        m.rotate(whole, 1.0),
        m.rotate(images[0], np.pi / 2, "BILINEAR"),
        m.translate(images, [1.0, -2.0]),
        m.translate(images, [[0.5, 0.25], [-1.5, 1.0]], "BILINEAR"),
        m.transform(images, rows),
        m.transform(images, rows, "BILINEAR"),
        m.transform(images, rows[0], output_shape=[3, 8]),
        m.angles_to_projective_transforms([0.3, 2.0], 4.0, 6.0),
        m.translations_to_projective_transforms([2.0, 3.0]),
        m.compose_transforms(rows[0], rows[1]),
        m.flat_transforms_to_matrices(rows),
        m.matrices_to_flat_transforms(m.flat_transforms_to_matrices(rows)),
    ]
    grads = tf.gradients(m.rotate(images, 0.4, "BILINEAR"), images)
    with tf.Session() as sess:
        return [sess.run(built), sess.run(grads), [b.name for b in built]]
