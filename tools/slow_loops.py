"""Loops around `Session.run` written the slow way and the fast way, for either engine.

    headrace run tools/slow_loops.py
    python tools/slow_loops.py              # a Python that has TensorFlow

Every line is a technique of the guides on making `sess.run` fast, with the time for one round of
the same work (one sample, one step, one request) both ways: best of several repetitions, in
microseconds. Plain Python 3.7.
"""

import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
ROWS = 200
data = np.random.RandomState(0).rand(ROWS, 5).astype(np.float32)


def best(work, rounds, repeat=5):
    """Microseconds for one round: the best repetition."""
    work(max(1, rounds // 10))
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        work(rounds)
        times.append((time.perf_counter() - began) / rounds)
    return min(times) * 1e6


def model(batch):
    x = tf.placeholder(tf.float32, [batch, 5])
    w = tf.Variable(tf.random_normal([5, 3], seed=1))
    b = tf.Variable(tf.zeros([3]))
    return x, tf.matmul(x, w) + b


def started():
    sess = tf.Session()
    sess.run(tf.global_variables_initializer())
    return sess


def batching():
    x, y = model(None)
    sess = started()

    def one_by_one(n):
        for i in range(n):
            sess.run(y, {x: data[i % ROWS : i % ROWS + 1]})

    def together(n):
        for _ in range(max(1, n // ROWS)):
            sess.run(y, {x: data})

    return best(one_by_one, 200), best(together, 10 * ROWS)


def grouping():
    values = [tf.Variable(float(i)) for i in range(5)]
    updates = [v.assign_add(1.0) for v in values]
    grouped = tf.group(*updates)
    sess = started()

    def apart(n):
        for _ in range(n):
            for u in updates:
                sess.run(u.op)

    def as_one(n):
        for _ in range(n):
            sess.run(grouped)

    return best(apart, 40), best(as_one, 200)


def fetching():
    x, y = model(None)
    loss = tf.reduce_mean(tf.square(y))
    norms = [tf.norm(v) for v in tf.trainable_variables()]
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    sess = started()

    def everything(n):
        for _ in range(n):
            sess.run([train, loss, y, *norms], {x: data})

    def needed(n):
        for _ in range(n):
            sess.run(train, {x: data})

    return best(everything, 100), best(needed, 100)


def graph_in_loop():
    sess = tf.Session()
    a = tf.placeholder(tf.float32, [3])
    out = tf.reduce_sum(a * 2.0)
    value = np.ones(3, np.float32)

    def inside(n):
        for _ in range(n):
            sess.run(tf.reduce_sum(tf.constant(value) * 2.0))

    def outside(n):
        for _ in range(n):
            sess.run(out, {a: value})

    return best(inside, 20, 3), best(outside, 200)


def session_in_loop():
    x, y = model(None)
    start = tf.global_variables_initializer()
    kept = started()

    def anew(n):
        for _ in range(n):
            with tf.Session() as sess:
                sess.run(start)
                sess.run(y, {x: data})

    def reused(n):
        for _ in range(n):
            kept.run(y, {x: data})

    return best(anew, 10, 3), best(reused, 200)


def assigning():
    v = tf.Variable(np.zeros(10, np.float32))
    fed = tf.placeholder(tf.float32, [10])
    assign = v.assign(fed)
    sess = started()
    value = np.ones(10, np.float32)

    def new_op(n):
        for _ in range(n):
            sess.run(v.assign(value).op)

    def by_feed(n):
        for _ in range(n):
            sess.run(assign.op, {fed: value})

    return best(new_op, 20, 3), best(by_feed, 200)


TECHNIQUES = {
    "one sample a call / a batch": batching,
    "five updates apart / grouped": grouping,
    "fetching everything / what is needed": fetching,
    "ops made in the loop / before it": graph_in_loop,
    "a session for each request / one": session_in_loop,
    "a new assign op / a fed one": assigning,
}


def main():
    for name, measure in TECHNIQUES.items():
        with tf.Graph().as_default():
            slow, fast = measure()
        print(f"{name:40} slow {slow:9.2f} us   fast {fast:9.2f} us", flush=True)


if __name__ == "__main__":
    main()
