"""Whole programs in the manner of TF-1 tutorials: recurrent networks by hand, attention, loops.

See programs_networks.py for what a program is. Python 3.7 syntax.
"""

import numpy as np


def sequences(n=4, length=5, width=3):
    rng = np.random.RandomState(0)
    return rng.randn(n, length, width).astype(np.float32), rng.randn(n, 1).astype(np.float32)


def lstm_with_scan(tf):
    tf.set_random_seed(1)
    inputs, targets = sequences()
    size = 4
    x = tf.placeholder(tf.float32, [None, None, 3])
    y = tf.placeholder(tf.float32, [None, 1])
    start = tf.zeros(tf.stack([2, tf.shape(x)[0], size]))
    init = tf.glorot_uniform_initializer()
    own = tf.get_variable("W", shape=[4, size, size], initializer=init)
    new = tf.get_variable("U", shape=[4, 3, size], initializer=init)

    def cell(previous, value):
        state, memory = tf.unstack(previous)
        gates = [tf.matmul(value, new[i]) + tf.matmul(state, own[i]) for i in range(4)]
        let_in, forget, let_out = (tf.sigmoid(g) for g in gates[:3])
        memory = memory * forget + tf.tanh(gates[3]) * let_in
        return tf.stack([tf.tanh(memory) * let_out, memory])

    states = tf.scan(cell, tf.transpose(x, [1, 0, 2]), initializer=start)
    out = tf.matmul(states[-1][0], tf.get_variable("V", shape=[size, 1], initializer=init))
    loss = tf.reduce_mean(tf.square(out - y))
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run([loss, train], {x: inputs, y: targets})[0] for _ in range(5)]


def gru_with_while_loop(tf):
    tf.set_random_seed(1)
    inputs, targets = sequences()
    size = 4
    x = tf.placeholder(tf.float32, [None, 5, 3])
    y = tf.placeholder(tf.float32, [None, 1])
    length = tf.shape(x)[1]
    rows = tf.TensorArray(tf.float32, size=length).unstack(tf.transpose(x, [1, 0, 2]))
    outs = tf.TensorArray(tf.float32, size=length)
    init = tf.truncated_normal_initializer(stddev=0.3)
    with tf.variable_scope("gru"):
        shape = [3 + size, size]
        reset, update, new = (tf.get_variable(n, shape, initializer=init) for n in "rzh")
        offset = tf.get_variable("b", [size], initializer=tf.ones_initializer())

    def body(t, h, outs):
        value = rows.read(t)
        value.set_shape([None, 3])
        both = tf.concat([value, h], 1)
        z = tf.sigmoid(tf.matmul(both, update) + offset)
        r = tf.sigmoid(tf.matmul(both, reset))
        h = (1 - z) * h + z * tf.tanh(tf.matmul(tf.concat([value, r * h], axis=1), new))
        return t + 1, h, outs.write(t, h)

    unknown = [tf.TensorShape([]), tf.TensorShape([None, size]), tf.TensorShape(None)]
    first = [tf.constant(0), tf.zeros([tf.shape(x)[0], size]), outs]
    _, _, outs = tf.while_loop(lambda t, *_: t < length, body, first, shape_invariants=unknown)
    hidden = tf.transpose(outs.stack(), [1, 0, 2])
    out = tf.matmul(tf.reshape(hidden, [-1, size]), tf.get_variable("out", [size, 1]))
    loss = tf.reduce_mean(tf.squared_difference(tf.reshape(out, [-1, 5, 1])[:, -1], y))
    optimizer = tf.train.AdamOptimizer(0.05)
    pairs = [(tf.clip_by_value(g, -1.0, 1.0), v) for g, v in optimizer.compute_gradients(loss)]
    train = optimizer.apply_gradients(pairs)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run([loss, train], {x: inputs, y: targets})[0] for _ in range(5)]


def characters(tf):
    """A recurrent network unrolled with shared variables; its state is fed back."""
    tf.set_random_seed(1)
    text = "hello world, hello tensor"
    letters = sorted(set(text))
    codes = np.eye(len(letters))[[letters.index(c) for c in text]]
    n, size, length = len(letters), 12, 8
    x = tf.placeholder(tf.float32, [None, n], name="inputs")
    y = tf.placeholder(tf.float32, [None, n])
    start = tf.placeholder(tf.float32, [1, size])
    init = tf.random_normal_initializer(stddev=0.1)
    state, outs = start, []
    with tf.variable_scope("rnn") as scope:
        for t, value in enumerate(tf.split(x, length, axis=0)):
            if t:
                scope.reuse_variables()
            w_in = tf.get_variable("in", [n, size], initializer=init)
            w = tf.get_variable("w", [size, size], initializer=init)
            w_out = tf.get_variable("out", [size, n], initializer=init)
            state = tf.tanh(tf.matmul(value, w_in) + tf.matmul(state, w))
            outs.append(tf.matmul(state, w_out))
    logits = tf.concat(outs, axis=0)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits))
    optimizer = tf.train.AdamOptimizer()
    limit = tf.constant(5.0, name="limit")
    pairs = [(tf.clip_by_value(g, -limit, limit), v) for g, v in optimizer.compute_gradients(loss)]
    train = optimizer.apply_gradients(pairs)
    kept, losses = np.zeros((1, size)), []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for p in range(0, 16, 4):
            feed = {x: codes[p : p + length], y: codes[p + 1 : p + length + 1], start: kept}
            kept, value, _ = sess.run([state, loss, train], feed)
            losses.append(value)
    return losses + [kept]


