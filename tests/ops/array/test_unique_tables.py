"""``tf.unique`` of integers in a small range, which takes a table instead of sorting."""

from __future__ import annotations

import numpy as np
import pytest

import headrace.compat.v1 as tf


def _by_hand(x: np.ndarray) -> tuple[list[int], list[int], list[int]]:
    seen: dict[int, int] = {}
    numbers = [seen.setdefault(v, len(seen)) for v in x.tolist()]
    return list(seen), numbers, np.bincount(numbers).tolist()


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("spread", [3, 200, 100_000])
def test_as_counted_by_hand(kind: str, spread: int) -> None:
    limits = np.iinfo(kind)
    rng = np.random.RandomState(0)
    for low in (limits.min, limits.max - min(spread, limits.max)):
        high = min(int(limits.max), int(low) + spread)
        values = [int(low) + int(v) for v in rng.randint(0, high - int(low) + 1, 500)]
        x = np.array([*values, int(low), high], kind)
        with tf.Graph().as_default(), tf.Session() as session:
            made = session.run(tf.unique_with_counts(tf.constant(x)))
        for part, wanted in zip(made, _by_hand(x)):
            assert part.tolist() == wanted
        assert made[0].dtype == kind
