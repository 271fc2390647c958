"""Loaded by Python before a public program: fixed seeds, and the time spent in `Session.run`.

Both engines get the same treatment. Every graph gets seed 1 unless the program sets one, so that
unseeded programs print the same numbers twice. `PROGRAM_TIMES` names the file that receives
`seconds in run, number of runs` at exit. `PROGRAM_MAX_RUNS` and `PROGRAM_MAX_SECONDS` end a program
that would train for hours, after a run: it exits with 0 and its times say `stopped`. Plain Python
3.7 and later; imports nothing heavy.
"""

import atexit
import builtins
import json
import os
import random
import sys
import time

_began = time.perf_counter()
_max_runs = int(os.environ.get("PROGRAM_MAX_RUNS") or 0)
_max_seconds = float(os.environ.get("PROGRAM_MAX_SECONDS") or 0)
_times = {"seconds": 0.0, "runs": 0, "first": 0.0, "stopped": False}
_import = builtins.__import__


def _write_times():
    with open(os.environ["PROGRAM_TIMES"], "w") as f:
        json.dump(_times, f)


def _count_runs(session_class):
    run = session_class.run

    def counted(self, *args, **kwargs):
        began = time.perf_counter()
        try:
            return run(self, *args, **kwargs)
        finally:
            now = time.perf_counter()
            _times["seconds"] += now - began
            _times["runs"] += 1
            if _times["runs"] == 1:
                _times["first"] = now - began
            enough = _max_runs and _times["runs"] >= _max_runs
            if enough or (_max_seconds and now - _began > _max_seconds):
                _stop()

    session_class.run = counted


def _stop():
    """End the process now: a program may catch SystemExit, and threads may be waiting."""
    if sys.exc_info()[0] is not None:
        return  # the run failed: the program's own error is what counts
    _times["stopped"] = True
    _write_times()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _seed_graphs(tf):
    make = tf.Graph.__init__

    def seeded(self, *args, **kwargs):
        make(self, *args, **kwargs)
        if type(self) is tf.Graph:
            self.seed = 1

    tf.Graph.__init__ = seeded
    tf.get_default_graph().seed = 1


def _watch_imports(name, *args, **kwargs):
    module = _import(name, *args, **kwargs)
    if "tensorflow" in name:
        tf = sys.modules.get("tensorflow")
        if tf is not None and not getattr(getattr(tf, "__spec__", None), "_initializing", False):
            builtins.__import__ = _import
            tf = getattr(getattr(tf, "compat", None), "v1", tf)
            _seed_graphs(tf)
            _count_runs(tf.Session.__mro__[1])
    return module


if "PROGRAM_TIMES" in os.environ:
    random.seed(1)
    try:
        import numpy

        numpy.random.seed(1)
    except ImportError:
        pass
    builtins.__import__ = _watch_imports
    atexit.register(_write_times)
