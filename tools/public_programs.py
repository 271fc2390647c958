"""Run public TensorFlow-1 programs on TensorFlow 1.15 and on Headrace, and compare.

    git clone https://github.com/nlintz/TensorFlow-Tutorials clones/nlintz/TensorFlow-Tutorials
    python -m tools.public_programs --clones clones --judge python3.7-with-tensorflow-1.15

The list of repositories, commits and paths is `tools/programs/programs.toml`. No program's code is
in this repository: clone what you want to run (at the listed commit) to CLONES/OWNER/NAME; others
are skipped. The programs need what their authors used beside TensorFlow: matplotlib, scikit-learn,
pandas, tqdm. Data is made up by `tools/programs/program_data.py`, `gym` is a small stand-in.

Every program runs in its own copy of the repository, on both engines, with the same seeds. The
table says how each ended, whether the printed text and numbers agree, the wall time and the time in
`run`. With `--forked 12` every program ends after 12 runs, in a fork of a process that has the
engine loaded; its processor time is then its own, without the import.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tools.programs.program_compare import compare_output
from tools.programs.program_forks import LoadedEngine
from tools.programs.program_page import write_page
from tools.programs.program_run import (
    Engine,
    Outcome,
    Program,
    Repository,
    copy_repository,
    run_program,
)

LIST = Path(__file__).parent / "programs" / "programs.toml"


def read_list(file: Path) -> list[Repository]:
    """The repositories of a list file."""
    repositories = []
    for entry in tomllib.loads(file.read_text())["repository"]:
        programs = tuple(_program(p) for p in entry["programs"])
        data = tuple((k, p) for k, p in entry.get("data", ()))
        repositories.append(Repository(entry["name"], entry["commit"], programs, data))
    return repositories


def _program(entry: str | dict) -> Program:
    if isinstance(entry, str):
        return Program(entry)
    fields = {k: tuple(map(_frozen, v)) if isinstance(v, list) else v for k, v in entry.items()}
    return Program(**fields)


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def find_clone(clones: Path, name: str) -> Path | None:
    """The work tree of OWNER/NAME below `clones`: OWNER/NAME, OWNER+NAME or NAME."""
    owner, short = name.split("/")
    candidates = (clones / owner / short, clones / f"{owner}+{short}", clones / short)
    return next((c for c in candidates if c.is_dir()), None)


def run_all(
    repositories: list[Repository], options: argparse.Namespace, engines: list[Engine], work: Path
) -> Iterator[dict]:
    """One row per program of the list that has a clone and matches `--only`."""
    loaded: dict[str, LoadedEngine] = {}
    if options.forked:
        loaded = {e.name: LoadedEngine(e, options.forked, options.cpu_limit) for e in engines}
    for repository in repositories:
        wanted = [
            p
            for p in repository.programs
            if not options.only or any(o in f"{repository.name}/{p.path}" for o in options.only)
        ]
        clone = find_clone(options.clones, repository.name)
        if not wanted or clone is None:
            continue
        copies = {e.name: work / e.name / repository.name.replace("/", "+") for e in engines}
        for copy in copies.values():
            copy_repository(clone, copy)
        for program in wanted:
            outcomes = {
                e.name: loaded[e.name].run(program, repository, copies[e.name], options.limit)
                if loaded
                else run_program(program, repository, copies[e.name], e, options.limit)
                for e in engines
            }
            yield _row(repository, program, outcomes, copies)


def _row(
    repository: Repository,
    program: Program,
    outcomes: dict[str, Outcome],
    copies: dict[str, Path],
) -> dict:
    row: dict = {
        "repository": repository.name,
        "commit": repository.commit,
        "path": program.path,
        "args": list(program.args),
        "shortened": bool(program.edits),
        "note": program.note,
    }
    for name, o in outcomes.items():
        row[name] = {
            "result": o.result(),
            "seconds": round(o.seconds, 2),
            "runs": o.runs,
            "run_seconds": round(o.run_seconds, 3),
            "cpu_seconds": round(o.cpu_seconds, 2),
            "reason": o.reason().replace(str(copies[name]), "COPY") if o.exit_code else "",
            "cut": o.cut,
        }
    if len(outcomes) == 2:
        first, second = outcomes.values()
        cut = first.cut or second.cut
        printed = [o.stdout.replace(str(copies[name]), "COPY") for name, o in outcomes.items()]
        row["output"] = compare_output(*printed, cut).verdict()
    return row


def format_table(rows: list[dict]) -> str:
    """The rows as a Markdown table."""
    lines = [
        "| program | TF 1.15 | Headrace | output | wall s, TF / Headrace | CPU s | in run s |",
        "|---|---|---|---|---|---|---|",
    ]
    for repository in dict.fromkeys(r["repository"] for r in rows):
        mine = [r for r in rows if r["repository"] == repository]
        lines.append(f"| **{repository}** `{mine[0]['commit'][:10]}` | | | | | | |")
        lines += [_line(r) for r in mine]
    return "\n".join(lines)


def _line(row: dict) -> str:
    a, b = row.get("tensorflow"), row["headrace"]
    arguments = f" `{' '.join(row['args'])}`" if row["args"] else ""
    short = " (shortened)" if row["shortened"] else ""
    cells = [f"{row['path']}{arguments}{short}", a["result"] if a else "", _ending(b)]
    cells.append(row.get("output", ""))
    for key in ("seconds", "cpu_seconds", "run_seconds"):
        cells.append(f"{a[key]:.2f} / {b[key]:.2f}" if a else f"{b[key]:.2f}")
    return "| " + " | ".join(cells) + " |"


def _ending(run: dict) -> str:
    reason = run["reason"].replace("|", "\\|")
    return f"{run['result']}: {reason}" if reason else run["result"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--clones", type=Path, default=Path(), help="folder of the clones")
    parser.add_argument(
        "--judge", help="a Python that has TensorFlow 1.15 (default: Headrace alone)"
    )
    parser.add_argument("--python", default=sys.executable, help="a Python that has Headrace")
    parser.add_argument(
        "--judge-path", default="", help="import folders for the judge, as PYTHONPATH"
    )
    parser.add_argument("--path", default="", help="import folders for Headrace, as PYTHONPATH")
    parser.add_argument("--list", type=Path, default=LIST)
    parser.add_argument("--only", nargs="*", default=[], help="parts of repository/path")
    parser.add_argument("--limit", type=float, default=120, help="seconds allowed for one run")
    parser.add_argument(
        "--forked",
        type=int,
        default=0,
        metavar="RUNS",
        help="fork every program from a process that has loaded its engine, and end it after RUNS "
        "runs: many times faster than a process each",
    )
    parser.add_argument(
        "--cpu-limit", type=float, default=20, help="with --forked: seconds of processor time"
    )
    parser.add_argument(
        "--work", type=Path, help="folder for the copies (default: a temporary one)"
    )
    parser.add_argument("--json", type=Path, help="write or update the rows here")
    parser.add_argument(
        "--page", type=Path, help="write the rows of --json as the table of this page, run nothing"
    )
    parser.add_argument("--commit", default="", help="with --page: Headrace's commit")
    options = parser.parse_args()
    if options.page:
        write_page(options.page, json.loads(options.json.read_text()), options.commit)
        return
    engines = [Engine("headrace", (options.python, "-m", "headrace", "run"), _split(options.path))]
    if options.judge:
        engines.insert(0, Engine("tensorflow", (options.judge,), _split(options.judge_path)))
    with tempfile.TemporaryDirectory() as scratch:
        rows = []
        for row in run_all(
            read_list(options.list), options, engines, options.work or Path(scratch)
        ):
            rows.append(row)
            print(_line(row), flush=True)
            if options.json:
                _update(options.json, row)
    print(format_table(rows))


def _split(text: str) -> tuple[str, ...]:
    return tuple(p for p in text.split(":") if p)


def _update(file: Path, row: dict) -> None:
    rows = json.loads(file.read_text()) if file.exists() else []
    key = (row["repository"], row["path"], row["args"])
    rows = [r for r in rows if (r["repository"], r["path"], r["args"]) != key]
    file.write_text(json.dumps([*rows, row], indent=1) + "\n")


if __name__ == "__main__":
    main()
