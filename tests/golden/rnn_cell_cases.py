"""Cells of contrib.rnn: names, values, gradients.

Run on TF 1.15 (make_cases.py) and on Headrace.
"""

import numpy as np


def _numbers(*shape, **kwargs):
    random = np.random.RandomState(kwargs.get("seed", 0))
    return random.uniform(-1, 1, size=shape).astype(np.float32)


def _report(tf, values, inputs=()):
    """Variables, values at seeded starts, and the gradients of the sum of squares."""
    nest = tf.contrib.framework.nest
    flat = [v for v in nest.flatten(values) if v is not None]
    loss = tf.add_n([tf.reduce_sum(tf.square(v)) for v in flat])
    variables = tf.global_variables()
    grads = tf.gradients(loss, list(inputs) + tf.trainable_variables())
    used = [g for g in grads if g is not None]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        found = sess.run([flat, used, loss])
    return [
        [[v.op.name, v.shape.as_list()] for v in variables],
        [g is not None for g in grads],
        [str(v.dtype.base_dtype.name) for v in flat],
        found,
    ]


def _steps(tf, cell, width, state=None):
    x = [tf.constant(_numbers(3, width, seed=k)) for k in range(3)]
    options = {"dtype": tf.float32} if state is None else {"initial_state": state}
    outputs, last = tf.nn.static_rnn(cell, x, **options)
    return _report(tf, [outputs, last], x)


def coupled_gates(tf):
    return _steps(tf, tf.contrib.rnn.CoupledInputForgetGateLSTMCell(4), 3)


def coupled_gates_everything(tf):
    cell = tf.contrib.rnn.CoupledInputForgetGateLSTMCell(
        4, use_peepholes=True, num_proj=2, proj_clip=0.1, num_unit_shards=2, num_proj_shards=2,
        forget_bias=0.5, state_is_tuple=False, activation=tf.nn.relu,
    )  # fmt: skip
    return _steps(tf, cell, 3)


def coupled_gates_layer_norm(tf):
    cell = tf.contrib.rnn.CoupledInputForgetGateLSTMCell(
        4, layer_norm=True, norm_gain=0.8, norm_shift=0.1
    )
    return _steps(tf, cell, 3)


def time_freq(tf):
    cell = tf.contrib.rnn.TimeFreqLSTMCell(
        2, use_peepholes=True, cell_clip=0.4, feature_size=4, frequency_skip=2
    )
    state = tf.constant(_numbers(3, 2 * 2 * 3, seed=9))
    x = tf.constant(_numbers(3, 8))
    with tf.variable_scope("cell"):
        output, new = cell(x, state)
    return _report(tf, [output, new], [x, state]) + [cell.state_size, cell.output_size]


def grid(tf):
    cell = tf.contrib.rnn.GridLSTMCell(
        2, feature_size=2, frequency_skip=1, num_frequency_blocks=[3]
    )
    return _steps(tf, cell, 4) + [list(cell.state_size._fields), list(cell.state_size)]


def grid_everything(tf):
    cell = tf.contrib.rnn.GridLSTMCell(
        2, use_peepholes=True, cell_clip=0.3, num_unit_shards=2, feature_size=2,
        frequency_skip=2, num_frequency_blocks=[2, 1], start_freqindex_list=[0, 3],
        end_freqindex_list=[4, 5], couple_input_forget_gates=True, forget_bias=0.2,
    )  # fmt: skip
    return _steps(tf, cell, 6)


def grid_shared_and_joined(tf):
    cell = tf.contrib.rnn.GridLSTMCell(
        2, use_peepholes=True, share_time_frequency_weights=True, feature_size=2,
        frequency_skip=1, num_frequency_blocks=[3], state_is_tuple=False,
    )  # fmt: skip
    return _steps(tf, cell, 4) + [cell.state_size, cell.output_size, cell.state_tuple_type]


def grid_bidirectional(tf):
    cell = tf.contrib.rnn.BidirectionalGridLSTMCell(
        2, use_peepholes=True, feature_size=2, frequency_skip=1, num_frequency_blocks=[3],
        backward_slice_offset=1,
    )  # fmt: skip
    return _steps(tf, cell, 4) + [list(cell.state_size._fields), cell.output_size]


def grid_bidirectional_offset_before(tf):
    cell = tf.contrib.rnn.BidirectionalGridLSTMCell(
        2, feature_size=2, frequency_skip=1, num_frequency_blocks=[3], backward_slice_offset=-1
    )
    return _steps(tf, cell, 4)


def groups(tf):
    cell = tf.contrib.rnn.GLSTMCell(6, number_of_groups=3, forget_bias=0.7)
    return _steps(tf, cell, 3)


def groups_projected(tf):
    cell = tf.contrib.rnn.GLSTMCell(
        6, num_proj=4, number_of_groups=2, initializer=tf.random_uniform_initializer(-0.2, 0.2)
    )
    return _steps(tf, cell, 4)


def sru(tf):
    return _steps(tf, tf.contrib.rnn.SRUCell(4, activation=tf.nn.relu), 3)


