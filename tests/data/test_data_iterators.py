"""Iterators of graphs.

One-shot, initializable, reinitializable, feedable; what they say when they are used wrongly.
"""

from __future__ import annotations

import gc
import warnings
from typing import Any

import numpy as np
import pytest

import headrace as tf


def drain(session: Any, fetch: Any) -> list[Any]:
    out = []
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        while True:
            out.append(session.run(fetch))
    return out


def test_one_shot() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        iterator = tf.data.Dataset.range(3).make_one_shot_iterator()
        element = iterator.get_next()
        assert drain(session, element) == [0, 1, 2]
        drain(session, element)  # it stays at its end
        with pytest.raises(ValueError, match="does not have an initializer"):
            _ = iterator.initializer


def test_one_shot_iterators_of_two_sessions_are_apart() -> None:
    with tf.Graph().as_default():
        element = tf.data.Dataset.range(3).make_one_shot_iterator().get_next()
        first, second = tf.Session(), tf.Session()
        assert [first.run(element), first.run(element), second.run(element)] == [0, 1, 0]
        first.close()
        second.close()


def test_one_shot_refuses_what_is_not_constant() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.int32, [2])
        with pytest.raises(ValueError, match="Cannot capture a placeholder"):
            tf.data.Dataset.from_tensor_slices(x).make_one_shot_iterator()
        v = tf.Variable(3)
        with pytest.raises(ValueError, match="capture stateful objects"):
            tf.data.Dataset.from_tensors(v).make_one_shot_iterator()


def test_initializable_is_fed() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        limit = tf.placeholder(tf.int64, [])
        iterator = tf.data.Dataset.range(limit).make_initializable_iterator()
        element = iterator.get_next()
        with pytest.raises(tf.errors.FailedPreconditionError, match="has not been initialized"):
            session.run(element)
        for n in (3, 5):
            session.run(iterator.initializer, {limit: n})
            assert drain(session, element) == list(range(n))


def test_slices_of_a_placeholder() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2])
        iterator = tf.data.Dataset.from_tensor_slices(x).batch(2).make_initializable_iterator()
        element = iterator.get_next()
        assert element.shape.as_list() == [None, 2]
        given = np.arange(6, dtype=np.float32).reshape(3, 2)
        session.run(iterator.initializer, {x: given})
        got = drain(session, element)
        np.testing.assert_array_equal(np.concatenate(got), given)
        got[0][...] = -1  # the user's own
        assert given.min() == 0


def test_elements_are_the_users_own() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        element = (
            tf.data.Dataset.from_tensor_slices(np.zeros((2, 3)))
            .repeat(2)
            .make_one_shot_iterator()
            .get_next()
        )
        for _ in range(4):
            row = session.run(element)
            assert not row.any()
            row += 1


def test_captured_variables_and_tensors() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(10, dtype=tf.int64)
        scale = tf.placeholder(tf.int64, [])
        iterator = (
            tf.data.Dataset.range(3).map(lambda x: x * scale + v).make_initializable_iterator()
        )
        element = iterator.get_next()
        session.run(tf.global_variables_initializer())
        session.run(iterator.initializer, {scale: 2})
        assert session.run(element) == 10
        session.run(v.assign(20))
        assert drain(session, element) == [22, 24]


def test_reinitializable() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        train, test = tf.data.Dataset.range(3), tf.data.Dataset.range(10, 12)
        iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
        element = iterator.get_next()
        start_train, start_test = iterator.make_initializer(train), iterator.make_initializer(test)
        for start, wanted in (
            (start_train, [0, 1, 2]),
            (start_test, [10, 11]),
            (start_train, [0, 1, 2]),
        ):
            session.run(start)
            assert drain(session, element) == wanted
        with pytest.raises(TypeError, match="output types"):
            iterator.make_initializer(tf.data.Dataset.from_tensors(1.0))
        with pytest.raises(TypeError, match="output shapes"):
            iterator.make_initializer(train.batch(2))


