"""`tf.contrib.slim.evaluation` and `tf.contrib.training`'s evaluation: values as TF 1.15 gives."""

import subprocess
import sys

import numpy as np
import pytest

import headrace as tf


@pytest.fixture
def checkpoint(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        w = tf.get_variable("w", [3])
        tf.train.get_or_create_global_step()
        sess.run(tf.global_variables_initializer())
        sess.run(w.assign([1.0, 2.0, 3.0]))
        return tf.train.Saver().save(sess, str(tmp_path / "model"), global_step=3)


@pytest.fixture
def mean():
    with tf.Graph().as_default():
        w = tf.get_variable("w", [3])
        tf.train.get_or_create_global_step()
        yield tf.metrics.mean(w)


def test_slim_evaluate_once_restores_and_counts(checkpoint, mean, tmp_path):
    value, update = mean
    tf.summary.scalar("mean", value)
    got = tf.contrib.slim.evaluation.evaluate_once(
        "", checkpoint, str(tmp_path / "log"), num_evals=4, eval_op=update, final_op=[value]
    )
    assert got == [np.float32(2.0)]
    assert [v.op.name for v in tf.local_variables()] == ["mean/total", "mean/count", "eval_step"]
    assert list((tmp_path / "log").iterdir())


def test_slim_evaluation_loop_ends_after_so_many_evaluations(checkpoint, mean, tmp_path):
    value, update = mean
    got = tf.contrib.slim.evaluation.evaluation_loop(
        "", str(tmp_path), str(tmp_path / "log"), num_evals=25, eval_op=update, final_op=value,
        max_number_of_evaluations=1, eval_interval_secs=0.1,
    )  # fmt: skip
    assert got == np.float32(2.0)


def test_the_hook_stops_after_n_evaluations(checkpoint, mean):
    value, update = mean
    counted = tf.get_local_variable("counted", initializer=0)
    ops = {"update": update, "count": counted.assign_add(1)}
    training = tf.contrib.training
    final = training.evaluate_once(
        checkpoint,
        eval_ops=ops,
        final_ops={"mean": value, "counted": counted},
        hooks=[training.StopAfterNEvalsHook(3)],
    )
    assert final == {"mean": np.float32(2.0), "counted": 3}
    assert "update_eval_step" in ops
    assert training.get_or_create_eval_step().dtype.base_dtype == tf.int64


def test_two_counters_are_refused(mean):
    for name in ("a", "b"):
        tf.add_to_collection(tf.GraphKeys.EVAL_STEP, tf.constant(0, name=name))
    with pytest.raises(ValueError, match="Multiple tensors added to"):
        tf.contrib.training.get_or_create_eval_step()


def test_tf_slim_itself_can_be_imported(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import tf_slim\nprint(tf_slim.evaluation.evaluate_once.__name__)\n")
    command = [sys.executable, "-m", "headrace", "run", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "evaluate_once\n", done.stderr
