"""Whole programs in the manner of TF-1 tutorials and papers: learning by reward, meta-learning, own
optimizers and more.

See programs_networks.py for what a program is. Python 3.7 syntax.
"""

import numpy as np


def deep_q(tf):
    """Two networks in collections of their own; the target's variables are assigned."""
    tf.set_random_seed(2)
    width, actions, batch = 4, 3, 16
    s = tf.placeholder(tf.float32, [None, width], name="s")
    s_next = tf.placeholder(tf.float32, [None, width], name="s_")
    r = tf.placeholder(tf.float32, [None], name="r")
    a = tf.placeholder(tf.int32, [None], name="a")

    def net(x, names):
        init = tf.random_normal_initializer(0.0, 0.3)
        with tf.variable_scope("l1"):
            w = tf.get_variable("w", [width, 10], initializer=init, collections=names)
            b = tf.get_variable(
                "b", [1, 10], initializer=tf.constant_initializer(0.1), collections=names
            )
            x = tf.nn.relu(tf.matmul(x, w) + b)
        with tf.variable_scope("l2"):
            return tf.matmul(
                x, tf.get_variable("w", [10, actions], initializer=init, collections=names)
            )

    with tf.variable_scope("eval"):
        q = net(s, ["eval_params", tf.GraphKeys.GLOBAL_VARIABLES])
    with tf.variable_scope("target"):
        q_next = net(s_next, ["target_params", tf.GraphKeys.GLOBAL_VARIABLES])
    wanted = tf.stop_gradient(r + 0.9 * tf.reduce_max(q_next, axis=1))
    taken = tf.gather_nd(q, tf.stack([tf.range(tf.shape(a)[0], dtype=tf.int32), a], axis=1))
    loss = tf.reduce_mean(tf.squared_difference(wanted, taken))
    off = wanted - tf.reduce_sum(q * tf.one_hot(a, actions), axis=1)
    huber = tf.reduce_mean(tf.where(tf.abs(off) < 1.0, 0.5 * tf.square(off), tf.abs(off) - 0.5))
    own, target = tf.get_collection("eval_params"), tf.get_collection("target_params")
    train = tf.train.RMSPropOptimizer(0.01).minimize(loss, var_list=own)
    copy = [tf.assign(t, e) for t, e in zip(target, own)]
    blend = [tf.assign(t, 0.9 * t + 0.1 * e) for t, e in zip(target, own)]
    rng, results = np.random.RandomState(0), []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(copy)
        for _ in range(5):
            feed = {
                s: rng.randn(batch, width),
                s_next: rng.randn(batch, width),
                r: rng.randn(batch),
                a: rng.randint(0, actions, batch),
            }
            results += sess.run([loss, huber, train], feed)[:2]
            sess.run(blend)
    return results


def actor_and_critic(tf):
    """A second network made after the first one's optimizer.

    Its start depends on the gradients made before.
    """
    tf.set_random_seed(2)
    init = tf.random_normal_initializer(0.0, 0.1)

    def hidden(state):
        w = tf.get_variable("w1", [4, 8], initializer=init)
        return tf.nn.relu(tf.matmul(state, w))

    s = tf.placeholder(tf.float32, [1, 4], "state")
    a = tf.placeholder(tf.int32, None, "action")
    error = tf.placeholder(tf.float32, None, "error")
    with tf.variable_scope("Actor"):
        w = tf.get_variable("w2", [8, 2], initializer=init)
        chances = tf.nn.softmax(tf.matmul(hidden(s), w))
        value = tf.reduce_mean(tf.log(chances[0, a]) * error)
        act = tf.train.AdamOptimizer(0.001).minimize(-value)
    v_next = tf.placeholder(tf.float32, [1, 1], "v_next")
    r = tf.placeholder(tf.float32, None, "r")
    with tf.variable_scope("Critic"):
        v = tf.matmul(hidden(s), tf.get_variable("w2", [8, 1], initializer=init))
        off = r + 0.9 * v_next - v
        judge = tf.train.AdamOptimizer(0.01).minimize(tf.square(off))
    rng, results = np.random.RandomState(0), []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(5):
            now, later = rng.randn(2, 1, 4)
            ahead = sess.run(v, {s: later})
            td, _ = sess.run([off, judge], {s: now, v_next: ahead, r: 1.0})
            gain, _ = sess.run([value, act], {s: now, a: i % 2, error: td[0]})
            results += [ahead, td, gain]
    return results


