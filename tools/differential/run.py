"""Runs cases on a library in processes of its own.

A case that kills or hangs its process costs that case alone.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any

RUNNER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "runner.py")
SECONDS_PER_CASE = 20.0
SECONDS_TO_START = 200.0  # importing a library on a busy machine
CASES_PER_PROCESS = 400


def run_cases(
    python: str,
    library: str,
    cases: Sequence[dict[str, Any]],
    environment: dict[str, str],
    known: dict[int, dict[str, Any]] | None = None,
    keep: Callable[[dict[int, dict[str, Any]]], None] = lambda outcomes: None,
    fresh: bool = False,
) -> dict[int, dict[str, Any]]:
    """Outcomes by case id. ``python`` runs the runner with the module ``library``.

    Cases with ``known`` outcomes are not run; ``keep`` gets all outcomes after each batch. With
    ``fresh`` each case runs in a process in which no other ran before.
    """
    outcomes: dict[int, dict[str, Any]] = dict(known or {})
    left = [c for c in cases if c["id"] not in outcomes]
    while left:
        batch, rest = left[:CASES_PER_PROCESS], left[CASES_PER_PROCESS:]
        done = _run_batch([python, RUNNER, library, *["fresh"] * fresh], batch, environment)
        outcomes.update(done)
        keep(outcomes)
        left = [c for c in batch if c["id"] not in done] + rest
    return outcomes


def _run_batch(
    command: list[str], cases: Sequence[dict[str, Any]], environment: dict[str, str]
) -> dict[int, dict[str, Any]]:
    """Outcomes of the cases up to the end or to the first that killed the process (which is among
    them).
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environment},
    )
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_write, args=(process, cases), daemon=True).start()
    threading.Thread(target=_read, args=(process, lines), daemon=True).start()
    outcomes: dict[int, dict[str, Any]] = {}
    begun: int | None = None
    heard = False
    try:
        while True:
            line = _next_line(lines, SECONDS_PER_CASE if heard else SECONDS_TO_START)
            heard = True
            if line is None:
                break
            outcome = json.loads(line)
            if outcome["stage"] == "begun":
                begun = outcome["id"]
            else:
                outcomes[outcome["id"]] = outcome
                begun = None
        if begun is None and len(outcomes) < len(cases):
            raise RuntimeError(f"{command} ended with {process.wait()}")
        how = {"stage": "crash", "error": f"exit {process.wait()}"}
    except queue.Empty:
        how = {"stage": "hang", "error": f"more than {SECONDS_PER_CASE:.0f} s"}
    finally:
        process.kill()
    if begun is not None:
        outcomes[begun] = {"id": begun, **how}
    return outcomes


def _next_line(lines: queue.Queue[str | None], seconds: float) -> str | None:
    """The next line; queue.Empty after so many seconds. They are counted one by one, so that the
    time in which this process was stopped is not counted against the case.
    """
    for _ in range(int(seconds) - 1):
        try:
            return lines.get(timeout=1.0)
        except queue.Empty:
            continue
    return lines.get(timeout=1.0)


def _write(process: subprocess.Popen[str], cases: Sequence[dict[str, Any]]) -> None:
    assert process.stdin is not None
    try:
        for case in cases:
            process.stdin.write(json.dumps(case) + "\n")
        process.stdin.close()
    except BrokenPipeError:
        pass


def _read(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put(None)
