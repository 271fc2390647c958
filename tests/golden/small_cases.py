"""Small parts of contrib, quantization, glimpses and warps. Run on TF 1.15 and on Headrace."""

import os
import shutil
import tempfile

import numpy as np


def _numbers(*shape, **kwargs):
    random = np.random.RandomState(kwargs.get("seed", 0))
    return random.uniform(-1, 1, size=shape).astype(np.float32)


def _run(tf, fetches, feeds=None):
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return sess.run(fetches, feeds)


def _error(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as e:
        return [type(e).__name__, str(e).split("\n")[0]]
    return "nothing"


def ode_adaptive(tf):
    def spiral(y, t):
        return tf.stack([y[1], -y[0]]) - tf.cast(t, tf.float32) * 0.1 * y

    y0 = tf.constant([1.0, 0.5])
    t = np.linspace(0, 3, 7)
    y, info = tf.contrib.integrate.odeint(spiral, y0, t, rtol=1e-5, atol=1e-6, full_output=True)
    decay = tf.contrib.integrate.odeint(
        lambda y, t: -2.0 * y, tf.constant(1.0, tf.float64), [0.0, 0.5, 2.0],
        method="dopri5", options={"first_step": 0.1, "safety": 0.8},
    )  # fmt: skip
    return [y.shape.as_list(), sorted(info)] + _run(
        tf, [y, info["num_func_evals"], info["integrate_points"], decay]
    )


def ode_fixed(tf):
    y0 = tf.constant([1.0, 0.5])
    results = []
    for method in ("rk4", "midpoint"):
        for dt in (None, 0.3):
            y = tf.contrib.integrate.odeint_fixed(
                lambda y, t: tf.cast(t, tf.float32) * y, y0, [0.0, 1.0, 1.5], dt, method=method
            )
            results += [y, tf.gradients(y, y0)[0]]
    return _run(tf, results)


def ode_refusals(tf):
    integrate = tf.contrib.integrate
    f = lambda y, t: y
    return [
        _error(integrate.odeint, f, [1.0], [0.0, 1.0], method="euler"),
        _error(integrate.odeint, f, [1.0], [0.0, 1.0], options={}),
        _error(integrate.odeint, f, [1], [0.0, 1.0]),
        _error(integrate.odeint_fixed, f, [1.0], [0.0, 1.0], method="euler"),
    ]


def sparsemax(tf):
    z = tf.constant(_numbers(5, 4) * 2)
    labels = np.abs(_numbers(5, 4, seed=1))
    labels = tf.constant(labels / labels.sum(1, keepdims=True))
    p = tf.contrib.sparsemax.sparsemax(z)
    loss = tf.contrib.sparsemax.sparsemax_loss(z, p, labels)
    odd = tf.contrib.sparsemax.sparsemax(
        tf.constant([[np.inf, 1.0], [np.nan, 0.0], [-np.inf, -np.inf], [-np.inf, 3.0]])
    )
    return _run(tf, [p, loss, tf.gradients(loss, z)[0], tf.gradients(p[:, 0], z)[0], odd])


def dense_warp(tf):
    image, flow = tf.constant(_numbers(2, 5, 6, 3)), tf.constant(_numbers(2, 5, 6, 2, seed=1) * 3)
    warped = tf.contrib.image.dense_image_warp(image, flow)
    return _run(tf, [warped] + tf.gradients(warped * warped, [image, flow]))


def spline(tf):
    points, values = tf.constant(_numbers(1, 6, 2)), tf.constant(_numbers(1, 6, 1, seed=1))
    queries = tf.constant(_numbers(1, 4, 2, seed=2))
    found = []
    for order, weight in ((1, 0.0), (2, 0.0), (3, 0.1), (4, 0.0), (6, 0.01)):
        y = tf.contrib.image.interpolate_spline(points, values, queries, order, weight)
        found += [y, tf.gradients(y, values)[0]]
    return _run(tf, found)


def sparse_warp(tf):
    image = tf.constant(_numbers(1, 6, 7, 2))
    source, goal = np.array([[[1.0, 1.0], [4.0, 5.0]]]), np.array([[[2.0, 1.5], [3.5, 5.0]]])
    source, goal = source.astype(np.float32), goal.astype(np.float32)
    found = []
    for edge in (1, 2):
        found += tf.contrib.image.sparse_image_warp(
            image, source, goal, num_boundary_points=edge, regularization_weight=0.01
        )
    return _run(tf, found)


def fake_quantization(tf):
    q, x = tf.quantization, tf.constant(_numbers(4, 3) * 8)
    low, high = tf.Variable(-2.5), tf.Variable(3.1)
    lows, highs = tf.Variable([-1.0, -0.5, 0.0]), tf.Variable([1.0, 4.0, 6.0])
    values = [
        q.fake_quant_with_min_max_args(x),
        q.fake_quant_with_min_max_args(x, -1.3, 2.2, num_bits=4, narrow_range=True),
        q.fake_quant_with_min_max_vars(x, low, high, num_bits=5),
        q.fake_quant_with_min_max_vars(x, 0.0, 0.0),
        q.fake_quant_with_min_max_vars(x, 1.0, 3.0),
        tf.fake_quant_with_min_max_vars_per_channel(x, lows, highs, narrow_range=True),
    ]
    found = list(values)
    for value, wrt in zip(values, ([x], [x], [x, low, high], [x], [x], [x, lows, highs])):
        found += tf.gradients(value * value, wrt)
    found += list(q.fake_quant_with_min_max_vars_gradient(x, x * 2, low, high))
    found += list(q.fake_quant_with_min_max_vars_per_channel_gradient(x, x * 2, lows, highs))
    found.append(tf.fake_quant_with_min_max_args_gradient(x, x * 2, -1, 1))
    return _run(tf, found) + [v.name for v in values]


def quantize_and_dequantize(tf):
    x, found = tf.constant(_numbers(3, 5) * 3), []
    for options in (
        {},
        {"signed_input": False},
        {"range_given": True, "num_bits": 4},
        {"range_given": True, "round_mode": "HALF_UP", "narrow_range": True},
    ):
        y = tf.quantization.quantize_and_dequantize(x, -1.0, 2.0, **options)
        found += [y, tf.gradients(y * y, x)[0]]
    return _run(tf, found)


def glimpses(tf):
    image = tf.constant(_numbers(2, 9, 8, 2))
    glimpse = tf.image.extract_glimpse
    found = [
        glimpse(image, [3, 4], [[0.0, 0.0], [0.2, -0.3]]),
        glimpse(image, [3, 3], [[0.4, 0.5], [0.5, 0.4]], centered=False),
        glimpse(image, [2, 3], [[4.0, 4.0], [3.0, 5.0]], centered=False, normalized=False),
        glimpse(image, [3, 2], [[1.0, -1.0], [0.0, 2.0]], normalized=False),
    ]
    outside = glimpse(image, [4, 4], [[-1.0, -1.0], [1.0, 1.0]])
    inside = [outside[0, 2:, 2:], outside[1, :2, :2]]
    return _run(tf, found + inside) + [[v.shape.as_list() for v in found], found[0].name]


def triangles(tf):
    d = tf.contrib.distributions
    x = tf.constant(_numbers(2, 6))
    lower, upper = d.fill_triangular(x), d.fill_triangular(x, upper=True)
    unknown = tf.placeholder_with_default(_numbers(2, 6), [None, None])
    found = [
        lower, upper, d.fill_triangular(unknown), d.fill_triangular_inverse(lower),
        d.fill_triangular_inverse(upper, upper=True),
        d.fill_triangular_inverse(d.fill_triangular(unknown)),
        tf.gradients(lower * lower, x)[0],
        d.matrix_diag_transform(lower, tf.nn.softplus),
        d.reduce_weighted_logsumexp(x, axis=1),
    ]  # fmt: skip
    found += list(d.reduce_weighted_logsumexp(x, x, axis=[1], return_sign=True))
    found.append(d.reduce_weighted_logsumexp(x, x, keep_dims=True))
    return (
        _run(tf, found)
        + [[v.shape.as_list() for v in found[:7]], lower.name]
        + [_error(d.fill_triangular, [1.0, 2.0])]
    )


def contrib_nn(tf):
    nn, x = tf.contrib.nn, tf.constant(_numbers(3, 4))
    labels = tf.constant([1, 0, 3])
    weights, biases = tf.constant(_numbers(6, 4, seed=2)), tf.zeros([6])
    sampled = (tf.constant([4, 5, 2], tf.int64), tf.ones([3, 1]) * 0.4, tf.ones([3]) * 0.3)
    hot = tf.one_hot(labels, 4)
    return _run(
        tf,
        [
            nn.alpha_dropout(x, 0.7, seed=3),
            nn.alpha_dropout(x, 1.0),
            nn.deprecated_flipped_softmax_cross_entropy_with_logits(x, hot),
            nn.deprecated_flipped_sparse_softmax_cross_entropy_with_logits(x, labels),
            nn.deprecated_flipped_sigmoid_cross_entropy_with_logits(x, hot),
            nn.sampled_sparse_softmax_loss(
                weights, biases, tf.constant([[1], [0], [3]]), x, 3, 6, sampled
            ),
            nn.nth_element(x, 1),
        ],
    ) + [_error(nn.alpha_dropout, x, 1.5)]


def framework_names(tf):
    f = tf.contrib.framework
    tf.placeholder(tf.float32, name="fed")
    names = ["a/b", "^a/b", "loc:@a/b", "a", "ab/c"]
    known = tf.constant(True)
    x = tf.constant(_numbers(2, 5))
    found = f.py_func(
        lambda a, b, scale=1.0: {"sum": a + b, "twice": [a * scale]},
        [x, x], {"scale": np.float32(2)},
        output_types={"sum": tf.float32, "twice": [tf.float32]},
        output_shapes={"sum": [2, 5], "twice": [[2, 5]]},
    )  # fmt: skip
    fed = tf.placeholder_with_default(2, [])
    cases = f.smart_case(
        [(tf.equal(fed, 1), lambda: tf.constant(1)), (tf.equal(fed, 2), lambda: tf.constant(2))],
        default=lambda: tf.constant(3),
    )
    return [
        [t.name for t in f.get_placeholders(tf.get_default_graph())],
        [f.prepend_name_scope(n, "s/") for n in names] + [f.prepend_name_scope("a", None)],
        [f.strip_name_scope(n, "a") for n in names],
        f.smart_cond(known, lambda: "yes", lambda: "no"),
        f.smart_case([(False, lambda: 1), (True, lambda: 2)], default=lambda: 3),
        f.smart_case([(False, lambda: 1)], default=lambda: 3),
        [bool(f.smart_constant_value(v)) for v in (known, True, False)],
        found["sum"].shape.as_list(),
    ] + _run(tf, [f.sort(x), f.argsort(x, direction="DESCENDING"), found, cases])


def buckets(tf):
    lengths = np.array([1, 5, 2, 6, 3, 7, 1, 9, 2, 8, 4, 5], np.int32)
    length = tf.train.slice_input_producer([lengths], num_epochs=1, shuffle=False)[0]
    words = tf.range(length)
    sizes, batch = tf.contrib.training.bucket_by_sequence_length(
        length, [words, words * 2], 2, [4, 7], dynamic_pad=True, capacity=20,
        allow_smaller_final_batch=True,
    )  # fmt: skip
    found, shapes = [], [sizes.shape.as_list(), batch[0].shape.as_list()]
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        try:
            while True:
                n, values = sess.run([sizes, batch[0]])
                found.append([n.tolist(), values.tolist()])
        except tf.errors.OutOfRangeError:
            pass
        coordinator.request_stop()
        coordinator.join(threads)
    names = [q.name for q in tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)]
    # which bucket comes first depends on the threads; within one the order is kept
    kinds = [[f for f in found if (f[0][0] >= 4) + (f[0][0] >= 7) == k] for k in range(3)]
    return [kinds, shapes, names]


