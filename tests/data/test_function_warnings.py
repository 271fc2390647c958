"""What a dataset's function may not do is said when the dataset is made."""

from __future__ import annotations

import warnings

import pytest

import headrace as tf
from headrace.eager.eager_context import eager_mode


def _texts(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tf.data.Dataset.range(3).map(function)
    return " ".join(str(w.message) for w in caught)


@pytest.fixture(autouse=True)
def _fresh():
    with tf.Graph().as_default():
        yield


def test_tables_made_inside():
    def function(x):
        tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1.0]), 0.0)
        return x

    text = "Creating resources inside a function passed to Dataset.map()"
    assert text in _texts(function)
    assert _texts(lambda x: x) == ""
    with eager_mode():
        assert text in _texts(function)
        assert text in _texts(function)


def test_seed_of_the_graph_around():
    assert _texts(lambda x: tf.random_shuffle([x, x])) == ""
    tf.set_random_seed(10)
    assert "Explicitly set the seed in the function" in _texts(lambda x: tf.random_shuffle([x, x]))
    assert _texts(lambda x: tf.random_shuffle([x, x], seed=3)) == ""
    assert _texts(tf.square) == ""


def test_iterators_by_handle_have_the_shapes_that_are_asked_for():
    handle = tf.placeholder(tf.string, [])
    source = tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices([1, 2, 3]))
    make = tf.data.Iterator.from_string_handle
    scalar, vector = make(handle, tf.int32, []), make(handle, tf.int32, [None])
    first, refused = scalar.get_next(), vector.get_next()
    with tf.Session() as sess:
        feed = {handle: sess.run(source.string_handle())}
        assert sess.run(first, feed) == 1
        with pytest.raises(tf.errors.InvalidArgumentError, match="Incompatible shapes"):
            sess.run(refused, feed)


def test_datasets_of_another_structure_are_refused():
    iterator = tf.data.Iterator.from_structure((tf.int64, tf.float64))
    nested = tf.data.Dataset.from_tensors((([1],), ([2.0],)))
    with pytest.raises(ValueError, match="same nested structure"):
        iterator.make_initializer(nested)
    padded = tf.constant([1], tf.int64)
    with pytest.raises(ValueError, match=r"padded shape \(1,\) is not compatible"):
        tf.data.Dataset.range(10).padded_batch(5, padded_shapes=padded)
