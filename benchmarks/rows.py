"""The rows of the table: each a figure worked out from the samples of a case, with what it has to reach.

row = Row("scalar add", "scalar_add", Best("run"), over_tf=40, over_jax=1)
row.figure.value(rounds, min)                # 3.0e-06
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from benchmarks.scale import Samples

__all__ = ["ROWS", "Best", "Figure", "Growth", "Quotient", "Row", "Worst"]

#: What makes one number of many: ``min`` or ``statistics.median``.
Statistic = Callable[[list[float]], float]


class Figure(Protocol):
    """Something to show for a case; ``unit`` is "s", "x" (a ratio) or "B" (a growth of memory)."""

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
        return _time(self.value(rounds, statistic))


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
        return f"{late / early:.2f}x ({_time(early)} → {_time(late)})"


@dataclass(frozen=True)
class Worst:
    """The worst step of a series beside the same step when settled.

    Every round takes the same steps in the same order; of each step the statistic over the rounds counts. So what another
    process disturbed in one round drops out, and what is slow in every round stays.
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


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


@dataclass(frozen=True)
class Row:
    """``over_tf`` and ``over_jax``: how many times faster than the peer; ``at_most``: the limit of a ratio."""

    title: str
    case: str
    figure: Figure
    over_tf: float | None = None
    over_jax: float | None = None
    at_most: float | None = None
    peers: tuple[str, ...] = ("tf", "jax")

    def target(self) -> str:
        parts = [f"{self.over_tf:g}x TF"] if self.over_tf is not None else []
        parts += ["faster than jax"] if self.over_jax is not None else []
        parts += [f"≤ {self.at_most:g}x"] if self.at_most is not None else []
        return ", ".join(parts)

    def met(self, value: float, ratios: dict[str, float]) -> str:
        """ "yes", "NO", "unsure" if the figure cannot be right; "" without a target, or without the peer that it names."""
        if self.figure.unit == "x" and self.at_most == FLAT and value < 1 / FLAT:
            return "unsure"  # going on cannot make it cheaper: the early figure was disturbed
        wanted = {"tf": self.over_tf, "jax": self.over_jax}
        if any(least is not None and name not in ratios for name, least in wanted.items()):
            return ""
        checks = [ratios[name] >= least for name, least in wanted.items() if least is not None]
        checks += [value <= self.at_most] if self.at_most is not None else []
        if not checks:
            return ""
        return "yes" if all(checks) else "NO"


#: Ratios of times that should be 1 may be this: what two measurements of the same thing differ by.
FLAT = 1.25
#: Memory: allocators round up.
LEVEL = 1.02

ROWS = [
    Row("run of a scalar add", "scalar_add", Best("run"), over_tf=40, over_jax=1),
    Row(
        "run of a 1x5 linear layer, float64 feed",
        "linear_layer",
        Best("run"),
        over_tf=35,
        over_jax=1,
    ),
    Row("logistic-regression step, 100x10", "logistic_step", Best("run"), over_tf=8, over_jax=1),
    Row("784-512-512-10 MLP, Adam, batch 128", "mlp_adam", Best("run"), over_tf=1.1),
    Row("ten tanh(1.1x+0.1), a million floats", "tanh_chain", Best("run"), over_tf=1),
    Row("graph and session anew, one iteration of 1,000", "anew", Best("iteration"), over_tf=60),
    Row(
        "… iteration 10,000 over iteration 100",
        "anew_long",
        Quotient("late", "early"),
        at_most=FLAT,
        peers=(),
    ),
    Row("import in a new process", "import", Best("import"), over_tf=15),
    Row("building a graph, per op", "many_vectors", Best("build"), over_tf=15),
    Row(
        "… of 100,000: last tenth over first",
        "build_long",
        Quotient("late", "early"),
        at_most=FLAT,
        peers=(),
    ),
    Row("5,000 ops on 10-vectors, first run", "many_vectors", Best("first"), over_tf=5),
    Row("… later runs", "many_vectors", Best("later"), over_tf=0.5),
    Row("5,000 ops on scalars, first run", "many_scalars", Best("first"), over_tf=5),
    Row("… later runs", "many_scalars", Best("later"), over_tf=0.5),
    Row(
        "first run per op, 20,000 over 5,000 ops",
        "first_run_size",
        Quotient("large", "small"),
        at_most=FLAT,
        peers=(),
    ),
    Row(
        "… 5,000 of 50,000 ops over 5,000 of 5,000",
        "first_run_size",
        Quotient("pruned", "small"),
        at_most=FLAT,
        peers=(),
    ),
    Row("training step with a new batch size", "new_sizes", Best("new")),
    Row("… worst of 1,000 over the settled step", "new_sizes", Worst("new", "settled"), at_most=2),
    Row("memory over 100,000 runs", "memory_runs", Growth(), at_most=LEVEL, peers=()),
    Row(
        "memory over 10,000 sessions dropped", "memory_sessions", Growth(), at_most=LEVEL, peers=()
    ),
    Row("memory over 1,000 batch sizes", "memory_sizes", Growth(), at_most=LEVEL, peers=()),
]
