"""Graphs with datasets and loops, written and read: in MetaGraphs, scopes and several threads."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf


def _squares(offset: Any) -> tf.Graph:
    graph = tf.Graph()
    with graph.as_default():
        shift = tf.constant(offset, tf.int64)
        dataset = tf.data.Dataset.range(4).map(lambda x: x * x + shift)
        nested = dataset.flat_map(lambda x: tf.data.Dataset.range(x).map(lambda y: y + x))
        for name, data in (("plain", dataset), ("nested", nested)):
            iterator = tf.data.make_initializable_iterator(data)
            tf.identity(iterator.get_next(), name=name)
            tf.group(iterator.initializer, name=f"start_{name}")
    return graph


def _elements(sess: tf.Session, scope: str, name: str) -> list[int]:
    sess.run(f"{scope}start_{name}")
    found = []
    while True:
        try:
            found.append(int(sess.run(f"{scope}{name}:0")))
        except tf.errors.OutOfRangeError:
            return found


def test_functions_of_datasets_come_back() -> None:
    graph = _squares(3)
    with graph.as_default():
        meta = tf.train.export_meta_graph(clear_devices=True)
    with tf.Session(graph=graph) as sess:
        wanted = {n: _elements(sess, "", n) for n in ("plain", "nested")}
    assert wanted["plain"] == [3, 4, 7, 12]
    again = tf.Graph()
    with again.as_default(), tf.Session() as sess:
        tf.train.import_meta_graph(meta, import_scope="new")
        assert {n: _elements(sess, "new/", n) for n in wanted} == wanted
        third = again.as_graph_def()
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(third, name="")
        assert {n: _elements(sess, "new/", n) for n in wanted} == wanted


def test_import_meta_graph_follows_the_name_scope(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.get_variable("v", initializer=2.0)
        tf.identity(v * 3.0, name="y")
        sess.run(tf.global_variables_initializer())
        tf.train.Saver().save(sess, str(tmp_path / "m"))
    with tf.Graph().as_default(), tf.Session() as sess:
        with tf.name_scope("inside"):
            saver = tf.train.import_meta_graph(str(tmp_path / "m.meta"))
        saver.restore(sess, str(tmp_path / "m"))
        assert sess.run("inside/y:0") == 6.0
        assert [v.name for v in tf.global_variables()] == ["inside/v:0"]


def test_file_addresses(tmp_path: Path) -> None:
    address = f"file://{tmp_path}/model"
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.get_variable("v", initializer=2.0)
        sess.run(tf.global_variables_initializer())
        saver = tf.train.Saver()
        saver.save(sess, address)
        sess.run(v.assign(5.0))
        saver.restore(sess, address)
        assert sess.run(v) == 2.0
    assert tf.train.latest_checkpoint(f"file://{tmp_path}") is not None
    assert tf.gfile.Exists(f"{address}.meta")
    with tf.gfile.GFile(f"file://{tmp_path}/text", "w") as file:
        file.write("one\n")
    with tf.Graph().as_default(), tf.Session() as sess:
        assert sess.run(tf.read_file(f"file://{tmp_path}/text")) == b"one\n"


def test_a_checkpoint_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.get_variable("v", initializer=2.0)
        sess.run(tf.global_variables_initializer())
        with pytest.raises(ValueError, match=r"Parent directory of .* doesn't exist"):
            tf.train.Saver().save(sess, str(tmp_path / "file" / "model"))


def test_a_graph_is_written_while_threads_build_loops() -> None:
    graph, failures = tf.Graph(), []

    def build() -> None:
        try:
            with graph.as_default():
                for _ in range(4):
                    x = tf.placeholder(tf.float32)
                    z = tf.while_loop(lambda x: x < 10.0, lambda x: (x + 1.0) * 1.5, [x])
                    tf.gradients(z, x)
                    written = graph.as_graph_def()
                    names = {n.name for n in written.node}
                    for node in written.node:
                        for name in node.input:
                            assert name.lstrip("^").partition(":")[0] in names
                    with tf.Graph().as_default():
                        tf.import_graph_def(written, name="")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=build) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_initializers_that_multiply_have_their_type(dtype: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        for make in (tf.orthogonal_initializer, tf.initializers.identity):
            w = sess.run(make(gain=2.0, dtype=dtype)([3, 3]))
            assert w.dtype == dtype.as_numpy_dtype
            np.testing.assert_allclose(w @ w.T, 4 * np.eye(3), atol=1e-5)


def test_batch_scatter_update_of_a_vector() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.get_variable("v", initializer=np.float32([1, 2, 3]))
        sess.run(v.initializer)
        sess.run(tf.batch_scatter_update(v, [1], [7.0]))
        assert sess.run(v).tolist() == [1, 7, 3]


def test_functions_in_configurations_of_cells() -> None:
    factor = 3
    cell = tf.nn.rnn_cell.ResidualWrapper(
        tf.nn.rnn_cell.GRUCell(2), residual_fn=lambda i, o: i * factor + o
    )
    config = cell.get_config()
    assert config["residual_fn_type"] == "lambda"
    config["cell"] = tf.nn.rnn_cell.GRUCell(2)
    again = tf.nn.rnn_cell.ResidualWrapper.from_config(config)
    assert again._residual_fn(1, 2) == 5


def test_scopes_that_are_left_in_the_wrong_order() -> None:
    with tf.Graph().as_default():
        with tf.variable_scope("a"):
            scope = tf.variable_scope("b")
            scope.__enter__()
            with tf.variable_scope("c"):
                with pytest.raises(RuntimeError, match="Improper nesting"):
                    scope.__exit__(None, None, None)
            assert tf.get_variable("w", [1]).name == "a/b/w:0"
            scope.__exit__(None, None, None)
            assert tf.get_variable("w", [1]).name == "a/w:0"