def proximal_policy(tf):
    tf.set_random_seed(2)
    s = tf.placeholder(tf.float32, [None, 3])
    a = tf.placeholder(tf.float32, [None, 2])
    gain = tf.placeholder(tf.float32, [None])
    old = tf.placeholder(tf.float32, [None])
    rate = tf.placeholder(tf.float32, [])
    clip = tf.placeholder_with_default(0.2, [])

    def dense(scope, x, n, scale):
        with tf.variable_scope(scope):
            init = tf.orthogonal_initializer(scale)
            w = tf.get_variable("w", [x.get_shape()[1].value, n], initializer=init)
            return tf.matmul(x, w) + tf.get_variable("b", [n], initializer=tf.zeros_initializer())

    with tf.variable_scope("model", reuse=tf.AUTO_REUSE):
        h = tf.tanh(dense("h", s, 8, np.sqrt(2)))
        mean = dense("pi", h, 2, 0.01)
        v = dense("v", h, 1, 1.0)[:, 0]
        log_std = tf.get_variable("log_std", [1, 2], initializer=tf.zeros_initializer())

    def surprise(x):
        far = 0.5 * tf.reduce_sum(tf.square((x - mean) / tf.exp(log_std)), axis=-1)
        return (
            far
            + 0.5 * np.log(2 * np.pi) * tf.to_float(tf.shape(x)[-1])
            + tf.reduce_sum(log_std, axis=-1)
        )

    sample = mean + tf.exp(log_std) * tf.random_normal(tf.shape(mean))
    sampled = surprise(sample)
    ratio = tf.exp(old - surprise(a))
    held = tf.clip_by_value(ratio, 1.0 - clip, 1.0 + clip)
    policy = tf.reduce_mean(tf.maximum(-gain * ratio, -gain * held))
    entropy = tf.reduce_mean(tf.reduce_sum(log_std + 0.5 * np.log(2.0 * np.pi * np.e), axis=-1))
    loss = policy - 0.01 * entropy + 0.5 * tf.reduce_mean(tf.square(v - gain))
    params = tf.trainable_variables("model")
    grads, norm = tf.clip_by_global_norm(tf.gradients(loss, params), 0.5)
    optimizer = tf.train.AdamOptimizer(learning_rate=rate, epsilon=1e-5)
    train = optimizer.apply_gradients(list(zip(grads, params)))
    rng, results = np.random.RandomState(0), []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(4):
            states = rng.randn(12, 3)
            actions, before = sess.run([sample, sampled], {s: states})
            feed = {
                s: states,
                a: actions,
                gain: rng.randn(12),
                old: before,
                rate: 0.01 * (1 - i / 4.0),
            }
            results += sess.run([loss, norm], feed)
            sess.run(train, feed)
    return results


def meta_learning(tf):
    """Gradients of gradients, per task in map_fn."""
    tf.set_random_seed(3)
    xa, xb, ya, yb = (tf.placeholder(tf.float32, [3, 5, 1]) for _ in range(4))
    with tf.variable_scope("model"):
        start = {
            "w1": tf.Variable(tf.truncated_normal([1, 10], stddev=0.3)),
            "b1": tf.Variable(tf.zeros([10])),
            "w2": tf.Variable(tf.truncated_normal([10, 1], stddev=0.3)),
        }

    def cost(w, x, y):
        return tf.reduce_mean(
            tf.square(tf.matmul(tf.tanh(tf.matmul(x, w["w1"]) + w["b1"]), w["w2"]) - y)
        )

    def task(parts):
        one, other, one_y, other_y = parts
        fast, after = dict(start), []
        for _ in range(2):
            names = sorted(fast)
            grads = tf.gradients(cost(fast, one, one_y), [fast[k] for k in names])
            fast = {k: fast[k] - 0.1 * g for k, g in zip(names, grads)}
            after.append(cost(fast, other, other_y))
        return after

    losses = tf.map_fn(task, elems=(xa, xb, ya, yb), dtype=[tf.float32] * 2, parallel_iterations=3)
    totals = [tf.reduce_sum(x) / tf.to_float(3) for x in losses]
    optimizer = tf.train.AdamOptimizer(0.01)
    pairs = [(tf.clip_by_value(g, -10, 10), v) for g, v in optimizer.compute_gradients(totals[-1])]
    train = optimizer.apply_gradients(pairs)
    rng, results = np.random.RandomState(0), []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(4):
            x = rng.uniform(-3, 3, (3, 10, 1))
            y = np.sin(x + rng.rand(3, 1, 1))
            feed = {xa: x[:, :5], xb: x[:, 5:], ya: y[:, :5], yb: y[:, 5:]}
            results += sess.run([train, totals], feed)[1]
    return results


