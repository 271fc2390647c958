"""Mixed runs with changing shapes from several threads: right numbers, level memory. (`python -m
benchmarks.soak` is the long form.)
"""

from __future__ import annotations

from benchmarks.soak import soak


def test_a_short_soak() -> None:
    account = soak(runs=1500, threads=3, warm_up=500)
    assert account.wrong == 0
    assert account.runs >= 1500
    assert account.growth < 1.25
