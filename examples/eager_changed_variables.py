"""Changed variables in eager code: a new variable for every new value, or one variable that is
assigned.

Nothing that Headrace keeps can be out of date: a plan knows the variable, not its value, so a
product costs the same after ``assign`` as before. What does cost is a new variable each time,
because a function that captures it has to be traced again.
"""

import logging

import numpy as np
from _timing import finish, scaled, timed

import headrace.compat.v2 as tf

CHANGES = scaled(200)
logging.getLogger("tensorflow").setLevel(logging.ERROR)  # this program retraces on purpose
random = np.random.RandomState(0)
values = random.rand(CHANGES, 50, 50).astype(np.float32)
b = tf.Variable(random.rand(50, 50).astype(np.float32))


def product_with(factor: tf.Variable) -> tf.Tensor:
    return tf.function(lambda: tf.matmul(factor, b))()


def new_variable_each_time() -> list[float]:
    return [float(product_with(tf.Variable(value))[0, 0]) for value in values]


a = tf.Variable(values[0])


@tf.function
def product() -> tf.Tensor:
    return tf.matmul(a, b)


def one_variable() -> list[float]:
    results = []
    for value in values:
        a.assign(value)
        results.append(float(product()[0, 0]))
    return results


def op_by_op(change: bool) -> None:
    for value in values:
        if change:
            a.assign(value)
        tf.matmul(a, b).numpy()


product()
slow, slow_results = timed(new_variable_each_time)
fast, fast_results = timed(one_variable)
assert slow_results == fast_results
unchanged, _ = timed(op_by_op, False)
changed, _ = timed(op_by_op, True)
print(f"{CHANGES} changes, the last result {fast_results[-1]:.4f}")
print(
    f"op by op: unchanged {unchanged / CHANGES * 1e6:.1f} µs, with an assignment before "
    f"{changed / CHANGES * 1e6:.1f} µs"
)
finish(slow, fast)
