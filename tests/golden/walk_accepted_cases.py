"""The walk of what was once accepted or ignored where TensorFlow 1.15 refuses or acts, and of
errors and names.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import numpy as np

from tests.golden.walk_values_cases import _eager


def _kind(call, *args, **kwargs):
    """The class of the error of a call; "nothing" without one."""
    try:
        call(*args, **kwargs)
    except Exception as error:
        return type(error).__name__
    return "nothing"


def _using(tf, fetch, **config):
    with tf.Session(config=tf.ConfigProto(**config)) as sess:
        return sess.run(fetch)


def options_of_run(tf):
    one, sess = tf.constant(1), tf.Session()
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    return [
        _kind(sess.run, one, options=42),
        _kind(sess.run, one, run_metadata=42),
        _kind(sess.run, one, options=tf.RunOptions(timeout_in_ms=0)),
        _kind(sess.run, one, None, options, metadata),
        len(metadata.step_stats.dev_stats) > 0,
        len(metadata.partition_graphs) > 0,
        _kind(sess.run, one, 42),
        _kind(sess.run, one, {one: 2}),
        _kind(sess.run, None),
        _kind(sess.run, 42),
        _kind(sess.run, "Nowhere:0"),
        _kind(sess.run, one, {"Nowhere:0": 1}),
    ]


def arguments_of_sessions(tf):
    graph = tf.Graph()
    with graph.as_default():
        tf.constant(1.0)
    return [
        _kind(tf.Session, graph),
        _kind(tf.Session, "unknown"),
        _kind(tf.Session, "grpc:/x"),
        _kind(tf.Session, 42),
        _kind(tf.Session, graph=42),
        _kind(tf.Session, config=42),
        _kind(tf.Session, config="x"),
        _kind(tf.Session, graph=graph),
        _kind(tf.Session, b""),
        _kind(tf.InteractiveSession, "unknown"),
    ]


def device_strings(tf):
    def inside(name):
        with tf.Graph().as_default():
            with tf.device(name):
                return tf.constant(1.0)

    names = [
        "/cpu:0",
        "/CPU:0",
        "cpu:0",
        "/device:CPU:0",
        "/gpu:0",
        "/job:worker/task:3",
        "",
        "/job:worker/replica:0/task:3/cpu:1",
        "/device:CPU:*",
        "/cpu",
        "/device:XLA_CPU:0",
        None,
        "/job:localhost/replica:0/task:0/device:CPU:0",
        "/device:cpu:0",
    ]
    wrong = [
        "nothing",
        "/tpu:0",
        "/cpu:x",
        "/cpu:0/gpu:1",
        "/gpu:0:1",
        42,
        "//cpu:0",
        "/job:a/job:b",
    ]
    return [inside(name).op.device for name in names] + [_kind(inside, name) for name in wrong]


def nested_devices(tf):
    found = []
    with tf.device("/job:ps/task:1"):
        found.append(tf.constant(1.0).device)
        with tf.device("/cpu:1"):
            found += [tf.constant(1.0).device, tf.Variable(1.0).device]
            with tf.device(None):
                found.append(tf.constant(1.0).device)
        with tf.device(lambda op: "/gpu:2" if op.type == "Add" else "/task:7"):
            found += [tf.constant(1.0).device, tf.add(1.0, 2.0).device]
        with tf.device(tf.DeviceSpec(device_type="CPU", device_index=3)):
            found.append(tf.constant(1.0).device)
    found.append(tf.DeviceSpec.from_string("/job:w/cpu:1").to_string())
    return found


def absent_devices(tf):
    with tf.device("/gpu:0"):
        x = tf.constant([1.0]) + 1.0
    with tf.device("/cpu:3"):
        y = tf.constant([1.0]) + 1.0
    with tf.device("/job:worker/task:1"):
        z = tf.constant([1.0]) + 1.0
    return [
        _kind(_using, tf, x, allow_soft_placement=True),
        _kind(_using, tf, x, allow_soft_placement=False),
        _kind(_using, tf, x),
        _kind(_using, tf, y),
        _kind(_using, tf, y, device_count={"CPU": 4}),
        _kind(_using, tf, y, device_count={"CPU": 2}),
        _kind(_using, tf, z),
        _kind(_using, tf, y, allow_soft_placement=True),
    ]


def counted_devices(tf):
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 3})) as sess:
        names = [d.name for d in sess.list_devices() if d.device_type == "CPU"]
    with tf.Session() as sess:
        return [names, [d.name for d in sess.list_devices() if d.device_type == "CPU"]]


def empty_graphs_and_closed_sessions(tf):
    with tf.Graph().as_default():
        empty = tf.Session()
    sess = tf.Session()
    one = tf.constant(1)
    nested = tf.Session()

    def twice():
        with nested, nested:
            pass

    def again():
        with sess:
            with sess:
                pass

    found = [_kind(empty.run, []), _kind(empty.run, one), _kind(twice), _kind(again)]
    closed = tf.Session()
    closed.close()
    return found + [
        _kind(closed.run, one),
        _kind(closed.close),
        _kind(tf.Graph().finalize),
        _kind(lambda: one.eval()),
        _kind(lambda: tf.get_default_session().run(one)),
    ]


def inner_tensors_of_loops(tf):
    kept = []

    def body(i):
        kept.append(i * 2)
        return i + 1

    loop = tf.while_loop(lambda i: i < 3, body, [0])
    taken = []
    chosen = tf.cond(
        tf.constant(True), lambda: taken.append(tf.constant(1) + 1) or taken[-1], lambda: 2
    )
    with tf.Session() as sess:
        return [
            _kind(sess.run, kept[0]),
            _kind(sess.run, loop, {kept[0]: 1}),
            _kind(sess.run, loop),
            _kind(sess.run, taken[0]),
            _kind(sess.run, chosen),
        ]


def switches(tf):
    t = lambda: tf.constant(1.0)

    def chosen(index, branches, **kwargs):
        with tf.Graph().as_default(), tf.Session() as sess:
            index = index() if callable(index) else index
            return sess.run(tf.switch_case(index, branches, **kwargs))

    run = lambda *a, **k: _kind(lambda: chosen(*a, **k))
    index = lambda value, *dtype: lambda: tf.constant(value, *dtype)
    return [
        run(index(0), [t, t]),
        run(index(0), {0: t, 2: t}),
        run(index(0), [(0, t), (2, t)]),
        run(index(0.0), [t, t]),
        run(index(0, tf.int64), [t, t]),
        run(0, [t, t]),
        run(index(5), [t, t]),
        run(index(-1), [t, t]),
        run(index(0), []),
        run(index([0]), [t]),
        run(index(0), {0: t, 1: t}, default=t),
        run(index(0), [(0, t), (0, t)]),
        run(index(0), [t, 3]),
        run(index(True), [t, t]),
    ]


def one_shot_iterators_of_variables(tf):
    v = tf.Variable(1.0)
    r = tf.Variable(1.0, use_resource=True)
    found = []
    for captured in (v, r, tf.constant(1.0), tf.placeholder(tf.float32), tf.random_uniform([])):
        d = tf.data.Dataset.range(2).map(lambda i, c=captured: tf.cast(i, tf.float32) + c)
        found.append(_kind(tf.data.make_one_shot_iterator, d))
        found.append(_kind(tf.data.make_initializable_iterator, d))
    return found


def results_of_python_functions(tf):
    run = lambda f, dtype: _kind(lambda: tf.Session().run(tf.py_func(f, [], dtype)))
    return [
        run(lambda: 1, tf.int64),
        run(lambda: np.float64(1), tf.float32),
        run(lambda: 1.5, tf.int32),
        run(lambda: np.int32(1), tf.int64),
        run(lambda: 1, tf.float32),
        run(lambda: "a", tf.string),
        run(lambda: [1, 2], tf.int64),
        run(lambda: (1, 2), [tf.int64]),
        run(lambda: None, tf.int64),
        run(lambda: (1, 2), [tf.int64, tf.int64]),
        run(lambda: None, []),
        run(lambda: True, tf.bool),
        run(lambda: object(), tf.int64),
        run(lambda: 1.0, tf.double),
        run(lambda: 1.0, tf.float32),
        run(lambda: 1 / 0, tf.int64),
        run(lambda: {}["a"], tf.int64),
        run(lambda: [][1], tf.int64),
    ]


def aggregation_methods(tf):
    x = tf.constant([1.0, 2.0])
    y = x * x + x * 3.0
    found = [_kind(tf.gradients, y, x, aggregation_method=m) for m in (99, -1, "x")]
    methods = tf.AggregationMethod
    for m in (None, methods.ADD_N, methods.EXPERIMENTAL_TREE, methods.EXPERIMENTAL_ACCUMULATE_N):
        found.append(tf.Session().run(tf.gradients(y, x, aggregation_method=m)))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    v = tf.Variable(1.0)
    found.append(_kind(optimizer.compute_gradients, v * v + v, aggregation_method=99))
    found += [_kind(optimizer.compute_gradients, v * v, gate_gradients=g) for g in (5, "x", 0)]
    return found


def default_names(tf):
    """Names that programs look up."""
    x = tf.placeholder(tf.float32, [2, 3])
    w = tf.Variable(np.ones((3, 4), np.float32), name="w")
    made = [
        tf.tensordot(x, w, 1),
        tf.matmul(x, w),
        x @ w,
        tf.nn.xw_plus_b(x, w, tf.ones([4])),
        tf.nn.relu_layer(x, w, tf.ones([4])),
        tf.nn.dropout(x, rate=0.5),
        tf.nn.l2_loss(x),
        tf.nn.moments(x, [0]),
        tf.reduce_mean(x),
        tf.norm(x),
        tf.square(x),
        x**2.0,
        -x,
        1.0 - x,
        x / 2.0,
        x // 2.0,
        x % 2.0,
        x[0],
        x[:, 1],
        x[..., tf.newaxis],
        tf.to_int32(x),
        x > 1.0,
        tf.cast(x, tf.float32),
        tf.layers.dense(x, 3),
        tf.layers.dense(x, 3, name="own"),
        tf.contrib.layers.fully_connected(x, 2),
        tf.contrib.layers.flatten(x),
        tf.losses.mean_squared_error(x, x),
        tf.losses.softmax_cross_entropy(x, x),
        tf.losses.get_total_loss(),
        tf.global_variables_initializer(),
        tf.train.get_or_create_global_step(),
        tf.clip_by_global_norm([x], 1.0)[0],
        tf.clip_by_value(x, 0.0, 1.0),
        tf.one_hot([1], 3),
        tf.nn.softmax(x),
        tf.nn.log_softmax(x),
        tf.nn.softmax_cross_entropy_with_logits_v2(labels=x, logits=x),
        tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=x),
        tf.reduce_logsumexp(x),
        tf.train.AdamOptimizer().minimize(tf.reduce_sum(tf.matmul(x, w))),
        tf.summary.scalar("a", 1.0),
        tf.summary.merge_all(),
        tf.metrics.accuracy([1], [1]),
        tf.split(x, 3, 1),
        tf.unstack(x),
        tf.stack([x, x]),
        tf.concat([x, x], 0),
        tf.expand_dims(x, 0),
        tf.squeeze(x),
        tf.gather(x, 0),
        tf.boolean_mask(x, [True, False]),
        tf.where(x > 0.0, x, x),
        tf.einsum("ij,jk->ik", x, w),
        tf.cumsum(x),
        tf.nn.top_k(x),
        tf.random_normal([2]),
        tf.random_uniform([2]),
        tf.truncated_normal([2]),
        tf.nn.embedding_lookup(w, [1]),
        tf.image.resize_images(tf.zeros([1, 2, 2, 1]), [4, 4]),
        tf.py_func(lambda: 1, [], tf.int64),
        tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0]),
        tf.cond(tf.constant(True), lambda: x, lambda: x),
        tf.assert_equal(1, 1),
        tf.group(x),
        tf.tuple([x]),
        tf.no_op(),
        tf.print(x),
        tf.Print(x, [x]),
        tf.nn.batch_normalization(x, 0.0, 1.0, 0.0, 1.0, 1e-3),
        tf.layers.batch_normalization(x),
        tf.nn.conv2d(tf.zeros([1, 3, 3, 1]), tf.zeros([2, 2, 1, 1]), [1] * 4, "SAME"),
        tf.layers.conv2d(tf.zeros([1, 3, 3, 1]), 2, 2),
        tf.layers.max_pooling2d(tf.zeros([1, 3, 3, 1]), 2, 2),
        tf.layers.dropout(x),
        tf.layers.flatten(x),
        tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(2), tf.zeros([1, 3, 2]), dtype=tf.float32)[
            0
        ],
        tf.map_fn(lambda r: r * 2.0, x),
        tf.scan(lambda a, r: a + r, x),
        tf.sequence_mask([1, 2]),
        tf.linspace(0.0, 1.0, 3),
        tf.range(3),
        tf.fill([2], 1.0),
        tf.zeros_like(x),
        tf.eye(2),
        tf.add_n([x, x]),
        tf.accumulate_n([x, x]),
        tf.argmax(x, 1),
        tf.equal(x, x),
        tf.gradients(x, x),
    ]
    flat = tf.nest.flatten(made)
    return [getattr(t, "name", t) for t in flat if t is not None]


def _built(tf, call):
    def make():
        with tf.Graph().as_default():
            return call()

    return make


def _ran(tf, call):
    def run():
        with tf.Graph().as_default(), tf.Session() as sess:
            return sess.run(call())

    return run


def errors_while_building(tf):
    x, image = lambda: tf.zeros([2, 3]), lambda: tf.zeros([1, 4, 4, 3])
    calls = [
        lambda: tf.nn.conv2d(x(), tf.zeros([2, 2, 3, 4]), [1] * 4, "SAME"),
        lambda: tf.nn.conv2d(image(), tf.zeros([2, 2, 5, 4]), [1] * 4, "SAME"),
        lambda: tf.nn.conv2d(image(), tf.zeros([2, 2, 3]), [1] * 4, "SAME"),
        lambda: tf.nn.conv2d(image(), tf.zeros([2, 2, 3, 4]), [1] * 3, "SAME"),
        lambda: tf.nn.softmax(1.0),
        lambda: tf.nn.log_softmax(tf.constant(1.0)),
        lambda: tf.matmul(x(), x()),
        lambda: x() + tf.zeros([4]),
        lambda: tf.reshape(x(), [4, 2]),
        lambda: tf.concat([x(), tf.zeros([2, 2])], 0),
        lambda: tf.stack([x(), tf.zeros([2])]),
        lambda: np.array(x()),
        lambda: len(x()),
        lambda: bool(x()),
        lambda: next(iter(x())),
        lambda: float(tf.constant(1.0)),
        lambda: int(tf.constant(1)),
        lambda: range(tf.constant(3)),
        lambda: [1, 2][tf.constant(1)],
        lambda: hash(x()) and None,
        lambda: tf.constant(1.0) + tf.constant(1),
        lambda: tf.matmul(tf.zeros([2]), x()),
        lambda: tf.nn.bias_add(x(), tf.zeros([2])),
        lambda: tf.nn.max_pool(x(), [1] * 4, [1] * 4, "SAME"),
        lambda: tf.get_variable("v"),
        lambda: tf.Variable(),
        lambda: tf.layers.dense(tf.zeros([3]), 2),
        lambda: tf.squeeze(x(), [0]),
        lambda: tf.split(x(), 2, 1),
        lambda: tf.unstack(tf.placeholder(tf.float32)),
        lambda: tf.expand_dims(x(), 5),
        lambda: tf.reduce_sum(x(), 2),
        lambda: tf.transpose(x(), [0]),
        lambda: tf.gather(x(), [0.5]),
        lambda: tf.one_hot([0.5], 2),
        lambda: tf.cast("a", tf.nothing),
        lambda: tf.zeros([2, "a"]),
        lambda: tf.placeholder("nothing"),
        lambda: tf.constant([1, [2]]),
        lambda: tf.constant("a") * 2,
        lambda: tf.get_default_graph().get_tensor_by_name("a"),
        lambda: tf.get_default_graph().get_tensor_by_name("a:0"),
        lambda: tf.get_default_graph().get_operation_by_name("a"),
        lambda: tf.name_scope(3).__enter__(),
        lambda: tf.name_scope("a b").__enter__() and tf.constant(1.0),
        lambda: tf.constant(1.0, name="a b"),
        lambda: tf.import_graph_def(3),
        lambda: tf.train.Saver(),
        lambda: tf.nn.embedding_lookup([], [1]),
    ]
    return [_kind(_built(tf, call)) for call in calls]


def errors_while_running(tf):
    fed = lambda value: tf.placeholder_with_default(np.array(value), None)
    made = lambda *shape: tf.py_func(lambda: np.ones(shape, np.float32), [], tf.float32)
    bad = np.array([[np.nan, 1.0], [1.0, 2.0]], np.float32)

    def uninitialised():
        return tf.Variable(1.0, name="weights", use_resource=False) + 1.0

    def uninitialised_resource():
        return tf.get_variable("weights", [], use_resource=True) + 1.0

    calls = [
        lambda: tf.zeros([10**12]),
        lambda: tf.fill(fed(np.array([10**6, 10**7])), 1.0),
        lambda: tf.matrix_inverse(bad),
        lambda: tf.matrix_inverse(np.zeros((2, 2))),
        lambda: tf.matrix_inverse(fed([[1.0, 2.0], [2.0, 4.0]])),
        lambda: tf.cholesky(-np.eye(2)),
        lambda: tf.matrix_solve(np.zeros((2, 2)), np.ones((2, 1))),
        lambda: tf.matrix_triangular_solve(np.zeros((2, 2)), np.ones((2, 1))),
        lambda: tf.nn.conv2d(made(2, 3), made(2, 2, 3, 4), [1] * 4, "SAME"),
        lambda: tf.nn.conv2d(made(1, 4, 4, 3), made(2, 2, 5, 4), [1] * 4, "SAME"),
        lambda: tf.nn.softmax(fed(np.float32(1.0))),
        lambda: tf.matmul(fed(np.ones((2, 3))), fed(np.ones((2, 3)))),
        lambda: fed(np.ones(3)) + fed(np.ones(4)),
        lambda: tf.reshape(fed(np.ones(3)), [2, 2]),
        lambda: tf.concat([fed(np.ones((2, 2))), fed(np.ones((3, 3)))], 0),
        lambda: tf.gather(fed([1, 2]), 5),
        lambda: tf.div(fed(1), fed(0)),
        lambda: tf.decode_raw(fed(b"abc"), tf.int32),
        lambda: tf.check_numerics(fed(np.nan), "bad"),
        lambda: tf.string_to_number(fed(b"x")),
        lambda: tf.assert_equal(fed(1), fed(2)),
        lambda: tf.read_file("/nowhere/x"),
        lambda: tf.image.decode_png(fed(b"x")),
        lambda: tf.strided_slice(fed([1, 2]), [5], [6], shrink_axis_mask=1),
        lambda: tf.unstack(fed([1, 2]), 3),
        lambda: tf.reduce_sum(made(2), tf.py_func(lambda: np.int32(4), [], tf.int32)),
        lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=fed([9]), logits=fed([[1.0, 2.0]])
        ),
        lambda: tf.scatter_nd([[7]], [1], [3]),
        lambda: tf.parse_tensor(fed(b"x"), tf.int32),
        uninitialised,
        uninitialised_resource,
    ]
    return [_kind(_ran(tf, call)) for call in calls]


def errors_name_the_node(tf):
    """Whether an error's text has the name of its operation."""
    bad = tf.placeholder_with_default(np.array([[np.nan, 1.0], [1.0, 2.0]]), None)
    ones = lambda *shape: tf.py_func(lambda: np.ones(shape, np.float32), [], tf.float32)
    v = tf.Variable([1.0], name="weights", use_resource=False)
    r = tf.get_variable("counts", [1], use_resource=True)
    made = [
        tf.matrix_inverse(tf.zeros([2, 2]), name="wanted"),
        tf.cholesky(bad - 9.0, name="wanted"),
        tf.nn.conv2d(ones(1, 4, 4, 3), ones(2, 2, 5, 4), [1] * 4, "SAME", name="wanted"),
        tf.matmul(ones(2, 3), ones(2, 3), name="wanted"),
        tf.add(ones(3), ones(4), name="wanted"),
        tf.reshape(ones(3), [2, 2], name="wanted"),
        tf.gather(ones(2), 5, name="wanted"),
        tf.add(v, 1.0, name="wanted"),
        r + 1.0,
        tf.nn.softmax(ones(), name="wanted"),
    ]
    found = []
    for y, word in zip(made, ["wanted"] * 7 + ["weights", "counts", "wanted"]):
        try:
            tf.Session().run(y)
        except tf.errors.OpError as error:
            here = any("walk_accepted" in line for line in str(error).split("\n"))
            found.append([type(error).__name__, word in str(error), here, error.op is not None])
            found.append(error.node_def is not None)
    return found