def bucket_refusals(tf):
    t = tf.contrib.training
    x = tf.constant(3)
    return [
        _error(t.bucket_by_sequence_length, x, [x], 2, 4),
        _error(t.bucket_by_sequence_length, x, [x], 2, []),
        _error(t.bucket_by_sequence_length, x, [x], 2, [4, 3]),
        _error(t.bucket_by_sequence_length, x, [x], 2, [4, 3.5]),
        _error(t.bucket, [x], x, [2], 2),
        _error(t.bucket, [x], x, 2, 2, bucket_capacities=[3]),
        _error(t.bucket, [], x, 2, 2),
    ]


def _refused(tf, call):
    """The class of the error of a call, also of one that fails when it is run."""
    try:
        made = call()
        with tf.Session() as sess:
            return np.asarray(sess.run(made)).tolist()
    except Exception as error:
        return type(error).__name__


def einsum_of_repeated_labels(tf):
    """A single input that reads the same backwards is tf.trace; others are refused."""
    x = tf.constant(np.arange(144.0).reshape(3, 4, 4, 3))
    square = tf.constant(np.arange(9.0).reshape(3, 3))
    return [
        _refused(tf, lambda: tf.einsum("ijji", x)),
        _refused(tf, lambda: tf.einsum("ii", square)),
        _refused(tf, lambda: tf.einsum("ii->i", square)),
        _refused(tf, lambda: tf.einsum("iij,j->i", tf.ones([2, 2, 3]), tf.ones([3]))),
        _refused(tf, lambda: tf.tensordot(square, square, [[0], [7]])),
    ]


