"""From samples to the table: as text for a terminal, as Markdown, as JSON.

table = make_table(results, versions, min)
print(plain(table))
"""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.rows import ROWS, Row, Statistic
from benchmarks.scale import Samples

__all__ = ["Line", "Results", "as_data", "make_lines", "markdown", "plain", "show"]

#: Samples of every round, by library and case.
Results = dict[tuple[str, str], list[Samples]]

HEADINGS = ["case", "headrace", "TF", "ratio", "jax", "ratio", "target", "met"]


@dataclass(frozen=True)
class Line:
    """A row with its figures: texts and values by library, the peers' ratios, and whether the target is met."""

    title: str
    case: str
    texts: dict[str, str]
    values: dict[str, float]
    medians: dict[str, float]
    ratios: dict[str, float]
    target: str
    met: str

    def cells(self) -> list[str]:
        return [
            self.title,
            self.texts["headrace"],
            *self._peer("tf"),
            *self._peer("jax"),
            self.target,
            self.met,
        ]

    def _peer(self, name: str) -> list[str]:
        ratio = self.ratios.get(name)
        return [self.texts.get(name, ""), "" if ratio is None else _times(ratio)]


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}x" if ratio >= 100 else f"{ratio:.3g}x"


def make_lines(results: Results, statistic: Statistic) -> list[Line]:
    return [_line(row, results, statistic) for row in ROWS if ("headrace", row.case) in results]


def _line(row: Row, results: Results, statistic: Statistic) -> Line:
    rounds = {
        library: results[library, row.case]
        for library in ("headrace", *row.peers)
        if (library, row.case) in results
    }
    figure = row.figure
    values = {library: figure.value(each, statistic) for library, each in rounds.items()}
    own = values["headrace"]
    ratios = {library: v / own for library, v in values.items() if library != "headrace"}
    if figure.unit != "s":
        ratios = {}
    return Line(
        row.title,
        row.case,
        {library: figure.text(each, statistic) for library, each in rounds.items()},
        values,
        {library: figure.value(each, statistics.median) for library, each in rounds.items()},
        ratios,
        row.target(),
        row.met(own, ratios),
    )


def as_data(lines: list[Line], versions: dict[str, str], load: float) -> dict[str, Any]:
    return {"versions": versions, "load_of_others": load, "rows": [asdict(line) for line in lines]}


def plain(lines: list[Line]) -> str:
    table = [HEADINGS, *(line.cells() for line in lines)]
    widths = [max(map(len, column)) for column in zip(*table)]
    ruled = [table[0], ["-" * width for width in widths], *table[1:]]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip()
        for cells in ruled
    )


def markdown(lines: list[Line]) -> str:
    table = [HEADINGS, ["---"] * len(HEADINGS), *(line.cells() for line in lines)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in table) + "\n"


def show(lines: list[Line]) -> None:
    """With rich on a terminal, else plain."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        print(plain(lines))
        return
    table = Table(*HEADINGS)
    for line in lines:
        table.add_row(*line.cells(), style="red" if line.met == "NO" else "")
    console.print(table)