def definitions(tf):
    x = tf.constant([1.0], name="x")
    graph = tf.get_default_graph()
    node = tf.add(x, x, name="sum").op.node_def
    definition = graph.as_graph_def()
    return [
        node.name,
        node.op,
        list(node.input),
        sorted(node.attr),
        str(x.op.node_def.attr["dtype"]),
        [n.name for n in definition.node],
        definition.versions.producer > 0,
        tf.get_default_graph()
        .as_graph_def(add_shapes=True)
        .node[1]
        .attr["_output_shapes"]
        .list.ByteSize(),
    ]


def eager_errors(tf):
    def program():
        return [
            _kind(lambda: tf.matmul(tf.zeros([2, 3]), tf.zeros([2, 3]))),
            _kind(lambda: tf.zeros([2]) + tf.zeros([3])),
            _kind(lambda: tf.nn.softmax(1.0)),
            _kind(lambda: tf.zeros([10**12])),
            _kind(lambda: tf.matrix_inverse(tf.zeros([2, 2]))),
            _kind(lambda: tf.nn.conv2d(tf.zeros([2, 3]), tf.zeros([1, 1, 1, 1]), [1] * 4, "SAME")),
            np.array([tf.constant(1.0)]).tolist() == [1.0],
            np.array(tf.constant([1, 2])).tolist(),
            float(tf.constant(1.5)),
            int(tf.constant(3)),
            len(tf.zeros([4])),
            bool(tf.constant(0)),
        ]

    return _eager(tf, program)
