"""Progress: a line for a long loop that says how much of the time went into waiting for input.

The source gives a batch every few milliseconds, as a disk or a network would; the work of a step
takes about as long. Without ``prefetch`` the loop waits for every batch, with it reading and
computing overlap. On a terminal ``headrace.progress`` shows a line while the loop runs; elsewhere
it shows nothing and counts all the same.
"""

import time
from collections.abc import Iterator

import numpy as np
from _timing import finish, scaled, timed

import headrace
import headrace.compat.v2 as tf

STEPS = scaled(100)
READING = 0.004
x0 = np.random.RandomState(0).rand(64, 64).astype(np.float32)


def read() -> Iterator[np.ndarray]:
    for i in range(STEPS):
        time.sleep(READING)
        yield x0 * np.float32(i)


source = tf.data.Dataset.from_generator(read, output_signature=tf.TensorSpec((64, 64), tf.float32))
source = source.apply(tf.data.experimental.assert_cardinality(STEPS))


def train(dataset: tf.data.Dataset, description: str) -> float:
    total = 0.0
    loop = headrace.progress(dataset, description=description)
    for x in loop:
        end = time.perf_counter() + READING  # a step that takes a while
        while time.perf_counter() < end:
            total = float(tf.reduce_sum(tf.tanh(x)))
    print(f"{description}: {loop.count} steps, {loop.rate:.0f}/s, waiting {loop.waiting_share:.0%}")
    return total


slow, slow_total = timed(train, source, "without prefetch")
fast, fast_total = timed(train, source.prefetch(4), "with prefetch")
assert slow_total == fast_total
finish(slow, fast)
