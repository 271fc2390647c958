"""Runs programs one after another, each in a fork of a process that has loaded its engine.

Importing TensorFlow takes seconds of processor time; a fork has it loaded. Started by
:mod:`tools.programs.program_forks` with the engine's name, once per engine; reads one job per line
(JSON) and answers with one line. Plain Python 3.7, so that TensorFlow 1.15's Python runs it.

The processor time that is reported is the program's own: loading the engine is not in it.
"""

import contextlib
import json
import os
import random
import resource
import signal
import sys
import time
import traceback
import types


def load(engine):
    """Import what every program imports."""
    import warnings

    warnings.filterwarnings("ignore")
    import scipy  # noqa: F401

    with contextlib.suppress(ImportError):  # programs that plot say so
        import matplotlib.pyplot  # noqa: F401

    if engine == "tensorflow":
        import tensorflow as tf

        tf.contrib.layers  # noqa: B018  (contrib is loaded when it is first used)
    else:
        _load_headrace()


def _load_headrace():
    """Headrace imports its parts when they are needed; TensorFlow has all of them loaded."""
    import importlib
    import pkgutil

    import headrace

    parts = ("executors", "kernels", "lower", "rewrite", "session", "train", "layers", "data")
    for part in (*parts, "api", "cli", "formats"):
        package = importlib.import_module("headrace." + part)
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if "jax" not in module.name and "xla" not in module.name:
                importlib.import_module(module.name)
    headrace.contrib.layers  # noqa: B018


def run_job(engine, job):
    """Fork, run, wait; how it ended."""
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _enter(job)
            code = _run(engine, job)
        except SystemExit as e:
            code = e.code if isinstance(e.code, int) else int(e.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            _leave(code)
    code, used = _wait(child, began + job["limit"])
    seconds = time.perf_counter() - began
    return {"code": code, "seconds": seconds, "cpu": used.ru_utime + used.ru_stime}


def _wait(child, end):
    """The exit code (None: the time limit) and what the child used."""
    while True:
        done, status, used = os.wait4(child, os.WNOHANG)
        if done:
            return (os.WEXITSTATUS(status) if os.WIFEXITED(status) else -1), used
        if time.perf_counter() > end:
            os.killpg(child, signal.SIGKILL)
            return None, os.wait4(child, 0)[2]
        time.sleep(0.02)


def _enter(job):
    """What a new process would have: files, folder, seeds, counters."""
    import numpy
    import sitecustomize as hooks

    os.setsid()
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
    read, write = os.pipe()
    os.write(write, job["stdin"].encode())
    os.close(write)
    os.dup2(read, 0)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    os.environ["PROGRAM_TIMES"] = job["times"]
    hooks._max_runs = job["max_runs"]
    hooks._times.update(seconds=0.0, runs=0, first=0.0, stopped=False)
    os.chdir(job["folder"])
    sys.path[0:0] = job["python_path"]
    random.seed(1)
    numpy.random.seed(1)
    limit = int(job["cpu_limit"])
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    signal.signal(signal.SIGXCPU, _out_of_time)


def _out_of_time(number, frame):
    """Processor time is up: count it as stopped, like the largest number of runs."""
    import sitecustomize as hooks

    hooks._times["stopped"] = "processor time"
    _leave(0)


def _leave(code):
    import sitecustomize as hooks

    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        hooks._write_times()
        os._exit(code or 0)


def _run(engine, job):
    script = job["script"]
    if engine == "headrace":
        from headrace.cli.main import main

        sys.path.insert(0, "")
        sys.argv = ["headrace", "run", script] + job["args"]
        return main()
    sys.argv = [script] + job["args"]
    sys.path.insert(0, os.path.dirname(script))
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    module.__file__ = script
    with open(script, "rb") as f:
        exec(compile(f.read(), script, "exec", dont_inherit=True), module.__dict__)
    return 0


def main():
    engine = sys.argv[1]
    answers = os.fdopen(os.dup(1), "w")
    load(engine)
    answers.write("ready\n")
    answers.flush()
    for line in iter(sys.stdin.readline, ""):
        answers.write(json.dumps(run_job(engine, json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