def several_losses(tf):
    """tf.losses and its collections, regularizers, schedules, moving averages of all variables."""
    tf.set_random_seed(3)
    x = tf.placeholder(tf.float32, [None, 6])
    y = tf.placeholder(tf.float32, [None, 1])
    kinds = tf.placeholder(tf.int64, [None])
    weights = tf.placeholder(tf.float32, [None])
    shrink = lambda v: 0.01 * tf.nn.l2_loss(v)
    with tf.variable_scope(
        "shared", regularizer=shrink, initializer=tf.variance_scaling_initializer()
    ):
        b = tf.get_variable("b", [8], initializer=tf.zeros_initializer())
        h = tf.nn.elu(tf.matmul(x, tf.get_variable("w", [6, 8])) + b)
    number = tf.matmul(h, tf.get_variable("number", [8, 1], regularizer=shrink))
    kind = tf.matmul(h, tf.get_variable("kind", [8, 3]))
    tf.losses.mean_squared_error(y, number, weights=tf.expand_dims(weights, 1))
    tf.losses.sparse_softmax_cross_entropy(labels=kinds, logits=kind, weights=0.5)
    tf.losses.huber_loss(y, number, delta=0.5)
    tf.losses.absolute_difference(y, number, scope="abs")
    total = tf.losses.get_total_loss()
    step = tf.train.create_global_step()
    rates = [
        tf.train.exponential_decay(0.1, step, 2, 0.9, staircase=True),
        tf.train.piecewise_constant(step, [2, 4], [0.1, 0.05, 0.01]),
        tf.train.polynomial_decay(0.1, step, 10, 0.01, power=2.0),
        tf.train.cosine_decay(0.1, step, 10),
        tf.train.inverse_time_decay(0.1, step, 2, 0.5),
    ]
    optimizer = tf.train.MomentumOptimizer(rates[0], 0.9, use_nesterov=True)
    ema = tf.train.ExponentialMovingAverage(0.9, num_updates=step)
    with tf.control_dependencies([optimizer.minimize(total, global_step=step)]):
        train = ema.apply(tf.trainable_variables())
    rng, results = np.random.RandomState(0), []
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for _ in range(4):
            feed = {
                x: rng.randn(7, 6),
                y: rng.randn(7, 1),
                kinds: rng.randint(0, 3, 7),
                weights: rng.rand(7),
            }
            results.append(sess.run(tf.losses.get_losses(), feed))
            results.append(sess.run([total, train], feed)[0])
            results.append(sess.run(rates))
        return results + [sess.run(ema.average(tf.trainable_variables()[0]))[0], sess.run(step)]


def accumulated_gradients(tf):
    tf.set_random_seed(3)
    x = tf.placeholder(tf.float32, [None, 4])
    y = tf.placeholder(tf.float32, [None, 1])
    w, b = tf.Variable(tf.random_normal([4, 1])), tf.Variable(0.0)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
    variables = tf.trainable_variables()
    sums = [tf.Variable(tf.zeros_like(v.initialized_value()), trainable=False) for v in variables]
    clear = [s.assign(tf.zeros_like(s)) for s in sums]
    optimizer = tf.train.AdamOptimizer(0.1)
    pairs = optimizer.compute_gradients(loss, variables)
    add = [s.assign_add(g) for s, (g, _) in zip(sums, pairs)]
    step = optimizer.apply_gradients([(s / 3.0, v) for s, v in zip(sums, variables)])
    rng, results = np.random.RandomState(0), []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(clear)
            for _ in range(3):
                results.append(sess.run([loss] + add, {x: rng.randn(5, 4), y: rng.randn(5, 1)})[0])
            sess.run(step)
        return results + sess.run(variables)


