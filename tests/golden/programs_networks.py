"""Whole programs in the manner of TF-1 tutorials: regressions, networks for images, generative
models.

A program is a function of the module that stands for ``tf``. It builds its graph, trains for a few
steps and returns what a user would print. Seeds are set per graph only, so that the numbers depend
on every operation made before. Python 3.7 syntax.
"""

import numpy as np


def classes(n=32, width=10, kinds=3, seed=0):
    rng = np.random.RandomState(seed)
    x = rng.randn(n, width).astype(np.float32)
    y = np.argmax(x.dot(rng.randn(width, kinds)), 1)
    return x, np.eye(kinds, dtype=np.float32)[y], y


def images(n=6, size=12, channels=1, kinds=4):
    rng = np.random.RandomState(3)
    x = rng.rand(n, size, size, channels).astype(np.float32)
    return x, np.eye(kinds, dtype=np.float32)[rng.randint(0, kinds, n)]


def logistic_regression(tf):
    inputs, labels, _ = classes()
    x = tf.placeholder(tf.float32, [None, 10])
    y = tf.placeholder(tf.float32, [None, 3])
    w = tf.Variable(tf.zeros([10, 3]))
    b = tf.Variable(tf.zeros([3]))
    guess = tf.nn.softmax(tf.matmul(x, w) + b)
    cost = tf.reduce_mean(-tf.reduce_sum(y * tf.log(guess), reduction_indices=1))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(cost)
    right = tf.equal(tf.argmax(guess, 1), tf.argmax(y, 1))
    accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
    feed = {x: inputs, y: labels}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        losses = [sess.run([train, cost], feed)[1] for _ in range(10)]
        return losses + [accuracy.eval(feed)]


def perceptron(tf):
    tf.set_random_seed(42)
    inputs, labels, _ = classes()
    x = tf.placeholder("float", [None, 10])
    y = tf.placeholder("float", [None, 3])
    keep = tf.placeholder(tf.float32)
    sizes = [(10, 16), (16, 8), (8, 3)]
    layer = x
    penalty = 0.0
    for i, (n, m) in enumerate(sizes):
        w = tf.Variable(tf.random_normal([n, m]), name="w%d" % i)
        b = tf.Variable(tf.random_normal([m]), name="b%d" % i)
        layer = tf.add(tf.matmul(layer, w), b)
        if i < 2:
            layer = tf.nn.dropout(tf.nn.relu(layer), keep)
        penalty += tf.nn.l2_loss(w)
    entropy = tf.nn.softmax_cross_entropy_with_logits(logits=layer, labels=y)
    loss = tf.reduce_mean(entropy)
    train = tf.train.AdamOptimizer(0.01).minimize(loss + 1e-3 * penalty)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run([train, loss], {x: inputs, y: labels, keep: 0.8})[1] for _ in range(8)]


def convolutional(tf):
    tf.set_random_seed(7)
    inputs, labels = images()

    def weight(shape):
        return tf.Variable(tf.truncated_normal(shape, stddev=0.1))

    def bias(shape):
        return tf.Variable(tf.constant(0.1, shape=shape))

    def pool(value):
        return tf.nn.max_pool(value, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")

    x = tf.placeholder(tf.float32, [None, 144])
    y = tf.placeholder(tf.float32, [None, 4])
    keep = tf.placeholder(tf.float32)
    h = tf.reshape(x, [-1, 12, 12, 1])
    with tf.name_scope("conv1"):
        h = tf.nn.conv2d(h, weight([5, 5, 1, 8]), strides=[1, 1, 1, 1], padding="SAME")
        h = tf.nn.lrn(pool(tf.nn.relu(h + bias([8]))), 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75)
    with tf.name_scope("conv2"):
        h = tf.nn.conv2d(h, weight([3, 3, 8, 8]), strides=[1, 1, 1, 1], padding="SAME")
        h = pool(tf.nn.relu(tf.nn.bias_add(h, bias([8]))))
    h = tf.nn.relu(tf.matmul(tf.reshape(h, [-1, 72]), weight([72, 16])) + bias([16]))
    logits = tf.matmul(tf.nn.dropout(h, keep), weight([16, 4])) + bias([4])
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=logits))
    train = tf.train.AdamOptimizer(1e-2).minimize(loss)
    flat = inputs.reshape(len(inputs), -1)
    sess = tf.InteractiveSession()
    sess.run(tf.global_variables_initializer())
    losses = []
    for _ in range(5):
        train.run(feed_dict={x: flat, y: labels, keep: 0.5})
        losses.append(loss.eval(feed_dict={x: flat, y: labels, keep: 1.0}))
    sess.close()
    return losses


