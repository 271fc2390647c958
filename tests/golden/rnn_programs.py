"""Small programs with recurrent networks.

Each gives a dict of tensors. Run on TF 1.15 (make_layers.py) and on Headrace.
"""

try:
    from layer_programs import numbers
except ImportError:
    from tests.golden.layer_programs import numbers


def _state(prefix, state, tf):
    flat = tf.contrib.framework.nest.flatten(state)
    return {"%s_%d" % (prefix, i): t for i, t in enumerate(flat)}


def _dynamic(tf, cell, x=None, **kwargs):
    x = tf.constant(numbers(3, 4, 5)) if x is None else x
    if "initial_state" not in kwargs:
        kwargs["dtype"] = tf.float32
    outputs, state = tf.nn.dynamic_rnn(cell, x, **kwargs)
    return dict(_state("state", state, tf), outputs=outputs)


def dynamic_basic_rnn(tf):
    return _dynamic(tf, tf.nn.rnn_cell.BasicRNNCell(6))


def dynamic_gru(tf):
    cell = tf.nn.rnn_cell.GRUCell(6, kernel_initializer=tf.orthogonal_initializer())
    return _dynamic(tf, cell, sequence_length=[4, 2, 1])


def dynamic_basic_lstm(tf):
    return _dynamic(tf, tf.nn.rnn_cell.BasicLSTMCell(6), sequence_length=tf.constant([2, 4, 3]))


def dynamic_lstm_unknown_sizes(tf):
    x = tf.placeholder_with_default(numbers(3, 4, 5), [None, None, 5])
    cell = tf.nn.rnn_cell.LSTMCell(6, initializer=tf.random_uniform_initializer(-0.1, 0.1))
    return _dynamic(tf, cell, x, sequence_length=tf.placeholder_with_default([4, 1, 3], [None]))


def dynamic_lstm_peepholes(tf):
    cell = tf.nn.rnn_cell.LSTMCell(6, use_peepholes=True, cell_clip=0.5, num_proj=3, proj_clip=0.3)
    return _dynamic(tf, cell)


def dynamic_lstm_joined_state(tf):
    cell = tf.nn.rnn_cell.LSTMCell(4, state_is_tuple=False, forget_bias=0.5)
    return _dynamic(tf, cell)


def dynamic_time_major(tf):
    cell = tf.nn.rnn_cell.BasicLSTMCell(4)
    x = tf.constant(numbers(5, 2, 3))
    state = tf.nn.rnn_cell.LSTMStateTuple(
        tf.constant(numbers(2, 4)), tf.constant(numbers(2, 4, seed=1))
    )
    return _dynamic(tf, cell, x, initial_state=state, time_major=True)


def dynamic_multi(tf):
    cells = [tf.nn.rnn_cell.BasicLSTMCell(n) for n in (6, 4)]
    cell = tf.nn.rnn_cell.MultiRNNCell(cells)
    return _dynamic(tf, cell, scope="stack")


def static_dropout(tf):
    # in a loop TensorFlow draws the noise of several steps at a time, in any order
    keep = tf.placeholder_with_default(0.7, [])
    cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.LSTMCell(6), output_keep_prob=keep, seed=3)
    cell = tf.nn.rnn_cell.DropoutWrapper(cell, input_keep_prob=0.8, state_keep_prob=0.9, seed=4)
    x = tf.unstack(tf.constant(numbers(3, 4, 5)), axis=1)
    outputs, state = tf.nn.static_rnn(cell, x, dtype=tf.float32)
    return dict(_state("state", state, tf), outputs=tf.stack(outputs))


def dynamic_variational_dropout(tf):
    cell = tf.nn.rnn_cell.DropoutWrapper(
        tf.nn.rnn_cell.GRUCell(5),
        0.8,
        0.7,
        0.9,
        variational_recurrent=True,
        input_size=5,
        dtype=tf.float32,
        seed=5,
    )
    return _dynamic(tf, cell)


def dynamic_residual_and_device(tf):
    cell = tf.nn.rnn_cell.ResidualWrapper(tf.nn.rnn_cell.GRUCell(5))
    return _dynamic(tf, tf.nn.rnn_cell.DeviceWrapper(cell, "/cpu:0"))


def dynamic_by_graph_seed(tf):
    found = _dynamic(tf, tf.nn.rnn_cell.BasicLSTMCell(6), sequence_length=[4, 4, 2])
    found["dropped"] = tf.nn.dropout(found["outputs"], 0.5)
    found["after"] = tf.layers.dense(found["outputs"][:, -1], 2)
    return found


