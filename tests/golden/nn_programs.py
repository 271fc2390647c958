"""Calls of tf.nn and tf.losses, the same code for TensorFlow 1.15 and for Headrace.

Each program is ``program(tf) -> tensors``; floating results are differentiated by the inputs that
``f`` made. Python 3.7 and no headrace import: see make_nn.py.
"""

import numpy as np

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def a(*shape, **kw):
    rng = np.random.RandomState(sum(shape) * 7 + len(shape) + kw.get("salt", 0))
    return rng.uniform(kw.get("low", -1), kw.get("high", 1), shape).astype(np.float32)


def f(tf, *shape, **kw):
    """An input, which gradients are taken by."""
    x = tf.constant(a(*shape, **kw))
    tf.inputs.append(x)
    return x


def n(high, *shape):
    return np.random.RandomState(high + sum(shape)).randint(0, high, shape).astype(np.int32)


@program
def activations(tf):
    x = f(tf, 3, 4)
    nn = tf.nn
    return [
        nn.relu(x),
        nn.relu6(x),
        nn.crelu(x),
        nn.crelu(x, axis=0),
        nn.leaky_relu(x),
        nn.leaky_relu(x, alpha=0.1),
        nn.elu(x),
        nn.selu(x),
        nn.softplus(x),
        nn.softsign(x),
        nn.swish(x),
    ]


@program
def leaky_relu_of_integers(tf):
    return [tf.nn.leaky_relu(n(9, 4) - 5)]


@program
def softmax_over_axes(tf):
    x = f(tf, 2, 3, 4)
    nn = tf.nn
    return [
        nn.softmax(x),
        nn.softmax(x, axis=1),
        nn.softmax(x, dim=0),
        nn.softmax(x, -2),
        nn.log_softmax(x, axis=0),
        nn.log_softmax(x, axis=2),
    ]


@program
def softmax_losses(tf):
    x, z, one = f(tf, 4, 3), f(tf, 2, 3, 4), np.eye(3, dtype=np.float32)[n(3, 4)]
    nn = tf.nn
    p = nn.softmax(f(tf, 2, 3, 4, salt=3))
    return [
        nn.softmax_cross_entropy_with_logits(labels=one, logits=x),
        nn.softmax_cross_entropy_with_logits(labels=p, logits=z),
        nn.softmax_cross_entropy_with_logits_v2(labels=p, logits=z),
        nn.softmax_cross_entropy_with_logits_v2(labels=p, logits=z, axis=1),
        nn.sparse_softmax_cross_entropy_with_logits(labels=n(3, 4), logits=x),
        nn.sparse_softmax_cross_entropy_with_logits(labels=n(4, 2, 3), logits=z),
        nn.sparse_softmax_cross_entropy_with_logits(labels=np.int32(1), logits=z[0, 0]),
    ]


@program
def sigmoid_losses(tf):
    x, z = f(tf, 3, 4, low=-5, high=5), a(3, 4, low=0, salt=1)
    nn = tf.nn
    return [
        nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x),
        nn.weighted_cross_entropy_with_logits(targets=z, logits=x, pos_weight=2.5),
        nn.weighted_cross_entropy_with_logits(z, x, a(4, low=1, high=2)),
        nn.log_poisson_loss(z, x),
        nn.log_poisson_loss(a(3, 4, low=0, high=4), x, compute_full_loss=True),
    ]


@program
def dense(tf):
    x, w, b = f(tf, 3, 4), f(tf, 4, 2), f(tf, 2)
    return [
        tf.nn.xw_plus_b(x, w, b),
        tf.nn.relu_layer(x, w, b),
        tf.nn.bias_add(x, f(tf, 4)),
        tf.nn.l2_loss(x),
        tf.nn.bias_add(f(tf, 2, 3, 4, 4), f(tf, 3), data_format="NCHW"),
    ]


@program
def fractions(tf):
    return [
        tf.nn.zero_fraction(np.array([0.0, 1, 0, 2], np.float32)),
        tf.nn.zero_fraction(n(3, 4, 4)),
    ]


