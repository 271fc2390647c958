"""Work that another thread does, with a result that is asked for later."""

from __future__ import annotations

import os
import threading

import pytest

from headrace.runtime.builds import Build


def test_the_result_is_waited_for() -> None:
    gate = threading.Event()

    def make() -> str:
        gate.wait(120)
        return threading.current_thread().name

    build = Build(make)
    gate.set()
    assert build.result() == "headrace build" == build.result()


def test_an_error_is_raised_where_the_result_is_asked_for() -> None:
    build: Build[int] = Build(lambda: 1 // 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            build.result()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_makes_it_itself() -> None:
    gate = threading.Event()
    build = Build(lambda: gate.wait(120) and os.getpid())
    child = os.fork()
    if not child:
        gate.set()
        os._exit(0 if build.result() == os.getpid() else 1)
    assert os.waitpid(child, 0)[1] == 0
    gate.set()
    assert build.result() == os.getpid()
