"""``tf.lookup`` of TF 2: tables in eager code and in checkpoints of objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headrace.compat.v2 as tf
from tests.eager_fixture import v2_behavior

__all__ = ["v2_behavior"]


def test_static_tables() -> None:
    keys, values = tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1)

    @tf.function
    def looked_up(x: Any) -> Any:
        return table.lookup(x)

    assert looked_up(tf.constant(["b", "z"])).numpy().tolist() == [2, -1]
    assert table.size().numpy() == 2


def test_tables_in_checkpoints(tmp_path: Path) -> None:
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    table.insert(tf.constant(["x", "y"]), tf.constant([5, 6], tf.int64))
    checkpoint = tf.train.Checkpoint(table=table, v=tf.Variable(1.0))
    path = checkpoint.save(str(tmp_path / "model"))
    names = [name for name, _ in tf.train.list_variables(path)]
    assert {"table/.ATTRIBUTES/table-keys", "table/.ATTRIBUTES/table-values"} < set(names)
    table.insert(tf.constant(["x", "w"]), tf.constant([7, 8], tf.int64))
    checkpoint.restore(path).assert_consumed()
    found = table.lookup(tf.constant(["x", "y", "w"])).numpy().tolist()
    assert found == [5, 6, -1]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("keras.Sequential", "Instead: write the layers as tf.Modules"),
        ("estimator", "Instead: write the layers as tf.Modules"),
        ("distribute", "Instead: one process: leave the strategy out"),
        ("Session", "tf.compat.v1.Session is there"),
    ],
)
def test_missing_names_say_what_does_the_job(path: str, said: str) -> None:
    """`tf.distribute` was said to be TensorFlow 1's, and to be there as tf.compat.v1.distribute."""
    namespace, _, name = path.rpartition(".")
    owner = getattr(tf, namespace) if namespace else tf
    with pytest.raises(AttributeError, match=said):
        getattr(owner, name)
