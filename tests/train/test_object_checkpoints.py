"""Checkpoints of objects: TF 1.15's and 2.21's files, eagerly and in graphs, later and by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.compat.proto.trackable_object_graph_pb2 import TrackableObjectGraph

import headrace as tf
import headrace.api.v2 as tf2
from headrace.eager.eager_context import eager_mode
from headrace.train.object_graph import GRAPH_KEY
from headrace.wire.tensor_bundle import BundleReader, BundleWriter
from tests.golden import object_programs

FILES = Path(object_programs.FILES)


@pytest.mark.parametrize("name", ["tf1", "tf2"])
def test_training_goes_on_from_tensorflows_checkpoint(name: str) -> None:
    golden = json.loads((FILES / f"{name}.json").read_text())
    with eager_mode():
        losses, step, saves = object_programs.went_on(tf2, str(FILES / f"{name}-1"))
    np.testing.assert_allclose(losses, golden, rtol=1e-6)
    assert (step, saves) == (7, 1)


def test_own_checkpoint_has_tensorflows_keys(tmp_path: Path) -> None:
    with eager_mode():
        path, losses = object_programs.written(tf2, str(tmp_path / "own"))
        assert object_programs.went_on(tf2, path)[0] == losses
    assert tf.train.list_variables(path) == tf.train.list_variables(str(FILES / "tf1-1"))
    assert tf.train.latest_checkpoint(str(tmp_path)) == path


def test_in_a_graph(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        v, w = tf.Variable(3.0), tf.Variable([1.0, 2.0], use_resource=True)
        checkpoint = tf.train.Checkpoint(v=v, w=w)
        sess.run(tf.global_variables_initializer())
        first = checkpoint.save(str(tmp_path / "m"), session=sess)
        second = checkpoint.save(str(tmp_path / "m"))
        assert [Path(p).name for p in (first, second)] == ["m-1", "m-2"]
    with tf.Graph().as_default(), tf.Session() as sess:
        v, new = tf.Variable(0.0), tf.Variable(5.0)
        checkpoint = tf.train.Checkpoint(v=v, new=new)
        status = checkpoint.restore(second)
        with pytest.raises(AssertionError, match="not bound"):
            status.assert_existing_objects_matched()
        status.initialize_or_restore(sess)
        assert sess.run([v, new]) == [3.0, 5.0]
        assert sess.run(checkpoint.save_counter) == 2
        with pytest.raises(AssertionError, match="nothing is being restored"):
            checkpoint.restore(None).assert_consumed()


def test_by_names_and_by_objects(tmp_path: Path) -> None:
    """A Saver's checkpoint restores into objects, a checkpoint of objects into a Saver."""
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.get_variable("v", initializer=4.0)
        sess.run(v.initializer)
        by_name = tf.train.Saver().save(sess, str(tmp_path / "names"))
        by_object = tf.train.Checkpoint(held=v).save(str(tmp_path / "objects"), sess)
        with pytest.raises(tf.errors.NotFoundError):
            tf.train.NewCheckpointReader(by_name).get_tensor("held/.ATTRIBUTES/VARIABLE_VALUE")
    for path in (by_name, by_object):
        with tf.Graph().as_default(), tf.Session() as sess:
            v = tf.get_variable("v", initializer=0.0)
            tf.train.Saver([v]).restore(sess, path)
            assert sess.run(v) == 4.0
            sess.run(v.initializer)
            tf.train.Checkpoint(held=v).restore(path).run_restore_ops(sess)
            assert sess.run(v) == 4.0


