"""AUTOTUNE follows measured waits: a model of the reader and the workers on a clock of its own, so
that nothing depends on how busy the machine is.
"""

from __future__ import annotations

import numpy as np
import pytest

from headrace.data.runtime import parallel, prefetch
from headrace.data.runtime.prefetch import TunedPass
from headrace.data.runtime.sources import ListPass, RangeStage
from headrace.data.runtime.stages import Context


class Channel:
    def __init__(self) -> None:
        self.consumer_waits = 0.0
        self.places = 2

    def grow(self, more: int) -> None:
        self.places += more


class Crew:
    """Workers that take ``cost`` seconds for an element.

    More than ``useful`` of them bring nothing.
    """

    def __init__(self, cost: float, useful: int) -> None:
        self.channel = Channel()
        self.workers = 1
        self.job_size = 0
        self.most_at_once = 1
        self.cost = cost
        self.useful = useful

    def hire(self) -> None:
        self.workers += 1
        self.most_at_once = max(self.most_at_once, self.workers)

    def dismiss(self) -> None:
        self.workers -= 1

    def seconds(self) -> float:
        """Between two elements."""
        return self.cost / min(self.workers, self.useful)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def reads(crew: Crew, reader_seconds: float, cores: int, elements: int = 2000) -> parallel.Tuner:
    """A reader that takes ``reader_seconds`` for each element, for so many elements."""
    clock = Clock()
    tuner = parallel.Tuner(crew, cores, clock)  # type: ignore[arg-type]
    tuner.most = cores
    tuner.settled = cores == 1
    for _ in range(elements):
        waited = max(0.0, crew.seconds() - reader_seconds)
        crew.channel.consumer_waits += waited
        clock.now += reader_seconds + waited
        tuner.job_read(1)
    return tuner


@pytest.mark.parametrize("cores", [2, 4, 8])
def test_a_slow_function_gets_all_cores(cores: int) -> None:
    crew = Crew(cost=10e-3, useful=cores)
    reads(crew, 1e-4, cores)
    assert crew.workers == cores
    assert crew.channel.places == 2 + 2 * (cores - 1)


def test_as_many_workers_as_the_reader_needs() -> None:
    crew = Crew(cost=10e-3, useful=8)
    reads(crew, 3.4e-3, 8)  # three of them keep up
    assert crew.workers == 3


def test_a_fast_function_keeps_one_worker() -> None:
    crew = Crew(cost=1e-4, useful=8)
    reads(crew, 1e-3, 8)
    assert crew.workers == crew.most_at_once == 1


def test_a_worker_that_brings_nothing_is_sent_away() -> None:
    crew = Crew(cost=10e-3, useful=1)  # a function that holds a lock, say
    tuner = reads(crew, 1e-4, 8)
    assert crew.workers == 1 and crew.most_at_once == 2 and tuner.settled


def test_a_reader_that_becomes_faster() -> None:
    crew = Crew(cost=4e-3, useful=4)
    clock = Clock()
    tuner = parallel.Tuner(crew, 4, clock)  # type: ignore[arg-type]
    tuner.most, tuner.settled = 4, False
    for reader in (5e-3, 5e-4):
        for _ in range(500):
            waited = max(0.0, crew.seconds() - reader)
            crew.channel.consumer_waits += waited
            clock.now += reader + waited
            tuner.job_read(1)
        if reader == 5e-3:
            assert crew.workers == 1
    assert crew.workers == 4


def test_the_next_pass_begins_with_what_was_useful() -> None:
    learned = parallel.Learned()

    def reads_of(crew: Crew) -> None:
        clock = Clock()
        tuner = parallel.Tuner(crew, 4, clock, learned)  # type: ignore[arg-type]
        tuner.most, tuner.settled = 4, False
        for _ in range(500):
            crew.channel.consumer_waits += crew.seconds()
            clock.now += crew.seconds()
            tuner.job_read(1)

    reads_of(Crew(cost=4e-3, useful=1))
    assert learned.workers == 1
    reads_of(Crew(cost=4e-3, useful=3))
    assert learned.workers == 3
    stage = parallel.ParallelMapStage(
        RangeStage(0, 50, 1), lambda x: (x,), -1, True, True, learned=learned
    )
    a_pass = Context().start(stage)
    assert a_pass.crew.channel.size == 6  # type: ignore[attr-defined]
    assert [int(e[0]) for e in a_pass] == list(range(50))


