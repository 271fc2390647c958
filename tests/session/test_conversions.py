"""Types of a program's own as fetches and feeds. Compared with TF 1.15's documented example."""

import numpy as np
import pytest

import headrace as tf
from headrace import dropin
from headrace.session import conversions
from headrace.session.conversions import register_session_run_conversion_functions


class Squared:
    def __init__(self, tensor):
        self.sq = tf.square(tensor)


class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second


@pytest.fixture(autouse=True)
def _registered():
    kept = list(conversions._registered)
    register_session_run_conversion_functions(
        Squared,
        lambda s: ([s.sq], lambda values: values[0]),
        lambda s, value: [(s.sq, value)],
        lambda s: [s.sq],
    )
    register_session_run_conversion_functions(
        Pair,
        lambda p: ([p.first, p.second], lambda values: tuple(values)),
        lambda p, value: [(p.first, value[0]), (p.second, value[1])],
    )
    yield
    conversions._registered[:] = kept


def test_fetch_and_feed():
    squared = Squared(tf.constant([1.0, 2.0]))
    pair = Pair(tf.placeholder(tf.float32), tf.placeholder(tf.float32, [2]))
    total = tf.reduce_sum(squared.sq)
    product = pair.first * pair.second
    with tf.Session() as sess:
        for _ in range(3):
            np.testing.assert_array_equal(sess.run(squared), [1, 4])
            got = sess.run({"s": squared, "t": [total, squared.sq]})
            np.testing.assert_array_equal(got["s"], [1, 4])
            assert got["t"][0] == 5
            assert sess.run(total, {squared: [10.0, 20.0]}) == 30
            np.testing.assert_array_equal(sess.run(product, {pair: (2, [3, 4])}), [6, 8])
        first, second = sess.run(pair, {pair: (2, [3, 4])})
        assert first == 2 and list(second) == [3, 4]


def test_partial_run():
    squared = Squared(tf.placeholder(tf.float32, [2]))
    total = tf.reduce_sum(squared.sq)
    with tf.Session() as sess:
        handle = sess.partial_run_setup([total], [squared])
        assert sess.partial_run(handle, total, {squared: [1.0, 2.0]}) == 3


def test_a_type_is_registered_once():
    with pytest.raises(ValueError, match="already been registered"):
        register_session_run_conversion_functions(Squared, lambda s: ([s.sq], lambda v: v[0]))


def test_inner_modules_lead_to_their_siblings():
    dropin.install()
    try:
        from tensorflow.python.client.session import register_session_run_conversion_functions as r
        from tensorflow.python.ops.rnn import rnn_cell_impl
        from tensorflow.python.ops.variable_scope import array_ops

        assert r is register_session_run_conversion_functions
        assert rnn_cell_impl.BasicLSTMCell is tf.nn.rnn_cell.BasicLSTMCell
        assert array_ops.concat is tf.concat
    finally:
        dropin.uninstall()
