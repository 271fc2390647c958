"""tf.tpu on one device: TF 1.15 has no CPU kernels for it, so the model itself is the judge."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf


def _trained(wrap: bool) -> np.ndarray:
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        w = tf.get_variable("w", [3, 2])
        loss = tf.reduce_sum(tf.square(w - 1.0))
        optimizer = tf.train.AdamOptimizer(0.1)
        if wrap:
            optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
        step = tf.train.get_or_create_global_step()
        train = optimizer.minimize(loss, global_step=step)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(3):
                sess.run(train)
            assert sess.run(step) == 3
            assert optimizer.get_slot_names() == ["m", "v"]
            return sess.run(w)


def test_cross_shard_optimizer_is_the_optimizer() -> None:
    np.testing.assert_array_equal(_trained(True), _trained(False))


def test_computations_run_where_they_are() -> None:
    tpu = tf.tpu
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.constant([1.0, 2.0])
        rewritten = tpu.rewrite(lambda a, b: [a + b, a * b], [x, 3.0])
        replicated = tpu.replicate(lambda a: a * 2, [[x]])
        sharded = tpu.batch_parallel(lambda a: tpu.outside_compilation(tf.square, a), [x])
        values = sess.run([rewritten, replicated, sharded, tpu.cross_replica_sum(x)])
        sess.run([tpu.initialize_system(), tpu.shutdown_system()])
    assert [np.ravel(v).tolist() for v in values] == [
        [4, 5, 3, 6], [2, 4], [1, 4], [1, 2],
    ]  # fmt: skip


def test_bfloat16_scope_keeps_variables_in_float32() -> None:
    with tf.Graph().as_default(), tf.contrib.tpu.bfloat16_scope():
        w = tf.get_variable("w", [2], dtype=tf.bfloat16, initializer=tf.ones_initializer())
        assert w.dtype == tf.bfloat16
        assert [v.dtype.base_dtype for v in tf.global_variables()] == [tf.float32]
        assert [v.name for v in tf.global_variables()] == ["w:0"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.tpu.shard(tf.square, [1.0], num_shards=8),
        lambda: tf.tpu.replicate(tf.square, [[1.0], [2.0]]),
        lambda: tf.tpu.rewrite(tf.square, [1.0], infeed_queue=object()),
        lambda: tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(), reduction="none"),
        lambda: tf.tpu.cross_replica_sum(1.0, [[0, 1]]),
    ],
)
def test_more_than_one_device_is_refused(call) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"\w"):
        call()


def test_inner_paths_have_the_optimizer() -> None:
    from headrace.api import facades

    module = facades.facade("contrib.tpu.python.tpu.tpu_optimizer", "tensorflow")
    assert module.CrossShardOptimizer is tf.tpu.CrossShardOptimizer