def gradients_of_complex_numbers_by_differences(tf):
    x = tf.constant(np.complex64([1 + 2j, -1j]))
    with tf.Session():
        made = [tf.conj(x), x * x, tf.abs(x), tf.real(x)]
        return [
            tf.test.compute_gradient(x, [2], y, [2], np.complex64([1 + 2j, -1j]))[0] for y in made
        ]


def samples_of_a_fed_number(tf):
    n = tf.placeholder(tf.int32)
    drawn = tf.distributions.Bernoulli(probs=[0.2, 0.6]).sample(n, 42)
    with tf.Session() as sess:
        return [sess.run(tf.shape(drawn), {n: value}) for value in (3, [3], [2, 2])]


def keys_that_are_numbers(tf):
    group = tf.data.experimental.group_by_window(lambda x: 0, lambda k, w: w.batch(3), 4)
    element = tf.data.Dataset.range(6).apply(group).make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        return [sess.run(element) for _ in range(3)]


def devices_of_inner_scopes(tf):
    cluster = tf.train.ClusterSpec({"ps": ["a:1", "b:1"], "worker": ["c:1"]})
    found = []
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        with tf.device("/cpu:0"):
            v = tf.Variable([1, 2])
        with tf.device("/job:moon"):
            w = tf.Variable([2, 1])
        with tf.device(None), tf.device("/job:sun"):
            u = tf.Variable([2, 1])
        with tf.device(lambda op: "/job:" + ("seen" if op.device else "none")), tf.device("/gpu:1"):
            s = tf.no_op()
    for one in (v, v.initializer, w, w.initializer, u, s, v + w):
        found.append(one.device)
    return found


