"""The command: measures groups of cases, prints their tables, and writes them into the docs.

python -m benchmarks                                          # Headrace, and the peers that can be
found python -m benchmarks --setup-peers ~/.cache/headrace-peers    # makes environments for the
peers first python -m benchmarks --group models --case mlp.train --rounds 10 --json out.json python
-m benchmarks --group models --isa avx2                # as on a CPU without AVX-512 python -m
benchmarks --from out.json --docs docs              # tables and plots of an earlier run
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
from datetime import UTC, datetime
from pathlib import Path

if __package__ in (None, ""):  # python benchmarks/run.py
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from tests.instruction_sets import SETTINGS

from benchmarks.checking import CHECKS_BY_GROUP, check_table, differing
from benchmarks.driver import Driver, Settings, note
from benchmarks.groups import GROUPS, find_group
from benchmarks.libraries import ENVIRONMENTS, LIBRARIES, OWN
from benchmarks.page import doubts, write_page
from benchmarks.peers import set_up_peers
from benchmarks.results import Results
from benchmarks.roofline import Machine
from benchmarks.rows import Statistic
from benchmarks.table import limits_table, make_table, markdown, show

__all__ = ["main"]

#: Classes of CPU, and the flag by which Linux shows them.
CLASSES = {"AVX-512": "avx512f", "AVX2": "avx2"}
STATISTICS: dict[str, Statistic] = {"best": min, "median": statistics.median}


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    results = _results(options)
    if options.check:
        show(check_table(results))
        return 1 if differing(results) else 0
    _print(results, STATISTICS[options.statistic])
    if options.json:
        options.json.write_text(results.to_json())
    if options.markdown:
        tables = (make_table(group, results) for group in GROUPS.values())
        options.markdown.write_text("\n".join(markdown(t) for t in tables if t.cells))
    if options.docs:
        write_page(options.docs, results)
    return 1 if results.failures else 0


def _results(options: argparse.Namespace) -> Results:
    if options.measured:
        return Results.joined([Results.from_json(p.read_text()) for p in options.measured])
    if options.isa and (missing := SETTINGS[options.isa].missing()):
        raise SystemExit(missing)
    settings = Settings(
        options.rounds, options.quick, options.threads, options.timeout, options.isa
    )
    driver = Driver(_pythons(options), settings)
    for name, cases in _chosen(options).items():
        driver.measure(GROUPS[name], cases)
    driver.results.about = _about(settings)
    return driver.results


def _chosen(options: argparse.Namespace) -> dict[str, list[str]]:
    """The cases by group; with models the machine, for their limits."""
    if options.check:
        return CHECKS_BY_GROUP
    if options.case:
        names = dict.fromkeys(find_group(case).name for case in options.case)
        return {name: [c for c in GROUPS[name].cases() if c in options.case] for name in names}
    groups = set(options.group or GROUPS)
    if groups & {"models", "inference"}:
        groups.add("machine")
    return {name: group.cases() for name, group in GROUPS.items() if name in groups}


def _about(settings: Settings) -> dict[str, str]:
    rounds = 1 if settings.quick else settings.rounds
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "python": f"Python {platform.python_version()}",
        "rounds": f"{rounds} interleaved rounds (long cases: at most 3)",
        "threads": f"{settings.threads} threads each",
        "instructions": instructions(settings.isa),
        **({"isa": f"limited to: {SETTINGS[settings.isa].meaning}"} if settings.isa else {}),
    }


def instructions(limit: str = "") -> str:
    """The class of CPU that kernels are chosen for: "AVX-512", "AVX2", or less."""
    if limit == "avx2":
        return "AVX2"
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return "instructions unknown"
    return next((n for n, f in CLASSES.items() if f" {f} " in flags), "less than AVX2")


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":")[1].strip() for line in text.splitlines() if "model name" in line]
    return names[0] if names else platform.machine()


def _print(results: Results, statistic: Statistic) -> None:
    machine = Machine.of(results, statistic)
    for group in GROUPS.values():
        table = make_table(group, results, statistic)
        if table.cells:
            print(f"\n{group.title}\n")
            show(table)
            limits = machine and limits_table(group, results, machine, statistic)
            if limits:
                print()
                show(limits)
    versions = ", ".join(dict.fromkeys(results.versions.values()))
    print(f"\n{versions}; {'; '.join(results.about.values())}; best / median")
    for reason in doubts(results):
        print(f"NOT TO BE QUOTED: {reason}")


def _pythons(options: argparse.Namespace) -> dict[str, str]:
    """By library."""
    found = set_up_peers(options.setup_peers) if options.setup_peers else {}
    given = {name: getattr(options, name) for name in ENVIRONMENTS if getattr(options, name)}
    environments = {**found, **given}
    for name in ENVIRONMENTS.keys() - environments.keys():
        variable = ENVIRONMENTS[name].variable
        note(f"no {name} to compare with: give --{name} PYTHON, ${variable} or --setup-peers DIR")
    pythons: dict[str, str] = {}
    for library, about in LIBRARIES.items():
        if about.environment is None:
            pythons[library] = sys.executable
        elif about.environment in environments:
            pythons[library] = environments[about.environment]
    wanted = {OWN, *options.library} if options.library else pythons.keys()
    return {library: python for library, python in pythons.items() if library in wanted}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="What Headrace costs, beside its peers."
    )
    parser.add_argument(
        "--group",
        action="append",
        choices=list(GROUPS),
        help="only this group (may be repeated; models and inference bring the machine's limits)",
    )
    parser.add_argument(
        "--case",
        action="append",
        choices=sorted(case for group in GROUPS.values() for case in group.cases()),
        help="only this case (may be repeated)",
        metavar="CASE",
    )
    parser.add_argument(
        "--library",
        action="append",
        choices=sorted(LIBRARIES.keys() - {OWN}),
        help="only this peer (may be repeated)",
    )
    _add_measuring(parser)
    _add_files(parser)
    return parser


def _add_measuring(parser: argparse.ArgumentParser) -> None:
    """How it is measured: rounds, threads, instruction set."""
    parser.add_argument(
        "--check",
        action="store_true",
        help="measure nothing: show that every library gets the same losses and logits",
    )
    parser.add_argument(
        "--rounds", type=int, default=5, help="rounds over all libraries (default: %(default)s)"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one short round of tiny sizes: shows that everything runs, its figures mean nothing",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=2,
        help="threads, and processors, of each library (default: %(default)s)",
    )
    parser.add_argument(
        "--isa",
        choices=[name for name in SETTINGS if name.startswith("avx")],
        default="",
        help="limit the instruction set of all libraries (ONNX Runtime and OpenVINO cannot be)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=1800,
        metavar="SECONDS",
        help="for one case in one library, compiling included (default: %(default)s)",
    )
    parser.add_argument(
        "--statistic",
        choices=sorted(STATISTICS),
        default="best",
        help="that ratios are made of (default: %(default)s)",
    )


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples to FILE")
    parser.add_argument(
        "--from",
        dest="measured",
        type=Path,
        action="append",
        metavar="FILE",
        help="measure nothing: take the samples of an earlier run (repeated: of its pieces)",
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables to FILE")
    parser.add_argument(
        "--docs",
        type=Path,
        metavar="DIR",
        help="write tables and plots into DIR/benchmarks.md and DIR/benchmarks/ (needs matplotlib)",
    )
    parser.add_argument(
        "--setup-peers",
        type=Path,
        metavar="DIR",
        help="make environments for the peers in DIR, or use those made there before",
    )
    for name, environment in ENVIRONMENTS.items():
        parser.add_argument(
            f"--{name}",
            metavar="PYTHON",
            default=os.environ.get(environment.variable),
            help=f"a Python that has {name} (default: ${environment.variable})",
        )


if __name__ == "__main__":
    sys.exit(main())
