"""The workers seen from the driver: where the peers' Pythons are, starting a worker, asking it.

worker = Connection.open("tf", python, threads=2)
worker.ask("scalar_add", quick=False)         # {"run": [...]}
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.scale import Samples

__all__ = ["PEERS", "Connection", "WorkerError", "set_up_peers"]

ROOT = Path(__file__).resolve().parent.parent

#: Name of a peer: the environment variable with its Python, and what to install, the first that can be.
PEERS: dict[str, tuple[str, list[list[str]]]] = {
    "tf": (
        "HEADRACE_PEER_TF2",
        [["tensorflow-cpu==2.21.0"], ["tensorflow==2.21.0"], ["tensorflow"]],
    ),
    "jax": ("HEADRACE_PEER_JAX", [["jax"]]),
}


class WorkerError(Exception):
    """A worker cannot start, has died, or met an error in a case."""


def set_up_peers(directory: Path) -> dict[str, str]:
    """Makes an environment for each peer in ``directory`` unless it is there; gives their Pythons."""
    return {name: _set_up(name, directory / name) for name in PEERS}


def _set_up(name: str, directory: Path) -> str:
    python = directory / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = directory / "installed"
    if not done.exists():
        print(f"setting up {name} in {directory}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
        _install(str(python), PEERS[name][1])
        done.touch()
    return str(python)


def _install(python: str, choices: list[list[str]]) -> None:
    for packages in choices:
        command = [python, "-m", "pip", "install", "--quiet", *packages]
        if subprocess.run(command, check=False).returncode == 0:
            return
    raise WorkerError(f"pip could install none of {choices} for {python}")


class Connection:
    """A running worker."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self.name = name
        self.process = process
        about = self._read()
        self.version: str = about["version"]
        self.cases: set[str] = set(about["cases"])

    @classmethod
    def open(cls, name: str, python: str, threads: int) -> Connection:
        process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", name, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env={**os.environ, **_thread_settings(threads)},
        )
        return cls(name, process)

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
        self.process.communicate()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise self._died()
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(f"{self.name}: {answer['error']}")
        return answer

    def _died(self) -> WorkerError:
        return WorkerError(f"the worker of {self.name} ended with exit code {self.process.wait()}")


def _thread_settings(threads: int) -> dict[str, str]:
    names = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]
    names += ["TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"]
    return {
        **dict.fromkeys(names, str(threads)),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "JAX_PLATFORMS": "cpu",
    }