def batch_norm_by_hand(tf):
    tf.set_random_seed(7)
    inputs, labels = images()
    x = tf.placeholder(tf.float32, [None, 12, 12, 1])
    y = tf.placeholder(tf.float32, [None, 4])
    training = tf.placeholder(tf.bool, name="training")

    def normalized(value, n):
        with tf.variable_scope("bn"):
            beta = tf.Variable(tf.constant(0.0, shape=[n]), name="beta", trainable=True)
            gamma = tf.Variable(tf.constant(1.0, shape=[n]), name="gamma", trainable=True)
            mean, variance = tf.nn.moments(value, [0, 1, 2], name="moments")
            ema = tf.train.ExponentialMovingAverage(decay=0.5)

            def updated():
                with tf.control_dependencies([ema.apply([mean, variance])]):
                    return tf.identity(mean), tf.identity(variance)

            kept = lambda: (ema.average(mean), ema.average(variance))
            m, v = tf.cond(training, updated, kept)
            return tf.nn.batch_normalization(value, m, v, beta, gamma, 1e-3)

    h = x
    for i, (n, m) in enumerate([(1, 6), (6, 6)]):
        with tf.variable_scope("conv%d" % i):
            w = tf.get_variable("w", [3, 3, n, m])
            h = tf.nn.relu(normalized(tf.nn.conv2d(h, w, [1, 2, 2, 1], "SAME"), m))
    logits = tf.matmul(tf.reduce_mean(h, [1, 2]), tf.get_variable("out", [6, 4]))
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=logits))
    step = tf.Variable(0, name="global_step", trainable=False)
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step)
    feed = {x: inputs, y: labels, training: True}
    results = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(4):
            results.append(sess.run([train, loss], feed)[1])
            results.append(sess.run(loss, {x: inputs, y: labels, training: False}))
        return results + [sess.run(step)]


def variational_autoencoder(tf):
    tf.set_random_seed(5)
    inputs = np.random.RandomState(1).rand(16, 20).astype(np.float32)

    def start(shape):
        return tf.random_normal(shape=shape, stddev=1.0 / tf.sqrt(shape[0] / 2.0))

    def dense(value, n, m):
        return tf.matmul(value, tf.Variable(start([n, m]))) + tf.Variable(start([m]))

    x = tf.placeholder(tf.float32, [None, 20])
    hidden = tf.nn.tanh(dense(x, 20, 12))
    mean, spread = dense(hidden, 12, 2), dense(hidden, 12, 2)
    noise = tf.random_normal(tf.shape(spread), dtype=tf.float32, name="epsilon")
    z = mean + tf.exp(spread / 2) * noise
    out = tf.nn.sigmoid(dense(tf.nn.tanh(dense(z, 2, 12)), 12, 20))
    likelihood = tf.reduce_sum(x * tf.log(1e-10 + out) + (1 - x) * tf.log(1e-10 + 1 - out), 1)
    divergence = -0.5 * tf.reduce_sum(1 + spread - tf.square(mean) - tf.exp(spread), 1)
    loss = tf.reduce_mean(divergence - likelihood)
    train = tf.train.RMSPropOptimizer(0.01).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run([train, loss], {x: inputs})[1] for _ in range(8)]


