"""Operations of random programs, and how a program is built and run: for runner.py.

A program is JSON (tools/differential/programs.py makes it):

    {"dtype": "float64", "leaves": [LEAF, ...], "steps": [STEP, ...], "results": [3, 5],
     "loss": 5, "order": 2, "wrt": [0, 1], "sessions": [[RUN, ...], ...]}

Values are numbered: first the leaves, then one result per step. A LEAF is a fed placeholder, a
constant or a variable. A STEP is ``[name, [inputs], {parameters}]``; steps with a body (a branch, a
loop) hold their own steps, whose values go on from those around them. A RUN says which results are
fetched (``all``, ``values``, ``grads``) and what is fed.

This file runs under TensorFlow's Python 3.7 too.
"""


def _where(tf, x, y):
    return tf.where_v2(x > y, x * 2, y - x)


#: Of one tensor, the shape stays: works for real floats and keeps numbers small.
SAME = {
    "tanh": lambda tf, x: tf.tanh(x),
    "sigmoid": lambda tf, x: tf.sigmoid(x),
    "sin": lambda tf, x: tf.sin(x),
    "cos": lambda tf, x: tf.cos(x),
    "softplus": lambda tf, x: tf.nn.softplus(x),
    "elu": lambda tf, x: tf.nn.elu(x),
    "selu": lambda tf, x: tf.nn.selu(x),
    "relu": lambda tf, x: tf.nn.relu(x),
    "relu6": lambda tf, x: tf.nn.relu6(x * 3),
    "leaky_relu": lambda tf, x: tf.nn.leaky_relu(x, 0.3),
    "softsign": lambda tf, x: tf.nn.softsign(x),
    "swish": lambda tf, x: tf.nn.swish(x),
    "gelu": lambda tf, x: 0.5 * x * (1 + tf.erf(x / 1.4142135)),
    "exp": lambda tf, x: tf.exp(tf.tanh(x)),
    "expm1": lambda tf, x: tf.expm1(tf.sin(x)),
    "log": lambda tf, x: tf.log(1 + tf.square(x)),
    "log1p": lambda tf, x: tf.log1p(x * x),
    "sqrt": lambda tf, x: tf.sqrt(1 + x * x),
    "rsqrt": lambda tf, x: tf.rsqrt(x * x + 0.5),
    "reciprocal": lambda tf, x: tf.reciprocal(2 + tf.sin(x)),
    "erf": lambda tf, x: tf.erf(x),
    "atan": lambda tf, x: tf.atan(x),
    "asinh": lambda tf, x: tf.asinh(x),
    "sinh": lambda tf, x: tf.sinh(tf.tanh(x)),
    "lgamma": lambda tf, x: tf.lgamma(1 + x * x),
    "square": lambda tf, x: tf.square(tf.tanh(x)),
    "cube": lambda tf, x: tf.pow(tf.tanh(x), 3),
    "abs": lambda tf, x: tf.abs(x),
    "negative": lambda tf, x: -x,
    "identity": lambda tf, x: tf.identity(x),
    "stop": lambda tf, x: x + tf.stop_gradient(tf.sin(x)),
    "clip": lambda tf, x: tf.clip_by_value(x, -0.5, 0.7),
    "maximum0": lambda tf, x: tf.maximum(x, 0.1),
    "minimum0": lambda tf, x: tf.minimum(x, 0.3),
    "scale": lambda tf, x: x * 0.5 + 0.25,
    "rdiv": lambda tf, x: 1.0 / (2.0 + x * x),
    "rsub": lambda tf, x: 1.0 - x,
    "zeros_like": lambda tf, x: x + tf.zeros_like(x),
    "ones_like": lambda tf, x: x - tf.ones_like(x),
    "as_float32": lambda tf, x: tf.cast(tf.cast(x, tf.float32), x.dtype),
    "checked": lambda tf, x: tf.where(tf.is_finite(x), x, tf.zeros_like(x)),
    "twice": lambda tf, x: tf.add_n([x, x, x]) / 3.0,
    "clip_norm": lambda tf, x: tf.clip_by_norm(x, 2.0),
}

