"""Restoring into the memory of variables: what a reader holds, what fails, and what is replaced."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.wire.stored_tensors import StoredTensor

SHAPE = [150, 200]  # large enough to be overwritten


class _Model:
    """Three large variables, saved as they were at first; then all are doubled."""

    def __init__(self, folder: Path, resource: bool = False, **options: Any) -> None:
        self.variables = [
            tf.get_variable(f"v{i}", SHAPE, use_resource=resource, **options) for i in range(3)
        ]
        self.saver = tf.train.Saver()
        self.sess = tf.Session()
        self.sess.run(tf.global_variables_initializer())
        self.saved = self.read()
        self.path = self.saver.save(self.sess, str(folder / "model"))
        self.sess.run([tf.assign(v, v * 2) for v in self._parts()])
        self.doubled = [2 * v for v in self.saved]

    def _parts(self) -> list[Any]:
        found: list[Any] = []
        for v in self.variables:
            found += list(v) if hasattr(v, "_variable_list") else [v]
        return found

    def read(self) -> list[Any]:
        tensors = [tf.convert_to_tensor(v) for v in self._parts()]
        return [np.array(v) for v in self.sess.run(tensors)]

    def restore(self) -> None:
        self.saver.restore(self.sess, self.path)


@pytest.fixture
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def _same(found: list[Any], wanted: list[Any]) -> None:
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("resource", [False, True])
def test_what_somebody_holds_stays_as_it_is(graph: None, tmp_path: Path, resource: bool) -> None:
    model = _Model(tmp_path, resource)
    held = model.sess.run(model.variables[1])
    model.restore()
    _same(model.read(), model.saved)
    np.testing.assert_array_equal(held, model.doubled[1])
    again = model.sess.run(model.variables)
    model.restore()
    for value in again:
        value += 1
    _same(model.read(), model.saved)


@pytest.mark.parametrize("resource", [False, True])
def test_the_plan_says_so(graph: None, tmp_path: Path, resource: bool) -> None:
    model = _Model(tmp_path, resource)
    definition = model.saver.saver_def
    feeds = {definition.filename_tensor_name: model.path}
    text = str(model.sess.explain(definition.restore_op_name, feeds))
    assert "values read into variables 3" in text
    assert text.replace("\n          ", " ").count("into the variable's memory") == 3


def test_parts_of_variables(graph: None, tmp_path: Path) -> None:
    model = _Model(tmp_path, partitioner=tf.fixed_size_partitioner(1))
    model.restore()
    _same(model.read(), model.saved)


def test_a_damaged_checkpoint_changes_nothing(graph: None, tmp_path: Path) -> None:
    model = _Model(tmp_path)
    data = next(tmp_path.glob("model.data*"))
    damaged = bytearray(data.read_bytes())
    damaged[-1] ^= 1  # in the last variable
    data.write_bytes(damaged)
    with pytest.raises(tf.errors.DataLossError, match="checksum of 'v2'"):
        model.restore()
    _same(model.read(), model.doubled)
    data.write_bytes(damaged[:-5])
    with pytest.raises(tf.errors.DataLossError, match="v2"):
        model.restore()
    _same(model.read(), model.doubled)


def test_a_file_that_is_cut_off_meanwhile(
    graph: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No variable is left with a part of a value."""
    model = _Model(tmp_path)
    usual = StoredTensor.check

    def check(stored: StoredTensor, advance: Any = None) -> None:
        usual(stored, advance)
        if stored.name == "v2":
            os.truncate(stored.opened.file.name, stored.entry.offset + 7)

    monkeypatch.setattr(StoredTensor, "check", check)
    with pytest.raises(tf.errors.DataLossError, match="'v2' is cut off"):
        model.restore()
    _same(model.sess.run(model.variables[:2]), model.saved[:2])
    with pytest.raises(tf.errors.FailedPreconditionError, match="v2"):
        model.sess.run(model.variables[2])


@pytest.mark.parametrize("resource", [False, True])
def test_other_shapes_are_refused(graph: None, tmp_path: Path, resource: bool) -> None:
    model = _Model(tmp_path, resource)
    for shape in ([200, 150], [150, 201], [30_000]):
        with tf.Graph().as_default(), tf.Session() as sess:
            other = tf.get_variable("v0", shape, use_resource=resource)
            sess.run(other.initializer)
            before = sess.run(other)
            with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
                tf.train.Saver().restore(sess, model.path)
            np.testing.assert_array_equal(sess.run(other), before)
            if shape != [150, 201]:
                tf.train.Saver(reshape=True).restore(sess, model.path)
                found = sess.run(other)
                np.testing.assert_array_equal(found, model.saved[0].reshape(shape))


def test_a_checkpoint_that_is_replaced_in_the_same_run(graph: None, tmp_path: Path) -> None:
    model = _Model(tmp_path)
    v = model.variables[0]
    read = tf.raw_ops.RestoreV2(
        prefix=model.path, tensor_names=["v0"], shape_and_slices=[""], dtypes=[tf.float32]
    )[0]
    with tf.control_dependencies([read.op]):
        zeros = tf.zeros(SHAPE)
        save = tf.raw_ops.SaveV2(
            prefix=model.path, tensor_names=["v0"], shape_and_slices=[""], tensors=[zeros]
        )
    with tf.control_dependencies([save]):
        assign = tf.assign(v, read)
    model.sess.run(assign.op)
    np.testing.assert_array_equal(model.sess.run(v), model.saved[0])


def test_readers_see_whole_values(graph: None, tmp_path: Path) -> None:
    model = _Model(tmp_path)
    v, wrong, stop = model.variables[0], [], threading.Event()
    double = tf.assign(v, model.doubled[0]).op
    allowed = [model.saved[0], model.doubled[0]]

    def read() -> None:
        while not stop.is_set():
            found = model.sess.run(v)
            if not any(np.array_equal(found, a) for a in allowed):
                wrong.append(found)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(40):
        model.restore()
        model.sess.run(double)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
