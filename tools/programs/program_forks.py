"""An engine's loaded process, and programs that run in forks of it (see program_server.py)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tools.programs.program_run import (
    HOOKS,
    Engine,
    Outcome,
    Program,
    Repository,
    environment,
    prepare,
)

__all__ = ["LoadedEngine"]

_SERVER = Path(__file__).parent / "program_server.py"
_MAX_OUTPUT = 1_000_000


class LoadedEngine:
    """A process that has imported its engine. ``run`` is :func:`program_run.run_program`'s like."""

    def __init__(self, engine: Engine, max_runs: int, cpu_limit: float) -> None:
        self.name = engine.name
        self._max_runs, self._cpu_limit = max_runs, cpu_limit
        times = Path(os.devnull)
        self._process = subprocess.Popen(
            [engine.command[0], str(_SERVER), engine.name],
            env=environment([str(HOOKS), *engine.python_path], times),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        if self._read() != "ready\n":
            raise SystemExit(f"{engine.name}: {' '.join(engine.command[:1])} does not load it")

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def run(self, program: Program, repository: Repository, copy: Path, limit: float) -> Outcome:
        """Run one program in a fork."""
        assert self._process.stdin is not None
        prepare(program, repository, copy)
        files = {n: copy / f".program_{n}" for n in ("times", "stdout", "stderr")}
        files["times"].unlink(missing_ok=True)
        job = {
            "script": str(copy / program.script()),
            "args": list(program.args),
            "folder": str(copy / program.run_folder()),
            "python_path": [str(copy / p) for p in program.python_path],
            "stdin": program.stdin,
            "limit": limit,
            "cpu_limit": self._cpu_limit,
            "max_runs": self._max_runs,
            **{n: str(f) for n, f in files.items()},
        }
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._read())
        out, err = (_text(files[n]) for n in ("stdout", "stderr"))
        times = json.loads(_text(files["times"]) or '{"seconds": 0.0, "runs": 0}')
        return Outcome(
            answer["code"],
            answer["seconds"],
            times["seconds"],
            times["runs"],
            answer["cpu"],
            out,
            err,
            times.get("stopped") == "processor time",
        )

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def _text(file: Path) -> str:
    return file.read_text(errors="replace")[:_MAX_OUTPUT] if file.exists() else ""