#: Of several numbers along an axis, the shape stays.
ALONG = {
    "softmax": lambda tf, x, a: tf.nn.softmax(x, axis=a),
    "log_softmax": lambda tf, x, a: tf.nn.log_softmax(x, axis=a),
    "cumsum": lambda tf, x, a: tf.cumsum(x, a) * 0.3,
    "cumsum_back": lambda tf, x, a: tf.cumsum(x, a, exclusive=True, reverse=True) * 0.3,
    "cumprod": lambda tf, x, a: tf.cumprod(1 + 0.1 * tf.tanh(x), a),
    "reverse": lambda tf, x, a: tf.reverse(x, [a]),
    "l2_normalize": lambda tf, x, a: tf.nn.l2_normalize(x + 1, a),
    "roll": lambda tf, x, a: tf.roll(x, 1, a),
    "sort": lambda tf, x, a: tf.sort(x, axis=a),
    "centre": lambda tf, x, a: x - tf.reduce_mean(x, a, keepdims=True),
    "standard": lambda tf, x, a: x * tf.rsqrt(tf.reduce_mean(x * x, a, keepdims=True) + 0.1),
    "less_max": lambda tf, x, a: x - tf.reduce_max(x, a, keepdims=True),
}

REDUCE = {
    "reduce_sum": lambda tf, x, a, k: tf.reduce_sum(x, a, k),
    "reduce_mean": lambda tf, x, a, k: tf.reduce_mean(x, a, k),
    "reduce_max": lambda tf, x, a, k: tf.reduce_max(x, a, k),
    "reduce_min": lambda tf, x, a, k: tf.reduce_min(x, a, k),
    "reduce_prod": lambda tf, x, a, k: tf.reduce_prod(0.5 + tf.sigmoid(x), a, k),
    "reduce_logsumexp": lambda tf, x, a, k: tf.reduce_logsumexp(x, a, k),
    "moments": lambda tf, x, a, k: tf.nn.moments(x, a, keep_dims=k)[1],
    "norm": lambda tf, x, a, k: tf.sqrt(tf.reduce_sum(x * x, a, k) + 0.1),
}

#: Of two tensors that broadcast.
BINARY = {
    "add": lambda tf, x, y: x + y,
    "subtract": lambda tf, x, y: x - y,
    "multiply": lambda tf, x, y: x * y,
    "divide": lambda tf, x, y: x / (1 + y * y),
    "maximum": lambda tf, x, y: tf.maximum(x, y),
    "minimum": lambda tf, x, y: tf.minimum(x, y),
    "squared_difference": lambda tf, x, y: tf.squared_difference(x, y),
    "pow": lambda tf, x, y: tf.pow(1 + tf.sigmoid(x), tf.tanh(y)),
    "atan2": lambda tf, x, y: tf.atan2(x, y),
    "where": _where,
    "div_no_nan": lambda tf, x, y: tf.div_no_nan(x, y * y + 1),
    "xlogy": lambda tf, x, y: tf.math.xlogy(x, 1 + y * y),
    "xdivy": lambda tf, x, y: tf.math.xdivy(x, 1 + y * y),
    "gate": lambda tf, x, y: tf.sigmoid(x) * tf.tanh(y),
    "masked": lambda tf, x, y: x * tf.cast(y > 0, x.dtype),
    "floormod": lambda tf, x, y: tf.floormod(x, 2 + y * y),
}

