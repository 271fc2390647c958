"""Where the helpers of the main thread run while others want the cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from headrace.runtime import helper_cores
from headrace.runtime.helper_cores import Placement, helpers_wait, nearest_cores

needs_affinity = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or not os.path.exists("/proc/thread-self/stat"),
    reason="this system does not tell where threads run",
)


@pytest.fixture
def sleeper() -> Iterator[int]:
    """The number of a thread that does nothing."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    assert thread.native_id is not None
    yield thread.native_id
    end.set()
    thread.join()


@pytest.mark.parametrize(
    ("cores", "own", "others", "chosen"),
    [
        ({0, 1}, 0, 1.2, {0}),
        ({0, 1}, 1, 0.9, {1}),
        ({0, 1}, 1, 0.2, {0, 1}),
        ({0, 1}, 1, 9.0, {1}),
        ({2, 5, 7, 9}, 7, 2.0, {7, 9}),
        ({2, 5, 7, 9}, 9, 2.1, {9, 2}),
        ({2, 5}, 4, 1.0, {2}),  # the mask has changed meanwhile
        (set(range(64)), 3, 1.0, set(range(64)) - {2}),
    ],
)
def test_as_many_cores_as_others_leave(
    cores: set[int], own: int, others: float, chosen: set[int]
) -> None:
    assert nearest_cores(cores, own, others) == chosen


@needs_affinity
def test_helpers_come_to_the_main_thread_and_go_back(
    sleeper: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helper_cores, "_on_one_core", set())  # this process may be contended
    mine = os.sched_getaffinity(0)
    if len(mine) < 2:
        pytest.skip("one core")
    placement = Placement(lambda: [sleeper])
    placement.follow(len(mine) - 1.0)
    assert len(os.sched_getaffinity(sleeper)) == 1 and helpers_wait()
    assert os.sched_getaffinity(0) == mine  # the program's own thread is left alone
    placement.follow(0.0)  # the others have stopped
    assert os.sched_getaffinity(sleeper) == mine and not helpers_wait()
    placement.follow(len(mine) - 1.0)
    placement.release()
    placement.release()
    assert os.sched_getaffinity(sleeper) == mine


@needs_affinity
def test_nothing_moves_where_nobody_knows_or_another_thread_asks(sleeper: int) -> None:
    mine = os.sched_getaffinity(0)
    placement = Placement(lambda: [sleeper])
    placement.follow(None)
    other = threading.Thread(target=placement.follow, args=(len(mine) - 1.0,))
    other.start()
    other.join()
    assert os.sched_getaffinity(sleeper) == mine


@needs_affinity
def test_a_helper_that_has_ended_is_no_error() -> None:
    placement = Placement(lambda: [2**22 - 3])
    placement.follow(len(os.sched_getaffinity(0)) - 1.0)
    placement.release()
