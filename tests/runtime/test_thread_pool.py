"""The pool: every task once, errors, nesting, workers that do not come.

And how threads wait on contended cores.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import weakref
from functools import partial
from typing import Any

import numpy as np
import pytest

from headrace.kernels import accel
from headrace.runtime import core_contention
from headrace.runtime import thread_pool as pool


@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_task_runs_once(count: int, threads: int) -> None:
    done: list[int] = []
    with pool.limited(threads):
        for run in (pool.parallel, pool.spread):
            done.clear()
            if count or run is pool.parallel:
                run([lambda i=i: done.append(i) for i in range(count)])
            assert sorted(done) == list(range(count))


def test_a_worker_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a busy machine, where the scheduler lets it run too late."""
    monkeypatch.setattr(pool._Worker, "offer", lambda self, job: True)
    done: list[int] = []
    with pool.limited(3):
        pool.parallel([lambda i=i: done.append(i) for i in range(10)])
    assert done == list(range(10))


def test_a_worker_at_work_does_not_hold_up_another_call() -> None:
    begun, end = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        end.wait(120)

    def first() -> None:
        with pool.limited(2):
            pool.parallel([slow, slow])

    caller = threading.Thread(target=first)
    caller.start()
    begun.wait(120)
    done: list[int] = []
    with pool.limited(2):
        pool.parallel([lambda i=i: done.append(i) for i in range(5)])
    assert sorted(done) == list(range(5))
    end.set()
    caller.join(120)
    assert not caller.is_alive()


def test_nested_calls_and_errors() -> None:
    done: list[Any] = []

    def inner(i: int) -> None:
        pool.parallel([lambda j=j: done.append((i, j)) for j in range(3)])
        if i == 2:
            raise KeyError(i)

    with pool.limited(3), pytest.raises(KeyError):
        pool.parallel([lambda i=i: inner(i) for i in range(4)])
    assert sorted(done) == [
        (i, j) for i in range(4) for j in range(3)
    ]  # all ended before the error came


def test_many_callers() -> None:
    counts = [0] * 8

    def call(i: int) -> None:
        with pool.limited(2):
            for n in range(1, 201):
                hits: list[int] = []
                pool.parallel([partial(hits.append, n)] * 4)
                counts[i] += hits == [n] * 4

    callers = [threading.Thread(target=call, args=(i,)) for i in range(8)]
    for c in callers:
        c.start()
    for c in callers:
        c.join(120)
        assert not c.is_alive(), "a call hangs"
    assert counts == [200] * 8


def test_a_late_worker_keeps_no_arrays_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    monkeypatch.setattr(pool._Worker, "offer", lambda self, job: kept.append(job) or True)
    array = np.zeros(3)
    alive = weakref.ref(array)
    with pool.limited(2):
        pool.parallel([partial(np.sum, array), partial(np.sum, array)])
    del array
    assert kept and alive() is None


# waiting ----------------------------------------------------------------------------------------


class _Machine:
    """A clock, a count of switches and a sum of delays, and what was heard of them."""

    def __init__(self) -> None:
        self.heard: list[bool] = []
        self.watch = core_contention._Watch()
        self.watch.listeners.append(self.heard.append)
        self.now, self.switches, self.delay = 100.0, 5000, 7.0
        self.used: float | None = 30.0

    def go(
        self, seconds: float, switches: float = 0, share: float = 0, others: float = 1.0
    ) -> list[bool]:
        """So long, with so many switches a second, this share of time in the queue, and so many
        cores used by other processes.
        """
        for _ in range(round(seconds / core_contention.WINDOW)):
            self.now += core_contention.WINDOW
            self.switches += round(switches * core_contention.WINDOW)
            self.delay += share * core_contention.WINDOW
            if self.used is not None:
                self.used += others * core_contention.WINDOW
            self.watch.look(self.now, self.switches, lambda: self.delay, lambda: self.used)
        return self.heard


