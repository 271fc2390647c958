"""The page of public programs: a summary that is counted, what is slower, and the table.

The page's own text stays: what follows the line :data:`MARK` is written anew.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["MARK", "write_page"]

MARK = "<!-- what follows is written by tools/public_programs.py --page -->"
#: Seconds in `run` below which nothing is said about which engine is faster.
_SHORTEST = 0.05


def write_page(page: Path, rows: list[dict], commit: str) -> None:
    """Replace what follows the mark."""
    own = page.read_text().split(MARK)[0].rstrip()
    rows = sorted(rows, key=lambda r: (r["repository"].lower(), r["path"], r["args"]))
    parts = [own, "", MARK, "", *_summary(rows, commit), "", *_slower(rows), "", *_table(rows)]
    page.write_text("\n".join(parts) + "\n")


def _both(rows: list[dict]) -> list[dict]:
    """Programs that end well on both engines."""
    return [r for r in rows if r["tensorflow"]["result"] == r["headrace"]["result"] == "ok"]


def _summary(rows: list[dict], commit: str) -> list[str]:
    repositories = len({r["repository"] for r in rows})
    both = _both(rows)
    same = [r for r in both if r["output"].startswith("same")]
    mine = [r for r in rows if r["tensorflow"]["result"] != "ok" == r["headrace"]["result"]]
    theirs = [r for r in rows if r["headrace"]["result"] != "ok" == r["tensorflow"]["result"]]
    seconds = [sum(r[e]["run_seconds"] for r in both) for e in ("tensorflow", "headrace")]
    cpu = [sum(r[e]["cpu_seconds"] for r in both) for e in ("tensorflow", "headrace")]
    at = f" at commit `{commit[:10]}`" if commit else ""
    return [
        f"{len(rows)} programs of {repositories} repositories, all run{at} on both engines:",
        "",
        f"- {len(both)} end well on both, {len(same)} of them with the same text and numbers;",
        f"- {len(mine)} end well on Headrace only, {len(theirs)} on TensorFlow only;",
        f"- those that end well on both spend {seconds[0]:.0f} s in `run` on TensorFlow and "
        f"{seconds[1]:.0f} s on Headrace ({cpu[0]:.0f} and {cpu[1]:.0f} s of processor time in "
        "all, the engines' imports left out).",
    ]


def _slower(rows: list[dict]) -> list[str]:
    """Programs whose processor time is larger here: on a busy machine it says more than time."""
    found = [
        f"`{r['repository']}` {r['path']} ({r['tensorflow']['cpu_seconds']:.2f} / "
        f"{r['headrace']['cpu_seconds']:.2f} s)"
        for r in _both(rows)
        if r["headrace"]["cpu_seconds"] > 1.1 * r["tensorflow"]["cpu_seconds"] + _SHORTEST
    ]
    if not found:
        return ["No program takes more processor time here than on TensorFlow."]
    return [f"More processor time here than on TensorFlow ({len(found)}): {', '.join(found)}."]


def _table(rows: list[dict]) -> list[str]:
    lines = [
        "| program | TF 1.15 | Headrace | output | runs | in run s, TF / Headrace | CPU s |",
        "|---|---|---|---|---|---|---|",
    ]
    for repository in dict.fromkeys(r["repository"] for r in rows):
        mine = [r for r in rows if r["repository"] == repository]
        lines.append(f"| **{repository}** `{mine[0]['commit'][:10]}` | | | | | | |")
        lines += [_line(r) for r in mine]
    return lines


def _line(row: dict) -> str:
    a, b = row["tensorflow"], row["headrace"]
    arguments = f" `{' '.join(row['args'])}`" if row["args"] else ""
    short = " (shortened)" if row["shortened"] else ""
    ends = [_ending(e) for e in (a, b)]
    both = a["result"] == b["result"] == "ok"
    cells = [f"{row['path']}{arguments}{short}", *ends, row["output"] if both else ""]
    cells.append(str(b["runs"]))
    for key in ("run_seconds", "cpu_seconds"):
        cells.append(f"{a[key]:.2f} / {b[key]:.2f}")
    return "| " + " | ".join(cells) + " |"


def _ending(run: dict) -> str:
    reason = run["reason"].replace("|", "\\|")[:120]
    result = f"{run['result']}: {reason}" if reason else run["result"]
    return f"{result} (cut)" if run.get("cut") else result
