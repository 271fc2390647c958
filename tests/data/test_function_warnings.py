"""What a dataset's function may not do is said when the dataset is made."""

from __future__ import annotations

import warnings

import pytest

import headrace as tf


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

    assert "Creating resources inside a function passed to Dataset.map()" in _texts(function)
    assert _texts(lambda x: x) == ""


def test_seed_of_the_graph_around():
    assert _texts(lambda x: tf.random_shuffle([x, x])) == ""
    tf.set_random_seed(10)
    assert "Explicitly set the seed in the function" in _texts(lambda x: tf.random_shuffle([x, x]))
    assert _texts(lambda x: tf.random_shuffle([x, x], seed=3)) == ""
    assert _texts(tf.square) == ""