def translation(tf):
    """An encoder, a decoder that attends to it, and greedy decoding in a loop."""
    tf.set_random_seed(3)
    words, width, size, batch = 12, 5, 6, 3
    enc = tf.placeholder(tf.int32, [None, None])
    dec = tf.placeholder(tf.int32, [None, None])
    goal = tf.placeholder(tf.int32, [None, None])
    lengths = tf.placeholder(tf.int32, [None])
    n = tf.shape(enc)[0]
    table = tf.get_variable(
        "table", [words, width], initializer=tf.random_uniform_initializer(-1, 1)
    )

    def cell(scope):
        with tf.variable_scope(scope):
            w = tf.get_variable("w", [width + size, size])
        return lambda h, value: tf.tanh(tf.matmul(tf.concat([value, h], 1), w))

    def by_time(tokens):
        return tf.transpose(tf.nn.embedding_lookup(table, tokens), [1, 0, 2])

    seen = tf.scan(cell("encoder"), by_time(enc), initializer=tf.zeros([n, size]))
    seen = tf.transpose(seen, [1, 0, 2])
    last = tf.gather_nd(seen, tf.stack([tf.range(n), lengths - 1], axis=1))
    mask = tf.sequence_mask(lengths, tf.shape(enc)[1], dtype=tf.float32)
    decoder, attend = cell("decoder"), tf.get_variable("attend", [size, size])

    def step(h, value):
        h = decoder(h, value)
        scores = tf.reduce_sum(tf.expand_dims(tf.matmul(h, attend), 1) * seen, 2)
        scores = tf.where(mask > 0, scores, tf.fill(tf.shape(scores), -1e9))
        context = tf.reduce_sum(tf.expand_dims(tf.nn.softmax(scores), 2) * seen, 1)
        return tf.tanh(h + context)

    hidden = tf.transpose(tf.scan(step, by_time(dec), initializer=last), [1, 0, 2])
    w = tf.get_variable("out", [size, words])
    logits = tf.tensordot(hidden, w, [[2], [0]])
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=goal, logits=logits)
    real = tf.to_float(tf.not_equal(goal, 0))
    loss = tf.reduce_sum(entropy * real) / tf.maximum(tf.reduce_sum(real), 1.0)
    optimizer = tf.train.AdamOptimizer(0.02)
    grads, variables = zip(*optimizer.compute_gradients(loss))
    train = optimizer.apply_gradients(zip(tf.clip_by_global_norm(grads, 1.0)[0], variables))

    def greedy(i, h, tokens, outs):
        h = step(h, tf.gather(table, tokens))
        tokens = tf.cast(tf.argmax(tf.matmul(h, w), 1), tf.int32)
        return i + 1, h, tokens, outs.write(i, tokens)

    first = [0, last, tf.ones([n], tf.int32), tf.TensorArray(tf.int32, 4)]
    guesses = tf.while_loop(lambda i, *_: i < 4, greedy, first)[3].stack()
    rng, losses = np.random.RandomState(0), []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(4):
            t = 4 + i % 3
            feed = {
                enc: rng.randint(1, words, (batch, t)),
                dec: rng.randint(1, words, (batch, 4)),
                goal: rng.randint(0, words, (batch, 4)),
                lengths: rng.randint(1, t + 1, batch),
            }
            losses.append(sess.run([loss, train], feed)[0])
        return losses + [sess.run(guesses, feed)]