def sru_dynamic(tf):
    x = tf.constant(_numbers(2, 5, 3))
    cell = tf.contrib.rnn.SRUCell(4, name="simple")
    outputs, state = tf.nn.dynamic_rnn(cell, x, [5, 2], dtype=tf.float32)
    return _report(tf, [outputs, state], [x])


def refusals(tf):
    rnn = tf.contrib.rnn
    x, found = tf.constant(_numbers(3, 5)), []
    calls = [
        lambda: rnn.GLSTMCell(5, number_of_groups=2),
        lambda: rnn.GLSTMCell(4, num_proj=3, number_of_groups=2),
        lambda: rnn.GLSTMCell(4, number_of_groups=2)(x, (x, x)),
        lambda: rnn.GridLSTMCell(2),
        lambda: rnn.GridLSTMCell(
            2, feature_size=2, frequency_skip=1, num_frequency_blocks=[3]
        ).call(x, None),
        lambda: rnn.GridLSTMCell(
            2, feature_size=2, frequency_skip=1, num_frequency_blocks=[3, 1]
        ).call(x, None),
        lambda: rnn.CoupledInputForgetGateLSTMCell(2, num_unit_shards=20)(x, (x[:, :2], x[:, :2])),
    ]
    for call in calls:
        try:
            call()
            found.append("nothing")
        except ValueError as e:
            found.append(str(e).strip().split("Error: ")[-1])  # TF adds the converted code
    return found


def fused_adaptor_static(tf):
    x = tf.constant(_numbers(4, 2, 3))
    cell = tf.contrib.rnn.FusedRNNCellAdaptor(tf.nn.rnn_cell.BasicRNNCell(5))
    outputs, state = cell(x, dtype=tf.float32, sequence_length=[4, 2], scope="over")
    return _report(tf, [outputs, state], [x]) + [outputs.shape.as_list()]


def fused_adaptor_dynamic(tf):
    x = [tf.constant(_numbers(2, 3, seed=k)) for k in range(4)]
    cell = tf.contrib.rnn.FusedRNNCellAdaptor(tf.nn.rnn_cell.LSTMCell(5), use_dynamic_rnn=True)
    outputs, state = cell(x, dtype=tf.float32, sequence_length=[4, 2])
    return _report(tf, [outputs, state], x) + [len(outputs)]


def fused_both_ways(tf):
    x = tf.constant(_numbers(4, 2, 3))
    forward = tf.contrib.rnn.LSTMBlockFusedCell(5)
    backward = tf.contrib.rnn.TimeReversedFusedRNN(tf.contrib.rnn.LSTMBlockFusedCell(5))
    start = tf.random_uniform_initializer(-0.5, 0.5, seed=3)  # TF's block cells are fewer ops
    with tf.variable_scope("fw", initializer=start):
        a, a_state = forward(x, dtype=tf.float32, sequence_length=[4, 2])
    with tf.variable_scope("bw", initializer=start):
        b, b_state = backward(x, dtype=tf.float32, sequence_length=tf.constant([4, 2]))
    with tf.variable_scope("whole", initializer=start):
        adapted = tf.contrib.rnn.FusedRNNCellAdaptor(tf.nn.rnn_cell.GRUCell(3))
        c, c_state = tf.contrib.rnn.TimeReversedFusedRNN(adapted)(x, dtype=tf.float32)
        reverse = tf.contrib.rnn.TimeReversedFusedRNN(adapted)
        d, _ = reverse(tf.unstack(x), initial_state=c_state, dtype=tf.float32)
    return _report(tf, [a, a_state, b, b_state, c, c_state, d], [x])


def block_wrapper(tf):
    class Layer(tf.contrib.rnn.LSTMBlockWrapper):
        num_units = 2

        def _call_cell(self, inputs, initial_cell_state, initial_output, dtype, sequence_length):
            return tf.cumsum(inputs) + initial_cell_state, inputs * 2 + initial_output

    x = tf.constant(_numbers(4, 3, 2))
    outputs, state = Layer()(x, dtype=tf.float32, sequence_length=[4, 0, 2])
    more, other = Layer()(tf.unstack(x), initial_state=(x[0], x[1]))
    sizes = [tf.contrib.rnn.best_effort_input_batch_size([x])]
    unknown = tf.placeholder_with_default(_numbers(4, 3, 2), [None, None, 2])
    size = tf.contrib.rnn.best_effort_input_batch_size([unknown])
    return [*_report(tf, [outputs, state, more, other, tf.cast(size, tf.float32)], [x]), sizes]


def compiled(tf):
    cell = tf.contrib.rnn.CompiledWrapper(tf.nn.rnn_cell.GRUCell(4), compile_stateful=True)
    x = tf.constant(_numbers(2, 3, 3))
    outputs, state = tf.nn.dynamic_rnn(cell, x, initial_state=cell.zero_state(2, tf.float32))
    return _report(tf, [outputs, state], [x]) + [cell.state_size, cell.output_size]
