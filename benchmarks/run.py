"""The driver: measures in turn, several rounds, and prints the table.

python -m benchmarks                                          # Headrace, and the peers that can be found
python -m benchmarks --setup-peers ~/.cache/headrace-peers    # makes environments for the peers first
python -m benchmarks --case mlp_adam --rounds 10 --json out.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if __package__ in (None, ""):  # python benchmarks/run.py
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.peers import PEERS, Connection, WorkerError, set_up_peers
from benchmarks.rows import ROWS, Statistic
from benchmarks.scale import QUICK
from benchmarks.table import Line, Results, as_data, make_lines, markdown, show

__all__ = ["main"]

STATISTICS: dict[str, Statistic] = {"best": min, "median": statistics.median}
#: A load by others from which figures, and ratios too, are not to be trusted: a library that wakes many threads
#: loses more by it than one that works in a single thread.
BUSY = 0.5
#: Cases that take seconds a round with TensorFlow and hardly differ from round to round.
LONG_CASES = {"anew": 3, "import": 3, "many_vectors": 3, "many_scalars": 3}


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    pythons = _pythons(options)
    cases = options.case or list(dict.fromkeys(row.case for row in ROWS))
    try:
        with _workers(pythons, options.threads) as workers:
            versions = {w.name: w.version for w in workers}
            _note(_about(versions, options.threads))
            driver = Driver(workers, options)
            for case in cases:
                driver.measure(case)
    except WorkerError as error:
        _note(f"benchmarks: {error}")
        return 1
    lines = make_lines(driver.results, STATISTICS[options.statistic])
    show(lines)
    rounds = 1 if options.quick else options.rounds
    print(
        f"{options.statistic} of {rounds} rounds (long cases: at most {max(LONG_CASES.values())}); {_about(versions, options.threads)}"
    )
    for reason in _doubts(options.quick, driver.load):
        print(f"NOT TO BE QUOTED: {reason}")
    _write(lines, versions, driver.load, options)
    return 1 if driver.failures else 0


def _doubts(quick: bool, load: float) -> list[str]:
    doubts = [f"--quick took one round, with counts divided by {QUICK.divisor}"] if quick else []
    if load > BUSY:
        doubts.append(f"other processes kept the machine busy (load {load:.1f} beside ours)")
    return doubts


def _write(
    lines: list[Line], versions: dict[str, str], load: float, options: argparse.Namespace
) -> None:
    if options.json:
        options.json.write_text(json.dumps(as_data(lines, versions, load), indent=1))
    if options.markdown:
        options.markdown.write_text(markdown(lines))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="What Headrace costs, beside TensorFlow and jax."
    )
    parser.add_argument(
        "--case",
        action="append",
        choices=sorted({row.case for row in ROWS}),
        help="only this case (may be repeated)",
    )
    parser.add_argument(
        "--rounds", type=int, default=5, help="rounds over all libraries (default: %(default)s)"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one short round: shows that everything runs, its figures mean little",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=2,
        help="threads, and processors, of each library (default: %(default)s)",
    )
    parser.add_argument(
        "--statistic",
        choices=sorted(STATISTICS),
        default="best",
        help="of the samples (default: %(default)s)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write figures to FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table to FILE")
    parser.add_argument(
        "--setup-peers",
        type=Path,
        metavar="DIR",
        help="make environments for the peers in DIR, or use those made there before",
    )
    for name, (variable, _) in PEERS.items():
        parser.add_argument(
            f"--{name}",
            metavar="PYTHON",
            default=os.environ.get(variable),
            help=f"a Python that has {name} (default: ${variable})",
        )
    return parser


def _pythons(options: argparse.Namespace) -> dict[str, str]:
    found = set_up_peers(options.setup_peers) if options.setup_peers else {}
    given = {name: getattr(options, name) for name in PEERS if getattr(options, name)}
    peers = {**found, **given}
    for name in PEERS.keys() - peers.keys():
        _note(
            f"no {name} to compare with: give --{name} PYTHON, ${PEERS[name][0]} or --setup-peers DIR"
        )
    return {"headrace": sys.executable, **peers}


@contextmanager
def _workers(pythons: dict[str, str], threads: int) -> Iterator[list[Connection]]:
    workers: list[Connection] = []
    try:
        for name, python in pythons.items():
            workers.append(Connection.open(name, python, threads))
        yield workers
    finally:
        for worker in workers:
            worker.close()


def _load() -> float:
    """How many threads wanted a processor over the last minute; 0 where the system does not tell."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _busy_cores(seconds: float = 1.0) -> float:
    """How many processors others keep busy right now, before anything of ours runs; 0 where the system does not tell."""
    before = _processor_times()
    time.sleep(seconds)
    after = _processor_times()
    if before is None or after is None:
        return 0.0
    total, idle = after[0] - before[0], after[1] - before[1]
    return (os.cpu_count() or 1) * (1 - idle / total) if total else 0.0


def _processor_times() -> tuple[int, int] | None:
    """Ticks of all processors together, and the idle ones among them."""
    try:
        fields = [int(x) for x in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    except OSError:
        return None
    return sum(fields[:8]), fields[3] + fields[4]


class Driver:
    """Asks the workers in turn and collects what they answer. A case that fails leaves the others alone."""

    def __init__(self, workers: list[Connection], options: argparse.Namespace) -> None:
        self.workers = workers
        self.options = options
        self.results: Results = {}
        self.failures = 0
        self.load = _busy_cores()

    def measure(self, case: str) -> None:
        self._measure(case)
        # one library works at a time, on at most this many threads: what is above that is not ours
        self.load = max(self.load, _load() - self.options.threads)

    def _measure(self, case: str) -> None:
        if case.startswith("memory"):
            self._measure_in_new_process(case)
            return
        wanted = {"headrace"}.union(*(row.peers for row in ROWS if row.case == case))
        chosen = [w for w in self.workers if w.name in wanted and case in w.cases]
        rounds = self._rounds(case)
        for turn in range(rounds):
            for worker in chosen:
                _note(f"{case}: round {turn + 1} of {rounds}, {worker.name}")
                self._ask(worker, case)

    def _rounds(self, case: str) -> int:
        most: int = self.options.rounds
        return 1 if self.options.quick else min(most, LONG_CASES.get(case, most))

    def _measure_in_new_process(self, case: str) -> None:
        """Memory is looked at where nothing else has been done."""
        _note(f"{case}: headrace")
        with _workers({"headrace": sys.executable}, self.options.threads) as [worker]:
            self._ask(worker, case)

    def _ask(self, worker: Connection, case: str) -> None:
        try:
            samples = worker.ask(case, self.options.quick)
        except WorkerError as error:
            self.failures += 1
            _note(f"{case}: {error}")
        else:
            self.results.setdefault((worker.name, case), []).append(samples)


def _about(versions: dict[str, str], threads: int) -> str:
    return f"{', '.join(versions.values())}; {threads} threads each"


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