#: Of one tensor and parameters: another shape (programs.py knows it).
SHAPED = {
    "transpose": lambda tf, x, p: tf.transpose(x, p["perm"]),
    "reshape": lambda tf, x, p: tf.reshape(x, p["shape"]),
    "flatten": lambda tf, x, p: tf.reshape(x, tf.stack([tf.shape(x)[0], -1])),
    "expand_dims": lambda tf, x, p: tf.expand_dims(x, p["axis"]),
    "squeeze": lambda tf, x, p: tf.squeeze(x, [p["axis"]]),
    "tile": lambda tf, x, p: tf.tile(x, p["multiples"]),
    "pad": lambda tf, x, p: tf.pad(x, p["paddings"], p["mode"]),
    "slice": lambda tf, x, p: tf.slice(x, p["begin"], p["size"]),
    "stride": lambda tf, x, p: x[tuple(slice(*s) for s in p["slices"])],
    "pick": lambda tf, x, p: x[(Ellipsis, p["at"])],
    "gather": lambda tf, x, p: tf.gather(x, tf.constant(p["indices"], tf.int32), axis=p["axis"]),
    "gather_nd": lambda tf, x, p: tf.gather_nd(x, tf.constant(p["indices"], tf.int32)),
    "split": lambda tf, x, p: tf.split(x, p["sizes"], p["axis"])[p["part"]],
    "unstack": lambda tf, x, p: tf.unstack(x, axis=p["axis"])[p["part"]],
    "top_k": lambda tf, x, p: tf.nn.top_k(x, p["k"])[0],
    "segment": lambda tf, x, p: getattr(tf, p["how"])(x, tf.range(tf.shape(x)[0]) % p["n"], p["n"]),
    "scatter_nd": lambda tf, x, p: tf.scatter_nd(
        tf.expand_dims(tf.range(tf.shape(x)[0]), 1) % p["n"],
        x,
        tf.concat([[p["n"]], tf.shape(x)[1:]], 0),
    ),
    "pool": lambda tf, x, p: getattr(tf.nn, p["how"])(
        x, [1, p["k"], p["k"], 1], [1, p["s"], p["s"], 1], p["padding"]
    ),
    "broadcast_to": lambda tf, x, p: tf.broadcast_to(x, tf.concat([p["front"], tf.shape(x)], 0)),
    "resize": lambda tf, x, p: tf.cast(
        tf.image.resize_bilinear(x, p["size"], align_corners=p["align"]), x.dtype
    ),
    "diag": lambda tf, x, p: tf.matrix_diag(x),
    "band": lambda tf, x, p: tf.matrix_band_part(x, p["low"], p["high"]),
    "space_to_depth": lambda tf, x, p: tf.space_to_depth(x, 2),
}

#: Of two tensors and parameters.
JOINED = {
    "matmul": lambda tf, x, y, p: tf.matmul(x, y, transpose_a=p["a"], transpose_b=p["b"]),
    "tensordot": lambda tf, x, y, p: tf.tensordot(x, y, [[p["a"]], [p["b"]]]),
    "einsum": lambda tf, x, y, p: tf.einsum(p["text"], x, y),
    "concat": lambda tf, x, y, p: tf.concat([x, y], p["axis"]),
    "stack": lambda tf, x, y, p: tf.stack([x, y, x], p["axis"]),
    "conv": lambda tf, x, y, p: tf.nn.conv2d(x, y, [1, p["s"], p["s"], 1], p["padding"]),
    "depthwise": lambda tf, x, y, p: tf.nn.depthwise_conv2d(
        x, y, [1, p["s"], p["s"], 1], p["padding"]
    ),
    "bias_add": lambda tf, x, y, p: tf.nn.bias_add(x, y),
    "cross_entropy": lambda tf, x, y, p: tf.nn.softmax_cross_entropy_with_logits_v2(
        labels=tf.nn.softmax(y) if p["soft"] else tf.stop_gradient(tf.nn.softmax(y)), logits=x
    ),
    "sparse_cross_entropy": lambda tf, x, y, p: tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.argmax(y, -1), logits=x
    ),
    "sigmoid_cross_entropy": lambda tf, x, y, p: tf.nn.sigmoid_cross_entropy_with_logits(
        labels=tf.sigmoid(y), logits=x
    ),
    "solve": lambda tf, x, y, p: tf.matrix_solve(
        tf.matmul(x, x, transpose_b=True) + 2 * tf.eye(p["n"], dtype=x.dtype), y
    ),
    "batch_norm": lambda tf, x, y, p: tf.nn.batch_normalization(
        x, *tf.nn.moments(x, p["axes"]), offset=y, scale=1 + y * y, variance_epsilon=0.1
    ),
    "embed": lambda tf, x, y, p: tf.nn.embedding_lookup(
        x, tf.cast(tf.argmax(y, -1), tf.int32) % tf.shape(x)[0]
    ),
}