def own_optimizer(tf):
    """A subclass of tf.train.Optimizer with a slot."""
    tf.set_random_seed(3)

    class PowerSign(tf.train.Optimizer):
        def __init__(self, rate, power, decay, name="PowerSign"):
            super(PowerSign, self).__init__(False, name)
            self._given = rate, power, decay

        def _prepare(self):
            self._tensors = [tf.convert_to_tensor(v) for v in self._given]

        def _create_slots(self, var_list):
            for v in var_list:
                self._zeros_slot(v, "m", self._name)

        def _apply_dense(self, grad, var):
            rate, power, decay = (tf.cast(t, var.dtype.base_dtype) for t in self._tensors)
            m = self.get_slot(var, "m")
            kept = m.assign(tf.maximum(decay * m + 1e-7, tf.abs(grad)))
            factor = tf.exp(tf.log(power) * tf.sign(grad) * tf.sign(kept))
            return tf.group(tf.assign_sub(var, rate * grad * factor), kept)

    w = tf.get_variable("w", [3, 2])
    x = tf.constant(np.arange(12).reshape(4, 3) / 10.0, tf.float32)
    loss = tf.reduce_sum(tf.square(tf.matmul(x, w) - 1))
    optimizer = PowerSign(0.05, 0.9, 0.9)
    train = optimizer.minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        losses = [sess.run([loss, train])[0] for _ in range(5)]
        return losses + [sess.run(optimizer.get_slot(w, "m"))]


def own_gradients(tf):
    """py_func with a gradient, an overridden gradient, custom_gradient, a straight-through
    estimator.
    """
    tf.set_random_seed(3)
    name = "SpikyGrad%d" % np.random.randint(0, 10**8)

    def slope(x):
        return np.where(x % 1 <= 0.5, 1, 0).astype(np.float32)

    @tf.RegisterGradient(name)
    def _spiky(op, grad):
        return grad * tf.py_func(slope, [op.inputs[0]], [tf.float32], stateful=False)[0]

    @tf.RegisterGradient(name + "Relu")
    def _guided(op, grad):
        on = tf.cast(op.outputs[0] > 0, tf.float32)
        return tf.where(grad > 0.0, grad * on, tf.zeros(tf.shape(grad)))

    @tf.custom_gradient
    def limited(x):
        return tf.identity(x), lambda dy: tf.clip_by_value(dy, -0.1, 0.1)

    w = tf.get_variable("w", [3, 4], initializer=tf.random_uniform_initializer(-1, 1))
    x = tf.constant(np.random.RandomState(0).rand(5, 3).astype(np.float32))
    product = tf.matmul(x, w)
    graph = tf.get_default_graph()
    with graph.gradient_override_map({"PyFunc": name}):
        (h,) = tf.py_func(
            lambda v: np.where(v % 1 <= 0.5, v % 1, 0).astype(np.float32), [product], [tf.float32]
        )
    h.set_shape(product.get_shape())
    with graph.gradient_override_map({"Relu": name + "Relu"}):
        h = tf.nn.relu(h - 0.1)
    h = limited(h)
    through = h + tf.stop_gradient(tf.round(h) - h)
    loss = tf.reduce_sum(tf.square(through - 0.3)) + tf.reduce_sum(tf.square(h))
    train = tf.train.GradientDescentOptimizer(0.3).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run([loss, train])[0] for _ in range(5)]


