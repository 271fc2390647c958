"""Whether all libraries train and run the same models and programs.

Losses and logits of the tiny models, side by side, and the losses of the first steps of the
programs, whose random numbers are the same in Headrace and TensorFlow.
"""

from __future__ import annotations

from benchmarks.groups import GROUPS, Group
from benchmarks.libraries import LABELS
from benchmarks.models import TINY
from benchmarks.program_cases import CHECKS as PROGRAM_CHECKS
from benchmarks.results import Results
from benchmarks.scale import Samples
from benchmarks.table import FAILED, Table

__all__ = ["CHECKS", "CHECKS_BY_GROUP", "check_table", "differing"]

#: The group "inference" has all libraries.
CHECKS_BY_GROUP = {"inference": [f"{name}.check" for name in TINY], "programs": PROGRAM_CHECKS}
CHECKS = [check for checks in CHECKS_BY_GROUP.values() for check in checks]
#: Of losses and logits, relative to those above 1: libraries add in different orders.
TOLERANCE = 2e-4


def _group() -> Group:
    return GROUPS["inference"]  # it has all libraries


def differing(results: Results) -> list[tuple[str, str]]:
    """The libraries and checks that are away from the first library that has the check, or
    failed.
    """
    away = [key for key in results.failures if key[1] in CHECKS]
    for check in CHECKS:
        for library in results.libraries(check):
            if not _distance(results, library, check) <= TOLERANCE:
                away.append((library, check))
    return away


def _distance(results: Results, library: str, check: str) -> float:
    first = results.libraries(check)[0]
    ours, other = results.rounds[first, check][0], results.rounds[library, check][0]
    return max(_apart(ours[key], other[key]) for key in other if key in ours)


def _apart(a: list[float], b: list[float]) -> float:
    return (
        max(abs(x - y) / max(1.0, abs(x)) for x, y in zip(a, b))
        if len(a) == len(b)
        else float("inf")
    )


def check_table(results: Results) -> Table:
    """The last loss in the first library, and how far each other is from all of its losses and
    logits.
    """
    names = [n for n in _group().libraries() if any(key[0] == n for key in _keys(results))]
    cells: list[list[str]] = []
    for check in CHECKS:
        measured = results.libraries(check)
        if measured:
            first: Samples = results.rounds[measured[0], check][0]
            losses = ", ".join(f"{loss:.5f}" for loss in first["losses"][:3])
            cells.append([check, losses, *(_cell(results, name, check) for name in names)])
    reasons = [f"{LABELS[name]}, {check}: {why}" for (name, check), why in results.failures.items()]
    return Table(["model", "losses", *(LABELS[name] for name in names)], cells, reasons)


def _keys(results: Results) -> list[tuple[str, str]]:
    return [key for key in (*results.rounds, *results.failures) if key[1] in CHECKS]


def _cell(results: Results, library: str, check: str) -> str:
    if (library, check) in results.failures:
        return FAILED
    if (library, check) not in results.rounds:
        return ""
    return f"± {_distance(results, library, check):.1e}"
