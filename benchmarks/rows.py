"""What a row of a table is: a figure worked out from the samples of a case, with what it has to
reach.

row = Row("scalar add", "scalar_add", Best("run"), {"must": Target({"tf": 40, "jax": 1})})
row.figure.value(rounds, min)                # 3.0e-06
row.targets["must"].met(3.0e-06, {"tf": 59.0, "jax": 3.1})    # "yes"
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from benchmarks.models.spec import Work
from benchmarks.scale import Samples

__all__ = [
    "FLAT",
    "LEVEL",
    "Best",
    "Figure",
    "Growth",
    "Quantile",
    "Quotient",
    "Rate",
    "Row",
    "Statistic",
    "Target",
    "Worst",
    "time_text",
]

#: What makes one number of many: ``min`` or ``statistics.median``.
Statistic = Callable[[list[float]], float]


class Figure(Protocol):
    """Something to show for a case.

    ``unit`` is "s", "/s" (a rate), "x" (a ratio) or "B" (a growth of memory).
    """

    @property
    def unit(self) -> str: ...

    def value(self, rounds: list[Samples], statistic: Statistic) -> float: ...

    def text(self, rounds: list[Samples], statistic: Statistic) -> str: ...


@dataclass(frozen=True)
class Best:
    """A time."""

    name: str
    unit: str = "s"

    def value(self, rounds: list[Samples], statistic: Statistic) -> float:
        return statistic(_all(rounds, self.name))

    def text(self, rounds: list[Samples], statistic: Statistic) -> str:
        return time_text(self.value(rounds, statistic))


@dataclass(frozen=True)
class Quantile:
    """A time that a share of the samples of all rounds keeps to, whatever the statistic of the
    table is.
    """

    name: str
    share: float
    unit: str = "s"

    def value(self, rounds: list[Samples], statistic: Statistic) -> float:
        samples = sorted(_all(rounds, self.name))
        return samples[min(int(len(samples) * self.share), len(samples) - 1)]

    def text(self, rounds: list[Samples], statistic: Statistic) -> str:
        return time_text(self.value(rounds, statistic))


@dataclass(frozen=True)
class Rate:
    """How much of something is done in a second, in billions."""

    name: str
    amount: float
    of: str
    unit: str = "/s"

    def value(self, rounds: list[Samples], statistic: Statistic) -> float:
        return self.amount / statistic(_all(rounds, self.name))

    def text(self, rounds: list[Samples], statistic: Statistic) -> str:
        return f"{self.value(rounds, statistic) / 1e9:.3g} {self.of}"


@dataclass(frozen=True)
class Quotient:
    """One time over another: 1 when going on costs nothing."""

    late: str
    early: str
    unit: str = "x"

    def value(self, rounds: list[Samples], statistic: Statistic) -> float:
        return statistic(_all(rounds, self.late)) / statistic(_all(rounds, self.early))

    def text(self, rounds: list[Samples], statistic: Statistic) -> str:
        early, late = (statistic(_all(rounds, name)) for name in (self.early, self.late))
        return f"{late / early:.2f}x ({time_text(early)} → {time_text(late)})"


@dataclass(frozen=True)
class Worst:
    """The worst step of a series beside the same step when settled.

    Every round takes the same steps in the same order; of each step the statistic over the rounds
    counts. So what another process disturbed in one round drops out, and what is slow in every
    round stays.
    """

    new: str
    settled: str
    unit: str = "x"

    def value(self, rounds: list[Samples], statistic: Statistic) -> float:
        new, settled = (_by_step(rounds, name, statistic) for name in (self.new, self.settled))
        return max(a / b for a, b in zip(new, settled))

    def text(self, rounds: list[Samples], statistic: Statistic) -> str:
        return f"{self.value(rounds, statistic):,.2f}x"


@dataclass(frozen=True)
class Growth:
    """Resident memory at the end over that after the warm-up."""

    unit: str = "B"

    def value(self, rounds: list[Samples], statistic: Statistic) -> float:
        warm, end = self._bytes(rounds)
        return end / warm

    def text(self, rounds: list[Samples], statistic: Statistic) -> str:
        warm, end = self._bytes(rounds)
        return f"{warm / 1e6:.1f} → {end / 1e6:.1f} MB"

    def _bytes(self, rounds: list[Samples]) -> tuple[float, float]:
        return rounds[-1]["warm"][-1], rounds[-1]["end"][-1]


def _all(rounds: list[Samples], name: str) -> list[float]:
    return [value for samples in rounds for value in samples[name]]


def _by_step(rounds: list[Samples], name: str, statistic: Statistic) -> list[float]:
    return [statistic(list(step)) for step in zip(*(samples[name] for samples in rounds))]


def time_text(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= 0.9995 * scale:  # else it would be rounded to 1e+03 of the next
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


#: Ratios of times that should be 1 may be this: what two measurements of the same thing differ by.
FLAT = 1.25
#: Memory: allocators round up.
LEVEL = 1.02


@dataclass(frozen=True)
class Target:
    """``over``: how many times faster than a peer; ``of_best``: the same for the fastest of the
    peers; ``at_most``: the limit of a ratio.
    """

    over: dict[str, float] = field(default_factory=dict)
    of_best: float | None = None
    at_most: float | None = None

    def text(self, labels: dict[str, str]) -> str:
        parts = [
            f"faster than {labels[name]}"
            if least == 1 and name != "tf"
            else f"{least:g}x {labels[name]}"
            for name, least in self.over.items()
        ]
        parts += [f"{self.of_best:g}x the best"] if self.of_best is not None else []
        parts += [f"≤ {self.at_most:g}x"] if self.at_most is not None else []
        return ", ".join(parts)

    def met(self, value: float, ratios: dict[str, float]) -> str:
        """ "yes", "NO", "unsure" if the figure cannot be right; "" without the peer that is
        named.
        """
        if self.at_most == FLAT and value < 1 / FLAT:
            return "unsure"  # going on cannot make it cheaper: the early figure was disturbed
        if any(name not in ratios for name in self.over):
            return ""
        checks = [ratios[name] >= least for name, least in self.over.items()]
        checks += [min(ratios.values()) >= self.of_best] if self.of_best and ratios else []
        checks += [value <= self.at_most] if self.at_most is not None else []
        return "yes" if all(checks) else "NO"


@dataclass(frozen=True)
class Row:
    """``targets`` by the heading of their column; ``peers`` other than the group's; ``work`` for
    the roofline; ``short`` for a plot.
    """

    title: str
    case: str
    figure: Figure
    targets: dict[str, Target] = field(default_factory=dict)
    peers: tuple[str, ...] | None = None
    work: Callable[[], Work] | None = None
    short: str = ""
