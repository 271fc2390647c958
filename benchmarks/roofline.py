"""The limits of the machine, and how far a library is from them.

machine = Machine.of(results, min)            # None if the machine was not measured
machine.seconds(work)                         # the products and convolutions at the rate of large
products
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks import machine_cases
from benchmarks.models.spec import Work
from benchmarks.results import Results
from benchmarks.rows import Statistic

__all__ = ["Machine"]


@dataclass(frozen=True)
class Machine:
    """Rates in a second.

    Floating-point operations of large products; bytes copied in memory and in cache.
    """

    flops: float
    bytes: float
    cache_bytes: float

    @classmethod
    def of(cls, results: Results, statistic: Statistic) -> Machine | None:
        if results.quick:
            return None  # tiny models have no limits
        rates: list[float] = []
        for row in machine_cases.ROWS:
            measured = [results.rounds[key] for key in results.rounds if key[1] == row.case]
            if not measured:
                return None
            rates.append(max(row.figure.value(rounds, statistic) for rounds in measured))
        return cls(*rates)

    def seconds(self, work: Work) -> float:
        """No time is below this.

        Caches may make the bytes cheaper than memory does, but not the operations.
        """
        return work.flops / self.flops
