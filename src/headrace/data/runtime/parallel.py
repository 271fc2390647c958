"""``map`` with several calls under way at once.

Workers take turns at the source: under a lock, one pulls a few elements and puts a *job* for them into the queue of the
reader, so that the order is the source's; then it computes, outside the lock, while the next one pulls. The reader takes
jobs in order and waits for each to be done. Without determinism a job goes into the queue when it is done.

A job has as many elements as take about a millisecond, so that cheap functions do not pay for a change of threads each.
With AUTOTUNE there is one worker at first; while the reader waits for a share of its time, another is added, and it stays
if more elements came through with it.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from headrace import errors
from headrace.arrays.pool import limited
from headrace.data.runtime.base import Context, Element, Pass, Stage
from headrace.data.runtime.mapping import Function, cardinality_kept
from headrace.data.runtime.prefetch import AUTOTUNE
from headrace.data.runtime.threads import (
    END,
    Channel,
    Failure,
    cancelled,
    cpu_count,
    start_thread,
)

__all__ = ["ParallelMapStage", "ParallelPass"]

#: Threads for one map, whatever number was asked for: more would only take turns.
MAX_WORKERS = max(16, 4 * cpu_count())
#: A job is to take about this long, in seconds.
SHORT, LONG = 0.5e-3, 4e-3
MAX_JOB, MAX_LIVE_JOB = 256, 16
#: Between two looks of the tuner are so many jobs, or a few jobs and so many seconds.
WINDOW, FEW, SECONDS = 32, 8, 0.02
#: The waiting share that makes it try another worker, and the gain that this one must bring.
WAITING, GAIN = 0.1, 1.05


class ParallelMapStage(Stage):
    def __init__(
        self,
        source: Stage,
        function: Function,
        calls: int,
        deterministic: bool | None,
        preserve: bool,
    ) -> None:
        if calls != AUTOTUNE and calls <= 0:
            raise errors.InvalidArgumentError(
                None, None, "num_parallel_calls must be greater than zero."
            )
        self.inputs = (source,)
        self.function = function
        self.calls = calls
        self.deterministic = deterministic
        self.preserve = preserve

    def start(self, ctx: Context) -> Pass:
        ordered = ctx.deterministic if self.deterministic is None else self.deterministic
        most = ctx.threads or MAX_WORKERS
        return ParallelPass(ctx.start(self.inputs[0]), self, ordered, most)

    def cardinality(self) -> int:
        return self.inputs[0].cardinality()


class Job:
    """Some elements and, later, what became of them."""

    __slots__ = ("done", "results")

    def __init__(self) -> None:
        self.done = threading.Lock()
        self.done.acquire()
        self.results: list[Any] = []

    def finish(self, results: list[Any]) -> None:
        """Whoever comes first, the worker or the end of the pass, says what the reader gets."""
        if self.done.locked():
            self.results = results
            with contextlib.suppress(RuntimeError):
                self.done.release()


class Crew:
    """What the workers share. It does not refer to the pass that reads from it."""

    def __init__(
        self, source: Pass, function: Function, ordered: bool, preserve: bool, room: int
    ) -> None:
        self.source = source
        self.function = function
        self.ordered = ordered
        self.preserve = preserve
        self.channel = Channel(room)
        self.turn = threading.Lock()  # at the source
        self.ended = False
        self.workers = 0
        self.leaving = 0  # workers that are to go
        self.job_size = 1
        self.count_lock = threading.Lock()

    def hire(self) -> None:
        with self.count_lock:
            self.workers += 1
        start_thread("map", _work, self)

    def dismiss(self) -> None:
        """One worker goes when it next looks."""
        with self.count_lock:
            self.leaving += 1

    def may_go_on(self) -> bool:
        with self.count_lock:
            if self.leaving and self.workers > 1:
                self.leaving -= 1
                return False
        return self.channel.may_produce()

    def leave(self) -> None:
        with self.count_lock:
            self.workers -= 1
            last = not self.workers
        if self.ended or self.channel.stopped:
            self.channel.no_more()  # for the next one
        if last:
            self.channel.ready.put(END)
            self.source.close()


def _work(crew: Crew) -> None:
    try:
        while crew.may_go_on():
            start = time.perf_counter()
            job = Job()
            with crew.turn:
                if crew.ended:
                    break
                elements = _pull(crew, start)
                if not elements:
                    break
                if crew.ordered:
                    crew.channel.ready.put(job)
            with limited(max(1, cpu_count() // crew.workers)):  # the cores are for the workers
                _compute(crew, elements, job)
            if not crew.ordered:
                crew.channel.ready.put(job)
            _resize(crew, time.perf_counter() - start)
    finally:
        crew.leave()


def _pull(crew: Crew, start: float) -> list[Any]:
    """The elements of the next job: fewer if the source is slow."""
    if crew.source.instant:
        elements: list[Any] = list(crew.source.many(crew.job_size))
        crew.ended = len(elements) < crew.job_size
        return elements
    elements = []
    for _ in range(crew.job_size):
        try:
            elements.append(next(crew.source))
        except StopIteration:
            crew.ended = True
            break
        except BaseException as error:  # sys.exit() of the user's code as well: it may not get lost
            elements.append(Failure(error))
        if time.perf_counter() - start > LONG:
            break
    return elements


def _compute(crew: Crew, elements: list[Any], job: Job) -> None:
    function, results = crew.function, []
    try:
        for element in elements:
            if type(element) is not tuple:
                results.append(element)
                continue
            try:
                results.append(function(*element))
            except errors.OutOfRangeError as error:
                if not crew.preserve:
                    results.append(END)
                    break
                results.append(Failure(cardinality_kept(error)))
            except BaseException as error:
                results.append(Failure(error))
    finally:
        job.finish(results)


def _resize(crew: Crew, seconds: float) -> None:
    most = MAX_LIVE_JOB if crew.source.live else MAX_JOB
    if seconds < SHORT and crew.job_size < most:
        crew.job_size *= 2
    elif seconds > LONG and crew.job_size > 1:
        crew.job_size //= 2


class ParallelPass(Pass):
    fresh = True

    def __init__(self, source: Pass, stage: ParallelMapStage, ordered: bool, most: int) -> None:
        tuned = stage.calls == AUTOTUNE
        workers = 1 if tuned else min(stage.calls, most)
        self.crew = Crew(source, stage.function, ordered, stage.preserve, 2 * workers)
        self.tuner = Tuner(self.crew, most) if tuned else None
        self.results: Any = iter(())
        self.ended = False
        self.waited_for: Job | None = None
        self._closer = weakref.finalize(self, self.crew.channel.stop)
        for _ in range(workers):
            self.crew.hire()

    def __next__(self) -> Element:
        for result in self.results:
            return self._given(result)
        while not self.ended:
            job = self.crew.channel.get()
            if type(job) is not Job:
                return self._given(job)
            if not job.done.acquire(blocking=False):
                start = time.perf_counter()
                self.waited_for = job
                job.done.acquire()
                self.waited_for = None
                self.crew.channel.consumer_waits += time.perf_counter() - start
            if self.tuner is not None:
                self.tuner.job_read(len(job.results))
            self.results = iter(job.results)
            for result in self.results:
                return self._given(result)
        raise StopIteration

    def _given(self, result: Any) -> Element:
        if type(result) is tuple:
            return result
        if type(result) is Failure:
            raise result.error
        self.close()
        raise StopIteration

    def waits(self) -> float | None:
        return self.crew.channel.consumer_waits

    def close(self) -> None:
        self.ended = True
        self.results = iter(())
        self._closer()
        job = self.waited_for
        if job is not None:  # by another thread
            job.finish([cancelled()])


class Tuner:
    """Decides how many workers there are, from what the reader saw."""

    def __init__(
        self, crew: Crew, most: int = MAX_WORKERS, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.crew = crew
        self.clock = clock
        self.most = max(1, min(cpu_count(), most))
        self.jobs = self.elements = 0
        self.start = clock()
        self.waits = 0.0
        self.rate_before: float | None = None  # with one worker less
        self.settled = self.most == 1

    def job_read(self, elements: int) -> None:
        self.jobs += 1
        self.elements += elements
        if self.settled or self.jobs < FEW:
            return
        now = self.clock()
        if self.jobs >= WINDOW or now - self.start >= SECONDS:
            self._look(now)

    def _look(self, now: float) -> None:
        rate = self.elements / max(now - self.start, 1e-9)
        waits = self.crew.channel.consumer_waits
        waiting = (waits - self.waits) / max(now - self.start, 1e-9)
        self.jobs, self.elements, self.start, self.waits = 0, 0, now, waits
        if self.rate_before is not None and rate < GAIN * self.rate_before:
            self.crew.dismiss()
            self.settled = True
        elif waiting > WAITING and self.crew.workers < self.most:
            self.rate_before = rate
            self.crew.channel.grow(2)
            self.crew.hire()
        else:
            self.rate_before = None
