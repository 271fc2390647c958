"""tf.function: traced once, or traced again at every call.

A call with a Python number is a new kind of call for every number: the function is traced (its
Python code is run and a plan is made) each time. A tensor of the same type and shape is not.
Building the function inside of the loop has the same price. ``explain_retracing()`` says which
argument made each trace necessary; from the sixth trace on a warning says so unasked.
"""

import logging

import numpy as np
from _timing import finish, scaled, timed

import headrace.compat.v2 as tf

STEPS = scaled(300)
logging.getLogger("tensorflow").setLevel(logging.ERROR)  # this program retraces on purpose
random = np.random.RandomState(0)
x = tf.constant(random.rand(32, 16).astype(np.float32))
w = tf.Variable(random.rand(16, 16).astype(np.float32))


def energy(scale: tf.Tensor | float) -> tf.Tensor:
    hidden = tf.tanh(tf.matmul(x, w) * scale)
    return tf.reduce_mean(tf.square(hidden - tf.reduce_mean(hidden, axis=0)))


traced = tf.function(energy)
scales = [1.0 + i / STEPS for i in range(STEPS)]


def python_numbers() -> float:
    return sum(float(traced(scale)) for scale in scales)


def tensors() -> float:
    return sum(float(traced(tf.constant(scale))) for scale in scales)


def eager() -> float:
    return sum(float(energy(tf.constant(scale))) for scale in scales)


traced(tf.constant(0.0))
before = traced.experimental_get_tracing_count()
fast, fast_sum = timed(tensors)
assert traced.experimental_get_tracing_count() == before
eager_time, eager_sum = timed(eager)
slow, slow_sum = timed(python_numbers)
assert np.allclose([slow_sum, fast_sum], eager_sum, rtol=1e-5)

print(
    f"{STEPS} calls with tensors: no trace; with Python numbers: "
    f"{traced.experimental_get_tracing_count() - before}"
)
print(traced.explain_retracing().splitlines()[-1])
print(
    f"a call: op by op {eager_time / STEPS * 1e6:.1f} µs, as a function {fast / STEPS * 1e6:.1f} µs"
)
finish(slow, fast)
