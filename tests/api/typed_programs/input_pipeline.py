"""tf.data with one-shot, initializable and reinitializable iterators."""

from __future__ import annotations

import numpy as np

import headrace as tf


def scale(image: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return tf.cast(image, tf.float32) / 255.0, tf.one_hot(label, 10)


def pipeline(images: tf.Tensor, labels: tf.Tensor, training: bool) -> tf.data.Dataset:
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    if training:
        dataset = dataset.shuffle(buffer_size=100, seed=3).repeat(2)
    dataset = dataset.map(scale, num_parallel_calls=2).filter(lambda image, label: True)
    return dataset.batch(4, drop_remainder=True).prefetch(tf.data.experimental.AUTOTUNE)


def main() -> int:
    tf.reset_default_graph()
    images = tf.placeholder(tf.uint8, [None, 2, 2])
    labels = tf.placeholder(tf.int32, [None])
    iterator = pipeline(images, labels, True).make_initializable_iterator()
    image, label = iterator.get_next()
    total = tf.reduce_sum(image) + tf.reduce_sum(label)
    first = tf.data.Dataset.range(3).make_one_shot_iterator().get_next()
    ranges = tf.data.Dataset.range(5)
    shared = tf.data.Iterator.from_structure(ranges.output_types, ranges.output_shapes)
    start = shared.make_initializer(ranges)
    number = shared.get_next()
    runs = 0
    with tf.Session() as sess:
        feed = {images: np.zeros((8, 2, 2), np.uint8), labels: np.arange(8)}
        sess.run(iterator.initializer, feed_dict=feed)
        sess.run(start)
        while True:
            try:
                sess.run(total)
                runs += 1
            except tf.errors.OutOfRangeError:
                break
        assert sess.run([first, number]) == [0, 0]
    return runs


if __name__ == "__main__":
    print(main())
