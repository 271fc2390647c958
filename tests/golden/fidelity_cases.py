"""Small programs whose names, collections, initial values, summaries and checkpoints are compared.

Run on TF 1.15 (make_cases.py) and on Headrace. Each program is built in a graph of its own with
seed 1; ``_observed`` says what is kept of it.
"""

import os
import tempfile

import numpy as np

X = np.linspace(-1, 1, 2 * 6 * 6 * 3).reshape(2, 6, 6, 3).astype(np.float32)
ROWS = np.linspace(-1, 1, 8).reshape(2, 4).astype(np.float32)
STEPS = np.linspace(-1, 1, 2 * 3 * 4).reshape(2, 3, 4).astype(np.float32)


def _observed(tf, build):
    """Variables, collections, initial values, summary tags and checkpoint keys of a program."""
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        tf.set_random_seed(1)
        build(tf)
        variables = tf.global_variables()
        kept = {}
        for key in sorted(graph.get_all_collection_keys(), key=str):
            items = graph.get_collection(key)
            names = [getattr(i, "name", None) for i in items]
            if key in ("cond_context", "while_context"):
                continue  # how a loop is built inside (a fused cell is one operation in TF 1.15)
            if names and isinstance(key, str) and all(isinstance(n, str) for n in names):
                kept[key] = names
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        values = [_digest(v) for v in sess.run(variables)]
        tags = []
        merged = tf.summary.merge_all()
        if merged is not None:
            tags = [v.tag for v in tf.Summary.FromString(sess.run(merged)).value]
        keys = []
        if variables:
            with tempfile.TemporaryDirectory() as folder:
                path = tf.train.Saver().save(sess, os.path.join(folder, "model"))
                keys = [[name, shape] for name, shape in tf.train.list_variables(path)]
    names = [[v.op.name, v.shape.as_list(), v.dtype.base_dtype.name] for v in variables]
    return {"variables": names, "collections": kept, "values": values, "tags": tags, "keys": keys}


def _digest(value):
    value = np.asarray(value)
    if value.dtype.kind not in "fiub":
        return str(value.dtype)
    flat = value.astype(np.float64).ravel()
    return [
        round(float(v), 4) for v in (flat[:3].tolist() + [np.abs(flat).sum() / (len(flat) or 1)])
    ]


def _conv_net(tf):
    y = tf.layers.conv2d(tf.constant(X), 4, 3, activation=tf.nn.relu)
    y = tf.layers.batch_normalization(y, training=True)
    y = tf.layers.max_pooling2d(y, 2, 2)
    tf.layers.dense(tf.layers.flatten(y), 2, name="out")


def _regularised(tf):
    penalty = tf.contrib.layers.l2_regularizer(0.1)
    tf.layers.dense(tf.constant(ROWS), 3, kernel_regularizer=penalty, bias_regularizer=penalty)
    tf.layers.conv2d(
        tf.constant(X), 2, 3, kernel_regularizer=penalty, kernel_initializer="he_normal"
    )
    tf.losses.get_total_loss()


def _losses(tf):
    y = tf.layers.dense(tf.constant(ROWS), 3)
    tf.losses.softmax_cross_entropy(np.eye(3)[:2], y)
    tf.losses.mean_squared_error(np.zeros([2, 3]), y, scope="error")
    tf.losses.huber_loss(np.zeros([2, 3]), y)
    total = tf.losses.get_total_loss()
    tf.summary.scalar("loss", total)
    tf.summary.histogram("y", y)


def _summaries(tf):
    with tf.name_scope("outer"):
        tf.summary.scalar("a b", 1.0)
        tf.summary.image("picture", X, max_outputs=2)
        with tf.variable_scope("inner"):
            tf.summary.scalar("same", 1.0)
            tf.summary.scalar("same", 2.0)
    tf.summary.text("words", tf.constant("x"))
    tf.summary.histogram("h", ROWS, family="group")