#: Of whole numbers.
WHOLE = {
    "add": lambda tf, x, y: x + y,
    "subtract": lambda tf, x, y: x - y,
    "multiply": lambda tf, x, y: x * y,
    "maximum": lambda tf, x, y: tf.maximum(x, y),
    "floordiv": lambda tf, x, y: x // (tf.abs(y % 5) + 1),
    "floormod": lambda tf, x, y: x % (tf.abs(y % 5) + 2),
    "truncatediv": lambda tf, x, y: tf.truncatediv(x, tf.abs(y % 7) + 1),
    "where": _where,
    "squared_difference": lambda tf, x, y: tf.squared_difference(x, y),
}


class Built:
    """A program in the default graph."""

    def __init__(self, lib, spec):
        self.lib, self.tf, self.spec = lib, lib.tf, spec
        self.feeds, self.values, self.variables = [], [], []
        for leaf in spec["leaves"]:
            self.values.append(self.leaf(leaf))
        self.steps(spec["steps"], self.values)
        self.results = [self.values[i] for i in spec["results"]]
        self.grads = self.gradients() if spec["order"] else []

    def leaf(self, leaf):
        tf, kind = self.tf, leaf["kind"]
        dtype = getattr(tf, leaf["dtype"])
        if kind == "ph":
            tensor = tf.placeholder(dtype, leaf["static"])
            self.feeds.append(tensor)
            return tensor
        array = self.lib.decode(leaf)
        if kind == "const":
            return tf.constant(array, dtype)
        variable = tf.Variable(tf.constant(array, dtype), use_resource=kind == "resource")
        self.variables.append(variable)
        return variable

    def steps(self, steps, values):
        for name, inputs, parameters in steps:
            values.append(self.step(name, [values[i] for i in inputs], parameters, values))

    def step(self, name, inputs, p, values):
        tf = self.tf
        if name in FLOWS:
            return FLOWS[name](self, inputs, p, values)
        kind, _, op = name.partition(":")
        if kind == "same":
            return SAME[op](tf, *inputs)
        if kind == "along":
            return ALONG[op](tf, inputs[0], p["axis"])
        if kind == "reduce":
            return REDUCE[op](tf, inputs[0], p["axis"], p["keep"])
        if kind == "binary":
            return BINARY[op](tf, *inputs)
        if kind == "whole":
            return WHOLE[op](tf, *inputs)
        if kind == "shaped":
            return SHAPED[op](tf, inputs[0], p)
        return JOINED[op](tf, inputs[0], inputs[1], p)

    def body(self, steps, values, *given):
        """The last value of steps that begin with what is given."""
        inner = list(values) + list(given)
        self.steps(steps, inner)
        return inner[-1]

    def gradients(self):
        tf, spec = self.tf, self.spec
        y = self.values[spec["loss"]]
        xs = [self.values[i] for i in spec["wrt"]]
        grads = [_dense(tf, g) for g in tf.gradients(y, xs)]
        if spec["order"] == 1:
            return grads
        parts = [tf.reduce_sum(tf.sin(g)) for g in grads if g is not None]
        if not parts:
            return grads
        return grads + [_dense(tf, g) for g in tf.gradients(tf.add_n(parts), xs)]


def _dense(tf, g):
    return None if g is None else tf.convert_to_tensor(g)


def _fixed(built, inputs, p, values):
    return built.tf.constant(built.lib.decode(p["value"]))


def _cond(built, inputs, p, values):
    tf = built.tf
    return tf.cond(
        tf.reduce_sum(inputs[1]) > 0,
        lambda: built.body(p["yes"], values, inputs[0]),
        lambda: built.body(p["no"], values, inputs[0]),
    )


def _while(built, inputs, p, values):
    tf = built.tf
    return tf.while_loop(
        lambda i, x: i < p["n"],
        lambda i, x: (i + 1, built.body(p["body"], values, x)),
        [tf.constant(0), tf.identity(inputs[0])],
        **p["options"],
    )[1]


def _changing_while(built, inputs, p, values):
    """The number of steps depends on numbers."""
    tf = built.tf
    return tf.while_loop(
        lambda i, x: tf.logical_and(i < 4, tf.reduce_sum(tf.abs(x)) < p["limit"]),
        lambda i, x: (i + 1, built.body(p["body"], values, x) + x),
        [tf.constant(0), tf.identity(inputs[0])],
    )[1]