def test_feedable() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        handle = tf.placeholder(tf.string, [])
        first = tf.data.Dataset.range(100)
        iterator = tf.data.Iterator.from_string_handle(
            handle, first.output_types, first.output_shapes
        )
        element = iterator.get_next()
        one = first.make_one_shot_iterator()
        other = tf.data.Dataset.range(50, 60).make_initializable_iterator()
        a, b = session.run([one.string_handle(), other.string_handle()])
        session.run(other.initializer)
        got = [session.run(element, {handle: h}) for h in (a, b, a, b, a)]
        assert got == [0, 50, 1, 51, 2]
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not name an iterator"):
            session.run(element, {handle: b"nothing"})
        floats = tf.data.Dataset.from_tensors(1.0).make_one_shot_iterator()
        with pytest.raises(tf.errors.InvalidArgumentError, match="mismatch"):
            session.run(element, {handle: session.run(floats.string_handle())})


def test_one_get_next_advances_once_per_run() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        iterator = tf.data.Dataset.range(10).make_one_shot_iterator()
        x = iterator.get_next()
        assert session.run([x, x * 10, x + 1]) == [0, 0, 1]
        y = iterator.get_next()
        assert sorted(session.run([x, y])) == [1, 2]


def test_structures_and_types() -> None:
    with tf.Graph().as_default():
        ds = tf.data.Dataset.from_tensor_slices(
            {"a": np.zeros((4, 2), np.float32), "b": ["x"] * 4}
        ).batch(2, True)
        assert ds.output_types == {"a": tf.float32, "b": tf.string}
        assert ds.output_shapes == {"a": tf.TensorShape([2, 2]), "b": tf.TensorShape([2])}
        assert ds.output_classes == {"a": tf.Tensor, "b": tf.Tensor}
        iterator = tf.data.make_initializable_iterator(ds)
        assert tf.data.get_output_types(iterator) == ds.output_types
        assert iterator.get_next()["a"].shape.as_list() == [2, 2]


def test_many_calls_of_get_next_are_warned_about() -> None:
    with tf.Graph().as_default():
        iterator = tf.data.Dataset.range(3).make_one_shot_iterator()
        with pytest.warns(UserWarning, match="unusually high number"):
            for _ in range(40):
                iterator.get_next()


def test_optional() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        iterator = tf.data.Dataset.range(1).make_one_shot_iterator()
        optional = tf.data.experimental.get_next_as_optional(iterator)
        has, value = optional.has_value(), optional.get_value()
        assert session.run([has, value]) == [True, 0]
        assert session.run(has) == np.False_
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not have a value"):
            session.run(value)


def test_errors_name_the_users_line() -> None:
    with tf.Graph().as_default(), tf.Session() as session:

        def broken(x: Any) -> Any:
            return tf.check_numerics(1.0 / x, "broken here")

        ds = tf.data.Dataset.from_tensor_slices([1.0, 0.0, 2.0]).map(broken)
        for dataset in (ds, ds.prefetch(2), ds.map(lambda x: x, num_parallel_calls=2)):
            element = dataset.make_one_shot_iterator().get_next()
            assert session.run(element) == 1.0
            with pytest.raises(tf.errors.InvalidArgumentError, match="broken here") as info:
                session.run(element)
            assert "test_data_iterators.py" in str(info.value)
            assert session.run(element) == 0.5  # the next element is the next element
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(element)


def test_closing_a_session_frees_its_iterators() -> None:
    import weakref

    with tf.Graph().as_default():
        element = (
            tf.data.Dataset.range(100)
            .map(lambda x: x)
            .prefetch(1)
            .make_one_shot_iterator()
            .get_next()
        )
        session = tf.Session()
        session.run(element)
        state = weakref.ref(session._state)
        session.close()
        del session
        gc.collect()
        assert state() is None


def test_dataset_is_not_iterable_in_a_graph() -> None:
    with tf.Graph().as_default():
        with pytest.raises(RuntimeError, match="eager"):
            iter(tf.data.Dataset.range(3))
        with pytest.raises(TypeError, match="eager"):
            len(tf.data.Dataset.range(3))


