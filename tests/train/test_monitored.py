"""Monitored sessions, hooks, Supervisor and clusters, as a program uses them."""

from __future__ import annotations

from typing import Any

import pytest

import headrace as tf
from tests.train.time_limit import within


def _counting() -> Any:
    step = tf.train.get_or_create_global_step()
    return tf.assign_add(step, 1)


def test_stop_at_step_and_hooks() -> None:
    calls: list[str] = []

    class Hook(tf.train.SessionRunHook):  # type: ignore[misc]
        def begin(self) -> None:
            calls.append("begin")

        def after_create_session(self, session: Any, coord: Any) -> None:
            calls.append("created")

        def before_run(self, run_context: Any) -> Any:
            return tf.train.SessionRunArgs(self.fetch, {x: 4.0})

        def after_run(self, run_context: Any, run_values: Any) -> None:
            calls.append(f"ran {run_values.results}")

        def end(self, session: Any) -> None:
            calls.append("end")

    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        train, hook = _counting(), Hook()
        hook.fetch = x * 2.0
        final = tf.train.FinalOpsHook(tf.train.get_global_step())

        graph = tf.get_default_graph()

        def run() -> int:
            runs = 0
            hooks = [tf.train.StopAtStepHook(last_step=3), hook, final]
            with graph.as_default(), tf.train.MonitoredTrainingSession(hooks=hooks) as sess:
                while not sess.should_stop():
                    sess.run(train)
                    runs += 1
            return runs

        assert within(120, run) == 3
    assert calls == ["begin", "created", "ran 8.0", "ran 8.0", "ran 8.0", "end"]
    assert final.final_ops_values == 3


def test_end_of_input_ends_the_session() -> None:
    with tf.Graph().as_default():
        i = tf.train.range_input_producer(5, num_epochs=1, shuffle=False).dequeue()
        found: list[int] = []
        graph = tf.get_default_graph()

        def run() -> None:
            with graph.as_default(), tf.train.MonitoredSession() as sess:
                while not sess.should_stop():
                    found.append(int(sess.run(i)))

        within(120, run)
    assert found == [0, 1, 2, 3, 4]


def test_nan_loss() -> None:
    with tf.Graph().as_default():
        loss = tf.constant(float("nan"))
        with (
            pytest.raises(tf.train.NanLossDuringTrainingError),
            tf.train.SingularMonitoredSession(hooks=[tf.train.NanTensorHook(loss)]) as sess,
        ):
            sess.run(loss)


def test_supervisor() -> None:
    with tf.Graph().as_default():
        train = _counting()
        supervisor = tf.train.Supervisor()

        def run() -> int:
            with supervisor.managed_session() as sess:
                while not supervisor.should_stop():
                    if sess.run(train) == 4:
                        supervisor.request_stop()
                return int(sess.run(supervisor.global_step))

        assert within(120, run) == 4


def test_supervisor_raises_what_went_wrong() -> None:
    with tf.Graph().as_default():
        _counting()
        supervisor = tf.train.Supervisor()
        with pytest.raises(KeyError, match="mine"), supervisor.managed_session():
            raise KeyError("mine")


def test_clusters() -> None:
    cluster = tf.train.ClusterSpec({"ps": ["a:1", "b:2"], "worker": {1: "c:3"}})
    assert cluster.as_dict() == {"ps": ["a:1", "b:2"], "worker": {1: "c:3"}}
    assert cluster.task_address("ps", 1) == "b:2"
    with (
        tf.Graph().as_default(),
        tf.device(tf.train.replica_device_setter(cluster=cluster)),
    ):
        made = [tf.Variable(1.0) for _ in range(3)]
        total = made[0] + made[1]
    assert [v.device for v in made] == [f"/job:ps/task:{i}" for i in (0, 1, 0)]
    assert total.device == "/job:worker"
    server = tf.train.Server(cluster, "ps", 0)
    with pytest.raises(tf.errors.UnimplementedError, match=r"/job:ps/task:1, .* one process"):
        tf.Session(server.target)
    with pytest.raises(tf.errors.UnimplementedError, match="one process"):
        server.join()
    with tf.Session(tf.train.Server.create_local_server().target) as sess:
        assert sess.run(tf.constant(3)) == 3


def test_a_servers_config_is_its_sessions_default() -> None:
    config = tf.ConfigProto(operation_timeout_in_ms=50)
    server = tf.train.Server({"local": ["localhost:2222"]}, config=config, start=False)
    with tf.Graph().as_default():
        with pytest.raises(tf.errors.NotFoundError, match="has started"):
            tf.Session(server.target)
        server.start()
        taken = tf.FIFOQueue(1, tf.float32).dequeue()
        with tf.Session(server.target) as sess, pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(taken)


def test_several_servers_of_one_process() -> None:
    cluster = tf.train.ClusterSpec({"ps": ["localhost:2301"], "worker": ["localhost:2302"]})
    servers = [tf.train.Server(cluster, job, 0) for job in cluster.jobs]
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(cluster=cluster)):
            v = tf.Variable(2.0)
            doubled = v * 2
        with tf.Session(servers[1].target) as sess:
            sess.run(tf.global_variables_initializer())
            assert sess.run(doubled) == 4
        with tf.device("/job:worker/task:1"):
            nowhere = tf.constant(1.0)
        with (
            tf.Session(servers[0].target) as sess,
            pytest.raises(tf.errors.InvalidArgumentError, match="Cannot assign a device"),
        ):
            sess.run(nowhere)
