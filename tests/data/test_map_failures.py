"""Functions in ``map`` that end the data, block, return another type or read variables, as in TF
1.15.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import headrace as tf


def _elements(dataset: Any) -> list[Any]:
    with tf.Session() as sess:
        iterator = tf.data.make_initializable_iterator(dataset)
        following = iterator.get_next()
        sess.run(iterator.initializer)
        found = []
        while True:
            try:
                found.append(sess.run(following))
            except tf.errors.OutOfRangeError:
                return found


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize("calls", [None, 1, 3])
def test_stop_iteration_of_a_py_func_ends_the_data(calls: int | None) -> None:
    def stop(x: Any) -> Any:
        if x == 3:
            raise StopIteration
        return x

    dataset = tf.data.Dataset.range(6).map(lambda x: tf.py_func(stop, [x], tf.int64), calls)
    assert _elements(dataset) == [0, 1, 2]


@pytest.mark.parametrize("batched", [False, True])
def test_finished_elements_are_not_held_back_by_a_later_one_that_blocks(batched: bool) -> None:
    """The reader lets the tenth element go on only when it has the nine before it."""
    go_on = threading.Event()

    def wait(x: Any) -> Any:
        if x == 9:
            assert go_on.wait(120)
        return x

    dataset = tf.data.Dataset.range(200).map(lambda x: tf.py_func(wait, [x], tf.int64), 2)
    if batched:
        dataset = dataset.batch(3)
    with tf.Session() as sess:
        following = tf.data.make_one_shot_iterator(dataset).get_next()
        found = [sess.run(following) for _ in range(3 if batched else 9)]
        assert np.concatenate([np.atleast_1d(f) for f in found]).tolist() == list(range(9))
        go_on.set()
        rest = [sess.run(following) for _ in range(5)]
    assert np.concatenate([np.atleast_1d(f) for f in rest]).tolist()[:3] == [9, 10, 11]


@pytest.mark.parametrize("value", [np.float64(1.5), 1.5, [1.5], True, np.int32(1)])
def test_a_py_func_result_of_another_type_is_an_error(value: Any) -> None:
    with (
        tf.Session() as sess,
        pytest.raises(tf.errors.InvalidArgumentError, match="but expects int64"),
    ):
        sess.run(tf.py_func(lambda: value, [], tf.int64))
    dataset = tf.data.Dataset.range(3).map(lambda x: tf.py_func(lambda v: value, [x], tf.int64))
    with pytest.raises(tf.errors.InvalidArgumentError, match="but expects int64"):
        _elements(dataset)


@pytest.mark.parametrize("resource", [False, True])
def test_a_one_shot_iterator_refuses_variables(resource: bool) -> None:
    variable = tf.get_variable("v", initializer=2.0, use_resource=resource)
    dataset = tf.data.Dataset.range(3).map(lambda x: tf.cast(x, tf.float32) * variable)
    for made in (dataset, dataset.batch(2), tf.data.Dataset.range(2).flat_map(lambda _: dataset)):
        with pytest.raises(ValueError, match="one-shot iterator"):
            made.make_one_shot_iterator()


def test_seeded_random_numbers_begin_anew_with_the_initializer() -> None:
    """TF 1.15's numbers."""
    dataset = tf.data.Dataset.range(3).map(lambda x: tf.random_uniform([], seed=1))
    iterator = tf.data.make_initializable_iterator(dataset)
    following = iterator.get_next()
    with tf.Session() as sess:
        for _ in range(3):
            sess.run(iterator.initializer)
            found = [sess.run(following) for _ in range(3)]
            np.testing.assert_allclose(found, [0.23903739, 0.22267115, 0.34304976], rtol=1e-6)