def adversarial(tf):
    """Two optimizers, each over the variables of one scope."""
    tf.set_random_seed(9)

    def linear(value, width, scope):
        with tf.variable_scope(scope):
            init = tf.random_normal_initializer(stddev=1.0)
            w = tf.get_variable("w", [value.get_shape()[1], width], initializer=init)
            b = tf.get_variable("b", [width], initializer=tf.constant_initializer(0.0))
            return tf.matmul(value, w) + b

    def discriminator(value):
        h = tf.tanh(linear(tf.tanh(linear(value, 8, "d0")), 8, "d1"))
        return tf.sigmoid(linear(h, 1, "d2"))

    with tf.variable_scope("Gen"):
        z = tf.placeholder(tf.float32, shape=(12, 1))
        made = linear(tf.nn.softplus(linear(z, 4, "g0")), 1, "g1")
    with tf.variable_scope("Disc") as scope:
        x = tf.placeholder(tf.float32, shape=(12, 1))
        on_real = discriminator(x)
        scope.reuse_variables()
        on_made = discriminator(made)
    d_loss = tf.reduce_mean(-tf.log(on_real) - tf.log(1 - on_made))
    g_loss = tf.reduce_mean(-tf.log(on_made))
    d_vars = [v for v in tf.trainable_variables() if v.name.startswith("Disc/")]
    g_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="Gen")
    batch = tf.Variable(0)
    rate = tf.train.exponential_decay(0.05, batch, 3, 0.95, staircase=True)
    descent = tf.train.GradientDescentOptimizer(rate)
    d_train = descent.minimize(d_loss, global_step=batch, var_list=d_vars)
    g_train = tf.train.AdamOptimizer(0.001, beta1=0.5).minimize(g_loss, var_list=g_vars)
    rng = np.random.RandomState(4)
    losses = []
    with tf.Session() as sess:
        tf.global_variables_initializer().run()
        for _ in range(5):
            feed = {x: rng.randn(12, 1), z: rng.rand(12, 1)}
            losses.append(sess.run([d_loss, d_train], feed)[0])
            losses.append(sess.run([g_loss, g_train], {z: rng.rand(12, 1)})[0])
    return losses


