"""``map`` with several calls under way at once.

Workers take turns at the source: under a lock, one pulls a few elements and puts a *job* for them
into the queue of the reader, so that the order is the source's; then it computes, outside the lock,
while the next one pulls. The reader takes jobs in order and waits for each to be done. Without
determinism a job goes into the queue when it is done.

A job has as many elements as take a few milliseconds, so that cheap functions do not pay for a
change of threads each. A function that is the same on a block of elements is called once for a job,
whose results stay a block: a following ``batch`` takes rows of it, and joins no small arrays.

With AUTOTUNE there is one worker at first; while the reader waits for a share of its time, another
is added, and it stays if more elements came through with it. The next pass with this function
begins with as many as were found useful.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from headrace import errors
from headrace.data.runtime.block_functions import (
    BlockFunction,
    Failure,
    rows_of,
    stacked,
    taken_block,
)
from headrace.data.runtime.mapping import Function, cardinality_kept
from headrace.data.runtime.prefetch import AUTOTUNE
from headrace.data.runtime.stage_threads import END, Channel, cancelled, start_thread
from headrace.data.runtime.stages import Context, Element, Pass, Stage
from headrace.runtime.cores import cpu_count
from headrace.runtime.thread_pool import limited

__all__ = ["ParallelMapStage", "ParallelPass"]

#: Threads for one map, whatever number was asked for: more would only take turns.
MAX_WORKERS = max(16, 4 * cpu_count())
#: A job is to take about this long, in seconds: every one makes threads wait for each other.
SHORT, LONG = 2e-3, 8e-3
#: No further element is read for a job after this time.
MAX_FILL_SECONDS = 4e-3
MAX_JOB, MAX_LIVE_JOB = 256, 16
#: Between two looks of the tuner are so many jobs, or a few jobs and so many seconds.
WINDOW, FEW, SECONDS = 32, 8, 0.02
#: The waiting share that makes it try another worker, and the gain that this one must bring.
WAITING, GAIN = 0.1, 1.05


class Learned:
    """What a tuner found out about a function, for the passes after its own."""

    __slots__ = ("workers",)

    def __init__(self) -> None:
        self.workers = 1


class ParallelMapStage(Stage):
    def __init__(
        self,
        source: Stage,
        function: Function,
        calls: int,
        deterministic: bool | None,
        preserve: bool,
        batches: Callable[[], BlockFunction | None] = lambda: None,
        learned: Learned | None = None,
        python: bool = False,
    ) -> None:
        """``python``.

        The function calls the user's code, which may wait for something: no element waits for a
        later one.
        """
        if calls != AUTOTUNE and calls <= 0:
            raise errors.InvalidArgumentError(
                None, None, "num_parallel_calls must be greater than zero."
            )
        self.inputs = (source,)
        self.function = function
        self.calls = calls
        self.deterministic = deterministic
        self.preserve = preserve
        self.batches = batches
        self.learned = Learned() if learned is None else learned
        self.python = python

    def start(self, ctx: Context) -> Pass:
        ordered = ctx.deterministic if self.deterministic is None else self.deterministic
        most = ctx.threads or MAX_WORKERS
        return ParallelPass(ctx.start(self.inputs[0]), self, ordered, most)

    def cardinality(self) -> int:
        return self.inputs[0].cardinality()


class Job:
    """Some elements and, later, what became of them: a list of results, or all of them as a
    block.
    """

    __slots__ = ("block", "done", "following", "results")

    def __init__(self) -> None:
        self.done = threading.Lock()
        self.done.acquire()
        self.results: list[Any] = []
        self.block: Element | None = None
        self.following: Job | None = None  # the rest of it, which is not done yet

    def __len__(self) -> int:
        return len(self.results) if self.block is None else len(self.block[0])

    def finish(self, results: list[Any], block: Element | None = None) -> None:
        """The worker or the end of the pass, the first of both, says what the reader gets."""
        if self.done.locked():
            self.results, self.block = results, block
            with contextlib.suppress(RuntimeError):
                self.done.release()


class Crew:
    """What the workers share. It does not refer to the pass that reads from it."""

    def __init__(
        self,
        source: Pass,
        function: Function,
        on_block: BlockFunction | None,
        ordered: bool,
        preserve: bool,
        room: int,
        python: bool = False,
    ) -> None:
        self.source = source
        self.python = python
        self.function = function
        self.on_block = on_block
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


def _pull(crew: Crew, start: float) -> list[Any] | Element:
    """The elements of the next job, fewer if the source is slow: a list, or a block."""
    source, on_block = crew.source, crew.on_block
    if on_block is not None and not on_block.given_up and source.block and not source.live:
        return _pull_block(crew, source.block)
    size = crew.job_size  # another worker may change it now
    if source.instant:
        elements: list[Any] = list(source.many(size))
        crew.ended = len(elements) < size
        return elements
    elements = []
    for _ in range(size):
        try:
            elements.append(next(source))
        except StopIteration:
            crew.ended = True
            break
        except BaseException as error:  # sys.exit() of the user's code as well: it may not get lost
            elements.append(Failure(error))
        if time.perf_counter() - start > MAX_FILL_SECONDS:
            break
    return elements


def _pull_block(crew: Crew, block: Callable[[int], Element]) -> list[Any] | Element:
    try:
        return block(crew.job_size)
    except StopIteration:
        crew.ended = True
        return []
    except BaseException as error:
        return [Failure(error)]


def _compute(crew: Crew, elements: list[Any] | Element, job: Job) -> None:
    results: list[Any] = []
    block = None
    try:
        if crew.on_block is not None:
            block = _computed_block(crew.on_block, elements)
        if block is None:
            rows = rows_of(elements) if type(elements) is tuple else elements
            if crew.python and crew.ordered:
                job = _compute_one_by_one(crew, rows, job)
            else:
                _compute_each(crew, rows, results)
    finally:
        job.finish(results, block)


def _computed_block(on_block: BlockFunction, elements: list[Any] | Element) -> Element | None:
    if type(elements) is tuple:
        return on_block(elements)
    if on_block.given_up or any(type(e) is not tuple for e in elements):
        return None
    rows = stacked(elements)
    return None if rows is None else on_block(rows)


def _compute_one_by_one(crew: Crew, elements: Sequence[Any], job: Job) -> Job:
    """Gives each result to the reader before the next call.

    The last job of the chain is left to be finished.
    """
    for element in elements:
        results: list[Any] = []
        _compute_each(crew, [element], results)
        following = job.following = Job()
        job.finish(results)
        job = following
        if results and results[0] is END:
            break
    return job


def _compute_each(crew: Crew, elements: Sequence[Any], results: list[Any]) -> None:
    function = crew.function
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


def _resize(crew: Crew, seconds: float) -> None:
    if crew.python and not crew.ordered:  # a job is given to the reader when all of it is done
        return
    most = MAX_LIVE_JOB if crew.source.live else MAX_JOB
    if seconds < SHORT and crew.job_size < most:
        crew.job_size *= 2
    elif seconds > LONG and crew.job_size > 1:
        crew.job_size //= 2


class ParallelPass(Pass):
    fresh = True

    def __init__(self, source: Pass, stage: ParallelMapStage, ordered: bool, most: int) -> None:
        tuned = stage.calls == AUTOTUNE
        workers = min(stage.learned.workers if tuned else stage.calls, most)
        on_block = stage.batches()
        self.crew = Crew(
            source,
            stage.function,
            on_block,
            ordered,
            stage.preserve,
            2 * workers,
            stage.python,
        )
        self.live = source.live
        self.tuner = Tuner(self.crew, most, learned=stage.learned) if tuned else None
        self.results: deque[Any] = deque()  # of the last job that was read
        self.rows: Element | None = None  # or what is left of its block
        self.ended = False
        self.waited_for: Job | None = None
        self.following: Job | None = None
        if on_block is not None:
            self.block = self._block
        self._closer = weakref.finalize(self, self.crew.channel.stop)
        for _ in range(workers):
            self.crew.hire()

    def __next__(self) -> Element:
        while True:
            if self.rows is not None:
                self.results.extend(rows_of(self.rows))
                self.rows = None
            if self.results:
                return self._given(self.results.popleft())
            self._read_job()

    def _block(self, n: int) -> Element:
        while self.rows is None:
            if self.results:
                if self.results[0] is END:
                    self._given(END)
                return taken_block(self.results, n)
            self._read_job()
        rows, length = self.rows, len(self.rows[0])
        self.rows = tuple([c[n:] for c in rows]) if length > n else None
        return tuple([c[:n] for c in rows]) if length > n else rows

    def _read_job(self) -> None:
        """Wait for the next job, and take its results."""
        if self.ended:
            raise StopIteration
        job = self.following if self.following is not None else self.crew.channel.get()
        if type(job) is not Job:
            self.results.append(job)
            return
        if not job.done.acquire(blocking=False):
            start = time.perf_counter()
            self.waited_for = job
            job.done.acquire()
            self.waited_for = None
            self.crew.channel.consumer_waits += time.perf_counter() - start
        if self.tuner is not None:
            self.tuner.job_read(len(job))
        self.following = job.following
        self.rows = job.block
        self.results.extend(job.results)

    def _given(self, result: object) -> Element:
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
        self.results, self.rows = deque(), None
        self._closer()
        job = self.waited_for
        if job is not None:  # by another thread
            job.finish([cancelled()])


class Tuner:
    """Decides how many workers there are, from what the reader saw."""

    def __init__(
        self,
        crew: Crew,
        most: int = MAX_WORKERS,
        clock: Callable[[], float] = time.perf_counter,
        learned: Learned | None = None,
    ) -> None:
        self.crew = crew
        self.clock = clock
        self.most = max(1, min(cpu_count(), most))
        self.learned = Learned() if learned is None else learned
        self.jobs = self.elements = 0
        self.start = clock()
        self.waits = 0.0
        self.rate_before: float | None = None  # with one worker less
        self.job_size = 0  # the largest so far: while it grows, the rate says nothing
        self.settled = self.most == 1

    def job_read(self, elements: int) -> None:
        self.jobs += 1
        self.elements += elements
        if self.settled:
            return
        if self.crew.job_size > self.job_size:
            self.job_size = self.crew.job_size
            self._begin(self.clock())
        elif self.jobs >= FEW:
            now = self.clock()
            if self.jobs >= WINDOW or now - self.start >= SECONDS:
                self._adjust_workers(now)

    def _begin(self, now: float) -> None:
        self.jobs, self.elements, self.start = 0, 0, now
        self.waits = self.crew.channel.consumer_waits

    def _adjust_workers(self, now: float) -> None:
        seconds = max(now - self.start, 1e-9)
        rate, before = self.elements / seconds, self.rate_before
        waiting = (self.crew.channel.consumer_waits - self.waits) / seconds
        workers = self.crew.workers
        self._begin(now)
        self.rate_before = None
        if before is not None and rate < GAIN * before:
            self.crew.dismiss()
            self.settled = True
            return
        if before is not None:
            self.learned.workers = workers
        if waiting > WAITING and workers < self.most:
            self.rate_before = rate
            self.crew.channel.grow(2)
            self.crew.hire()
