"""The walk of programs that once were refused, crashed or hung where TensorFlow 1.15 works.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import threading

import numpy as np

from tests.golden.walk_values_cases import _eager, _outcome, _run


def gamma(tf):
    image = tf.constant([[[0.25, 0.5, 1.0]]])
    return _run(tf, [tf.image.adjust_gamma(image), tf.image.adjust_gamma(image, 2.0, 3.0)])


def _trained(tf, optimizer):
    """Three steps of ``optimizer`` inside a function, eagerly."""

    def program():
        v = tf.Variable([1.0, 2.0])

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(v * v)
            optimizer.apply_gradients([(tape.gradient(loss, v), v)])
            return loss

        return [step().numpy() for _ in range(3)] + [v.numpy()]

    return _eager(tf, program)


def optimizers_in_functions(tf):
    train = tf.train
    return [
        _trained(tf, optimizer)
        for optimizer in (
            train.GradientDescentOptimizer(0.1),
            train.MomentumOptimizer(0.1, 0.9),
            train.AdamOptimizer(0.1),
            train.AdagradOptimizer(0.1),
            train.RMSPropOptimizer(0.1),
            train.FtrlOptimizer(0.1),
            train.AdadeltaOptimizer(0.1),
        )
    ]


def gradients_in_functions(tf):
    x = tf.constant(3.0)
    v = tf.Variable(2.0, use_resource=True)

    @tf.function
    def f():
        y = x * x * v
        return tf.gradients(y, [x, v])

    def eagerly():
        c, w = tf.constant(3.0), tf.Variable(2.0)

        @tf.function
        def g():
            return tf.gradients(c * c * w, [c, w])

        return [t.numpy() for t in g()]

    return [_run(tf, f()), _eager(tf, eagerly)]


def stopped_gradients_of_loops(tf):
    y = tf.constant(2.0)
    loop = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * y), [0, y])[1]
    first = tf.gradients(loop, y)[0]
    total = y * tf.stop_gradient(first)
    return _run(tf, [first, tf.gradients(total, y)[0]])


def loops_without_back_prop(tf):
    x = tf.constant(2.0)
    loop = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [0, x], back_prop=False)[
        1
    ]
    return [_run(tf, tf.gradients(loop + 5.0 * x, x)), tf.gradients(loop, x)[0] is None]


def slices_are_assigned(tf):
    v = tf.Variable([1, 2, 3, 4])
    w = tf.Variable([1, 2, 3, 4], use_resource=True)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(tf.assign(v[1:3], [7, 8]))
        sess.run(v[0].assign(9))
        sess.run(w[1:3].assign([5, 6]))
        return sess.run([v, w])


def predicates_that_are_assigned(tf):
    flag, v = tf.Variable(True, use_resource=False), tf.Variable(1.0, use_resource=False)

    def branch():
        with tf.control_dependencies([flag.assign(False)]):
            return v + 1.0

    result = tf.cond(flag, branch, lambda: v - 1.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run(result), sess.run(flag), sess.run(result)]


def loops_over_composites(tf):
    sparse = tf.SparseTensor([[0, 1]], [2.0], [2, 2])
    slices = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.constant([3, 2]))
    i, s, d = tf.while_loop(
        lambda i, s, d: i < 3,
        lambda i, s, d: (
            i + 1,
            tf.SparseTensor(s.indices, s.values * 2.0, s.dense_shape),
            tf.IndexedSlices(d.values + 1.0, d.indices, d.dense_shape),
        ),
        [0, sparse, slices],
    )
    grown = tf.while_loop(
        lambda t: tf.size(t) < 10,
        lambda t: tf.concat([t, t], 0),
        [tf.ones([1, 2])],
        shape_invariants=[tf.TensorSpec([None, 2], tf.float32)],
    )
    return _run(tf, [i, s, d.values, grown])


def branches_of_one_tensor_and_a_list(tf):
    t = tf.constant(1.0)
    return [
        _outcome(tf, lambda: tf.cond(t > 0.0, lambda: t, lambda: [t + 1.0])),
        _outcome(tf, lambda: tf.cond(t > 2.0, lambda: t, lambda: [t + 1.0])),
        _outcome(tf, lambda: tf.cond(t > 0.0, lambda: t, lambda: [t], strict=True)),
        _outcome(tf, lambda: tf.cond(t > 0.0, lambda: (t, t), lambda: [t, t])),
    ]


def branches_of_slices(tf):
    def slices(dtype, value):
        return tf.IndexedSlices(tf.fill([1, 2], value), tf.constant([1], dtype))

    chosen = tf.cond(
        tf.constant(True), lambda: slices(tf.int32, 1.0), lambda: slices(tf.int64, 2.0)
    )
    return [chosen.indices.dtype.name] + _run(tf, [chosen.values, chosen.indices])


def products_of_unknown_rank(tf):
    a, b = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    feeds = {a: np.ones((2, 3, 4)), b: np.full((4, 3, 5), 2.0)}
    products = [
        tf.tensordot(a, b, [[2, 1], [0, 1]]),
        tf.tensordot(a, b, [[2], [0]]),
        tf.tensordot(a, tf.constant(np.ones((4, 2), np.float32)), 1),
    ]
    return [[p.shape.ndims for p in products]] + _run(tf, products, feeds)


def weights_of_rows(tf):
    logits = tf.constant([[1.0, 2.0], [3.0, 0.5], [0.0, 0.0]])
    loss = tf.losses.sparse_softmax_cross_entropy
    return _run(
        tf,
        [
            loss([0, 1, 1], logits, [[1.0], [0.0], [2.0]]),
            loss([[0], [1], [1]], logits, [[1.0], [0.0], [2.0]]),
            loss([0, 1, 1], logits, [1.0, 0.0, 2.0]),
            loss([0, 1, 1], logits, 0.5),
        ],
    )


def gathers(tf):
    x = tf.constant(np.arange(24).reshape((2, 3, 4)))
    return [
        _outcome(tf, lambda: tf.gather(x, [[0], [2]], batch_dims=-1)),
        _outcome(tf, lambda: tf.gather(x, [[0], [1]], batch_dims=1)),
        _outcome(tf, lambda: tf.gather(x, [[0], [1]], axis=2, batch_dims=1)),
        _outcome(tf, lambda: tf.gather(x, [1, 0], batch_dims=None)),
        _outcome(tf, lambda: tf.gather(x, [1, 0], axis=None, batch_dims=0)),
        _outcome(tf, lambda: tf.gather_nd(x, [[[0]], [[1]]], batch_dims=1)),
        _outcome(tf, lambda: tf.gather_nd(x, [[[0]], [[1]]], batch_dims=tf.constant(1))),
        _outcome(tf, lambda: tf.gather_nd(x, [[[0]], [[1]]], batch_dims=-1)),
        _outcome(tf, lambda: tf.batch_gather(x, [[0, 2], [1, 1]])),
    ]


def small_refusals(tf):
    image, kernel = tf.ones([1, 3, 3, 1], tf.float32), np.ones((2, 2, 1, 1))
    sparse = tf.sparse_placeholder(tf.float32, shape=[3, None])
    whole = tf.sparse_placeholder(tf.float32, [3, 4], "named")
    return [
        _outcome(tf, lambda: tf.reduce_all([])),
        _outcome(tf, lambda: [tf.reduce_any([]), tf.reduce_sum([]), tf.reduce_prod([])]),
        tf.constant(1.0, name=b"bytes").name,
        tf.placeholder(tf.float32, name=b"fed").op.name,
        str(sparse.shape),
        str(whole.shape),
        sparse.get_shape().as_list(),
        whole.indices.name,
        _outcome(tf, lambda: tf.nn.convolution(image, kernel, "VALID")),
        _outcome(tf, lambda: tf.nn.conv2d(image, kernel, [1] * 4, "VALID")),
        _outcome(tf, lambda: tf.string_to_number(["0xF", "-0x1p3", " 7 "])),
        _outcome(tf, lambda: tf.string_to_number("0xF", tf.int32)),
        _outcome(tf, lambda: tf.constant([-1], tf.uint8)),
        _outcome(tf, lambda: tf.constant([300], tf.uint8)),
        _outcome(tf, lambda: tf.constant(2**40, tf.int32)),
    ]


def _elements(tf, dataset, count=10, nest=None):
    following = tf.data.make_initializable_iterator(dataset)
    element = following.get_next()
    found = []
    with tf.Session() as sess:
        sess.run(following.initializer)
        try:
            for _ in range(count):
                found.append(sess.run(element))
        except Exception as error:
            found.append(type(error).__name__)
    return found


def datasets(tf):
    data = tf.data.Dataset
    sparse = data.range(4).map(
        lambda i: tf.SparseTensor([[i, 0]], [i * 2], tf.constant([4, 3], tf.int64))
    )
    nested = data.range(5).window(2).flat_map(lambda w: w.batch(2))
    arrays = data.range(3).map(
        lambda i: tf.TensorArray(tf.int64, 2, element_shape=[]).unstack([i, i + 1]).stack()
    )
    seeded = lambda: data.range(6).shuffle(6, seed=tf.constant(3, tf.int64))
    return [
        _elements(tf, sparse.batch(2)),
        _elements(tf, sparse.batch(2).unbatch()),
        _elements(tf, sparse.batch(2).apply(tf.data.experimental.unbatch())),
        _elements(tf, nested),
        _elements(tf, arrays),
        _elements(tf, seeded()) == _elements(tf, seeded()),
        sorted(x for x in _elements(tf, seeded()) if not isinstance(x, str)),
    ]


def datasets_of_tensor_arrays(tf):
    d = tf.data.Dataset.range(3).map(
        lambda i: tf.TensorArray(tf.int64, 2, element_shape=[]).unstack([i, i + 1])
    )
    return _elements(tf, d.map(lambda a: a.stack() + a.read(1)))


def batches_of_datasets(tf):
    d = tf.data.Dataset.range(6).window(2).batch(3)
    return _outcome(tf, lambda: tf.data.make_one_shot_iterator(d.map(lambda w: 1)).get_next())


def end_of_python_functions(tf):
    """A py_func that raises StopIteration ends the data."""
    found = []
    for parallel in (None, 2):
        count = iter(range(3))

        def value(count=count):
            return np.int64(next(count))

        d = tf.data.Dataset.range(10).map(
            lambda i, value=value: tf.py_func(value, [], tf.int64), num_parallel_calls=parallel
        )
        found.append(_elements(tf, d, 12))
    return found


def eager_templates_and_variables(tf):
    def program():
        def scale(x):
            return x * tf.get_variable("w", initializer=2.0)

        template = tf.make_template("scale", scale)
        results = [template(tf.constant(3.0)).numpy(), template(tf.constant(4.0)).numpy()]
        return results + [[v.name for v in template.variables]]

    return _eager(tf, program)


def singular_values_of_infinities(tf):
    x = np.ones((3, 2), np.float32)
    x[1, 1] = np.inf
    y = np.ones((2, 2), np.float32)
    y[0, 0] = np.nan
    return [_run(tf, tf.svd(tf.constant(m), compute_uv=False)).tolist() for m in (x, -x, y)]


def gammas_of_odd_parameters(tf):
    odd = [np.nan, np.inf, -np.inf, -1.0, 0.0]
    drawn = _run(tf, tf.random_gamma([4], tf.constant(odd), seed=1))
    return [drawn.shape, bool(np.isfinite(_run(tf, tf.random_gamma([4], 2.0, seed=1))).all())]


def deadlines(tf):
    loop = tf.while_loop(lambda i: i >= 0, lambda i: tf.maximum(i - 1, 1), [5])
    queue = tf.FIFOQueue(1, tf.float32)
    taken = queue.dequeue()
    found = []
    for fetch in (taken, loop):
        with tf.Session() as sess:
            try:
                sess.run(fetch, options=tf.RunOptions(timeout_in_ms=300))
            except tf.errors.OpError as error:
                found.append(type(error).__name__)
            found.append(sess.run(tf.constant(1)))
    with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=300)) as sess:
        try:
            sess.run(taken)
        except tf.errors.OpError as error:
            found.append(type(error).__name__)
    return found


def functions_that_wait_for_each_other(tf):
    here, there = threading.Event(), threading.Event()

    def first():
        here.set()
        return np.float32(there.wait(20))

    def second():
        there.set()
        return np.float32(here.wait(20))

    return _run(tf, [tf.py_func(first, [], tf.float32), tf.py_func(second, [], tf.float32)])


def parallel_maps_hand_on_what_is_finished(tf):
    later = threading.Event()

    def value(i):
        if i == 1:
            later.wait(20)
        return i

    d = tf.data.Dataset.range(2).map(
        lambda i: tf.py_func(value, [i], tf.int64), num_parallel_calls=2
    )
    following = tf.data.make_one_shot_iterator(d).get_next()
    with tf.Session() as sess:
        first = sess.run(following)
        later.set()
        return [first, sess.run(following)]
