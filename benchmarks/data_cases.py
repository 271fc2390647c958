"""Input pipelines as functions of TensorFlow 2's module: one text for Headrace and TensorFlow.

A case makes the dataset once; a sample is one pass over all of it in Python. ``input_loop`` trains
from an iterator in a graph and session instead, and gives besides the times of the input alone and
of the model alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.data_files import find_files
from benchmarks.rows import Best, Quotient, Row, Target
from benchmarks.scale import QUICK, Samples, Scale
from benchmarks.session_cases import Case, Measure
from benchmarks.timing import each_call, seconds_after_collecting

__all__ = ["CASES", "ELEMENTS", "ROWS", "SIDE", "overlap", "slices_arrays", "small_function"]

BATCH = 128
ELEMENTS = 10_000  # of the pipelines whose elements are made by Python
SIDE = 96  # of the resized images
LOOP_BATCH = 16

_ALL = {"must": Target({"tf": 1, "torch": 1})}
_TORCH = {"must": Target({"torch": 1})}

ROWS = [
    Row(
        "60,000x784 floats: slices, shuffle, batch, prefetch",
        "slices",
        Best("epoch"),
        _ALL,
        short="slices",
    ),
    Row("256 JPEG files: read, decode, resize, batch", "jpeg", Best("epoch"), _ALL, short="JPEG"),
    Row(
        "20,000 TFRecords of floats: parse each, batch",
        "records",
        Best("epoch"),
        _ALL,
        short="TFRecord",
    ),
    Row("… batch, parse together", "records_batched", Best("epoch"), _ALL, short="batched"),
    Row(
        "… of bytes: parse and decode each, batch",
        "records_bytes",
        Best("epoch"),
        _ALL,
        short="bytes",
    ),
    Row(
        "10,000 rows of a Python generator, batch",
        "generator",
        Best("epoch"),
        _TORCH,
        short="generator",
    ),
    Row(
        "10,000 calls of a Python function, batch",
        "python_map",
        Best("epoch"),
        _TORCH,
        short="Python map",
    ),
    Row("training from JPEG files with prefetch, a pass", "input_loop", Best("loop"), short="loop"),
    Row(
        "… over the slower of input and model alone",
        "input_loop",
        Quotient("loop", "alone"),
        {"must": Target(at_most=1.1)},
    ),
]


def slices_arrays(scale: Scale) -> tuple[Any, Any]:
    count = scale.count(60_000)
    random = np.random.RandomState(0)
    x = random.random_sample((count, 784)).astype(np.float32)
    return x, random.randint(0, 10, count)


def small_function(i: Any) -> Any:
    """Eight floats from a number."""
    return np.sin(np.arange(8, dtype=np.float32) * np.float32(i))


def _passes(dataset: Any, scale: Scale) -> Measure:
    def run() -> None:
        for _ in dataset:
            pass

    run()
    return lambda: {"epoch": each_call(run, 1 if scale is QUICK else 3)}


def slices(tf: Any, scale: Scale) -> Measure:
    dataset = tf.data.Dataset.from_tensor_slices(slices_arrays(scale))
    return _passes(dataset.shuffle(10_000).batch(BATCH).prefetch(tf.data.AUTOTUNE), scale)


def _images(tf: Any, parallel: Any) -> Any:
    def load(name: Any) -> Any:
        image = tf.io.decode_jpeg(tf.io.read_file(name), channels=3)
        return tf.image.resize(image, [SIDE, SIDE])

    return tf.data.Dataset.from_tensor_slices(find_files().images).map(load, parallel)


def jpeg(tf: Any, scale: Scale) -> Measure:
    dataset = _images(tf, tf.data.AUTOTUNE).batch(32)
    return _passes(dataset.prefetch(tf.data.AUTOTUNE), scale)


def _features(tf: Any, x: Any) -> dict[str, Any]:
    return {"label": tf.io.FixedLenFeature([], tf.int64), "x": x}


def records(tf: Any, scale: Scale) -> Measure:
    features = _features(tf, tf.io.FixedLenFeature([784], tf.float32))

    def parse(record: Any) -> tuple[Any, Any]:
        values = tf.io.parse_single_example(record, features)
        return values["x"], values["label"]

    dataset = tf.data.TFRecordDataset(find_files().floats).map(parse, tf.data.AUTOTUNE)
    return _passes(dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE), scale)


def records_batched(tf: Any, scale: Scale) -> Measure:
    features = _features(tf, tf.io.FixedLenFeature([784], tf.float32))

    def parse(batch: Any) -> tuple[Any, Any]:
        values = tf.io.parse_example(batch, features)
        return values["x"], values["label"]

    dataset = tf.data.TFRecordDataset(find_files().floats).batch(BATCH)
    return _passes(dataset.map(parse, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE), scale)


def records_bytes(tf: Any, scale: Scale) -> Measure:
    features = _features(tf, tf.io.FixedLenFeature([], tf.string))

    def parse(record: Any) -> tuple[Any, Any]:
        values = tf.io.parse_single_example(record, features)
        pixels = tf.io.decode_raw(values["x"], tf.uint8)
        return tf.cast(pixels, tf.float32) / 255.0, values["label"]

    dataset = tf.data.TFRecordDataset(find_files().bytes).map(parse, tf.data.AUTOTUNE)
    return _passes(dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE), scale)


def generator(tf: Any, scale: Scale) -> Measure:
    rows = np.random.rand(scale.count(ELEMENTS), 784).astype(np.float32)
    dataset = tf.data.Dataset.from_generator(
        lambda: iter(rows), output_signature=tf.TensorSpec((784,), tf.float32)
    )
    return _passes(dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE), scale)


def python_map(tf: Any, scale: Scale) -> Measure:
    def call(i: Any) -> Any:
        return tf.ensure_shape(tf.numpy_function(small_function, [i], tf.float32), (8,))

    dataset = tf.data.Dataset.range(scale.count(ELEMENTS)).map(call)
    return _passes(dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE), scale)


def input_loop(tf: Any, scale: Scale) -> Measure:
    """One thread of input beside a small model, in a graph."""
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        dataset = _images(v1, None).batch(LOOP_BATCH, drop_remainder=True).prefetch(2)
        iterator = v1.data.make_initializable_iterator(dataset)
        images = iterator.get_next()
        x = v1.placeholder_with_default(images, (LOOP_BATCH, SIDE, SIDE, 3))
        step = _step(v1, x)
        initializer = v1.global_variables_initializer()
    session = v1.Session(graph=graph)
    session.run(initializer)

    def run(fetch: Any) -> Callable[[], int]:
        def over_all() -> int:
            session.run(iterator.initializer)
            count = 0
            try:
                while True:
                    session.run(fetch)
                    count += 1
            except tf.errors.OutOfRangeError:
                return count

        return over_all

    count = run(step)()
    batch = np.random.rand(LOOP_BATCH, SIDE, SIDE, 3).astype(np.float32)

    def model_alone() -> None:
        for _ in range(count):
            session.run(step, {x: batch})

    return overlap(run(step), run(images.op), model_alone, 1 if scale is QUICK else 3)


def _step(tf: Any, x: Any) -> Any:
    """A convolution, pooling to nothing, descent: a few milliseconds."""
    kernel = tf.Variable(tf.random_normal((3, 3, 3, 8), stddev=0.1))
    weights = tf.Variable(tf.random_normal((8, 10), stddev=0.1))
    y = tf.nn.relu(tf.nn.conv2d(x / 255.0, kernel, strides=[1, 2, 2, 1], padding="SAME"))
    logits = tf.matmul(tf.reduce_mean(y, [1, 2]), weights)
    loss = tf.reduce_mean(tf.square(logits - 1.0))
    return tf.train.GradientDescentOptimizer(0.01).minimize(loss)


def overlap(
    loop: Callable[[], Any], read: Callable[[], Any], train: Callable[[], Any], count: int
) -> Measure:
    """The loop beside the slower of its two parts alone, in turn."""

    def measure() -> Samples:
        samples: Samples = {"loop": [], "alone": [], "input": [], "model": []}
        for _ in range(count):
            samples["loop"].append(seconds_after_collecting(loop))
            alone = {
                "input": seconds_after_collecting(read),
                "model": seconds_after_collecting(train),
            }
            for name, seconds in alone.items():
                samples[name].append(seconds)
            samples["alone"].append(max(alone.values()))
        return samples

    return measure


CASES: dict[str, Case] = {
    "slices": slices,
    "jpeg": jpeg,
    "records": records,
    "records_batched": records_batched,
    "records_bytes": records_bytes,
    "generator": generator,
    "python_map": python_map,
    "input_loop": input_loop,
}
