"""Tables that take entries: exports, shapes, what is refused, checkpoints."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.eager.eager_context import eager_mode

lookup = tf.contrib.lookup


@pytest.fixture(autouse=True)
def _fresh():
    with tf.Graph().as_default():
        yield


def _dense(**kwargs):
    given = {"default_value": -1, "empty_key": 0, "deleted_key": -1, "initial_num_buckets": 4}
    return lookup.MutableDenseHashTable(tf.int64, tf.int64, **{**given, **kwargs})


def test_exports_of_dense_tables_have_a_row_for_each_bucket():
    table = _dense(empty_key=100, deleted_key=200, initial_num_buckets=8)
    fill = table.insert(tf.constant([11, 12, 13], tf.int64), tf.constant([1, 2, 3], tf.int64))
    drop = table.remove(tf.constant([12, 15], tf.int64))
    export, more = table.export(), table.insert(*[tf.range(20, 26, dtype=tf.int64)] * 2)
    with tf.Session() as sess:
        sess.run(fill)
        sess.run(drop)
        keys, values = sess.run(export)
        assert keys.shape == values.shape == (8, 1)
        rows = sorted(zip(keys[:, 0].tolist(), values[:, 0].tolist()))
        assert rows == [(11, 1), (13, 3), *[(100, 0)] * 5, (200, 2)]
        sess.run(more)
        assert sess.run(table.size()) == 8
        assert len(sess.run(export[0])) == 16


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"initial_num_buckets": 12}, "Number of buckets must be at least 4 and a power of 2"),
        ({"deleted_key": [1, 2]}, "Empty and deleted keys must have same shape"),
        ({"deleted_key": 0}, "cannot be equal"),
    ],
)
def test_dense_tables_that_cannot_be(given, text):
    size = _dense(**given).size()
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match=text):
        sess.run(size)


def test_tables_of_vectors():
    table = lookup.MutableHashTable(tf.string, tf.int64, tf.constant([-1, -1], tf.int64))
    found = table.lookup(tf.constant([["a", "b", "c"]]))
    assert found.shape.as_list() == [1, 3, 2]
    keys = _dense(empty_key=[0, 3], deleted_key=[-1, -1])
    vectors = keys.lookup(tf.constant([[0, 1], [2, 3], [4, 5]], tf.int64))
    assert vectors.shape.as_list() == [3]
    with tf.Session() as sess:
        assert sess.run(vectors).tolist() == [-1, -1, -1]
        deep = lookup.MutableHashTable(tf.string, tf.int64, tf.constant([[-1]], tf.int64)).size()
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be a vector"):
            sess.run(deep)


def test_what_initializers_refuse():
    make = tf.lookup.KeyValueTensorInitializer
    with pytest.raises(ValueError):
        tf.lookup.StaticHashTable(make(["a", "b"], [1, 2, 3]), -1)
    tf.lookup.StaticHashTable(make(np.array([], str), np.array([], np.int64), tf.string), -1)
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="cannot be empty"):
            sess.run(tf.tables_initializer())
        table = tf.lookup.StaticHashTable(make([1], [2], tf.int32, tf.int64), -1)
        with pytest.raises(tf.errors.InvalidArgumentError, match="No OpKernel"):
            sess.run(table._init_op)


def test_savers_save_tables(tmp_path):
    keys, values = tf.constant(["b", "c"]), tf.constant([0, 1], tf.int64)
    table = lookup.MutableHashTable(tf.string, tf.int64, -1, name="t")
    dense = _dense(name="d", initial_num_buckets=32)
    saver, alone = tf.train.Saver(), tf.train.Saver([table])
    fill = [table.insert(keys, values), dense.insert(values + 7, values)]
    found = table.lookup(tf.constant(["a", "b", "c"])), dense.lookup(values + 7)
    with tf.Session() as sess:
        sess.run(fill)
        path = saver.save(sess, str(tmp_path / "all"))
        alone.save(sess, str(tmp_path / "one"))
    assert {n for n, _ in tf.train.list_variables(path)} == {
        "t-keys", "t-values", "d-keys", "d-values",
    }  # fmt: skip
    with tf.Session() as sess:
        saver.restore(sess, path)
        assert [f.tolist() for f in sess.run(found)] == [[-1, 0, 1], [0, 1]]


@pytest.mark.parametrize("eager", [True, False])
def test_checkpoints_of_objects_save_tables(tmp_path, eager):
    def program():
        def make(keys, values):
            table = lookup.MutableHashTable(tf.string, tf.int64, -1, name="t")
            return table, table.insert(tf.constant(keys), tf.constant(values, tf.int64))

        with tf.Session() if not eager else tf.name_scope("x") as sess:
            value = (lambda t: t.numpy()) if eager else sess.run
            run = (lambda op: None) if eager else sess.run
            one, fill = make(["b", "c"], [0, 1])
            run(fill)
            path = tf.train.Checkpoint(table=one).save(str(tmp_path / "c"))
            two, fill = make(["a", "c", "x"], [5, 6, 7])
            run(fill)
            assert value(two.size()) == 3
            tf.train.Checkpoint(table=two).restore(path).run_restore_ops()
            assert value(two.lookup(tf.constant(["a", "b", "c"]))).tolist() == [-1, 0, 1]

    if eager:
        with eager_mode():
            program()
    else:
        program()