def test_unresolved_objects(tmp_path: Path) -> None:
    with eager_mode():
        path = tf2.train.Checkpoint(a=tf2.Variable(1.0), b=tf2.Variable(2.0)).write(
            str(tmp_path / "c")
        )
        other = tf2.train.Checkpoint(a=tf2.Variable(0.0))
        status = other.read(path)
        assert float(other.a) == 1.0
        with pytest.raises(AssertionError, match=r"Unresolved object in checkpoint .*: b/"):
            status.assert_consumed()
        status.expect_partial().assert_existing_objects_matched()
        other.b = tf2.Variable(0.0)  # restored as it is set
        assert float(other.b) == 2.0
        status.assert_consumed()
        with pytest.raises(AssertionError, match="Nothing except the root"):
            tf2.train.Checkpoint(x=tf2.Variable(0.0)).read(path).assert_nontrivial_match()
        with pytest.raises(ValueError, match="trackable"):
            tf2.train.Checkpoint(a=3)


def test_manager(tmp_path: Path) -> None:
    with eager_mode():
        step = tf2.Variable(0)
        manager = tf2.train.CheckpointManager(
            tf2.train.Checkpoint(step=step), str(tmp_path), max_to_keep=2, step_counter=step,
            checkpoint_interval=2,
        )  # fmt: skip
        assert manager.restore_or_initialize() is None
        saved: list[Any] = []
        for _ in range(6):
            saved.append(manager.save())
            step.assign_add(1)
        assert [s is not None for s in saved] == [True, False] * 3
        names = [Path(p).name for p in manager.checkpoints]
        assert names == ["ckpt-2", "ckpt-3"]
        assert sorted(p.name for p in tmp_path.iterdir()) == [
            "checkpoint", "ckpt-2.data-00000-of-00001", "ckpt-2.index",
            "ckpt-3.data-00000-of-00001", "ckpt-3.index",
        ]  # fmt: skip
        again = tf2.train.CheckpointManager(
            tf2.train.Checkpoint(step=tf2.Variable(-1)), str(tmp_path), max_to_keep=2
        )
        assert again.checkpoints == manager.checkpoints
        assert again.restore_or_initialize() == manager.latest_checkpoint
        assert int(again.checkpoint.step) == 4
        again.save()
        assert [Path(p).name for p in again.checkpoints] == ["ckpt-3", "ckpt-4"]
        with pytest.raises(ValueError, match="positive"):
            tf2.train.CheckpointManager(manager.checkpoint, str(tmp_path), 0)


def test_inspect_checkpoint(capsys: pytest.CaptureFixture[str]) -> None:
    from headrace.cli.inspect_checkpoint import print_tensors_in_checkpoint_file

    path = str(FILES.parent / "checkpoints" / "model")
    print_tensors_in_checkpoint_file(path, "sgd/b", False)
    out = capsys.readouterr().out
    assert out.startswith("tensor: sgd/b (float32) [2]\n[") and "# Total number of params" in out


def test_an_iterator_in_a_checkpoint_is_not_left_out_silently(tmp_path: Path) -> None:
    with eager_mode():
        saved = tf2.train.Checkpoint(v=tf2.Variable(1.0), data=iter(tf2.data.Dataset.range(3)))
        with pytest.warns(UserWarning, match=r"iterator is not saved.*Dataset\.skip"):
            saved.save(str(tmp_path / "m"))


def test_a_damaged_graph_of_objects(tmp_path: Path) -> None:
    """Slots of what is no optimizer are not looked for."""
    with eager_mode():
        module = tf2.Module()
        module.v = tf2.Variable(1.0)
        path = tf2.train.Checkpoint(m=module).save(str(tmp_path / "c"))
        reader = BundleReader(path)
        graph = TrackableObjectGraph.FromString(reader.read(GRAPH_KEY).item())
        for node in graph.nodes:
            node.slot_variables.add(
                original_variable_node_id=1, slot_name="m", slot_variable_node_id=2
            )
        blob = np.empty((), object)
        blob[()] = graph.SerializeToString()
        values = [(n, blob if n == GRAPH_KEY else reader.read(n)) for n in reader.names()]
        with BundleWriter(path) as writer:
            for name, value in values:
                writer.add(name, value)
        module.v.assign(5.0)
        tf2.train.Checkpoint(m=module).restore(path)
        assert float(module.v) == 1.0
