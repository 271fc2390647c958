"""How much of a case to do: the full measure, or a quick one that only shows that everything
runs.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FULL", "QUICK", "Samples", "Scale"]

#: What a case gives: the samples of each of its figures, in seconds (or bytes).
Samples = dict[str, list[float]]


@dataclass(frozen=True)
class Scale:
    """``seconds`` for a repeated call; counts of a case are divided by ``divisor``."""

    seconds: float
    divisor: int

    def count(self, full: int) -> int:
        return max(20, full // self.divisor)


FULL = Scale(seconds=0.4, divisor=1)
QUICK = Scale(seconds=0.03, divisor=20)