def transformer(tf):
    """One block in GPT-2's manner.

    Dynamic shapes, masks, layer norm, gelu, tied weights, sampling.
    """
    tf.set_random_seed(1)
    words, width, heads, batch = 20, 8, 2, 2

    def dims(value):
        known, run = value.shape.as_list(), tf.shape(value)
        return [run[i] if d is None else d for i, d in enumerate(known)]

    def norm(value, scope):
        with tf.variable_scope(scope):
            g = tf.get_variable("g", [width], initializer=tf.constant_initializer(1))
            b = tf.get_variable("b", [width], initializer=tf.constant_initializer(0))
            u = tf.reduce_mean(value, axis=-1, keepdims=True)
            s = tf.reduce_mean(tf.square(value - u), axis=-1, keepdims=True)
            return (value - u) * tf.rsqrt(s + 1e-5) * g + b

    def dense(value, scope, m):
        with tf.variable_scope(scope):
            first, n = dims(value)[:-1], dims(value)[-1]
            w = tf.get_variable(
                "w", [1, n, m], initializer=tf.random_normal_initializer(stddev=0.02)
            )
            b = tf.get_variable("b", [m], initializer=tf.constant_initializer(0))
            out = tf.matmul(tf.reshape(value, [-1, n]), tf.reshape(w, [-1, m])) + b
            return tf.reshape(out, first + [m])

    def gelu(value):
        return (
            0.5 * value * (1 + tf.tanh(np.sqrt(2 / np.pi) * (value + 0.044715 * tf.pow(value, 3))))
        )

    def split(value):
        first = dims(value)[:-1]
        return tf.transpose(tf.reshape(value, first + [heads, width // heads]), [0, 2, 1, 3])

    def attention(value):
        q, k, v = (split(part) for part in tf.split(dense(value, "qkv", 3 * width), 3, axis=2))
        w = tf.matmul(q, k, transpose_b=True) * tf.rsqrt(tf.cast(v.shape[-1].value, tf.float32))
        n = dims(w)[2]
        mask = tf.reshape(tf.cast(tf.range(n)[:, None] >= tf.range(n), w.dtype), [1, 1, n, n])
        w = tf.nn.softmax(w * mask - 1e10 * (1 - mask))
        out = tf.transpose(tf.matmul(w, v), [0, 2, 1, 3])
        return dense(tf.reshape(out, dims(out)[:2] + [width]), "proj", width)

    x = tf.placeholder(tf.int32, [batch, None])
    with tf.variable_scope("model", reuse=tf.AUTO_REUSE):
        places = tf.get_variable(
            "wpe", [6, width], initializer=tf.random_normal_initializer(stddev=0.01)
        )
        table = tf.get_variable(
            "wte", [words, width], initializer=tf.random_normal_initializer(stddev=0.02)
        )
        at = tf.tile(tf.expand_dims(tf.range(tf.shape(x)[1]), axis=0), [tf.shape(x)[0], 1])
        h = tf.gather(table, x) + tf.gather(places, at)
        h = h + attention(norm(h, "ln_1"))
        h = h + dense(gelu(dense(norm(h, "ln_2"), "fc", 4 * width)), "out", width)
        h = norm(h, "ln_f")
        logits = tf.matmul(tf.reshape(h, [-1, width]), table, transpose_b=True)
        logits = tf.reshape(logits, [batch, -1, words])
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=x[:, 1:], logits=logits[:, :-1])
    loss = tf.reduce_mean(entropy)
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    last = logits[:, -1, :]
    best, _ = tf.nn.top_k(last, k=5)
    low = last < best[:, -1, tf.newaxis]
    sample = tf.multinomial(tf.where(low, tf.ones_like(last) * -1e10, last), 3, seed=5)
    rng = np.random.RandomState(0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        feeds = [{x: rng.randint(0, words, (batch, 6 - i % 2))} for i in range(4)]
        losses = [sess.run([train, loss], feed)[1] for feed in feeds]
        return losses + [sess.run(sample, feeds[0])]


def speech(tf):
    """Connectionist temporal classification with sparse labels."""
    tf.set_random_seed(3)
    x = tf.placeholder(tf.float32, [None, None, 4])
    y = tf.sparse_placeholder(tf.int32)
    lengths = tf.placeholder(tf.int32, [None])
    w = tf.Variable(tf.truncated_normal([4, 5], stddev=0.1))
    b = tf.Variable(tf.constant(0.0, shape=[5]))
    logits = tf.matmul(tf.reshape(x, [-1, 4]), w) + b
    logits = tf.transpose(tf.reshape(logits, [tf.shape(x)[0], -1, 5]), (1, 0, 2))
    cost = tf.reduce_mean(tf.nn.ctc_loss(y, logits, lengths))
    train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(cost)
    decoded, _ = tf.nn.ctc_greedy_decoder(logits, lengths)
    errors = tf.reduce_mean(tf.edit_distance(tf.cast(decoded[0], tf.int32), y))
    labels = (np.array([[0, 0], [0, 1], [1, 0]]), np.array([1, 2, 3]), np.array([2, 2]))
    rng, results = np.random.RandomState(0), []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(4):
            feed = {x: rng.randn(2, 6, 4), y: labels, lengths: [6, 5]}
            results.append(sess.run([cost, train], feed)[0])
            results.append(sess.run(errors, feed))
    return results


PROGRAMS = [
    lstm_with_scan,
    gru_with_while_loop,
    characters,
    translation,
    transformer,
    speech,
]
