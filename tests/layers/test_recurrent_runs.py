"""Recurrent networks as they run.

What the engine makes of them, runs after runs, wrappers and errors.
"""

import numpy as np
import pytest

import headrace as tf


@pytest.fixture(autouse=True)
def _fresh():
    tf.reset_default_graph()


def _inputs(batch=3, time=4, depth=5):
    return np.random.RandomState(0).standard_normal((batch, time, depth)).astype(np.float32)


def test_unrolled_lstm_becomes_a_layer():
    x = tf.placeholder(tf.float32, [8, 6, 16])
    cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(16) for _ in range(2)])
    outputs, _ = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(tf.stack(outputs)))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        text = str(sess.explain(train, [x]))
    assert "LSTM layer" in text and "_LSTMLayer " in text and "_LSTMLayerGrad" in text


@pytest.mark.parametrize(
    "make", [tf.nn.rnn_cell.GRUCell, tf.nn.rnn_cell.LSTMCell, tf.nn.rnn_cell.BasicRNNCell]
)
def test_lengths_that_are_constant_run_again_and_again(make):
    x = tf.placeholder(tf.float32, [3, 4, 5])
    outputs, _ = tf.nn.dynamic_rnn(
        make(6), x, sequence_length=tf.constant([4, 2, 1]), dtype=tf.float32
    )
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        first = sess.run(outputs, {x: _inputs()})
        for _ in range(4):
            np.testing.assert_allclose(
                sess.run(outputs, {x: _inputs()}), first, rtol=1e-5, atol=1e-6
            )
    assert not first[1, 2:].any() and not first[2, 1:].any() and first[0].all()


def test_static_and_dynamic_agree():
    x = tf.constant(_inputs())
    with tf.variable_scope("net", reuse=tf.AUTO_REUSE):
        a, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(6, name="cell"), x, dtype=tf.float32)
        b, _ = tf.nn.static_rnn(
            tf.nn.rnn_cell.LSTMCell(6, name="cell"), tf.unstack(x, axis=1), dtype=tf.float32
        )
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        one, other = sess.run([a, tf.stack(b, 1)])
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert len(tf.trainable_variables()) == 2


def test_state_saving():
    class Saver:
        def __init__(self):
            self.saved = {}

        def state(self, name):
            return tf.zeros([3, 6])

        def save_state(self, name, value):
            self.saved[name] = value
            return tf.identity(value)

    saver = Saver()
    outputs, state = tf.nn.static_state_saving_rnn(
        tf.nn.rnn_cell.GRUCell(6), tf.unstack(tf.constant(_inputs()), axis=1), saver, "h"
    )
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        last, final, saved = sess.run([outputs[-1], state, saver.saved["h"]])
    np.testing.assert_array_equal(last, final)
    np.testing.assert_array_equal(final, saved)


def test_errors_say_what_is_missing():
    with pytest.raises(TypeError, match="'output_size' property is missing"):
        tf.nn.dynamic_rnn(object(), tf.zeros([1, 2, 3]), dtype=tf.float32)
    cell = tf.nn.rnn_cell.GRUCell(2)
    with pytest.raises(ValueError, match="you must give a dtype"):
        tf.nn.dynamic_rnn(cell, tf.zeros([1, 2, 3]))
    with pytest.raises(TypeError, match="inputs must be a sequence"):
        tf.nn.static_rnn(cell, tf.zeros([1, 2]), dtype=tf.float32)
    with pytest.raises(ValueError, match="between 0 and 1"):
        tf.nn.rnn_cell.DropoutWrapper(cell, input_keep_prob=2.0)
    with pytest.raises(ValueError, match="at least one cell"):
        tf.nn.rnn_cell.MultiRNNCell([])
    with pytest.raises(ValueError, match="expected ndim=2, found ndim=3"):
        cell(tf.zeros([1, 2, 3]), tf.zeros([1, 2]))
    with pytest.raises(ValueError, match="only supports floating point"):
        tf.nn.rnn_cell.LSTMCell(2)(tf.zeros([1, 2], tf.int32), (tf.zeros([1, 2]), tf.zeros([1, 2])))


def test_wrappers_from_their_configurations():
    cell = tf.nn.rnn_cell.GRUCell(2)
    for wrapper in (
        tf.nn.rnn_cell.DeviceWrapper(cell, "/cpu:0"),
        tf.nn.rnn_cell.ResidualWrapper(cell),
        tf.nn.rnn_cell.DropoutWrapper(cell, 0.5, 0.6, 0.7, seed=3),
    ):
        config = wrapper.get_config()
        with pytest.raises(ValueError, match="overwrite the cell in the config"):
            type(wrapper).from_config(config)
        again = type(wrapper).from_config({**config, "cell": cell})
        assert again.get_config() == config


def test_beam_search_finds_the_best_sequence():
    """With a cell that always gives the same logits, the best beams can be enumerated."""

    class Fixed(tf.nn.rnn_cell.RNNCell):
        state_size = output_size = 3

        def __call__(self, inputs, state, scope=None):
            return state, state

    logits = np.log(np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1]], np.float32))
    start = tf.contrib.seq2seq.tile_batch(tf.constant(logits), 2)
    decoder = tf.contrib.seq2seq.BeamSearchDecoder(
        Fixed(), lambda ids: tf.cast(tf.expand_dims(ids, -1), tf.float32), [0, 0], 2, start, 2
    )
    outputs, _, lengths = tf.contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=3)
    with tf.Session() as sess:
        ids, scores, n = sess.run(
            [outputs.predicted_ids, outputs.beam_search_decoder_output.scores, lengths]
        )
    assert ids[0, :, 0].tolist() == [0, 0, 0] and ids[1, :, 0].tolist() == [1, 1, 1]
    np.testing.assert_allclose(scores[0, -1, 0], 3 * np.log(0.6), rtol=1e-5)
    assert n.tolist() == [[3, 3], [3, 3]]