def deconvolutional(tf):
    tf.set_random_seed(2)
    batch = 4

    def deconv(value, shape, name):
        with tf.variable_scope(name):
            init = tf.random_normal_initializer(stddev=0.02)
            w = tf.get_variable("w", [5, 5, shape[-1], value.get_shape()[-1]], initializer=init)
            out = tf.nn.conv2d_transpose(value, w, output_shape=shape, strides=[1, 2, 2, 1])
            b = tf.get_variable("biases", [shape[-1]], initializer=tf.constant_initializer(0.0))
            return tf.reshape(tf.nn.bias_add(out, b), out.get_shape())

    z = tf.placeholder(tf.float32, [batch, 6], name="z")
    real = tf.placeholder(tf.float32, [batch, 8, 8, 3])
    matrix = tf.get_variable("m", [6, 32], tf.float32, tf.random_normal_initializer(stddev=0.02))
    h = tf.nn.relu(tf.reshape(tf.matmul(z, matrix), [-1, 2, 2, 8]))
    h = tf.nn.relu(deconv(h, [batch, 4, 4, 4], "h1"))
    out = tf.nn.tanh(deconv(h, [batch, 8, 8, 3], "h2"))
    mask = tf.maximum(out, 0.2 * out)
    entropy = tf.nn.sigmoid_cross_entropy_with_logits(logits=mask, labels=tf.ones_like(out))
    loss = tf.reduce_mean(tf.squared_difference(out, real)) + 0.1 * tf.reduce_mean(entropy)
    train = tf.train.AdamOptimizer(0.01, beta1=0.5).minimize(loss)
    rng = np.random.RandomState(0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        feeds = [
            {z: rng.uniform(-1, 1, [batch, 6]), real: rng.rand(batch, 8, 8, 3)} for _ in range(5)
        ]
        return [sess.run([train, loss], feed)[1] for feed in feeds]


def style_transfer(tf):
    """The image is the variable; Gram matrices and total variation in the loss."""
    tf.set_random_seed(4)
    rng = np.random.RandomState(0)
    content, style = rng.rand(2, 1, 8, 8, 3).astype(np.float32)
    w1 = tf.constant(rng.randn(3, 3, 3, 5).astype(np.float32))
    w2 = tf.constant(rng.randn(3, 3, 5, 6).astype(np.float32))

    def layers(value):
        first = tf.nn.relu(tf.nn.conv2d(value, w1, [1, 1, 1, 1], "SAME"))
        pooled = tf.nn.avg_pool(first, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
        return [first, tf.nn.relu(tf.nn.conv2d(pooled, w2, [1, 1, 1, 1], "SAME"))]

    def gram(layer):
        _, height, width, number = (d.value for d in layer.get_shape())
        features = tf.reshape(layer, (-1, number))
        return tf.matmul(tf.transpose(features), features) / (height * width * number)

    image = tf.Variable(tf.random_normal((1, 8, 8, 3)) * 0.256, name="image")
    have, like, styled = layers(image), layers(tf.constant(content)), layers(tf.constant(style))
    loss = 10 * tf.nn.l2_loss(have[1] - like[1]) / tf.to_float(tf.size(like[1]))
    loss += tf.add_n([2 * tf.nn.l2_loss(gram(a) - gram(b)) for a, b in zip(have, styled)])
    down = tf.nn.l2_loss(image[:, 1:, :, :] - image[:, :7, :, :])
    across = tf.nn.l2_loss(image[:, :, 1:, :] - image[:, :, :7, :])
    loss += (down + across) / 50
    train = tf.train.AdamOptimizer(0.1).minimize(loss)
    clip = image.assign(tf.clip_by_value(image, -1, 1))
    losses = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(6):
            train.run()
            losses.append(loss.eval())
            sess.run(clip)
    return losses


def word_vectors(tf):
    tf.set_random_seed(8)
    words, width, batch = 50, 8, 16
    x = tf.placeholder(tf.int32, shape=[batch])
    y = tf.placeholder(tf.int32, shape=[batch, 1])
    with tf.device("/cpu:0"):
        table = tf.Variable(tf.random_uniform([words, width], -1.0, 1.0))
        rows = tf.nn.embedding_lookup(table, x)
        weights = tf.Variable(tf.truncated_normal([words, width], stddev=1.0 / np.sqrt(width)))
        biases = tf.Variable(tf.zeros([words]))
    nce = tf.nn.nce_loss(weights, biases, y, rows, num_sampled=5, num_classes=words)
    sampled = tf.nn.sampled_softmax_loss(weights, biases, y, rows, 5, words)
    loss = tf.reduce_mean(nce) + tf.reduce_mean(sampled)
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    unit = table / tf.sqrt(tf.reduce_sum(tf.square(table), 1, keep_dims=True))
    near = tf.matmul(tf.nn.embedding_lookup(unit, tf.constant([1, 2])), unit, transpose_b=True)
    rng = np.random.RandomState(0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        feeds = [
            {x: rng.randint(0, words, batch), y: rng.randint(0, words, (batch, 1))}
            for _ in range(6)
        ]
        losses = [sess.run([train, loss], feed)[1] for feed in feeds]
        return losses + [near.eval()[:, :4]]


PROGRAMS = [
    logistic_regression,
    perceptron,
    convolutional,
    batch_norm_by_hand,
    variational_autoencoder,
    adversarial,
    deconvolutional,
    style_transfer,
    word_vectors,
]
