"""Whole models, built by the same code in TensorFlow (1.15, and 2.x through compat.v1) and in
Headrace.

Each function builds a graph and returns its steps: (names to fetch, feeds by name). Variables are
initialised from constants or seeded generators of NumPy, so that both sides have the same numbers.
Keep to Python 3.7.
"""


def _random(np, *shape, **kw):
    return (
        np.random.RandomState(kw.get("seed", sum(shape)))
        .uniform(-0.5, 0.5, shape)
        .astype("float32")
    )


def conv_net(tf, np):
    """Two convolutions with batch norm (inference), pooling, a dense layer; ref variables."""
    x = tf.placeholder(tf.float32, [None, 8, 8, 3], name="x")
    w1 = tf.Variable(_random(np, 3, 3, 3, 4), name="w1")
    scale, offset = (
        tf.Variable(_random(np, 4) + 1, name="scale"),
        tf.Variable(_random(np, 4, seed=9), name="offset"),
    )
    mean, var = (
        tf.Variable(_random(np, 4, seed=5), name="mean"),
        tf.Variable(_random(np, 4, seed=6) + 1, name="var"),
    )
    h = tf.nn.conv2d(x, w1, strides=[1, 1, 1, 1], padding="SAME", name="conv1")
    h, _, _ = tf.nn.fused_batch_norm(h, scale, offset, mean, var, epsilon=0.001, is_training=False)
    h = tf.nn.max_pool(tf.nn.relu(h), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    w2 = tf.Variable(_random(np, 3, 3, 4, 5), name="w2")
    b2 = tf.Variable(_random(np, 5), name="b2")
    h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(h, w2, strides=[1, 1, 1, 1], padding="SAME"), b2))
    flat = tf.reshape(h, [-1, 4 * 4 * 5])
    w3 = tf.Variable(_random(np, 80, 10), name="w3")
    tf.nn.softmax(tf.matmul(flat, w3), name="probabilities")
    init = tf.global_variables_initializer()
    return [([init.name], {}), (["probabilities:0"], {"x:0": _random(np, 2, 8, 8, 3)})]


def training_step(tf, np):
    """A classifier with resource variables, its gradients and a momentum step, several times."""
    x = tf.placeholder(tf.float32, [None, 6], name="x")
    y = tf.placeholder(tf.int32, [None], name="y")
    w = tf.get_variable("w", initializer=_random(np, 6, 3), use_resource=True)
    b = tf.get_variable("b", initializer=np.zeros(3, "float32"), use_resource=True)
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.matmul(x, w) + b)
    )
    loss = tf.identity(loss, name="loss")
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, name="train")
    init = tf.global_variables_initializer()
    feeds = {"x:0": _random(np, 5, 6), "y:0": np.array([0, 1, 2, 1, 0], "int32")}
    return [([init.name], {})] + [(["loss:0", train.name], feeds)] * 3 + [(["loss:0"], feeds)]


def adam_embedding(tf, np):
    """An embedding with Adam: gathers, sparse updates, slots."""
    ids = tf.placeholder(tf.int64, [None], name="ids")
    table = tf.Variable(_random(np, 7, 4), name="table", use_resource=False)
    found = tf.nn.embedding_lookup(table, ids)
    loss = tf.reduce_sum(tf.square(found - 0.3), name="loss")
    train = tf.train.AdamOptimizer(0.01).minimize(loss, name="train")
    init = tf.global_variables_initializer()
    feeds = {"ids:0": np.array([1, 3, 3, 5], "int64")}
    return (
        [([init.name], {})]
        + [(["loss:0", train.name], feeds)] * 2
        + [(["loss:0", "table/read:0"], feeds)]
    )


def lstm_by_hand(tf, np):
    """An LSTM unrolled, with its gradient."""
    x = tf.placeholder(tf.float32, [2, 4, 3], name="x")
    w = tf.Variable(_random(np, 8, 20), name="w")
    b = tf.Variable(np.zeros(20, "float32"), name="b")
    h = c = tf.zeros([2, 5])
    for step in tf.unstack(x, axis=1):
        i, j, f, o = tf.split(tf.matmul(tf.concat([step, h], 1), w) + b, 4, axis=1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
    out = tf.identity(h, name="out")
    tf.identity(tf.gradients(tf.reduce_sum(out), w)[0], name="gradient")
    init = tf.global_variables_initializer()
    return [([init.name], {}), (["out:0", "gradient:0"], {"x:0": _random(np, 2, 4, 3)})]


def loops(tf, np):
    """Nested while loops with a cond inside, an invariant, and gradients through all of it."""
    x = tf.placeholder(tf.float32, [3], name="x")
    n = tf.placeholder(tf.int32, [], name="n")
    w = tf.constant(_random(np, 3, 3))

    def inner(j, a):
        return j + 1, tf.tanh(tf.reshape(tf.matmul(tf.reshape(a, [1, 3]), w), [3]))

    def body(i, a):
        _, b = tf.while_loop(lambda j, _: j < i, inner, [0, a])
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: b * 1.5, lambda: b + x)

    _, out = tf.while_loop(lambda i, _: i < n, body, [0, x])
    out = tf.identity(out, name="out")
    tf.identity(tf.gradients(tf.reduce_sum(out), x)[0], name="gradient")
    return [
        (["out:0", "gradient:0"], {"x:0": _random(np, 3), "n:0": np.int32(k)}) for k in (0, 1, 4)
    ]


