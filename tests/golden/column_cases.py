"""``tf.feature_column`` and crosses of sparse tensors.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import os
import tempfile

import numpy as np


def _sparse(tf, rows, dtype=None):
    """A SparseTensor of lists."""
    indices = [(r, i) for r, row in enumerate(rows) for i in range(len(row))]
    values = [v for row in rows for v in row]
    width = max([1] + [len(r) for r in rows])
    return tf.SparseTensor(indices, tf.constant(values, dtype), [len(rows), width])


def _run(tf, value, names=True):
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
        got = sess.run(value)
    return [got] + ([_variables(tf)] if names else [])


def _variables(tf):
    return [
        [v.name for v in tf.global_variables()],
        [v.name for v in tf.trainable_variables()],
        [v.name for v in tf.get_collection(tf.GraphKeys.MODEL_VARIABLES)],
    ]


def _error(run):
    try:
        run()
    except Exception as e:
        return [type(e).__name__, str(e)[:40]]
    return None


def numeric(tf):
    f = tf.feature_column
    columns = [
        f.numeric_column("b", normalizer_fn=lambda x: x / 2.0),
        f.numeric_column("a", shape=(2,), dtype=tf.int32),
    ]
    features = {"a": [[1, 2], [3, 4]], "b": tf.constant([5.0, 6.0])}
    return _run(tf, f.input_layer(features, columns))


def bucketized(tf):
    f = tf.feature_column
    source = f.numeric_column("x", shape=[2])
    column = f.bucketized_column(source, [0.0, 2.5])
    features = {"x": tf.constant([[-1.0, 1.0], [0.0, 3.0]])}
    dense = f.input_layer(features, [column])
    linear = f.linear_model(features, [column, f.numeric_column("x", shape=[2])], units=2)
    kernel = next(v for v in tf.global_variables() if "bucketized/weights" in v.name)
    numbers = kernel.assign(np.arange(12, dtype=np.float32).reshape(6, 2))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(numbers)
        return [sess.run([dense, linear]), _variables(tf), column.name]


def indicators(tf):
    f = tf.feature_column
    with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as file:
        file.write("red\ngreen\nblue\n")
    color = f.categorical_column_with_vocabulary_file("color", file.name, num_oov_buckets=1)
    size = f.categorical_column_with_vocabulary_list("size", ["s", "m", "l"])
    number = f.categorical_column_with_identity("n", 4, default_value=0)
    hashed = f.categorical_column_with_hash_bucket("h", 5)
    whole = f.categorical_column_with_hash_bucket("w", 5, tf.int64)
    ints = f.categorical_column_with_vocabulary_list("v", [7, 9], default_value=1)
    features = {
        "color": _sparse(tf, [["red", "red"], ["pink", "blue"]]), "size": [["m"], ["xl"]],
        "n": tf.constant([[3], [9]]), "h": [["x"], [""]], "w": tf.constant([[12], [-1]], tf.int64),
        "v": tf.constant([[9], [3]], tf.int64),
    }  # fmt: skip
    columns = [f.indicator_column(c) for c in (color, size, number, hashed, whole, ints)]
    made = {}
    layer = f.input_layer(features, columns, cols_to_output_tensors=made)
    spec = f.make_parse_example_spec(columns)
    kinds = {k: [type(v).__name__, v.dtype.name] for k, v in spec.items()}
    result = _run(tf, [layer, [made[c] for c in columns]])
    os.remove(file.name)
    return [result, kinds, [c.name for c in columns]]


def embeddings(tf):
    f = tf.feature_column
    words = f.categorical_column_with_identity("w", 4)
    weighted = f.weighted_categorical_column(
        f.categorical_column_with_vocabulary_list("t", ["a", "b", "c"]), "s"
    )
    features = {
        "w": _sparse(tf, [[0, 1], [], [3]], tf.int64), "t": _sparse(tf, [["a", "c"], ["b"], []]),
        "s": _sparse(tf, [[0.5, 2.0], [3.0], []]),
    }  # fmt: skip
    # a seed of its own: safe_embedding_lookup_sparse has fewer operations here (docs/meaning.md)
    drawn = tf.truncated_normal_initializer(stddev=0.5, seed=3)
    columns = [
        f.embedding_column(words, 3, combiner="sqrtn", initializer=drawn),
        f.embedding_column(weighted, 2, initializer=tf.constant_initializer(0.5), max_norm=0.5),
        f.indicator_column(weighted),
    ]
    seen = {}
    layer = f.input_layer(features, columns, cols_to_vars=seen)
    grads = tf.gradients(tf.reduce_sum(layer**2), tf.trainable_variables())
    dense = [tf.convert_to_tensor(g) for g in grads]
    names = [[v.name for v in seen[c]] for c in columns]
    return [_run(tf, [layer, dense]), names, [c.name for c in columns]]


def shared(tf):
    f = tf.feature_column
    a = f.categorical_column_with_identity("a", 3)
    b = f.categorical_column_with_identity("b", 3)
    columns = f.shared_embedding_columns([b, a], dimension=2)
    features = {"a": tf.constant([[0], [2]]), "b": tf.constant([[2], [1]])}
    with tf.variable_scope("net"):
        first = f.input_layer(features, columns)
    return [_run(tf, first), [c.name for c in columns]]


def linear(tf):
    f = tf.feature_column
    a = f.categorical_column_with_vocabulary_list("a", ["x", "y"])
    b = f.numeric_column("b")
    cross = f.crossed_column(["a", f.bucketized_column(b, [1.0])], 6)
    weighted = f.weighted_categorical_column(f.categorical_column_with_identity("i", 3), "w")
    features = {
        "a": [["x"], ["y"], [""]], "b": [[0.5], [2.0], [3.0]], "i": tf.constant([[0], [2], [1]]),
        "w": tf.constant([[0.5], [2.0], [1.0]]),
    }  # fmt: skip
    seen = {}
    logits = f.linear_model(features, [a, b, cross, weighted], cols_to_vars=seen)
    loss = tf.reduce_mean(tf.square(logits - [[1.0], [2.0], [3.0]]))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    names = {str(getattr(k, "name", k)): [v.name for v in vs] for k, vs in seen.items()}
    values = []
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
        for _ in range(3):
            sess.run(train)
            values.append(sess.run([loss, logits]))
        weights = {v.name: sess.run(v) for v in tf.global_variables()}
    again = f.linear_model(features, [a])
    return [values, weights, names, _variables(tf), again.op.name.split("/")[0]]


def parsed(tf):
    f = tf.feature_column
    columns = [
        f.numeric_column("x", shape=(2,), default_value=1.5),
        f.indicator_column(f.categorical_column_with_hash_bucket("t", 3)),
    ]
    t = tf.train
    example = t.Example(
        features=t.Features(feature={"t": t.Feature(bytes_list=t.BytesList(value=[b"u", b"v"]))})
    )
    spec = f.make_parse_example_spec(columns)
    features = tf.parse_example([example.SerializeToString()], spec)
    layer = f.input_layer(features, columns)
    return [_run(tf, layer), list(spec["x"].shape), spec["x"].default_value]


def crosses(tf):
    first = _sparse(tf, [["a", "b"], ["c"]])
    second = tf.constant([["x", "y"], ["z", "w"]])
    third = tf.constant([[5], [-2]], tf.int64)
    made = [
        tf.sparse.cross([first, second]), tf.sparse.cross_hashed([first, second]),
        tf.sparse.cross_hashed([first, third, second], num_buckets=100),
        tf.sparse.cross_hashed([first, third], num_buckets=1000, hash_key=7),
    ]  # fmt: skip
    with tf.Session() as sess:
        return [sess.run([s.indices, s.values, s.dense_shape]) for s in made]


def column_errors(tf):
    f = tf.feature_column
    ids = f.categorical_column_with_identity("i", 3)
    x = f.numeric_column("x")
    runs = [
        lambda: f.numeric_column("x", shape=(0,)), lambda: f.numeric_column("x", dtype=tf.string),
        lambda: f.bucketized_column(ids, [1]), lambda: f.bucketized_column(x, [2, 1]),
        lambda: f.categorical_column_with_hash_bucket("h", 0),
        lambda: f.categorical_column_with_vocabulary_list("v", []),
        lambda: f.categorical_column_with_vocabulary_list("v", ["a", "a"]),
        lambda: f.categorical_column_with_identity("i", 0), lambda: f.embedding_column(ids, 0),
        lambda: f.crossed_column(["a"], 3),
        lambda: f.crossed_column([f.categorical_column_with_hash_bucket("h", 2), "a"], 3),
        lambda: f.input_layer({"i": [[1]]}, [ids]), lambda: f.input_layer({}, [x]),
        lambda: f.input_layer({"x": [[1.0]]}, [x, x]), lambda: f.input_layer({"x": [[1.0]]}, []),
        lambda: f.input_layer({"x": 1.0}, [x]),
        lambda: f.weighted_categorical_column(ids, "w", tf.string),
    ]  # fmt: skip
    return [_error(r) for r in runs]


def out_of_range(tf):
    f = tf.feature_column
    column = f.indicator_column(f.categorical_column_with_identity("i", 3))
    return _error(lambda: _run(tf, f.input_layer({"i": tf.constant([[5]])}, [column])))[0]


def sequences(tf):
    f, c = tf.feature_column, tf.contrib.feature_column
    ids = _sparse(tf, [[1, 2], [], [0]], tf.int64)
    numbers = _sparse(tf, [[1.0, 2.0, 3.0, 4.0], [], [5.0, 6.0]])
    words = _sparse(tf, [["a", "b"], [], ["z"]])
    features = {"a": ids, "n": numbers, "w": words}
    table = c.sequence_categorical_column_with_vocabulary_list("w", ["a", "b"], num_oov_buckets=2)
    columns = [
        f.embedding_column(c.sequence_categorical_column_with_identity("a", 4), 3),
        f.indicator_column(table),
        c.sequence_numeric_column("n", shape=(2,), default_value=-1.0),
        f.embedding_column(c.sequence_categorical_column_with_hash_bucket("w", 5), 2, "sum"),
    ]
    tf.set_random_seed(3)
    layer, lengths = c.sequence_input_layer(features, columns[:3])
    again, _ = c.sequence_input_layer(features, columns[3:])
    grads = tf.gradients(tf.reduce_sum(layer**2) + tf.reduce_sum(again), tf.trainable_variables())
    dense = [tf.convert_to_tensor(g) for g in grads]
    spec = {
        k: [type(v).__name__, v.dtype.name]
        for k, v in f.make_parse_example_spec(columns[:3]).items()
    }
    shapes = [layer.shape.as_list(), again.shape.as_list(), layer.name]
    return [_run(tf, [layer, lengths, again, dense]), [x.name for x in columns], spec, shapes]


def sequence_columns_of_several_values(tf):
    f, c = tf.feature_column, tf.contrib.feature_column
    places = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)]
    ids = tf.SparseTensor(places, tf.constant([1, 2, 0, 2], tf.int64), [2, 2, 2])
    numbers = tf.SparseTensor(places, [1.0, 2.0, 3.0, 4.0], [2, 2, 2])
    a = c.sequence_categorical_column_with_identity("a", 3)
    b = c.sequence_categorical_column_with_identity("b", 3)
    shared = f.shared_embedding_columns(
        [b, a], 2, combiner="sum", initializer=tf.constant_initializer([[1.0, 2], [3, 4], [5, 6]])
    )
    double = lambda x: tf.SparseTensor(x.indices, x.values * 2, x.dense_shape)
    columns = [
        *shared, f.indicator_column(a),
        c.sequence_numeric_column("n", shape=[2], normalizer_fn=double),
    ]  # fmt: skip
    layer, lengths = c.sequence_input_layer({"a": ids, "b": ids, "n": numbers}, columns)
    return _run(tf, [layer, lengths])


def sequence_columns_refused(tf):
    f, c = tf.feature_column, tf.contrib.feature_column
    ids = _sparse(tf, [[1, 2], [0]], tf.int64)
    steps = c.sequence_categorical_column_with_identity("a", 4)
    plain = f.categorical_column_with_identity("a", 4)
    layer = c.sequence_input_layer

    def unequal():
        features = {"a": ids, "n": _sparse(tf, [[1.0], [2.0]])}
        made = layer(features, [f.indicator_column(steps), c.sequence_numeric_column("n")])
        with tf.Session() as sess:
            sess.run(made)

    return [
        _error(lambda: f.input_layer({"a": ids}, [f.embedding_column(steps, 3)])),
        _error(lambda: f.input_layer({"a": ids}, [f.indicator_column(steps)])),
        _error(lambda: layer({"a": ids}, [f.numeric_column("a")])),
        _error(lambda: layer({"a": ids}, [f.embedding_column(plain, 3)])),
        _error(lambda: layer({"n": tf.zeros([2, 3])}, [c.sequence_numeric_column("n")]))[0],
        _error(lambda: c.sequence_numeric_column("n", shape=[0])),
        _error(lambda: c.sequence_numeric_column("n", dtype=tf.string)),
        _error(lambda: c.sequence_numeric_column("n", normalizer_fn=3)),
        _error(unequal)[0],
    ]
