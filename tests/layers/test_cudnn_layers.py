"""contrib.cudnn_rnn on the CPU against the cells that TensorFlow calls compatible, with the same
weights.
"""

import numpy as np
import pytest

import headrace as tf


@pytest.fixture(autouse=True)
def _fresh():
    tf.reset_default_graph()


def _parts(layer, flat):
    """Matrices per gate and biases, cut from the flat weights by the layer's own shapes."""
    at, matrices, biases = 0, [], []
    for rows, columns in layer.canonical_weight_shapes:
        matrices.append(flat[at : at + rows * columns].reshape(rows, columns))
        at += rows * columns
    for (size,) in layer.canonical_bias_shapes:
        biases.append(flat[at : at + size])
        at += size
    assert at == flat.size
    return matrices, biases


def _inputs():
    return np.random.RandomState(0).standard_normal((5, 3, 4)).astype(np.float32)


def test_lstm_is_the_compatible_cell():
    layer = tf.contrib.cudnn_rnn.CudnnLSTM(
        1, 6, bias_initializer=tf.random_normal_initializer(seed=2)
    )
    outputs, (h, c) = layer(tf.constant(_inputs()))
    cell = tf.contrib.cudnn_rnn.CudnnCompatibleLSTMCell(6)
    other, state = tf.nn.dynamic_rnn(
        cell, tf.constant(_inputs()), dtype=tf.float32, time_major=True
    )
    kernel, bias = cell.trainable_weights
    assert [v.name for v in layer.trainable_weights] == ["cudnn_lstm/opaque_kernel:0"]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        m, b = _parts(layer, sess.run(layer.kernel))
        order = (0, 2, 1, 3)  # cells have i, g, f, o
        kernel.load(np.concatenate([np.concatenate([m[g], m[4 + g]], 1).T for g in order], 1), sess)
        bias.load(np.concatenate([b[g] + b[4 + g] for g in order]), sess)
        a, d, h, c, state = sess.run([outputs, other, h, c, state])
    np.testing.assert_allclose(a, d, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(h[0], state.h, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(c[0], state.c, rtol=1e-5, atol=1e-6)


def test_gru_is_the_compatible_cell():
    layer = tf.contrib.cudnn_rnn.CudnnGRU(
        1, 6, bias_initializer=tf.random_normal_initializer(seed=2)
    )
    outputs, _ = layer(tf.constant(_inputs()))
    cell = tf.contrib.cudnn_rnn.CudnnCompatibleGRUCell(6)
    other, _ = tf.nn.dynamic_rnn(cell, tf.constant(_inputs()), dtype=tf.float32, time_major=True)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        m, b = _parts(layer, sess.run(layer.kernel))
        values = [
            np.concatenate([np.concatenate([m[g], m[3 + g]], 1).T for g in (0, 1)], 1),
            np.concatenate([b[0] + b[3], b[1] + b[4]]),
            m[2].T,
            m[5].T,
            b[2],
            b[5],
        ]
        for variable, value in zip(cell.trainable_weights, values):
            variable.load(value, sess)
        a, d = sess.run([outputs, other])
    np.testing.assert_allclose(a, d, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", ["CudnnLSTM", "CudnnGRU", "CudnnRNNTanh", "CudnnRNNRelu"])
def test_layers_and_directions(make):
    layer = getattr(tf.contrib.cudnn_rnn, make)(2, 6, direction="bidirectional", dropout=0.3)
    x = tf.constant(_inputs())
    outputs, states = layer(x, training=False)
    short, _ = layer(x, sequence_lengths=tf.constant([5, 2, 3]), training=False)
    grads = tf.gradients(outputs, layer.trainable_weights)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        a, s, b, g = sess.run([outputs, states, short, grads])
    assert a.shape == (5, 3, 12) and all(x.shape == (4, 3, 6) for x in s)
    assert len(s) == (2 if make == "CudnnLSTM" else 1)
    np.testing.assert_allclose(a[:, 0], b[:, 0], rtol=1e-5, atol=1e-6)
    assert not b[2:, 1].any() and np.isfinite(g[0]).all() and g[0].any()
    with pytest.raises(ValueError, match="input_mode"):
        getattr(tf.contrib.cudnn_rnn, make)(1, 2, input_mode="skip_input")