def factorization(tf):
    """Sparse gradients through embeddings, with three optimizers."""
    tf.set_random_seed(4)
    user = tf.placeholder(tf.int32, [None])
    item = tf.placeholder(tf.int32, [None])
    stars = tf.placeholder(tf.float32, [None])
    init = tf.truncated_normal_initializer(stddev=0.02)
    mean, bias = tf.get_variable("mean", shape=[]), tf.get_variable("bias", shape=[20])
    users = tf.get_variable("users", shape=[20, 5], initializer=init)
    items = tf.get_variable("items", shape=[15, 5], initializer=init)
    u, i = tf.nn.embedding_lookup(users, user), tf.nn.embedding_lookup(items, item)
    guess = tf.reduce_sum(tf.multiply(u, i), 1) + mean + tf.nn.embedding_lookup(bias, user)
    cost = tf.nn.l2_loss(guess - stars) + 0.05 * (tf.nn.l2_loss(u) + tf.nn.l2_loss(i))
    step = tf.train.get_or_create_global_step()
    trains = [
        tf.train.AdamOptimizer(0.05).minimize(cost, global_step=step),
        tf.train.FtrlOptimizer(0.05).minimize(cost, global_step=step),
        tf.train.MomentumOptimizer(0.01, 0.9).minimize(cost),
    ]
    rng, results = np.random.RandomState(0), []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for k in range(6):
            feed = {
                user: rng.randint(0, 20, 10),
                item: rng.randint(0, 15, 10),
                stars: rng.rand(10) * 5,
            }
            results.append(sess.run([cost, trains[k % 3]], feed)[0])
        return results + [sess.run(users)[:3], sess.run(step)]


def clustering(tf):
    """k-means in tensor operations, a mixture by expectation and maximisation, nearest
    neighbours.
    """
    rng = np.random.RandomState(0)
    centres = np.repeat([[0, 0], [4, 4], [-4, 4]], 10, 0)
    data = (rng.randn(30, 2) + centres).astype(np.float32)
    points = tf.Variable(data)
    nearest = tf.Variable(tf.zeros([30], dtype=tf.int64))
    means = tf.Variable(tf.slice(points.initialized_value(), [0, 0], [3, 2]))
    tiled = tf.reshape(tf.tile(points, [1, 3]), [30, 3, 2])
    distance = tf.reduce_sum(tf.square(tf.reshape(tf.tile(means, [30, 1]), [30, 3, 2]) - tiled), 2)
    best = tf.argmin(distance, 1)
    changed = tf.reduce_any(tf.not_equal(best, nearest))
    sums = tf.unsorted_segment_sum(points, best, 3)
    counts = tf.unsorted_segment_sum(tf.ones_like(points), best, 3)
    with tf.control_dependencies([changed]):
        update = tf.group(means.assign(sums / counts), nearest.assign(best))
    spread = tf.Variable(tf.zeros([3, 2]))
    share = tf.Variable(tf.fill([3], 1.0 / 3))
    off = tf.expand_dims(points, 1) - means[None]
    chance = tf.log(share) - 0.5 * tf.reduce_sum(tf.square(off) / tf.exp(spread) + spread, -1)
    total = tf.reduce_logsumexp(chance, axis=1, keep_dims=True)
    part = tf.exp(chance - total)
    size = tf.reduce_sum(part, 0)
    middle = tf.matmul(part, points, transpose_a=True) / size[:, tf.newaxis]
    width = tf.einsum("nk,nkd->kd", part, tf.square(tf.expand_dims(points, 1) - middle))
    new = [middle, tf.log(width / tf.expand_dims(size, -1) + 1e-6), size / 30.0]
    maximise = [v.assign(n) for v, n in zip([means, spread, share], tf.tuple(new))]
    far, at = tf.nn.top_k(-tf.reduce_sum(tf.abs(points - tf.constant([1.0, 2.0])), 1), k=4)
    results = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(5):
            results.append(sess.run([changed, update])[0])
        results.append(sess.run(means))
        for _ in range(3):
            results.append(sess.run(tf.reduce_sum(total)))
            sess.run(maximise)
        return results + sess.run([means, share, far, at])


PROGRAMS = [
    deep_q,
    actor_and_critic,
    proximal_policy,
    meta_learning,
    several_losses,
    accumulated_gradients,
    own_optimizer,
    own_gradients,
    factorization,
    clustering,
]
