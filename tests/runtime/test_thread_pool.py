"""The pool: every task once, errors, nesting, workers that do not come.

And how threads wait on contended cores.
"""

from __future__ import annotations

import threading
import time
import weakref
from functools import partial
from typing import Any

import numpy as np
import pytest

from headrace.kernels import accel
from headrace.runtime import thread_pool as pool
from headrace.runtime import waiting


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
        end.wait(30)

    def first() -> None:
        with pool.limited(2):
            pool.parallel([slow, slow])

    caller = threading.Thread(target=first)
    caller.start()
    begun.wait(30)
    done: list[int] = []
    with pool.limited(2):
        pool.parallel([lambda i=i: done.append(i) for i in range(5)])
    assert sorted(done) == list(range(5))
    end.set()
    caller.join(30)
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
        c.join(60)
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


def test_contention_is_seen_and_forgotten() -> None:
    heard: list[bool] = []
    watch = waiting._Watch()
    watch.listeners.append(heard.append)
    now, switches = 100.0, 5000
    watch.look(now, switches)  # the first look only starts the count
    for more, expected in ((0, []), (1, []), (20, [True]), (0, [True]), (15, [True])):
        now, switches = now + waiting.WINDOW, switches + more
        watch.look(now, switches)
        assert heard == expected
    while now < 100 + 2 * waiting.CALM:
        now += waiting.WINDOW
        watch.look(now, switches)
    assert heard == [True, False] and not watch.contended
    watch.look(now + 60, switches + 10_000)  # the program did something else for a minute
    assert heard == [True, False]


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
