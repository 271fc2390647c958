"""Differential fuzz of the v1 API: the same seeded random calls on TensorFlow 1.15 and on Headrace.

    python tools/differential_fuzz.py --tf1-python /path/to/tf1/bin/python --cases 4000 --seed 1
    python tools/differential_fuzz.py --tf1-python … --only reduce_sum,nn.conv2d --report report.txt
    python tools/differential_fuzz.py --tf1-python … --cases 600 --seed 7
        --golden tests/golden/differential.json.gz

Each library runs in processes of its own, a batch of cases each; a case that kills or hangs one is
isolated. The report lists, by kind of difference, each case with a program that shows it. ``--keep
FILE`` keeps TensorFlow's outcomes for the next run with the same cases, also if this one is ended
early. ``--golden`` writes the cases with TensorFlow's outcomes for tests/api/test_differential.py;
``--pick 73:831,74:185`` takes single cases of several seeds, ``--add`` keeps those of the file.
``--what raw`` calls ``tf.raw_ops``; ``--what programs --fresh`` runs whole programs, also each in a
process of its own.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import os
import sys
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [ROOT, os.path.join(ROOT, "src")]

from tools.differential import (  # noqa: E402
    catalogue_array,
    catalogue_flow,
    catalogue_layers,
    catalogue_math,
    catalogue_more,
    catalogue_nn,
    catalogue_other,
)
from tools.differential.cases import CATALOGUE, make_case  # noqa: E402
from tools.differential.compare import KINDS, difference  # noqa: E402
from tools.differential.programs import make_program  # noqa: E402
from tools.differential.raw_calls import make_raw_case  # noqa: E402
from tools.differential.render import call_of, source_of  # noqa: E402
from tools.differential.run import run_cases  # noqa: E402

FAMILIES = (
    catalogue_array,
    catalogue_flow,
    catalogue_layers,
    catalogue_math,
    catalogue_more,
    catalogue_nn,
    catalogue_other,
)
MAKERS = {"api": make_case, "raw": make_raw_case, "programs": make_program}
HEADRACE_ENVIRONMENT = {"PYTHONPATH": os.path.join(ROOT, "src")}


def main() -> int:
    options = _options()
    if options.pick:
        cases = picked_cases(options.pick, options.what)
    else:
        cases = chosen_cases(options.cases, options.seed, options.only, options.what)
    theirs = _outcomes_of_tensorflow(options, cases)
    if options.golden:
        write_golden(options.golden, cases, theirs, options.add)
        return 0
    ours = run_cases(sys.executable, "headrace", cases, HEADRACE_ENVIRONMENT)
    report, counts = compared(cases, theirs, ours, options.source)
    if options.fresh:
        alone = run_cases(sys.executable, "headrace", cases, HEADRACE_ENVIRONMENT, fresh=True)
        changed = [c for c in cases if alone[c["id"]] != ours[c["id"]]]
        report += f"\n== other than in a fresh process: {len(changed)}\n\n"
        report += "\n".join(f"#{c['id']} {call_of(c)}\n" for c in changed)
        counts += f", other than in a fresh process {len(changed)}"
    with open(options.report, "w") if options.report else sys.stdout as out:
        out.write(report)
    print(counts)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tf1-python", required=True, help="a Python that has TensorFlow 1.15")
    parser.add_argument("--cases", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--what",
        choices=sorted(MAKERS),
        default="api",
        help="calls of the public API, calls of tf.raw_ops, or whole programs",
    )
    parser.add_argument("--only", default="", help="functions, separated by commas")
    parser.add_argument("--pick", help="these cases alone: SEED:NUMBER, separated by commas")
    parser.add_argument("--report", help="write the report to this file")
    parser.add_argument("--source", action="store_true", help="show each case as a program")
    parser.add_argument(
        "--fresh", action="store_true", help="compare with each case in a process of its own, too"
    )
    parser.add_argument(
        "--keep", help="read TensorFlow's outcomes from this file, or write them to it"
    )
    parser.add_argument("--golden", help="write cases and TensorFlow's outcomes to this file")
    parser.add_argument("--add", action="store_true", help="keep what the golden file has")
    return parser.parse_args()


def picked_cases(pick: str, what: str) -> list[dict[str, Any]]:
    """Cases given as ``SEED:NUMBER,…``, each with a number of its own."""
    cases = []
    for text in pick.split(","):
        seed, number = map(int, text.split(":"))
        cases.append({**MAKERS[what](number, seed), "id": seed * 100_000 + number})
    return cases


def chosen_cases(count: int, seed: int, only: str, what: str) -> list[dict[str, Any]]:
    """The first ``count`` cases of the seed, of the functions in ``only`` if that is given."""
    wanted = {n for n in only.split(",") if n}
    unknown = wanted - set(CATALOGUE)
    if unknown and what == "api":
        raise SystemExit(f"not in the catalogue: {', '.join(sorted(unknown))}")
    cases: list[dict[str, Any]] = []
    number = 0
    while len(cases) < count:
        case = MAKERS[what](number, seed)
        if not wanted or case["fn"] in wanted:
            cases.append(case)
        number += 1
    return cases


def _outcomes_of_tensorflow(
    options: argparse.Namespace, cases: list[dict[str, Any]]
) -> dict[int, dict[str, Any]]:
    """Those that were kept, and of the other cases by running them."""
    key = json.dumps(cases, sort_keys=True)
    known: dict[int, dict[str, Any]] = {}
    if options.keep and os.path.exists(options.keep):
        with gzip.open(options.keep, "rt") as f:
            kept = json.load(f)
        if kept["key"] == key:
            known = {int(k): v for k, v in kept["outcomes"].items()}

    def keep(outcomes: dict[int, dict[str, Any]]) -> None:
        if options.keep:
            with gzip.open(options.keep, "wt") as f:
                json.dump({"key": key, "outcomes": outcomes}, f)

    return run_cases(options.tf1_python, "tensorflow", cases, {}, known, keep)


def compared(
    cases: list[dict[str, Any]], theirs: dict[int, Any], ours: dict[int, Any], source: bool
) -> tuple[str, str]:
    """(report, counts): the report lists every difference by kind, then by function."""
    found: dict[str, list[tuple[str, str]]] = collections.defaultdict(list)
    crashed = [c for c in cases if theirs[c["id"]]["stage"] in ("crash", "hang")]
    for case in cases:
        differs = difference(case, theirs[case["id"]], ours[case["id"]])
        if differs is not None:
            kind, what = differs
            shown = source_of(case) if source else call_of(case)
            found[kind].append((case["fn"], f"#{case['id']} {shown}\n    {what}\n"))
    lines: list[str] = []
    for kind, title in KINDS.items():
        lines.append(f"\n== {title}: {len(found[kind])}\n")
        lines += [text for _, text in sorted(found[kind])]
    lines.append(f"\n== not compared, TensorFlow crashed or hung: {len(crashed)}\n")
    lines += [f"#{c['id']} {call_of(c)}\n" for c in crashed]
    ok = sum(o["stage"] == "ok" for o in theirs.values())
    counts = ", ".join(f"{kind} {len(found[kind])}" for kind in KINDS)
    comparable = len(cases) - len(crashed) - len(found["missing"])
    return "\n".join(lines), f"{comparable} compared ({ok} run on TensorFlow): {counts}"


def write_golden(
    path: str, cases: list[dict[str, Any]], theirs: dict[int, Any], added: bool = False
) -> None:
    """Cases with outcomes and the beginning of error texts; what crashed TensorFlow is left out."""
    rows = []
    if added:
        with gzip.open(path, "rt") as old:
            rows = [json.loads(line) for line in old]
    for case in cases:
        outcome = {k: v for k, v in theirs[case["id"]].items() if k != "id"}
        if "text" in outcome:
            outcome["text"] = outcome["text"].partition("\n")[0][:80]
        if outcome["stage"] not in ("crash", "hang"):
            rows.append([case, outcome])
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as f:
        f.write("\n".join(json.dumps(r, separators=(",", ":")) for r in rows).encode())


if __name__ == "__main__":
    sys.exit(main())