def test_delays_that_threads_of_one_step_make_each_other_are_no_contention() -> None:
    """A worker that waits for the core of a spinning one: sleeping would only make it worse."""
    machine = _Machine()
    assert machine.go(2.0, 300, 0.5, others=0.05) == []
    for _ in range(20):  # but two threads of the program that both run steps are
        machine.watch.callers_change = True
        machine.go(0.1, 300, 0.5, others=0.0)
    assert machine.heard == [True]
    machine = _Machine()
    machine.used = None  # a system that does not tell who uses its CPUs
    assert machine.go(2.0, 300, 0.5) == [True]


def test_what_others_use_is_counted() -> None:
    if core_contention.used_by_others() is None:
        pytest.skip("this system does not tell")
    code = "import time; end = time.time() + 1.0\nwhile time.time() < end: pass"
    before = core_contention.used_by_others()
    subprocess.run([sys.executable, "-c", code], check=True)
    after = core_contention.used_by_others()
    assert before is not None and after is not None and after - before > 0.3


def test_contention_is_seen_and_forgotten() -> None:
    machine = _Machine()
    assert machine.go(1.0) == []
    assert machine.go(1.0, 300, 0.5) == [True]
    assert machine.go(1.0, 300, 0.15) == [True]  # less, but not over
    assert machine.go(2.0, 5, 0.0) == [True]  # others still work: ours only keep out of their way
    assert machine.go(2.0, 5, 0.0, others=0.3) == [True, False]
    machine.now, machine.switches = machine.now + 60, machine.switches + 10_000
    machine.delay += 30.0  # the program did something else for a minute
    assert machine.go(1.0, 0, 0.0) == [True, False]


def test_followers_hear_what_others_use_while_cores_are_contended() -> None:
    machine = _Machine()
    used: list[float | None] = []
    machine.watch.followers.append(used.append)
    machine.go(1.0)
    assert used == []
    machine.go(2.0, 300, 0.5, others=1.5)
    assert used[-1] == pytest.approx(1.5) and len(used) > 5
    machine.go(2.0, 5, 0.0, others=0.0)
    count = len(used)
    machine.go(1.0, 5, 0.0, others=0.0)
    assert len(used) == count


def test_short_disturbances_are_no_contention() -> None:
    """A daemon that runs for ten milliseconds a few times a second, or many switches of no
    length: threads go on spinning.
    """
    assert _Machine().go(10.0, 100, 0.05) == []
    assert _Machine().go(10.0, 5000, 0.01) == []


def test_delays_of_this_process_can_be_read() -> None:
    if not os.path.exists("/proc/self/schedstat"):
        pytest.skip("this system does not tell")
    before = core_contention._delay()
    busy = [threading.Thread(target=sum, args=(range(3_000_000),)) for _ in range(4)]
    for thread in busy:
        thread.start()
    assert core_contention._delay() >= 0 and before >= 0
    for thread in busy:
        thread.join()


def test_waits_are_short_while_cores_are_contended() -> None:
    """A team more than there are CPUs.

    Libgomp's documented reason to spin 100 times only. It goes away again.
    """
    library = accel.library()
    if library is None or library.api.openmp is None:  # type: ignore[attr-defined]
        pytest.skip(accel.status())
    from headrace.kernels.onednn.openmp_waiting import OpenMPWaiting

    openmp = library.api.openmp  # type: ignore[attr-defined]
    threads = int(openmp.omp_get_num_procs())
    policy = OpenMPWaiting(openmp, threads)
    names = lambda: [t.name for t in threading.enumerate()].count("openmp waiting")
    before = names()
    for _ in range(3):
        policy.change(True)
        policy.change(True)
        assert names() == before + 1 and policy.extra == 2
        policy.change(False)
        policy.change(False)
        until = time.monotonic() + 30
        while names() > before and time.monotonic() < until:
            time.sleep(0.01)
        assert names() == before