def shapes_and_types_as_far_as_known(tf):
    n = tf.placeholder(tf.int32, [])
    return [
        tf.pad(tf.placeholder(tf.float32, [5, None]), [[1, 1], [n, 2]]).shape.as_list(),
        tf.pad(tf.placeholder(tf.float32, [5, 3]), [[n, 1], [0, 2]]).shape.as_list(),
        tf.histogram_fixed_width_bins([1.0, 2.0], [0.0, 5.0], 5, dtype=tf.int64).dtype.name,
        type(tf.math.erf(tf.SparseTensor([[1]], [0.5], [3]))).__name__,
    ]


def frames_of_a_fed_length(tf):
    length, step = tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [])
    x = tf.constant(np.arange(10, dtype=np.float32))
    feeds = {length: 4, step: 3}
    with tf.Session() as sess:
        return [
            sess.run(tf.signal.frame(x, length, step), feeds),
            sess.run(tf.signal.frame(x, length, step, pad_end=True), feeds),
            _refused(tf, lambda: tf.signal.frame(x, [1], 1)),
        ]


def refused_attributes(tf):
    zeros = tf.zeros([2, 2, 2], tf.int32)
    return [
        _refused(tf, lambda: tf.ConditionalAccumulator(tf.float32, reduction_type="MAX")),
        _refused(tf, lambda: tf.as_string(tf.constant(1.0), fill="ab")),
        _refused(tf, lambda: tf.scatter_nd(zeros, zeros, [0, 3, 2])),
        _refused(tf, lambda: tf.sparse_to_dense([1], [5], [1.0], default_value=[1.0, 2.0])),
    ]


def files_opened_for_update(tf):
    """A write in the mode "r+" makes the file and cuts it off, as "w+" does."""
    folder = tempfile.mkdtemp()
    found = []
    for mode in ("r+", "w+", "a+"):
        path = os.path.join(folder, mode)
        for text in ("one\ntwo", "three"):
            with tf.gfile.GFile(path, mode) as f:
                f.write(text)
                found.append(f.seekable())
            with tf.gfile.GFile(path) as f:
                found.append(f.read())
    shutil.rmtree(folder)
    return found
