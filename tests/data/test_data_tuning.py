"""AUTOTUNE: what is decided from which waits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from headrace.data.runtime import parallel, prefetch
from headrace.data.runtime.prefetch import PrefetchStage, TunedPass
from headrace.data.runtime.sources import ListPass, RangeStage
from headrace.data.runtime.stages import Context


class FakeCrew:
    def __init__(self) -> None:
        self.channel = SimpleNamespace(consumer_waits=0.0, grow=lambda n: None)
        self.workers = 1
        self.job_size = 0

    def hire(self) -> None:
        self.workers += 1

    def dismiss(self) -> None:
        self.workers -= 1


def tuner(crew: Any, cores: int) -> parallel.Tuner:
    made = parallel.Tuner(crew)
    made.most = cores
    made.settled = cores == 1
    return made


def window(a_tuner: parallel.Tuner, seconds: float, waiting: float, elements: int) -> None:
    """A window of jobs that took so long, with so much waiting."""
    import time

    a_tuner.start = time.perf_counter() - seconds
    a_tuner.crew.channel.consumer_waits += waiting
    a_tuner.jobs = parallel.WINDOW - 1
    a_tuner.elements = 0
    a_tuner.job_read(elements)


def test_workers_are_added_while_they_help() -> None:
    crew = FakeCrew()
    tuned = tuner(crew, 4)
    window(tuned, 1.0, 0.8, 100)
    assert crew.workers == 2
    window(tuned, 1.0, 0.6, 190)
    assert crew.workers == 3
    window(tuned, 1.0, 0.5, 191)  # the third brought nothing
    assert crew.workers == 2 and tuned.settled
    window(tuned, 1.0, 0.9, 10)
    assert crew.workers == 2


def test_workers_are_not_added_for_a_reader_that_does_not_wait() -> None:
    crew = FakeCrew()
    tuned = tuner(crew, 4)
    window(tuned, 1.0, 0.01, 100)
    assert crew.workers == 1
    window(tuned, 1.0, 0.5, 100)
    assert crew.workers == 2


def test_not_more_workers_than_cores() -> None:
    crew = FakeCrew()
    tuned = tuner(crew, 2)
    for n in (100, 200, 400, 800):
        window(tuned, 1.0, 0.9, n)
    assert crew.workers == 2
    alone = tuner(FakeCrew(), 1)
    window(alone, 1.0, 0.9, 1)
    assert alone.crew.workers == 1


def test_a_tuned_map_gives_all_elements() -> None:
    stage = parallel.ParallelMapStage(RangeStage(0, 3000, 1), lambda x: (x * 2,), -1, True, True)
    assert [int(e[0]) for e in Context().start(stage)] == list(range(0, 6000, 2))


def tuned_pass(element: Any) -> TunedPass:
    return TunedPass(ListPass([(element,)] * 400), prefetch.FIRST_DEPTH, "prefetch")


def test_prefetch_grows_when_both_sides_waited() -> None:
    a_pass = tuned_pass(np.zeros(3))
    for waited, depth in (((1.0, 0.0), 2), ((2.0, 1.0), 4), ((2.0, 2.0), 4), ((3.0, 3.0), 8)):
        a_pass.channel.producer_waits, a_pass.channel.consumer_waits = waited
        a_pass._seen = 2 * a_pass.channel.size
        a_pass._tune((np.zeros(3),))
        assert a_pass.channel.size == depth
    a_pass.close()


def test_prefetch_is_bounded() -> None:
    a_pass = tuned_pass(np.zeros(3))
    large = np.broadcast_to(np.zeros(1), (prefetch.MAX_BYTES // 8 // 3,))
    a_pass.channel.producer_waits = a_pass.channel.consumer_waits = 1.0
    a_pass._tune((large,))
    assert a_pass.channel.size == 2
    for i in range(10):
        a_pass.channel.producer_waits = a_pass.channel.consumer_waits = 2.0 + i
        a_pass._tune((np.zeros(1),))
    assert a_pass.channel.size == prefetch.MAX_DEPTH
    a_pass.close()


def test_a_tuned_prefetch_gives_all_elements() -> None:
    stage = PrefetchStage(RangeStage(0, 500, 1), -1)
    assert [int(e[0]) for e in Context().start(stage)] == list(range(500))