@program
def norms(tf):
    x = f(tf, 2, 3, 4)
    nn = tf.nn
    m, v = nn.moments(x, [0, 1])
    m2, v2 = nn.moments(x, axes=[1], keep_dims=True)
    wm, wv = nn.weighted_moments(x, [0, 2], a(2, 3, 1, low=0.1))
    c, ms, vs, s = nn.sufficient_statistics(x, [0, 1], shift=0.5)
    c2, ms2, vs2, _ = nn.sufficient_statistics(x, [0, 1])
    nm = nn.normalize_moments(c, ms, vs, s)
    return [
        m,
        v,
        m2,
        v2,
        wm,
        wv,
        c,
        ms,
        vs,
        c2,
        ms2,
        vs2,
        nm[0],
        nm[1],
        nn.batch_normalization(x, m, v, f(tf, 4), f(tf, 4, low=0.5), 1e-3),
        nn.batch_normalization(x, m, v, None, None, 1e-3),
        nn.l2_normalize(x, 1),
        nn.l2_normalize(x, dim=[0, 2]),
        nn.l2_normalize(x),
    ]


@program
def image_norms(tf):
    x, scale, offset = f(tf, 2, 3, 4, 3), f(tf, 3, low=0.5), f(tf, 3, salt=1)
    y, m, v = tf.nn.fused_batch_norm(x, scale, offset)
    z, _, _ = tf.nn.fused_batch_norm(x, scale, offset, a(3), a(3, low=0.5), is_training=False)
    g = tf.nn.batch_norm_with_global_normalization(
        x, a(3), a(3, low=0.5), offset, scale, 1e-3, True
    )
    return [
        y,
        tf.stop_gradient(m),
        tf.stop_gradient(v),
        z,
        g,
        tf.nn.lrn(x, 2, bias=1.0, alpha=0.3, beta=0.75),
    ]


@program
def batch_norm_second_order(tf):
    x, scale, offset = f(tf, 2, 2, 3, 3), f(tf, 3, low=0.5), f(tf, 3, salt=1)
    y, _, _ = tf.nn.fused_batch_norm(x, scale, offset)
    return [tf.gradients(tf.reduce_sum(y * a(2, 2, 3, 3, salt=4)), x)[0]]


@program
def convolutions(tf):
    x, w = f(tf, 2, 6, 5, 3), f(tf, 3, 2, 3, 4)
    nn = tf.nn
    return [
        nn.conv2d(x, w, [1, 1, 1, 1], "SAME"),
        nn.conv2d(x, filters=w, strides=2, padding="VALID"),
        nn.conv2d(x, w, [1, 1], [[0, 0], [1, 0], [2, 1], [0, 0]]),
        nn.conv2d(input=x, filter=w, strides=[1, 2, 1, 1], padding="SAME"),
        nn.atrous_conv2d(x, w, 2, "SAME"),
        nn.atrous_conv2d(x, w, 2, "VALID"),
        nn.convolution(x, w, "SAME", strides=[2, 2]),
        nn.convolution(x, w, "VALID", dilation_rate=[1, 2]),
        nn.conv2d_transpose(f(tf, 2, 3, 3, 4), w, [2, 6, 5, 3], [1, 2, 2, 1]),
        nn.conv2d_transpose(f(tf, 2, 2, 2, 4), w, tf.stack([2, 6, 5, 3]), 2, "VALID"),
        nn.atrous_conv2d_transpose(f(tf, 2, 6, 5, 4), w, [2, 6, 5, 3], 2, "SAME"),
    ]


@program
def separable_convolutions(tf):
    x, d, p = f(tf, 2, 6, 5, 3), f(tf, 3, 3, 3, 2), f(tf, 1, 1, 6, 4)
    nn = tf.nn
    return [
        nn.depthwise_conv2d(x, d, [1, 1, 1, 1], "SAME"),
        nn.depthwise_conv2d(x, d, [1, 2, 2, 1], "VALID"),
        nn.depthwise_conv2d(x, d, [1, 1, 1, 1], "SAME", rate=[2, 2]),
        nn.depthwise_conv2d_native(x, d, [1, 1, 1, 1], "VALID"),
        nn.separable_conv2d(x, d, p, [1, 1, 1, 1], "SAME"),
        nn.separable_conv2d(x, d, p, [1, 1, 1, 1], "VALID", rate=[1, 2]),
    ]