def growing_loop(tf, np):
    """A loop variable that grows, by shape invariants."""
    n = tf.placeholder(tf.int32, [], name="n")
    shape = [tf.TensorShape([]), tf.TensorShape([None])]
    _, out = tf.while_loop(
        lambda i, _: i < n,
        lambda i, a: (i + 1, tf.concat([a, [tf.cast(i, tf.float32)]], 0)),
        [0, tf.zeros([1])],
        shape_invariants=shape,
    )
    tf.identity(out, name="out")
    return [(["out:0"], {"n:0": np.int32(k)}) for k in (0, 3)]


def growing_array(tf, np):
    """A TensorArray that grows as it is written: in TF 2 a list that TensorListSetItem resizes."""
    n = tf.placeholder(tf.int32, [], name="n")
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[2])
    _, array = tf.while_loop(
        lambda i, _: i < n,
        lambda i, a: (i + 1, a.write(i, tf.cast(i, tf.float32) * [1.0, 2.0])),
        [0, array],
    )
    tf.identity(array.stack(), name="out")
    return [(["out:0"], {"n:0": np.int32(k)}) for k in (1, 4)]


def arrays(tf, np):
    """map_fn, scan and a TensorArray."""
    x = tf.placeholder(tf.float32, [4, 2], name="x")
    tf.identity(tf.map_fn(lambda r: tf.reduce_sum(r) * r, x), name="mapped")
    tf.identity(tf.scan(lambda a, r: a * 0.5 + r, x), name="scanned")
    array = tf.TensorArray(tf.float32, size=4).unstack(x)
    _, result = tf.while_loop(
        lambda i, _: i < 4,
        lambda i, s: (i + 1, s + array.read(i) * tf.cast(i, tf.float32)),
        [0, tf.zeros([2])],
    )
    result = tf.identity(result, name="read")
    tf.identity(tf.gradients(result, x)[0], name="gradient")
    return [(["mapped:0", "scanned:0", "read:0", "gradient:0"], {"x:0": _random(np, 4, 2)})]


def conditions(tf, np):
    """Nested conds, a case, a cond that assigns, gradients of the branch that is taken."""
    x = tf.placeholder(tf.float32, [2], name="x")
    v = tf.Variable([1.0, 2.0], name="v")
    p, q = tf.placeholder(tf.bool, [], name="p"), tf.placeholder(tf.bool, [], name="q")
    y = tf.cond(
        p, lambda: tf.cond(q, lambda: x * 2.0, lambda: x + v), lambda: tf.constant([5.0, 5.0])
    )
    y = tf.identity(y, name="y")
    tf.identity(tf.gradients(y, x)[0], name="gradient")
    tf.identity(tf.case([(p, lambda: x), (q, lambda: -x)], default=lambda: x * 0.0), name="chosen")
    tf.identity(
        tf.cond(q, lambda: tf.assign_add(v, [1.0, 1.0]), lambda: tf.identity(v)), name="after"
    )
    init = tf.global_variables_initializer()
    rows = [([init.name], {})]
    for a in (True, False):
        for b in (True, False):
            feeds = {"x:0": _random(np, 2), "p:0": np.bool_(a), "q:0": np.bool_(b)}
            rows.append((["y:0", "gradient:0", "chosen:0"], feeds))
            rows.append((["after:0"], {"q:0": np.bool_(b)}))
    return rows


def checks(tf, np):
    """Assertions (a cond each), control dependencies, devices, colocation, strings."""
    x = tf.placeholder(tf.float32, [None], name="x")
    with tf.control_dependencies([tf.Assert(tf.reduce_all(x > -10.0), [x])]), tf.device("/cpu:0"):
        y = tf.identity(x * 2.0, name="y")
    with tf.colocate_with(y.op):
        tf.add(y, 1.0, name="z")
    tf.strings.join([tf.as_string(tf.size(x)), tf.constant([b"a\xff", b"b"])], name="text")
    return [(["y:0", "z:0", "text:0"], {"x:0": _random(np, 3)})]


PROGRAMS = {
    f.__name__: f
    for f in (
        conv_net,
        training_step,
        adam_embedding,
        lstm_by_hand,
        loops,
        growing_loop,
        growing_array,
        arrays,
        conditions,
        checks,
    )
}
