"""The workers seen from the driver: where the peers' Pythons are, starting a worker, asking it.

worker = Connection.open("engine", "tf", python, threads=2)
worker.ask("scalar_add", quick=False)         # {"run": [...]}
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Timer
from typing import Any

from benchmarks.libraries import ENVIRONMENTS
from benchmarks.scale import Samples

__all__ = ["Connection", "WorkerError", "set_up_peers"]

ROOT = Path(__file__).resolve().parent.parent


class WorkerError(Exception):
    """A worker cannot start, has died, or met an error in a case."""


def set_up_peers(directory: Path) -> dict[str, str]:
    """Makes each environment in ``directory`` unless it is there.

    Gives the Pythons of those that could be made.
    """
    pythons: dict[str, str] = {}
    for name in ENVIRONMENTS:
        try:
            pythons[name] = _set_up(name, directory / name)
        except (WorkerError, subprocess.CalledProcessError) as error:
            print(f"no {name}: {error}", file=sys.stderr)
    return pythons


def _set_up(name: str, directory: Path) -> str:
    python = directory / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = directory / "installed"
    if not done.exists():
        print(f"setting up {name} in {directory}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
        _install(str(python), ENVIRONMENTS[name].choices)
        done.touch()
    return str(python)


def _install(python: str, choices: list[list[str]]) -> None:
    for packages in choices:
        command = [python, "-m", "pip", "install", "--quiet", *packages]
        if subprocess.run(command, check=False).returncode == 0:
            return
    raise WorkerError(f"pip could install none of {choices} for {python}")


class Connection:
    """A running worker. A request that takes longer than ``timeout`` seconds ends it."""

    def __init__(self, library: str, process: subprocess.Popen[str], timeout: float) -> None:
        self.library = library
        self.process = process
        self.timeout = timeout
        about = self._read()
        self.version: str = about["version"]
        self.cases: set[str] = set(about["cases"])

    @classmethod
    def open(
        cls,
        group: str,
        library: str,
        python: str,
        threads: int,
        timeout: float = 1800,
        variables: dict[str, str] | None = None,
    ) -> Connection:
        process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", group, library, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env={**os.environ, **_settings(threads), **(variables or {})},
        )
        return cls(library, process, timeout)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def ask(self, case: str, quick: bool) -> Samples:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"case": case, "quick": quick}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self._died() from None
        samples: Samples = self._read()["samples"]
        return samples

    def close(self) -> None:
        if self.alive:
            self.process.communicate()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        timer = Timer(self.timeout, self.process.kill)
        timer.start()
        try:
            line = self.process.stdout.readline()
        finally:
            timer.cancel()
        if not line:
            raise self._died()
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(f"{self.library}: {answer['error']}")
        return answer

    def _died(self) -> WorkerError:
        code = self.process.wait()
        return WorkerError(f"the worker of {self.library} ended with exit code {code}")


def _settings(threads: int) -> dict[str, str]:
    names = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"]
    names += ["TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"]
    kept = Path(tempfile.gettempdir()) / "headrace-benchmarks"
    return {
        **dict.fromkeys(names, str(threads)),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "JAX_PLATFORMS": "cpu",
        "TORCHINDUCTOR_CACHE_DIR": str(kept / "torch"),  # compiling is not measured
        "PYTENSOR_FLAGS": f"base_compiledir={kept / 'pytensor'}",
    }