def static_lstm(tf):
    x = tf.unstack(tf.constant(numbers(3, 4, 5)), axis=1)
    outputs, state = tf.nn.static_rnn(tf.nn.rnn_cell.BasicLSTMCell(6), x, dtype=tf.float32)
    return dict(_state("state", state, tf), outputs=tf.stack(outputs))


def static_lengths(tf):
    x = tf.unstack(tf.constant(numbers(3, 4, 5)), axis=1)
    outputs, state = tf.nn.static_rnn(
        tf.nn.rnn_cell.GRUCell(6), x, dtype=tf.float32, sequence_length=[1, 3, 2]
    )
    return dict(_state("state", state, tf), outputs=tf.stack(outputs))


def static_multi_reused(tf):
    x = tf.unstack(tf.constant(numbers(3, 3, 4)), axis=1)
    with tf.variable_scope("model"):
        cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.LSTMCell(4) for _ in range(2)])
        state = cell.zero_state(3, tf.float32)
        outputs = []
        for t, step in enumerate(x):
            if t > 0:
                tf.get_variable_scope().reuse_variables()
            out, state = cell(step, state)
            outputs.append(out)
    assert len(cell.trainable_weights) == 4
    return dict(_state("state", state, tf), outputs=tf.stack(outputs))


def bidirectional(tf):
    x = tf.constant(numbers(3, 4, 5))
    cells = [tf.nn.rnn_cell.LSTMCell(4), tf.nn.rnn_cell.GRUCell(3)]
    (fw, bw), state = tf.nn.bidirectional_dynamic_rnn(
        cells[0], cells[1], x, [4, 2, 3], dtype=tf.float32
    )
    (fw2, bw2), _ = tf.nn.bidirectional_dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(3), tf.nn.rnn_cell.GRUCell(3), x, dtype=tf.float32, scope="other"
    )
    return dict(_state("state", state, tf), fw=fw, bw=bw, fw2=fw2, bw2=bw2)


def static_bidirectional(tf):
    x = tf.unstack(tf.constant(numbers(3, 4, 5)), axis=1)
    cells = [tf.nn.rnn_cell.BasicLSTMCell(4), tf.nn.rnn_cell.BasicLSTMCell(3)]
    outputs, a, b = tf.nn.static_bidirectional_rnn(
        cells[0], cells[1], x, dtype=tf.float32, sequence_length=[4, 2, 3]
    )
    return dict(_state("a", a, tf), outputs=tf.stack(outputs), **_state("b", b, tf))


def raw(tf):
    x = tf.constant(numbers(4, 3, 5))
    lengths = tf.constant([4, 2, 3])
    inputs = tf.TensorArray(tf.float32, size=4).unstack(x)
    cell = tf.nn.rnn_cell.LSTMCell(6)

    def loop(time, output, state, loop_state):
        next_state = cell.zero_state(3, tf.float32) if output is None else state
        finished = time >= lengths
        following = tf.cond(
            tf.reduce_all(finished), lambda: tf.zeros([3, 5], tf.float32), lambda: inputs.read(time)
        )
        return finished, following, next_state, output, None

    outputs, state, _ = tf.nn.raw_rnn(cell, loop)
    return dict(_state("state", state, tf), outputs=outputs.stack())


def custom_cell(tf):
    class Mean(tf.nn.rnn_cell.RNNCell):
        @property
        def state_size(self):
            return 3

        @property
        def output_size(self):
            return 3

        def call(self, inputs, state):
            w = tf.get_variable("w", [5, 3])
            new = 0.5 * state + 0.5 * tf.tanh(tf.matmul(inputs, w))
            return new, new

    cell = Mean()
    found = _dynamic(tf, cell)
    assert [v.name for v in cell.trainable_weights] == ["rnn/mean/w:0"], cell.trainable_weights
    return found


PROGRAMS = [
    dynamic_basic_rnn,
    dynamic_gru,
    dynamic_basic_lstm,
    dynamic_lstm_unknown_sizes,
    dynamic_lstm_peepholes,
    dynamic_lstm_joined_state,
    dynamic_time_major,
    dynamic_multi,
    static_dropout,
    dynamic_variational_dropout,
    dynamic_residual_and_device,
    dynamic_by_graph_seed,
    static_lstm,
    static_lengths,
    static_multi_reused,
    bidirectional,
    static_bidirectional,
    raw,
    custom_cell,
]
