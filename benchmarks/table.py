"""From results to tables: as text for a terminal, as Markdown.

table = make_table(GROUPS["engine"], results)
print(plain(table))
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from benchmarks.groups import Group
from benchmarks.libraries import LABELS, OWN
from benchmarks.results import Results
from benchmarks.roofline import Machine
from benchmarks.rows import Quantile, Row, Statistic, time_text

__all__ = ["Line", "Table", "limits_table", "make_lines", "make_table", "markdown", "plain", "show"]

FAILED = "failed"


@dataclass(frozen=True)
class Line:
    """A row with its figures by library.

    The best, the median, the ratio of a peer's time to ours, and texts.
    """

    row: Row
    best: dict[str, float]
    median: dict[str, float]
    ratios: dict[str, float]
    texts: dict[str, str]


@dataclass(frozen=True)
class Table:
    headings: list[str]
    cells: list[list[str]]
    notes: list[str] = field(default_factory=list)


def make_lines(group: Group, results: Results, statistic: Statistic = min) -> list[Line]:
    lines = (_line(group, row, results, statistic) for row in group.rows)
    return [line for line in lines if line.texts]


def _line(group: Group, row: Row, results: Results, statistic: Statistic) -> Line:
    names = [name for name in group.libraries(row) if (name, row.case) in results.rounds]
    rounds = {name: results.rounds[name, row.case] for name in names}
    best = {name: row.figure.value(each, statistic) for name, each in rounds.items()}
    median = {name: row.figure.value(each, statistics.median) for name, each in rounds.items()}
    ratios: dict[str, float] = {}
    if row.figure.unit == "s" and OWN in best:
        ratios = {name: value / best[OWN] for name, value in best.items() if name != OWN}
    texts = {name: row.figure.text(each, statistic) for name, each in rounds.items()}
    if row.figure.unit == "s" and not isinstance(row.figure, Quantile):
        texts = {name: _both(best[name], median[name]) for name in texts}
    for name in group.libraries(row):
        if (name, row.case) in results.failures:
            texts[name] = FAILED
    return Line(row, best, median, ratios, texts)


def _both(best: float, median: float) -> str:
    """ "2.58 / 2.66 ms": in the unit of the first."""
    number, unit = time_text(best).split()
    scale = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}[unit]
    other = median / scale
    return f"{number} / {f'{other:.0f}' if other >= 100 else f'{other:.3g}'} {unit}"


def make_table(group: Group, results: Results, statistic: Statistic = min) -> Table:
    lines = make_lines(group, results, statistic)
    shown = [name for name in group.libraries() if any(name in line.texts for line in lines)]
    headings = ["case", *(LABELS[name] for name in shown)]
    for target in group.targets:
        headings += [target, "met"]
    cells = [_cells(line, shown, group.targets) for line in lines]
    return Table(headings, cells, _failures(group, results))


def _cells(line: Line, shown: list[str], targets: tuple[str, ...]) -> list[str]:
    cells = [line.row.title]
    for name in shown:
        ratio = line.ratios.get(name)
        cells.append(line.texts.get(name, "") + ("" if ratio is None else f" ({_times(ratio)})"))
    for heading in targets:
        target = line.row.targets.get(heading)
        known = target is not None and OWN in line.best
        cells.append(target.text(LABELS) if target is not None else "")
        cells.append(
            target.met(line.best[OWN], line.ratios) if target is not None and known else ""
        )
    return cells


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}x" if ratio >= 100 else f"{ratio:.3g}x"


def _failures(group: Group, results: Results) -> list[str]:
    cases = set(group.cases())
    return [
        f"{LABELS[name]}, {case}: {reason}"
        for (name, case), reason in results.failures.items()
        if case in cases
    ]


def limits_table(
    group: Group, results: Results, machine: Machine, statistic: Statistic = min
) -> Table | None:
    """For the rows whose work is counted.

    The limit, and the share of it that each library reaches.
    """
    lines = [line for line in make_lines(group, results, statistic) if line.row.work is not None]
    if not lines:
        return None
    shown = [name for name in group.libraries() if any(name in line.best for line in lines)]
    cells: list[list[str]] = []
    for line in lines:
        assert line.row.work is not None
        work = line.row.work()
        limit = machine.seconds(work)
        shares = [f"{limit / line.best[name]:.0%}" if name in line.best else "" for name in shown]
        cells.append([line.row.title, f"{work.flops / 1e9:.3g} GFlop", time_text(limit), *shares])
    return Table(["case", "work", "limit", *(LABELS[name] for name in shown)], cells)


def plain(table: Table) -> str:
    rows = [table.headings, *table.cells]
    widths = [max(map(len, column)) for column in zip(*rows)]
    ruled = [rows[0], ["-" * width for width in widths], *rows[1:]]
    text = [
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip()
        for cells in ruled
    ]
    return "\n".join([*text, *table.notes])


def markdown(table: Table) -> str:
    rows = [table.headings, ["---"] * len(table.headings), *table.cells]
    text = "\n".join(f"| {' | '.join(cells)} |" for cells in rows) + "\n"
    notes = "".join(f"- {reason}\n" for reason in table.notes)
    return f"{text}\nFailed:\n\n{notes}" if notes else text


def show(table: Table) -> None:
    """With rich on a terminal, else plain."""
    from rich.console import Console
    from rich.table import Table as Drawn

    console = Console()
    if not console.is_terminal:
        print(plain(table))
        return
    drawn = Drawn(*table.headings)
    for cells in table.cells:
        drawn.add_row(*cells, style="red" if "NO" in cells else "")
    console.print(drawn)
    for reason in table.notes:
        console.print(reason)
