"""What sessions are told: targets, devices, options, time limits. Every case was tried on TF
1.15.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.core.opdef import lookup


def test_target() -> None:
    with pytest.raises(TypeError, match="target must be a string"):
        tf.Session(tf.Graph())  # type: ignore[arg-type]
    with pytest.raises(tf.errors.NotFoundError, match="No session factory"):
        tf.Session("local")


def test_options_and_metadata_of_another_type() -> None:
    c = tf.constant(1)
    s = tf.Session()
    for _ in range(2):  # the first time a call is prepared, then it is found
        with pytest.raises(AttributeError, match="RunOptions"):
            s.run(c, options=42)
        with pytest.raises(AttributeError, match="RunMetadata"):
            s.run(c, run_metadata=42)
    assert s.run(c, options=tf.RunOptions(), run_metadata=tf.RunMetadata()) == 1
    assert s.run(c, options=None) == 1


@pytest.mark.parametrize(
    "device, name",
    [
        ("/cpu:0", "/device:CPU:0"),
        ("cpu", "/device:CPU:*"),
        ("/device:cpu:0", "/device:CPU:0"),
        ("/CPU:0", "/device:CPU:0"),
        ("/job:localhost/cpu:0", "/job:localhost/device:CPU:0"),
        ("/replica:0/task:0", "/replica:0/task:0"),
        ("", ""),
        (None, ""),
    ],
)
def test_names_of_devices(device: Any, name: str) -> None:
    with tf.device(device):
        c = tf.constant(1)
    assert c.device == c.op.device == name and tf.Session().run(c) == 1


@pytest.mark.parametrize("device", ["/foo:0", "a/b", "/cpu:x"])
def test_no_device_names(device: str) -> None:
    with pytest.raises(ValueError, match=r"Unknown attribute|invalid literal"), tf.device(device):
        tf.constant(1)


@pytest.mark.parametrize(
    "device, soft", [("/gpu:0", True), ("/cpu:1", True), ("/device:FOO:0", True), ("/job:x", False)]
)
def test_absent_devices(device: str, soft: bool) -> None:
    with tf.device(device):
        c = tf.constant(1) + 2
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"(?s)Cannot assign a device.*made at"
    ) as e:
        tf.Session().run(c)
    assert "test_session_options.py" in str(e.value)
    session = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))
    if soft:
        assert session.run(c) == 3
    else:
        with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot assign"):
            session.run(c)


def test_interactive_sessions_place_only_what_they_run() -> None:
    with tf.device("/gpu:0"):
        tf.constant(1)
    two = tf.constant(2)
    session = tf.InteractiveSession()
    assert two.eval() == 2
    session.close()
    with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot assign a device"):
        tf.Session().run(two)
    options = tf.GraphOptions(place_pruned_graph=True)
    assert tf.Session(config=tf.ConfigProto(graph_options=options)).run(two) == 2


def test_graph_def_with_shapes() -> None:
    tf.constant([[1, 2]])
    options = tf.GraphOptions(infer_shapes=True)
    session = tf.Session(config=tf.ConfigProto(graph_options=options))
    assert "_output_shapes" in session.graph_def.node[0].attr
    assert "_output_shapes" not in tf.Session().graph_def.node[0].attr


def test_a_server_has_a_config_for_its_sessions() -> None:
    server = tf.train.Server.create_local_server(config=tf.ConfigProto(operation_timeout_in_ms=200))
    dequeued = tf.FIFOQueue(1, tf.float32).dequeue()
    with tf.Session(server.target) as session:
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(dequeued)


def test_device_count() -> None:
    with tf.device("/cpu:1"):
        c = tf.constant(1)
    s = tf.Session(config=tf.ConfigProto(device_count={"CPU": 2, "GPU": 0}))
    assert s.run(c) == 1 and [d.name[-5:] for d in s.list_devices()] == ["CPU:0", "CPU:1"]
    with pytest.raises(tf.errors.NotFoundError):
        tf.Session(config=tf.ConfigProto(device_count={"CPU": 0}))


def test_log_device_placement(capsys: pytest.CaptureFixture[str]) -> None:
    with tf.device("/gpu:0"):
        c = tf.constant(1, name="a") + tf.constant(2, name="b")
    config = tf.ConfigProto(log_device_placement=True, allow_soft_placement=True)
    s = tf.Session(config=config)
    s.run(c)
    s.run([c])
    lines = capsys.readouterr().err.splitlines()
    place = "/job:localhost/replica:0/task:0/device:CPU:0"
    assert lines[0].startswith("Device mapping")
    assert lines[1:] == [
        f"a: (Const): {place}",
        f"b: (Const): {place}",
        f"{c.op.name}: ({c.op.type}): {place}",
    ]


def test_empty_graph() -> None:
    with pytest.raises(RuntimeError, match="Session graph is empty"):
        tf.Session(graph=tf.Graph()).run([])


def test_a_session_is_entered_once() -> None:
    s = tf.Session()
    with s, pytest.raises(RuntimeError, match="not re-entrant"), s:
        pass
    s = tf.Session()
    with s.as_default(), s.as_default():
        assert s.run(tf.constant(1)) == 1


def test_tensors_inside_loops() -> None:
    inside: list[Any] = []

    def body(i: Any) -> Any:
        inside.extend([i * 2, tf.constant(7), tf.no_op()])
        return i + inside[1]

    loop = tf.while_loop(lambda i: i < 3, body, [0])
    s = tf.Session()
    for fetch in inside:
        with pytest.raises(ValueError, match="not fetchable"):
            s.run(fetch)
    with pytest.raises(ValueError, match="may not be fed"):
        s.run(loop, {inside[0]: 5})
    assert s.run(loop) == 7


# errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", ["numpy", "reference"])
@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("use", ["read", "add", "fetch"])
def test_uninitialised_variables_are_named(use: str, resource: bool, executor: str) -> None:
    v = tf.Variable(1.0, name="weights", use_resource=resource)
    fetch = {"read": lambda: v + 1.0, "add": lambda: v.assign_add(1.0), "fetch": lambda: v}[use]()
    not_found = resource and use == "add"  # as in TensorFlow
    error = tf.errors.NotFoundError if not_found else tf.errors.FailedPreconditionError
    with pytest.raises(error) as e:
        tf.Session(executor=executor).run(fetch)
    assert "weights" in str(e.value) and "[[node " in str(e.value)
    assert "test_session_options.py" in str(e.value)


def test_errors_of_a_kernel_library_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise RuntimeError("status 3")

    monkeypatch.setattr(lookup("Softsign"), "kernel", refuse)
    x = tf.placeholder(tf.float32, [2])
    with pytest.raises(tf.errors.InternalError, match=r"(?s)status 3.*node Softsign.*made at"):
        tf.Session().run(tf.nn.softsign(x), {x: [1.0, 2.0]})


# time limits ------------------------------------------------------------------------------------


def _endless() -> Any:
    return tf.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 1000, [0])


def test_timeout_of_a_run() -> None:
    y, c = _endless(), tf.constant(5)
    s = tf.Session()
    for _ in range(2):
        start = time.monotonic()
        with pytest.raises(tf.errors.DeadlineExceededError):
            s.run(y, options=tf.RunOptions(timeout_in_ms=100))
        assert time.monotonic() - start < 120
    assert s.run(c) == 5
    assert s.run(c, options=tf.RunOptions(timeout_in_ms=60000)) == 5


def test_timeout_of_a_session() -> None:
    y, x = _endless(), tf.placeholder(tf.float32, [None])
    s = tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=200))
    with pytest.raises(tf.errors.DeadlineExceededError):
        s.run(y)
    np.testing.assert_array_equal(s.run(x * 2.0, {x: [1, 2]}), [2.0, 4.0])
    with pytest.raises(tf.errors.InvalidArgumentError):  # errors come through
        s.run(tf.reshape(x, [3]), {x: [1, 2]})


def test_the_run_is_stopped_and_tears_nothing() -> None:
    vs = [tf.Variable(0.0) for _ in range(4)]

    def body(i: Any) -> Any:
        with tf.control_dependencies([v.assign_add(1.0) for v in vs]):
            return i + 1

    loop = tf.while_loop(lambda i: i < 200, body, [0])
    s = tf.Session()
    s.run(tf.global_variables_initializer())
    for _ in range(10):
        try:
            s.run(loop, options=tf.RunOptions(timeout_in_ms=1))
        except tf.errors.DeadlineExceededError:
            time.sleep(0.1)
        assert len(set(map(float, s.run(vs)))) == 1
    name = "headrace deadline"
    deadline = time.monotonic() + 120
    s2 = tf.Session()
    with pytest.raises(tf.errors.DeadlineExceededError):
        s2.run(_endless(), options=tf.RunOptions(timeout_in_ms=50))
    from headrace.session import deadlines

    while time.monotonic() < deadline:
        running = [t for t in threading.enumerate() if t.name == name and t not in deadlines._idle]
        if not running:
            return
        time.sleep(0.05)
    raise AssertionError("a run that is late goes on forever")


# Python functions -------------------------------------------------------------------------------


def test_python_functions_that_wait_for_each_other() -> None:
    first, second = threading.Event(), threading.Event()

    def f(x: Any) -> Any:
        first.set()
        assert second.wait(120)
        return x + 1

    def g(x: Any) -> Any:
        second.set()
        assert first.wait(120)
        return x * 2

    x = tf.placeholder(tf.float32, [2])
    a, b = tf.py_func(f, [x], tf.float32), tf.py_func(g, [x], tf.float32)
    s = tf.Session()
    for fetches in ([a, b, a + b], [b, a, a + b], tf.group(a, b)):
        first.clear()
        second.clear()
        got = s.run(fetches, {x: [1.0, 2.0]})
    assert got is None and s.run(a + b, {x: [1.0, 2.0]}).tolist() == [4.0, 7.0]


def test_python_functions_run_in_order() -> None:
    seen: list[int] = []

    def note(i: int) -> Any:
        return lambda x: (seen.append(i), x)[1]

    x = tf.placeholder(tf.float32, [2])
    ys = [tf.py_func(note(i), [x], tf.float32) for i in range(5)]
    with tf.control_dependencies(ys):
        last = tf.py_func(note(5), [x], tf.float32)
    s = tf.Session()
    s.run([last, *ys], {x: [1.0, 2.0]})
    assert seen == list(range(6))


def test_errors_of_python_functions_beside_others() -> None:
    def bad(x: Any) -> Any:
        raise ValueError("no")

    x = tf.placeholder(tf.float32, [2])
    ys = [tf.py_func(f, [x], tf.float32) for f in (bad, lambda x: x)]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"no(.|\n)*made at"):
        tf.Session().run(ys, {x: [1.0, 2.0]})
