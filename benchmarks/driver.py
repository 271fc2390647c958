"""Asks the workers of a group in turn, round after round. A case that fails in one library leaves
the others alone.

driver = Driver(pythons, Settings(rounds=5))
driver.measure(GROUPS["engine"], ["scalar_add"])
driver.results.rounds["headrace", "scalar_add"]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.instruction_sets import SETTINGS

from benchmarks.data_files import FILES_VARIABLE, make_files
from benchmarks.groups import Group
from benchmarks.load import Others, busy_cores
from benchmarks.peers import Connection, WorkerError
from benchmarks.results import Results
from benchmarks.scale import FULL, QUICK

__all__ = ["Driver", "Settings", "note"]


@dataclass(frozen=True)
class Settings:
    rounds: int = 5
    quick: bool = False
    threads: int = 2
    timeout: float = 1800.0
    isa: str = ""  # one of tests/instruction_sets.py: all libraries are limited to it

    def variables(self) -> dict[str, str]:
        """What the instruction set adds to the environment of the workers."""
        return SETTINGS[self.isa].environment() if self.isa else {}


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Driver:
    """``pythons`` by library: only these are measured."""

    def __init__(self, pythons: dict[str, str], settings: Settings) -> None:
        self.pythons = pythons
        self.settings = settings
        self.results = Results(quick=settings.quick, load=busy_cores())

    def measure(self, group: Group, cases: list[str]) -> None:
        with ExitStack() as stack:
            variables = stack.enter_context(self._files()) if group.name == "data" else {}
            workers = _Workers(self, group, {**variables, **self.settings.variables()})
            stack.callback(workers.close)
            for case in cases:
                others = Others()
                self._measure(workers, group, case)
                self.results.load = max(self.results.load, others.cores())

    @contextmanager
    def _files(self) -> Iterator[dict[str, str]]:
        note("data: making files")
        with tempfile.TemporaryDirectory() as directory:
            make_files(Path(directory), QUICK if self.settings.quick else FULL)
            yield {FILES_VARIABLE: directory}

    def _measure(self, workers: _Workers, group: Group, case: str) -> None:
        if case.startswith("memory"):  # is looked at where nothing else has been done
            workers.close()
        rows = [row for row in group.rows if row.case == case]
        wanted = {library for row in rows for library in group.libraries(row)} or set(
            group.libraries()
        )
        rounds = self._rounds(group, case)
        for turn in range(rounds):
            for library in group.libraries():
                if library in wanted and library in self.pythons:
                    self._ask(workers, library, case, f"round {turn + 1} of {rounds}")

    def _rounds(self, group: Group, case: str) -> int:
        most = self.settings.rounds
        single = (
            self.settings.quick or case.endswith((".check", ".losses")) or case.startswith("memory")
        )
        return 1 if single else min(most, group.most_rounds.get(case, most))

    def _ask(self, workers: _Workers, library: str, case: str, turn: str) -> None:
        if (library, case) in self.results.failures:
            return
        try:
            worker = workers.get(library)
            if case in worker.cases:
                note(f"{case}: {turn}, {library}")
                self.results.add(library, case, worker.ask(case, self.settings.quick))
        except WorkerError as error:
            note(f"{case}: {error}")
            self.results.failures[library, case] = str(error).strip().splitlines()[-1]
            self.results.rounds.pop((library, case), None)


class _Workers:
    """The workers of a group, started when they are first asked, and again after one has died."""

    def __init__(self, driver: Driver, group: Group, variables: dict[str, str]) -> None:
        self.driver = driver
        self.group = group
        self.variables = variables
        self.running: dict[str, Connection] = {}
        self.broken: dict[str, WorkerError] = {}

    def get(self, library: str) -> Connection:
        if library in self.broken:
            raise self.broken[library]
        worker = self.running.get(library)
        if worker is None or not worker.alive:
            worker = self.running[library] = self._open(library)
        return worker

    def _open(self, library: str) -> Connection:
        settings = self.driver.settings
        python = self.driver.pythons[library]
        try:
            worker = Connection.open(
                self.group.name, library, python, settings.threads, settings.timeout, self.variables
            )
        except WorkerError as error:
            self.broken[library] = error
            raise
        self.driver.results.versions[library] = worker.version
        return worker

    def close(self) -> None:
        for worker in self.running.values():
            worker.close()
        self.running.clear()
