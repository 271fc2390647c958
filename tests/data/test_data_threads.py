"""Threads of pipelines: they end when nobody reads any more, errors come in order, nothing
hangs.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.data.runtime.interleave import ParallelInterleaveStage
from headrace.data.runtime.parallel import Crew, ParallelMapStage, _pull
from headrace.data.runtime.prefetch import PrefetchStage
from headrace.data.runtime.simple_stages import RepeatStage
from headrace.data.runtime.sources import RangeStage
from headrace.data.runtime.stages import Context, Element, Pass, Stage


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("headrace-")]


def no_threads_left(within: float = 120.0) -> bool:
    end = time.monotonic() + within
    while threads() and time.monotonic() < end:
        gc.collect()
        time.sleep(0.01)
    return not threads()


@pytest.fixture(autouse=True)
def none_before() -> None:
    assert no_threads_left()


STAGES = {
    "prefetch": lambda s: PrefetchStage(s, 3),
    "prefetch_tuned": lambda s: PrefetchStage(s, -1),
    "map": lambda s: ParallelMapStage(s, lambda x: (x + 1,), 3, True, True),
    "map_sloppy": lambda s: ParallelMapStage(s, lambda x: (x + 1,), 3, False, True),
    "map_tuned": lambda s: ParallelMapStage(s, lambda x: (x + 1,), -1, True, True),
    "interleave": lambda s: ParallelInterleaveStage(
        s, lambda x: (RepeatStage(RangeStage(0, 4, 1), 2),), 3, 2, 2, True
    ),
    "interleave_sloppy": lambda s: ParallelInterleaveStage(
        s, lambda x: (RepeatStage(RangeStage(0, 4, 1), 2),), 3, 2, 2, False
    ),
    "both": lambda s: PrefetchStage(
        ParallelMapStage(PrefetchStage(s, 1), lambda x: (x,), 2, True, True), 1
    ),
}


@pytest.mark.parametrize("name", STAGES)
def test_a_complete_pass_ends_its_threads(name: str) -> None:
    found = list(Context().start(STAGES[name](RangeStage(0, 50, 1))))
    assert len(found) == (400 if "interleave" in name else 50)
    assert no_threads_left()


@pytest.mark.parametrize("name", STAGES)
def test_a_dropped_pass_ends_its_threads(name: str) -> None:
    a_pass = Context().start(STAGES[name](RepeatStage(RangeStage(0, 50, 1), -1)))
    next(a_pass)
    assert threads()
    del a_pass
    assert no_threads_left()


@pytest.mark.parametrize("name", STAGES)
def test_a_closed_pass_ends_its_threads(name: str) -> None:
    a_pass = Context().start(STAGES[name](RepeatStage(RangeStage(0, 50, 1), -1)))
    next(a_pass)
    a_pass.close()
    a_pass.close()
    assert no_threads_left()


def test_order_is_the_sources() -> None:
    def slow_sometimes(x: Any) -> Element:
        if x % 7 == 0:
            time.sleep(0.002)
        return (x,)

    stage = ParallelMapStage(RangeStage(0, 60, 1), slow_sometimes, 4, True, True)
    assert [int(e[0]) for e in Context().start(stage)] == list(range(60))
    sloppy = ParallelMapStage(RangeStage(0, 60, 1), slow_sometimes, 4, False, True)
    assert sorted(int(e[0]) for e in Context().start(sloppy)) == list(range(60))


def test_another_worker_may_change_the_size_of_jobs() -> None:
    """While elements are read: what was asked for counts, not what the next job will have."""
    source = Context().start(RangeStage(0, 50, 1))
    crew = Crew(source, lambda x: (x,), None, True, True, 2)
    plain = source.many

    def many(n: int) -> list[Element]:
        crew.job_size = 16
        return plain(n)

    source.many = many  # type: ignore[method-assign]
    crew.job_size = 4
    assert len(_pull(crew, time.perf_counter())) == 4
    assert not crew.ended


def test_calls_overlap() -> None:
    together = threading.Barrier(3, timeout=120)

    def meet(x: Any) -> Element:
        time.sleep(0.002)  # long enough to be a job of its own
        together.wait()
        return (x,)

    assert (
        len(list(Context().start(ParallelMapStage(RangeStage(0, 9, 1), meet, 3, True, True)))) == 9
    )


class Failing(Stage):
    """Raises for every third element."""

    def start(self, ctx: Context) -> Pass:
        return FailingPass()


class FailingPass(Pass):
    at = -1

    def __next__(self) -> Element:
        self.at += 1
        if self.at >= 9:
            raise StopIteration
        if self.at % 3 == 2:
            raise tf.errors.DataLossError(None, None, f"element {self.at}")
        return (np.int64(self.at),)


@pytest.mark.parametrize("name", ["prefetch", "prefetch_tuned", "map", "map_tuned", "both"])
def test_errors_come_in_order(name: str) -> None:
    a_pass = Context().start(STAGES[name](Failing()))
    found: list[Any] = []
    while True:
        try:
            found.append(int(next(a_pass)[0]))
        except StopIteration:
            break
        except tf.errors.DataLossError as error:
            found.append(str(error))
    step = 1 if name.startswith("map") else 0
    assert found == [f"element {i}" if i % 3 == 2 else i + step for i in range(9)]


def test_sessions_leave_no_threads() -> None:
    with tf.Graph().as_default():
        ds = (
            tf.data.Dataset.range(1000)
            .repeat()
            .map(lambda x: x + 1, num_parallel_calls=2)
            .batch(4)
            .prefetch(2)
        )
        element = ds.make_one_shot_iterator().get_next()
        with tf.Session() as session:
            session.run(element)
            assert threads()
        assert no_threads_left()
        dropped = tf.Session()
        dropped.run(element)
        del dropped
        assert no_threads_left()


def test_initializing_again_ends_the_old_threads() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        iterator = tf.data.Dataset.range(1000).repeat().prefetch(2).make_initializable_iterator()
        element = iterator.get_next()
        for _ in range(5):
            session.run(iterator.initializer)
            assert session.run(element) == 0
        end = time.monotonic() + 120
        while len(threads()) > 1 and time.monotonic() < end:
            time.sleep(0.01)
        assert len(threads()) == 1
    assert no_threads_left()


def python(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_hangs_at_exit() -> None:
    python("""
        import headrace as tf
        ds = tf.data.Dataset.range(10).repeat()
        ds = ds.map(lambda x: x + 1, num_parallel_calls=2).prefetch(2)
        element = ds.make_one_shot_iterator().get_next()
        session = tf.Session()
        session.run(element)
    """)


def test_a_generator_that_waits_does_not_hang_the_exit() -> None:
    python("""
        import threading
        import headrace as tf
        def wait():
            yield 1
            threading.Event().wait()
        ds = tf.data.Dataset.from_generator(wait, tf.int32, []).prefetch(2)
        element = ds.make_one_shot_iterator().get_next()
        tf.Session().run(element)
    """)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_does_not_hang() -> None:
    text = python("""
        import os, warnings
        warnings.simplefilter("ignore")
        import headrace as tf
        ds = tf.data.Dataset.range(10).repeat().prefetch(2)
        element = ds.make_one_shot_iterator().get_next()
        session = tf.Session()
        assert session.run(element) == 0
        child = os.fork()
        if not child:
            try:
                session.run(element)
            except tf.errors.FailedPreconditionError as error:
                os._exit(7 if "fork" in str(error) else 8)
            os._exit(9)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), session.run(element))
    """)
    assert text.split() == ["7", "1"]


def test_closing_the_session_ends_a_reduction() -> None:
    endless = tf.data.Dataset.from_tensors(1).repeat()
    total = endless.reduce(0, lambda state, x: state + x)
    session, started, found = tf.Session(), threading.Event(), []

    def run() -> None:
        started.set()
        try:
            session.run(total)
        except tf.errors.OpError as error:
            found.append(type(error).__name__)

    thread = threading.Thread(target=run)
    thread.start()
    started.wait(10)
    time.sleep(0.2)
    session.close()
    thread.join(20)
    assert found == ["CancelledError"]
