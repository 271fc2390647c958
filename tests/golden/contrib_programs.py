"""Cells of contrib, legacy seq2seq and CRF.

Each program gives a dict of tensors. Run on TF 1.15 and on Headrace.
"""

try:
    from layer_programs import numbers
    from rnn_programs import _dynamic, _state
except ImportError:
    from tests.golden.layer_programs import numbers
    from tests.golden.rnn_programs import _dynamic, _state


def _cell(tf, make):
    with tf.variable_scope("m", initializer=tf.random_uniform_initializer(-0.5, 0.5, seed=7)):
        return _dynamic(tf, make(tf.contrib.rnn))


def layer_norm_lstm(tf):
    return _cell(tf, lambda r: r.LayerNormBasicLSTMCell(6))


def layer_norm_lstm_plain(tf):
    return _cell(tf, lambda r: r.LayerNormBasicLSTMCell(6, layer_norm=False, forget_bias=0.3))


def nas(tf):
    return _cell(tf, lambda r: r.NASCell(4, num_proj=3, use_bias=True))


def ugrnn(tf):
    return _cell(tf, lambda r: r.UGRNNCell(4))


def intersection(tf):
    return _cell(tf, lambda r: r.IntersectionRNNCell(4, num_in_proj=4))


def indy_lstm(tf):
    return _cell(tf, lambda r: r.IndyLSTMCell(4, kernel_initializer=tf.ones_initializer()))


def lstm_block(tf):
    return _cell(tf, lambda r: r.LSTMBlockCell(4, use_peephole=True, cell_clip=0.4))


def gru_block(tf):
    return _cell(tf, lambda r: r.GRUBlockCellV2(4))


def lstm_block_fused(tf):
    with tf.variable_scope("m", initializer=tf.random_uniform_initializer(-0.5, 0.5, seed=7)):
        cell = tf.contrib.rnn.LSTMBlockFusedCell(4)
        outputs, state = cell(
            tf.constant(numbers(5, 3, 6)), dtype=tf.float32, sequence_length=[5, 2, 3]
        )
    return dict(_state("state", state, tf), outputs=outputs)


def projections(tf):
    def make(r):
        return r.OutputProjectionWrapper(
            r.InputProjectionWrapper(r.GRUCell(4), 3), 2, activation=tf.tanh
        )

    return _cell(tf, make)


def attention_cell(tf):
    return _cell(tf, lambda r: r.AttentionCellWrapper(r.LSTMCell(4), 3))


def highway(tf):
    return _cell(tf, lambda r: r.HighwayWrapper(r.GRUCell(5)))


def conv_lstm(tf):
    x = tf.constant(numbers(2, 3, 4, 4, 2))
    with tf.variable_scope("m", initializer=tf.random_uniform_initializer(-0.5, 0.5, seed=7)):
        return _dynamic(
            tf,
            tf.contrib.rnn.Conv2DLSTMCell(
                input_shape=[4, 4, 2], output_channels=3, kernel_shape=[3, 3]
            ),
            x,
        )


def stacked_bidirectional(tf):
    r = tf.contrib.rnn
    with tf.variable_scope("m", initializer=tf.random_uniform_initializer(-0.5, 0.5, seed=7)):
        outputs, fw, bw = r.stack_bidirectional_dynamic_rnn(
            [r.GRUCell(3), r.GRUCell(2)],
            [r.GRUCell(3), r.GRUCell(2)],
            tf.constant(numbers(3, 4, 5)),
            dtype=tf.float32,
            sequence_length=[4, 2, 3],
        )
    return dict(_state("fw", fw, tf), outputs=outputs, **_state("bw", bw, tf))


def crf(tf):
    potentials = tf.constant(numbers(3, 5, 4))
    tags = tf.constant([[0, 1, 2, 3, 0], [1, 1, 0, 0, 0], [3, 2, 1, 0, 0]])
    lengths = tf.constant([5, 2, 4])
    with tf.variable_scope("m", initializer=tf.random_uniform_initializer(-0.5, 0.5, seed=7)):
        likelihood, transitions = tf.contrib.crf.crf_log_likelihood(potentials, tags, lengths)
    best, score = tf.contrib.crf.crf_decode(potentials, transitions, lengths)
    one = tf.contrib.crf.crf_log_norm(potentials[:, :1], tf.constant([1, 0, 1]), transitions)
    return {"likelihood": likelihood, "best": best, "score": score, "one": one}


def legacy_attention(tf):
    s = tf.contrib.legacy_seq2seq
    ids = [tf.constant([1, 2]), tf.constant([3, 0]), tf.constant([2, 2])]
    with tf.variable_scope("m", initializer=tf.random_uniform_initializer(-0.5, 0.5, seed=7)):
        outputs, state = s.embedding_attention_seq2seq(
            ids,
            ids,
            tf.nn.rnn_cell.BasicLSTMCell(4),
            5,
            6,
            3,
            feed_previous=tf.placeholder_with_default(True, []),
        )
    weights = [tf.constant([1.0, 1.0]), tf.constant([1.0, 0.0]), tf.constant([0.5, 1.0])]
    loss = s.sequence_loss(outputs, ids, weights)
    rows = s.sequence_loss_by_example(outputs, ids, weights)
    return dict(_state("state", state, tf), outputs=tf.stack(outputs), loss=loss, rows=rows)


def legacy_buckets(tf):
    s = tf.contrib.legacy_seq2seq
    ids = [tf.constant([1, 2]), tf.constant([3, 0]), tf.constant([2, 2])]
    weights = [tf.constant([1.0, 1.0]) for _ in ids]

    def model(x, y):
        return s.embedding_rnn_seq2seq(x, y, tf.nn.rnn_cell.GRUCell(4), 5, 6, 3)

    with tf.variable_scope("m", initializer=tf.random_uniform_initializer(-0.5, 0.5, seed=7)):
        outputs, losses = s.model_with_buckets(ids, ids, ids, weights, [(2, 2), (3, 3)], model)
    return {"a": losses[0], "b": losses[1], "outputs": tf.stack(outputs[1])}


def legacy_tied(tf):
    s = tf.contrib.legacy_seq2seq
    ids = [tf.constant([1, 2]), tf.constant([3, 0])]
    with tf.variable_scope("m", initializer=tf.random_uniform_initializer(-0.5, 0.5, seed=7)):
        a, _ = s.embedding_tied_rnn_seq2seq(
            ids, ids, tf.nn.rnn_cell.GRUCell(4), 5, 3, feed_previous=True
        )
        b, _ = s.basic_rnn_seq2seq(
            [tf.constant(numbers(2, 3))], [tf.constant(numbers(2, 3))], tf.nn.rnn_cell.GRUCell(4)
        )
    return {"a": tf.stack(a), "b": tf.stack(b)}


PROGRAMS = [
    layer_norm_lstm,
    layer_norm_lstm_plain,
    nas,
    ugrnn,
    intersection,
    indy_lstm,
    lstm_block,
    gru_block,
    lstm_block_fused,
    projections,
    attention_cell,
    highway,
    conv_lstm,
    stacked_bidirectional,
    crf,
    legacy_attention,
    legacy_buckets,
    legacy_tied,
]