@program
def convolutions_in_one_and_three_dimensions(tf):
    x, w, v, u = f(tf, 2, 7, 3), f(tf, 3, 3, 4), f(tf, 1, 4, 4, 3, 2), f(tf, 2, 2, 2, 2, 3)
    nn = tf.nn
    return [
        nn.conv1d(x, w, 1, "SAME"),
        nn.conv1d(x, w, stride=2, padding="VALID"),
        nn.convolution(x, w, "SAME"),
        nn.convolution(x, w, "SAME", dilation_rate=[2]),
        nn.conv1d_transpose(f(tf, 2, 4, 4), w, [2, 7, 3], 2, "SAME"),
        nn.conv3d(v, u, [1, 1, 1, 1, 1], "SAME"),
        nn.conv3d(v, u, [1, 2, 2, 1, 1], "VALID"),
        nn.conv3d_transpose(f(tf, 1, 2, 2, 3, 3), u, [1, 4, 4, 3, 2], [1, 2, 2, 1, 1], "SAME"),
    ]


@program
def pools(tf):
    x, v, s = f(tf, 2, 5, 6, 3), f(tf, 1, 4, 4, 3, 2), f(tf, 2, 7, 3)
    nn = tf.nn
    top, where = nn.max_pool_with_argmax(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    return [
        nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"),
        nn.max_pool(x, 3, 1, "VALID"),
        nn.avg_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME"),
        nn.avg_pool(value=x, ksize=2, strides=1, padding="VALID"),
        nn.max_pool1d(s, 2, 2, "SAME"),
        nn.avg_pool1d(s, 3, 2, "VALID"),
        nn.max_pool2d(x, 2, 2, "VALID"),
        nn.max_pool3d(v, 2, 2, "SAME"),
        nn.avg_pool3d(v, [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], "SAME"),
        nn.pool(x, [2, 2], "MAX", "SAME", strides=[2, 2]),
        nn.pool(x, [2, 3], "AVG", "VALID"),
        nn.pool(x, [2, 2], "MAX", "VALID", dilation_rate=[2, 2]),
        nn.pool(s, [3], "AVG", "VALID", dilation_rate=[2]),
        top,
        where,
    ]


@program
def max_pool_second_order(tf):
    x = f(tf, 1, 4, 4, 2)
    g = tf.gradients(tf.reduce_sum(tf.square(tf.nn.max_pool(x, 3, 2, "SAME"))), x)[0]
    return [tf.reduce_sum(tf.square(g))]


@program
def dropouts(tf):
    tf.set_random_seed(3)
    x = f(tf, 3, 4)
    nn = tf.nn
    return [
        nn.dropout(x, 0.5, seed=1),
        nn.dropout(x, keep_prob=0.7, noise_shape=[3, 1], seed=2),
        nn.dropout(x, rate=0.25, noise_shape=[None, 4], seed=3),
        nn.dropout(x, 1.0),
        nn.dropout(x, rate=0.3),
        nn.dropout(x, keep_prob=tf.constant(0.6)),
    ]


@program
def embeddings(tf):
    table, ids = f(tf, 7, 3), n(7, 2, 4)
    parts = [f(tf, 3, 2), f(tf, 2, 2), f(tf, 2, 2, salt=1)]
    nn = tf.nn
    return [
        nn.embedding_lookup(table, ids),
        nn.embedding_lookup(table, 3),
        nn.embedding_lookup(table, ids, max_norm=0.5),
        nn.embedding_lookup(parts, ids),
        nn.embedding_lookup(parts, ids, partition_strategy="div"),
        nn.embedding_lookup([table], [1, 1, 2]),
    ]


def sparse(tf, values):
    return tf.SparseTensor(
        np.array([[0, 0], [0, 1], [2, 0], [2, 2]], np.int64), values, np.array([4, 3], np.int64)
    )


@program
def sparse_embeddings(tf):
    table = f(tf, 7, 3)
    ids, weights = sparse(tf, np.array([1, 4, 4, 0], np.int64)), sparse(tf, a(4, low=0.1))
    nn = tf.nn
    found = [
        nn.embedding_lookup_sparse(table, ids, w, combiner=c)
        for w in (None, weights)
        for c in ("sum", "mean", "sqrtn")
    ]
    ids = sparse(tf, np.array([1, -4, 4, 0], np.int64))
    return found + [
        nn.safe_embedding_lookup_sparse(table, ids),
        nn.safe_embedding_lookup_sparse(table, ids, weights),
        nn.safe_embedding_lookup_sparse(table, ids, combiner="sum", default_id=2),
    ]


@program
def sampled_losses(tf):
    tf.set_random_seed(5)
    w, b, x = f(tf, 20, 3), f(tf, 20), f(tf, 4, 3)
    labels, two = tf.constant(n(20, 4, 1)), tf.constant(n(20, 4, 2))
    nn = tf.nn
    fixed = nn.fixed_unigram_candidate_sampler(
        tf.cast(two, tf.int64), 2, 5, True, 20, unigrams=[1.0 + i for i in range(20)], seed=4
    )
    return [
        nn.nce_loss(w, b, labels, x, 6, 20),
        nn.sampled_softmax_loss(w, b, labels, x, 6, 20, seed=2),
        nn.nce_loss(
            w, b, two, x, 5, 20, num_true=2, sampled_values=fixed, remove_accidental_hits=True
        ),
        nn.sampled_softmax_loss(
            [w[:10], w[10:]], b, two, x, 8, 20, num_true=2, seed=7, remove_accidental_hits=False
        ),
    ]


@program
def ctc(tf):
    x = f(tf, 5, 4, 4)
    labels = sparse(tf, np.array([1, 2, 0, 0], np.int32))
    labels = tf.SparseTensor(
        np.array([[0, 0], [1, 0], [2, 0], [3, 0]], np.int64), labels.values, [4, 1]
    )
    length = np.array([5, 4, 3, 5], np.int32)
    greedy, score = tf.nn.ctc_greedy_decoder(x, length)
    beams, p = tf.nn.ctc_beam_search_decoder(x, length, beam_width=5, top_paths=2)
    return [
        tf.nn.ctc_loss(labels, x, length),
        tf.nn.ctc_loss(labels, tf.transpose(x, [1, 0, 2]), length[[3, 1, 2, 0]], time_major=False),
        greedy[0].values,
        beams[1].values,
        beams[0].dense_shape,
        tf.stop_gradient(score),
        tf.stop_gradient(p),
    ]


@program
def losses(tf):
    y, p = a(4, 3, low=0.05, high=0.95), f(tf, 4, 3, low=0.05, high=0.95, salt=1)
    ls = tf.losses
    w = np.array([[1.0], [0.0], [2.0], [0.5]], np.float32)
    hot = np.eye(3, dtype=np.float32)[n(3, 4)]
    found = [
        loss(y, p)
        for loss in (
            ls.mean_squared_error,
            ls.absolute_difference,
            ls.log_loss,
            ls.huber_loss,
            ls.hinge_loss,
            ls.sigmoid_cross_entropy,
            ls.mean_pairwise_squared_error,
        )
    ]
    found += [
        ls.mean_squared_error(y, p, weights=w, reduction=r)
        for r in (
            ls.Reduction.NONE,
            ls.Reduction.SUM,
            ls.Reduction.MEAN,
            ls.Reduction.SUM_OVER_BATCH_SIZE,
            ls.Reduction.SUM_BY_NONZERO_WEIGHTS,
        )
    ]
    found += [
        ls.huber_loss(y, p, delta=0.2),
        ls.cosine_distance(y, p, axis=1),
        ls.softmax_cross_entropy(hot, p),
        ls.softmax_cross_entropy(hot, p, weights=w[:, 0], label_smoothing=0.1),
        ls.sigmoid_cross_entropy(hot, p, label_smoothing=0.2, weights=2.0),
        ls.sparse_softmax_cross_entropy(n(3, 4), p),
        ls.sparse_softmax_cross_entropy(n(3, 4)[:, None], p, weights=w),
        ls.mean_squared_error(y, p, weights=0.0),
        ls.mean_pairwise_squared_error(y, p, weights=w),
        ls.absolute_difference(n(5, 4, 3), p, weights=3),
    ]
    tf.add_to_collection("regularization_losses", tf.constant(0.25))
    ls.add_loss(tf.constant(1.5))
    found += [
        ls.get_total_loss(scope="huber_loss"),
        ls.get_regularization_loss(),
        tf.add_n([tf.reduce_sum(loss) for loss in ls.get_losses()]),
    ]
    return found
