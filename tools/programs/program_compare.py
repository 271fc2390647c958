"""What two runs of one program printed, compared: the text around the numbers, then the numbers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

__all__ = ["Comparison", "compare_output"]

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\b(?:nan|inf)\b")
#: Lines that say how long something took, or come from either library's own log.
_IGNORED = re.compile(
    r"seconds|\bsec\b|\btime\b|duration|elapsed|examples/s|WARNING|deprecat|Instructions for upd|"
    r"^\s*$|0x[0-9a-f]{6,}|it/s|\d+:\d\d:\d\d|<module|site-packages|Extracting |"
    r"^Device mapping:|^(/job:|\w[\w/]*: \(\w+\): )",
    re.I,
)
_CLOSE = 1e-3


@dataclass(frozen=True)
class Comparison:
    """How many numbers were printed, how many agree, and whether the text around them does."""

    numbers: int
    close: int
    same_text: bool

    def verdict(self) -> str:
        if not self.same_text:
            return "other text"
        if not self.numbers:
            return "same text"
        if self.close == self.numbers:
            return f"same ({self.numbers} numbers)"
        return f"{self.close} of {self.numbers} numbers"


def compare_output(expected: str, got: str, cut: bool = False) -> Comparison:
    """Compare two outputs. Numbers agree within a relative 1e-3 (or the last printed digit).

    `cut`: one of the programs was stopped early, so only what both printed is compared.
    """
    a, b = _lines(expected), _lines(got)
    if cut:
        a, b = a[: len(b)], b[: len(a)]
    same_text = [_NUMBER.sub("#", x) for x in a] == [_NUMBER.sub("#", x) for x in b]
    numbers_a, numbers_b = _numbers(a), _numbers(b)
    if not same_text:
        matched = [_close(x, y) for x, y in zip(numbers_a, numbers_b)]
        return Comparison(max(len(numbers_a), len(numbers_b)), sum(matched), False)
    close = sum(_close(x, y) for x, y in zip(numbers_a, numbers_b))
    return Comparison(len(numbers_a), close, True)


def _lines(text: str) -> list[str]:
    text = re.sub(r"np\.\w+\(([^()]*)\)", r"\1", text.replace("\r", "\n"))  # NumPy 2's scalars
    squeezed = (re.sub(r"[\s\[\]]+", " ", line).strip() for line in text.split("\n"))
    return [line for line in squeezed if line and not _IGNORED.search(line)]


def _numbers(lines: list[str]) -> list[str]:
    return [n for line in lines for n in _NUMBER.findall(line)]


def _close(x: str, y: str) -> bool:
    a, b = float(x), float(y)
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    if a == b:
        return True
    digits = max((len(t.split(".")[1]) if "." in t and "e" not in t.lower() else 0) for t in (x, y))
    return abs(a - b) <= max(
        _CLOSE * max(abs(a), abs(b)), 1e-6, 1.01 * 10.0**-digits if digits else 0
    )