def test_while_jobs_grow_their_rate_is_not_looked_at() -> None:
    """They become quicker by that: it is not due to another worker."""
    crew, clock = Crew(cost=1e-3, useful=1), Clock()
    tuner = parallel.Tuner(crew, 4, clock)  # type: ignore[arg-type]
    tuner.most, tuner.settled = 4, False
    for size in (1, 2, 4, 8, 16, 32, 64):
        crew.job_size = size
        for _ in range(parallel.FEW - 1):
            crew.channel.consumer_waits += 5e-3
            clock.now += 5e-3
            tuner.job_read(size)
    assert crew.workers == 1 and tuner.rate_before is None


def test_it_does_not_wait_for_many_long_jobs() -> None:
    """Jobs of 10 ms: the second worker comes after a few of them, not after a full window."""
    crew = Crew(cost=10e-3, useful=2)
    reads(crew, 0.0, 2, elements=parallel.FEW)
    assert crew.workers == 2
    quick = Crew(cost=1e-5, useful=2)
    reads(quick, 0.0, 2, elements=parallel.WINDOW - 1)
    assert quick.workers == 1
    reads(quick, 0.0, 2, elements=parallel.WINDOW)
    assert quick.workers == 2


def model(producer: list[float], reader: list[float], size: int) -> tuple[float, float, float]:
    """Seconds that the two sides of a buffer waited, and that all took, from the times that they
    take for each element.
    """
    made: list[float] = []  # when each element was ready
    taken: list[float] = []  # when each element was taken
    producer_waits = reader_waits = now = free = 0.0
    for i, (p, r) in enumerate(zip(producer, reader)):
        room = taken[i - size] if i >= size else 0.0
        producer_waits += max(0.0, room - free)
        free = max(free, room) + p
        made.append(free)
        reader_waits += max(0.0, free - now)
        now = max(now, free)
        taken.append(now)
        now += r
    return producer_waits, reader_waits, now


def depth_after(producer: list[float], reader: list[float], rounds: int = 12) -> int:
    clock = Clock()
    a_pass = TunedPass(ListPass([(np.zeros(1),)]), prefetch.FIRST_DEPTH, "prefetch", clock)
    totals = [0.0, 0.0]
    try:
        for _ in range(rounds):
            *waits, seconds = model(producer, reader, a_pass.channel.size)
            totals = [t + w for t, w in zip(totals, waits)]
            clock.now += seconds
            a_pass.channel.producer_waits, a_pass.channel.consumer_waits = totals
            a_pass._tune((np.zeros(1),))
        return a_pass.channel.size
    finally:
        a_pass.close()


def test_a_producer_in_bursts_gets_a_deeper_buffer() -> None:
    """Sixteen quick elements, then a pause.

    Only a buffer for the whole burst keeps the reader busy.
    """
    burst = ([1e-4] * 16 + [20e-3]) * 20
    steady = [1.5e-3] * len(burst)
    depth = depth_after(burst, steady)
    assert depth >= 8
    assert model(burst, steady, depth)[1] < 0.5 * model(burst, steady, prefetch.FIRST_DEPTH)[1]


@pytest.mark.parametrize(("producer", "reader"), [(1e-3, 5e-3), (5e-3, 1e-3)])
def test_a_steady_pipeline_keeps_its_buffer(producer: float, reader: float) -> None:
    """Where one side is always the slower, more room does not help."""
    made, read = [producer] * 300, [reader] * 300
    first = model(made, read, prefetch.FIRST_DEPTH)
    assert model(made, read, 64)[1] == pytest.approx(first[1], rel=0.1, abs=2e-2)
    assert depth_after(made, read) == prefetch.FIRST_DEPTH