def _nested(built, inputs, p, values):
    tf = built.tf

    def outer(i, x):
        inner = tf.while_loop(
            lambda j, y: j < 2,
            lambda j, y: (j + 1, built.body(p["body"], values, y)),
            [tf.constant(0), x],
        )[1]
        chosen = tf.cond(tf.equal(i % 2, 0), lambda: inner, lambda: x * 0.5 + tf.sin(inner))
        return i + 1, chosen

    return tf.while_loop(lambda i, x: i < p["n"], outer, [tf.constant(0), inputs[0] + 0.0])[1]


def _map(built, inputs, p, values):
    return built.tf.map_fn(lambda row: built.body(p["body"], values, row), inputs[0])


def _scan(built, inputs, p, values):
    tf = built.tf
    return tf.scan(
        lambda a, row: built.body(p["body"], values, a * 0.5 + row),
        inputs[0],
        initializer=tf.zeros_like(inputs[0][0]),
    )


def _array(built, inputs, p, values):
    """A loop that writes to a TensorArray."""
    tf = built.tf
    x = inputs[0]
    rows = tf.TensorArray(x.dtype, 3)
    _, _, rows = tf.while_loop(
        lambda i, a, r: i < 3,
        lambda i, a, r: (i + 1, built.body(p["body"], values, a), r.write(i, a)),
        [tf.constant(0), tf.identity(x), rows],
    )
    return rows.stack() if p["stack"] else rows.read(2) + rows.read(1)


def _function(built, inputs, p, values):
    tf = built.tf
    return tf.function(lambda x: built.body(p["body"], values, x))(inputs[0])


def _custom(built, inputs, p, values):
    tf = built.tf

    @tf.custom_gradient
    def call(x):
        def grad(dy):
            return dy * tf.cos(x) * 2

        return tf.sin(x), grad

    return call(tf.identity(inputs[0]))


def _assigned(built, inputs, p, values):
    """A variable of its own that is written: read before and after."""
    tf, x = built.tf, inputs[0]
    start = tf.constant(built.lib.decode(p["value"]))
    v = tf.Variable(start, use_resource=p["resource"])
    built.variables.append(v)
    before = tf.identity(v) * 2.0
    with tf.control_dependencies([before]):
        added = tf.assign_add(v, x) if p["how"] == "add" else tf.assign(v, x * 0.5)
    with tf.control_dependencies([added]):
        return v.read_value() * 0.5 + before


def _ordered(built, inputs, p, values):
    tf = built.tf
    with tf.control_dependencies([tf.sin(inputs[0])]):
        return tf.identity(inputs[0]) * 1.5


#: Steps with a body, or with state.
FLOWS = {
    "fixed": _fixed,
    "cond": _cond,
    "while": _while,
    "changing_while": _changing_while,
    "nested": _nested,
    "map": _map,
    "scan": _scan,
    "array": _array,
    "function": _function,
    "custom": _custom,
    "assigned": _assigned,
    "ordered": _ordered,
}


def outcome(lib, spec, graph):
    """As runner.Case.outcome: values of all runs of all sessions, then the variables."""
    tf, stage = lib.tf, "build"
    try:
        with graph.as_default():
            built = Built(lib, spec)
            static = [
                [t.dtype.base_dtype.name, None if t.shape.ndims is None else t.shape.as_list()]
                for t in built.results
            ]
            stage = "run"
            values = []
            config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
            for runs in spec["sessions"]:
                with tf.Session(config=config) as session:
                    session.run(tf.global_variables_initializer())
                    for run in runs:
                        fed = [lib.decode(a) for a in run["fed"]]
                        feeds = dict(zip(built.feeds, fed))
                        wanted = [] if run["fetch"] == "grads" else list(built.results)
                        if run["fetch"] != "values":
                            wanted += [g for g in built.grads if g is not None]
                        values += [lib.encode(v) for v in session.run(wanted, feeds)]
                    values += [lib.encode(v) for v in session.run(built.variables)]
        none = [None if g is None else ["text", [], "given"] for g in built.grads]
        return {"stage": "ok", "static": static, "values": values, "grads": none}
    except Exception as error:
        return {"stage": stage, "error": type(error).__name__, "text": str(error)[:400]}
