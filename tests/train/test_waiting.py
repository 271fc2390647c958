"""What waits for a queue ends.

When the session closes, when the queue closes, when a coordinator stops.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest

import headrace as tf
from tests.train.time_limit import until_it_waits, within


def _in_thread(call: Any) -> tuple[threading.Thread, list[Any]]:
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(call())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, found


def _waiting(call: Any) -> tuple[threading.Thread, list[Any]]:
    thread, found = _in_thread(call)
    until_it_waits(thread)
    return thread, found


@pytest.mark.parametrize("kind", ["fifo", "shuffle"])
def test_enqueue_wakes_a_dequeue_of_many(kind: str) -> None:
    if kind == "fifo":
        q: Any = tf.FIFOQueue(10, tf.int32, shapes=[()])
    else:
        q = tf.RandomShuffleQueue(10, 0, tf.int32, shapes=[()])
    x = tf.placeholder(tf.int32, [])
    put, many = q.enqueue(x), q.dequeue_many(3)
    with tf.Session() as sess:
        thread, found = _waiting(lambda: sess.run(many))
        for i in range(3):
            sess.run(put, {x: i})
        thread.join(120)
        assert sorted(found[0].tolist()) == [0, 1, 2]


def test_a_full_queue_blocks_and_a_dequeue_frees_it() -> None:
    q = tf.FIFOQueue(1, tf.int32, shapes=[()])
    many, get = q.enqueue_many([[1, 2, 3]]), q.dequeue()
    with tf.Session() as sess:
        thread, found = _waiting(lambda: sess.run(many))
        assert [within(120, lambda: int(sess.run(get))) for _ in range(3)] == [1, 2, 3]
        thread.join(120)
        assert found == [None]


def test_closing_the_session_ends_waiting() -> None:
    q = tf.FIFOQueue(1, tf.int32)
    get = q.dequeue()
    sess = tf.Session()
    thread, found = _waiting(lambda: sess.run(get))
    sess.close()
    thread.join(120)
    assert isinstance(found[0], tf.errors.CancelledError)


def test_close_with_cancel_ends_enqueues_and_leaves_elements() -> None:
    q = tf.FIFOQueue(1, tf.int32, shapes=[()])
    put, get = q.enqueue(1), q.dequeue()
    with tf.Session() as sess:
        sess.run(put)
        thread, found = _waiting(lambda: sess.run(put))
        sess.run(q.close(cancel_pending_enqueues=True))
        thread.join(120)
        assert isinstance(found[0], tf.errors.CancelledError)
        assert sess.run(get) == 1
        with pytest.raises(tf.errors.OutOfRangeError, match="closed and has insufficient elements"):
            sess.run(get)


def test_close_waits_for_pending_enqueues() -> None:
    q = tf.FIFOQueue(1, tf.int32, shapes=[()])
    put, get, close = q.enqueue(1), q.dequeue(), q.close()
    with tf.Session() as sess:
        sess.run(put)
        first, _ = _waiting(lambda: sess.run(put))
        second, _ = _waiting(lambda: sess.run(close))
        assert [sess.run(get), sess.run(get)] == [1, 1]
        first.join(120)
        second.join(120)
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(get)


def test_elements_are_the_queues_own() -> None:
    q = tf.FIFOQueue(9, tf.float32, shapes=[[2]])
    x = tf.placeholder(tf.float32, [2])
    put, many, get = q.enqueue(x), q.enqueue_many([[[5.0, 6.0], [7.0, 8.0]]]), q.dequeue()
    import numpy as np

    fed = np.array([1.0, 2.0], np.float32)
    with tf.Session() as sess:
        sess.run(put, {x: fed})
        fed[:] = 0
        sess.run(many)
        first, second, third = (sess.run(get) for _ in range(3))
        second[:] = -1
    assert first.tolist() == [1.0, 2.0]
    assert third.tolist() == [7.0, 8.0]


def test_coordinator_raises_what_a_thread_reports() -> None:
    coord = tf.train.Coordinator()

    def work() -> None:
        with coord.stop_on_exception():
            raise KeyError("lost")

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    with pytest.raises(KeyError, match="lost"):
        within(120, lambda: coord.join(threads))
    assert coord.should_stop()
    coord.clear_stop()
    assert not coord.should_stop()
    coord.request_stop(tf.errors.OutOfRangeError(None, None, "the end"))
    within(120, lambda: coord.join(threads))


def test_coordinator_names_threads_that_do_not_stop() -> None:
    coord = tf.train.Coordinator()
    end = threading.Event()
    thread = threading.Thread(target=end.wait, name="stubborn", daemon=True)
    thread.start()
    coord.request_stop()
    with pytest.raises(RuntimeError, match="stubborn"):
        within(120, lambda: coord.join([thread], stop_grace_period_secs=0.1))
    within(120, lambda: coord.join([thread], stop_grace_period_secs=0.1, ignore_live_threads=True))
    end.set()


def test_a_runner_without_coordinator_keeps_its_error() -> None:
    q = tf.FIFOQueue(9, tf.int32)
    x = tf.placeholder(tf.int32, [])
    runner = tf.train.QueueRunner(q, [q.enqueue(x)])
    with tf.Session() as sess:
        (thread,) = runner.create_threads(sess, start=True)
        thread.join(120)
    assert isinstance(runner.exceptions_raised[0], tf.errors.InvalidArgumentError)


test_a_runner_without_coordinator_keeps_its_error = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnhandledThreadExceptionWarning"
)(test_a_runner_without_coordinator_keeps_its_error)


def test_looper_thread() -> None:
    coord = tf.train.Coordinator()
    calls: list[int] = []

    def work() -> None:
        calls.append(1)
        if len(calls) == 3:
            coord.request_stop()

    tf.train.LooperThread.loop(coord, 0.001, work)
    within(120, coord.join)
    assert len(calls) == 3