def _scopes(tf):
    with tf.variable_scope("a", initializer=tf.random_uniform_initializer(-1, 1)):
        tf.get_variable("w", [2, 2])
        with tf.variable_scope("b", reuse=tf.AUTO_REUSE):
            tf.get_variable("w", [2])
            tf.get_variable("w", [2])
    with tf.variable_scope(None, "c"):
        tf.Variable(1.0)
    with tf.variable_scope(None, "c"):
        tf.Variable(tf.truncated_normal([3]), name="v", trainable=False)
    tf.get_local_variable("local", [1])
    tf.train.get_or_create_global_step()


def _optimizer(kind, *args, **kwargs):
    def build(tf):
        loss = tf.reduce_sum(tf.square(tf.layers.dense(tf.constant(ROWS), 2)))
        step = tf.train.get_or_create_global_step()
        module = tf.contrib.opt if kind in ("NadamOptimizer", "AdaMaxOptimizer") else tf.train
        getattr(module, kind)(*args, **kwargs).minimize(loss, global_step=step)

    return build


def _averages(tf):
    tf.layers.dense(tf.constant(ROWS), 2)
    average = tf.train.ExponentialMovingAverage(0.9, tf.train.get_or_create_global_step())
    average.apply(tf.trainable_variables())


def _cell(make):
    def build(tf):
        tf.nn.dynamic_rnn(make(tf), tf.constant(STEPS), dtype=tf.float32)

    return build


def _both_ways(tf):
    cells = [tf.nn.rnn_cell.LSTMCell(2) for _ in range(2)]
    tf.nn.bidirectional_dynamic_rnn(*cells, tf.constant(STEPS), dtype=tf.float32)
    fused = tf.contrib.rnn.LSTMBlockFusedCell(3)
    fused(tf.transpose(tf.constant(STEPS), [1, 0, 2]), dtype=tf.float32)


def _attention(tf):
    seq = tf.contrib.seq2seq
    memory = tf.constant(STEPS)
    attention = seq.BahdanauAttention(3, memory, normalize=True)
    cell = seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(4), attention, attention_layer_size=3)
    helper = seq.TrainingHelper(tf.constant(STEPS), [3, 3])
    state = cell.zero_state(2, tf.float32)
    decoder = seq.BasicDecoder(cell, helper, state, tf.layers.Dense(5, name="projection"))
    seq.dynamic_decode(decoder)


def _slim_net(tf):
    slim = tf.contrib.slim
    with slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm,
                        weights_regularizer=slim.l2_regularizer(0.1)):  # fmt: skip
        y = slim.repeat(tf.constant(X), 2, slim.conv2d, 4, [3, 3], scope="conv")
    y = slim.flatten(slim.max_pool2d(y, 2))
    y = slim.fully_connected(slim.dropout(y, seed=3), 3, activation_fn=None)
    slim.losses.softmax_cross_entropy(y, tf.constant(np.eye(3, dtype=np.float32)[:2]))
    slim.model_variable("extra", [2], initializer=tf.ones_initializer())


def _contrib_layers(tf):
    layers = tf.contrib.layers
    y = layers.separable_conv2d(tf.constant(X), 4, 3, 1)
    y = layers.conv2d_transpose(y, 2, 3, 2, normalizer_fn=layers.layer_norm)
    y = layers.fully_connected(layers.flatten(y), 3, outputs_collections="ends")
    layers.summarize_activations()
    layers.embed_sequence(tf.constant([[1, 2]]), vocab_size=5, embed_dim=3)
    layers.instance_norm(tf.constant(X))


def _metrics(tf):
    tf.metrics.accuracy(tf.constant([1, 0]), tf.constant([1, 1]))
    tf.metrics.auc(tf.constant([1, 0]), tf.constant([0.3, 0.6]), num_thresholds=5)
    tf.metrics.mean_iou(tf.constant([1, 0]), tf.constant([1, 1]), 2, name="iou")
    first, second = tf.constant([1.0, 2.0]), tf.constant([1.0, 3.0])
    tf.contrib.metrics.streaming_pearson_correlation(first, second)


def _partitioned(tf):
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(2)):
        table = tf.get_variable("table", [4, 2])
        tf.nn.embedding_lookup(table, [0, 3], partition_strategy="div")


