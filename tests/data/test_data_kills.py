"""Whatever ends early: a consumer that fails, an iterator that is dropped, a session that is
closed, an interpreter that exits, a key that is pressed. Nothing hangs, and no thread stays.
"""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import headrace as tf
from headrace.api import v2
from headrace.eager.eager_context import eager_mode
from tests.data.test_data_threads import no_threads_left, threads

LONG = 20.0


@pytest.fixture(autouse=True)
def none_before() -> None:
    assert no_threads_left()


def endless(dataset: Any) -> Any:
    return dataset.repeat().map(lambda x: x + 1, num_parallel_calls=2).batch(4).prefetch(2)


def program(text: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_a_consumer_that_fails() -> None:
    with eager_mode():
        with pytest.raises(RuntimeError, match="enough"):
            for i, _ in enumerate(endless(v2.data.Dataset.range(10))):
                if i == 3:
                    raise RuntimeError("enough")
        assert no_threads_left()


def test_a_consumer_that_breaks_off() -> None:
    with eager_mode():
        for _ in endless(v2.data.Dataset.range(10)):
            break
        assert no_threads_left()
        iterator = endless(v2.data.Dataset.range(10)).as_numpy_iterator()
        next(iterator)
        assert threads()
        del iterator
        assert no_threads_left()


def test_an_iterator_that_is_part_of_a_cycle() -> None:
    class Holder:
        pass

    with eager_mode():
        holder = Holder()
        holder.me = holder  # type: ignore[attr-defined]
        holder.iterator = iter(endless(v2.data.Dataset.range(10)))  # type: ignore[attr-defined]
        next(holder.iterator)  # type: ignore[attr-defined]
        del holder
        gc.collect()
        assert no_threads_left()


class Gate:
    """A generator that waits until it is let go."""

    def __init__(self) -> None:
        self.waiting = threading.Event()
        self.open = threading.Event()

    def numbers(self) -> Iterator[int]:
        yield 1
        self.waiting.set()
        self.open.wait(LONG)
        yield 2


@pytest.mark.parametrize("kind", ["prefetch", "map", "plain"])
def test_closing_a_session_while_a_run_waits(kind: str) -> None:
    gate, found = Gate(), []
    with tf.Graph().as_default():
        ds = tf.data.Dataset.from_generator(gate.numbers, tf.int64, [])
        if kind == "prefetch":
            ds = ds.prefetch(1)
        elif kind == "map":
            ds = ds.map(lambda x: x, num_parallel_calls=2)
        element = ds.make_one_shot_iterator().get_next()
        session = tf.Session()
        assert session.run(element) == 1

        def wait() -> None:
            try:
                found.append(session.run(element))
            except tf.errors.OpError as error:
                found.append(type(error).__name__)

        thread = threading.Thread(target=wait)
        thread.start()
        assert gate.waiting.wait(LONG)
        time.sleep(0.05)
        session.close()  # does not wait for the generator
        if kind != "plain":  # there the run is inside the user's generator, which nobody can stop
            thread.join(LONG)
            assert found == ["CancelledError"]
        gate.open.set()
        thread.join(LONG)
        assert not thread.is_alive()
    assert no_threads_left()


def test_a_mapped_function_that_waits_when_the_session_is_closed() -> None:
    started, go_on, found = threading.Event(), threading.Event(), []

    def slow(x: Any) -> Any:
        started.set()
        go_on.wait(LONG)
        return x

    with tf.Graph().as_default():
        ds = tf.data.Dataset.range(4).map(lambda x: tf.py_func(slow, [x], tf.int64), 2)
        element = ds.make_one_shot_iterator().get_next()
        session = tf.Session()

        def wait() -> None:
            try:
                session.run(element)
            except tf.errors.CancelledError:
                found.append("cancelled")

        thread = threading.Thread(target=wait)
        thread.start()
        assert started.wait(LONG)
        time.sleep(0.05)
        session.close()
        thread.join(LONG)
        assert found == ["cancelled"]
        go_on.set()
    assert no_threads_left()


@pytest.mark.parametrize("where", ["generator", "map", "parallel map"])
def test_exit_in_the_users_code_is_not_lost(where: str) -> None:
    def leave(x: Any = None) -> Any:
        raise SystemExit(3)

    def numbers() -> Iterator[int]:
        yield 1
        if where == "generator":
            leave()
        yield 2

    with eager_mode():
        ds = v2.data.Dataset.from_generator(numbers, v2.int64, [])
        if where != "generator":
            calls = 2 if "parallel" in where else None
            ds = ds.map(lambda x: v2.numpy_function(leave, [x], v2.int64), calls)
        iterator = iter(ds.prefetch(1))
        with pytest.raises(SystemExit):
            for _ in range(3):
                next(iterator)
        del iterator
    assert no_threads_left()


def test_exit_with_everything_running() -> None:
    done = program("""
        import headrace as tf
        from headrace.api import v2
        tf.enable_eager_execution()
        def forever():
            i = 0
            while True:
                yield i
                i += 1
        D = v2.data.Dataset
        ds = D.from_generator(forever, v2.int64, [])
        ds = ds.interleave(lambda x: D.range(x), 3, num_parallel_calls=2)
        copy = lambda x: v2.numpy_function(lambda v: v, [x], v2.int64)
        ds = ds.map(copy, num_parallel_calls=-1).batch(3).prefetch(-1)
        iterator = iter(ds)
        print([len(next(iterator).numpy()) for _ in range(5)])
    """)
    out, err = done.communicate(timeout=300)
    assert done.returncode == 0 and out.strip() == "[3, 3, 3, 3, 3]" and not err, err


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("kind", ["prefetch", "map", "plain"])
def test_a_key_that_is_pressed_while_an_element_is_waited_for(kind: str) -> None:
    steps = {
        "prefetch": "ds.prefetch(1)",
        "plain": "ds",
        "map": "ds.map(lambda x: x, num_parallel_calls=2)",
    }
    running = program(f"""
        import signal, threading
        import headrace as tf
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
        def wait():
            yield 1
            print("waiting", flush=True)
            threading.Event().wait()
        ds = tf.data.Dataset.from_generator(wait, tf.int64, [])
        element = {steps[kind]}.make_one_shot_iterator().get_next()
        session = tf.Session()
        session.run(element)
        try:
            session.run(element)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """)
    try:
        assert running.stdout is not None and running.stdout.readline() == "waiting\n"
        time.sleep(0.2)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=300)
        assert out == "interrupted\n" and running.returncode == 0, err
    finally:
        running.kill()


def test_a_killed_process_leaves_nothing_that_waits() -> None:
    """Threads are daemons of their process: killing it ends them, whatever they do."""
    running = program("""
        import headrace as tf
        ds = tf.data.Dataset.range(10).repeat()
        ds = ds.map(lambda x: x + 1, num_parallel_calls=2).prefetch(2)
        element = ds.make_one_shot_iterator().get_next()
        session = tf.Session()
        session.run(element)
        print("running", flush=True)
        while True:
            session.run(element)
    """)
    assert running.stdout is not None and running.stdout.readline() == "running\n"
    running.kill()
    assert running.wait(60) != 0
