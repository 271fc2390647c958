"""How often runs came with feeds of the same shapes, until that was often enough.

A plan is bound (bound_runs.py) or made again (executors/specialised.py) for shapes that come often.
"""

from __future__ import annotations

from typing import Any

__all__ = ["SignatureCounts"]

#: Signatures that are counted.
MAX_COUNTED = 256


class SignatureCounts:
    """Counts by signature; a program with ever new shapes begins anew now and then."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: dict[tuple[Any, ...], int] = {}

    def items(self) -> list[tuple[tuple[Any, ...], int]]:
        return [*self.counts.items()]

    def reaches(self, signature: tuple[Any, ...], often: int) -> bool:
        """Count one more run; whether it makes ``often`` of them, which ends the count."""
        if len(self.counts) >= MAX_COUNTED:
            self.counts.clear()
        self.counts[signature] = count = self.counts.get(signature, 0) + 1
        if count < often:
            return False
        self.counts.pop(signature, None)
        return True