def _templates(tf):
    layer = tf.make_template("shared", lambda x: tf.layers.dense(tf.constant(x), 2))
    layer(ROWS), layer(ROWS)
    other = tf.layers.Dense(2)
    other(tf.constant(ROWS)), other(tf.constant(ROWS))
    tf.layers.dense(tf.constant(ROWS), 2)


def _columns(tf):
    c = tf.feature_column
    kind = c.categorical_column_with_vocabulary_list("kind", ["a", "b"])
    parts = [c.numeric_column("x"), c.embedding_column(kind, 2), c.indicator_column(kind)]
    c.input_layer({"x": [[1.0]], "kind": [["a"]]}, parts)
    c.linear_model({"x": [[1.0]], "kind": [["a"]]}, parts[:1])


def _initializers(tf):
    made = [
        tf.glorot_uniform_initializer(), tf.glorot_normal_initializer(),
        tf.orthogonal_initializer(),
        tf.truncated_normal_initializer(stddev=0.1), tf.random_normal_initializer(seed=7),
        tf.variance_scaling_initializer(2.0, "fan_out"), tf.uniform_unit_scaling_initializer(),
        tf.initializers.he_uniform(), tf.initializers.lecun_normal(), tf.zeros_initializer(),
        tf.contrib.layers.xavier_initializer(), tf.contrib.layers.variance_scaling_initializer(),
    ]  # fmt: skip
    for i, one in enumerate(made):
        tf.get_variable(f"v{i}", [4, 3], initializer=one)


def _input(tf):
    names = tf.train.string_input_producer(["a", "b"], shuffle=False, num_epochs=2)
    tf.train.batch([names.dequeue()], 2, num_threads=2)
    tf.train.shuffle_batch([tf.constant(1.0)], 2, 10, 3)


def names_of_layers(tf):
    parts = [_conv_net, _regularised, _contrib_layers, _slim_net, _templates, _columns]
    return [_observed(tf, build) for build in parts]


def names_of_state(tf):
    parts = [_losses, _summaries, _scopes, _averages, _metrics, _partitioned, _initializers, _input]
    return [_observed(tf, build) for build in parts]


def names_of_optimizers(tf):
    made = [
        _optimizer("GradientDescentOptimizer", 0.1), _optimizer("MomentumOptimizer", 0.1, 0.9),
        _optimizer("AdamOptimizer"), _optimizer("AdagradOptimizer", 0.1),
        _optimizer("AdadeltaOptimizer"), _optimizer("RMSPropOptimizer", 0.1, centered=True),
        _optimizer("FtrlOptimizer", 0.1), _optimizer("ProximalAdagradOptimizer", 0.1),
        _optimizer("NadamOptimizer"), _optimizer("AdaMaxOptimizer"),
        _optimizer("AdamOptimizer", name="other"),
    ]  # fmt: skip
    return [_observed(tf, build) for build in made]


def names_of_recurrent_nets(tf):
    cells = [
        _cell(lambda tf: tf.nn.rnn_cell.BasicRNNCell(3)),
        _cell(lambda tf: tf.nn.rnn_cell.GRUCell(3)),
        _cell(lambda tf: tf.nn.rnn_cell.BasicLSTMCell(3, forget_bias=0.5)),
        _cell(lambda tf: tf.nn.rnn_cell.LSTMCell(3, use_peepholes=True, num_proj=2)),
        _cell(lambda tf: tf.nn.rnn_cell.MultiRNNCell(
            [tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.LSTMCell(3), 0.5) for _ in range(2)])),
        _cell(lambda tf: tf.contrib.rnn.LayerNormBasicLSTMCell(3)),
        _cell(lambda tf: tf.contrib.rnn.LSTMBlockCell(3)),
        _cell(lambda tf: tf.contrib.rnn.NASCell(3)),
        _cell(lambda tf: tf.contrib.rnn.UGRNNCell(3)),
        _cell(lambda tf: tf.contrib.rnn.IndRNNCell(3)),
        _cell(lambda tf: tf.contrib.rnn.AttentionCellWrapper(
            tf.nn.rnn_cell.GRUCell(3), 2, state_is_tuple=True)),
    ]  # fmt: skip
    return [_observed(tf, build) for build in [*cells, _both_ways, _attention]]