def test_no_warning_for_few_calls() -> None:
    with tf.Graph().as_default(), warnings.catch_warnings():
        warnings.simplefilter("error")
        tf.data.Dataset.range(3).make_one_shot_iterator().get_next()


@pytest.mark.parametrize("executor", ["numpy", "reference"])
def test_executors(executor: str) -> None:
    with tf.Graph().as_default(), tf.Session(executor=executor) as session:
        ds = (
            tf.data.Dataset.range(6).map(lambda x: (x, tf.as_string(x))).shuffle(3, seed=1).batch(4)
        )
        iterator = ds.make_initializable_iterator()
        element = iterator.get_next()
        session.run(iterator.initializer)
        got = drain(session, element)
        assert sorted(np.concatenate([g[0] for g in got]).tolist()) == list(range(6))
        assert [int(t) for g in got for t in g[1]] == [int(n) for g in got for n in g[0]]


def test_seeds_give_one_order_in_every_process() -> None:
    import subprocess
    import sys

    program = """
import headrace as tf
tf.set_random_seed(5)
ds = tf.data.Dataset.range(50).shuffle(20).repeat(2)
ds = ds.map(lambda x: x + tf.random_uniform([], 0, 9, tf.int64, seed=1))
element = ds.batch(100).make_one_shot_iterator().get_next()
with tf.Session() as session:
    print(session.run(element).tolist())
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(outputs) == 1 and len(outputs.pop()) > 100


def test_many_threads_share_an_iterator() -> None:
    import threading

    with tf.Graph().as_default(), tf.Session() as session:
        element = (
            tf.data.Dataset.range(400)
            .map(lambda x: x)
            .prefetch(3)
            .make_one_shot_iterator()
            .get_next()
        )
        got: list[int] = []

        def read() -> None:
            try:
                while True:
                    got.append(int(session.run(element)))
            except tf.errors.OutOfRangeError:
                pass

        readers = [threading.Thread(target=read) for _ in range(4)]
        for r in readers:
            r.start()
        for r in readers:
            r.join()
        assert sorted(got) == list(range(400))


def test_sparse_elements_in_a_graph() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        ds = tf.data.Dataset.range(3).map(
            lambda x: {"s": tf.SparseTensor([[0, 0]], [x], [1, 2]), "x": x}
        )
        assert ds.output_classes == {"s": tf.SparseTensor, "x": tf.Tensor}
        element = ds.batch(2).make_one_shot_iterator().get_next()
        assert isinstance(element["s"], tf.SparseTensor)
        got = session.run(element)
        assert got["s"].indices.tolist() == [[0, 0, 0], [1, 0, 0]]
        assert got["s"].dense_shape.tolist() == [2, 1, 2]
        with pytest.raises(TypeError, match="sparse"):
            ds.padded_batch(2, padded_shapes={"s": [None, None], "x": []})


def test_eager_in_tensorflow_1() -> None:
    from headrace.eager.eager_context import eager_mode

    with eager_mode():
        ds = tf.data.Dataset.range(10).shuffle(10, seed=3)
        first = [int(x) for x in ds]
        assert first == [int(x) for x in ds]  # TF 1: every iterator starts with the same seeds
        assert int(ds.make_one_shot_iterator().get_next()) == first[0]
        with pytest.raises(RuntimeError, match="eager"):
            ds.make_initializable_iterator()


def test_an_iterator_in_a_longer_program() -> None:
    """Training that reads its batches from a dataset."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)).astype(np.float32)
    y = x @ np.array([[1.0], [-2.0], [0.5]], np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        a, b = (
            tf.data.Dataset.from_tensor_slices((x, y))
            .shuffle(200)
            .repeat()
            .batch(20)
            .make_one_shot_iterator()
            .get_next()
        )
        w = tf.get_variable("w", [3, 1])
        loss = tf.reduce_mean(tf.square(tf.matmul(a, w) - b))
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        for _ in range(150):
            _, value = session.run([step, loss])
        assert value < 1e-4
