"""Loaded by Python before a public program: fixed seeds, and the time spent in `Session.run`.

Both engines get the same treatment. Every graph gets seed 1 unless the program sets one, so that
unseeded programs print the same numbers twice. `PROGRAM_TIMES` names the file that receives
`seconds in run, number of runs` at exit. Plain Python 3.7 and later; imports nothing heavy.
"""

import atexit
import builtins
import json
import os
import random
import sys
import time

_times = {"seconds": 0.0, "runs": 0}
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
            _times["seconds"] += time.perf_counter() - began
            _times["runs"] += 1

    session_class.run = counted


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
