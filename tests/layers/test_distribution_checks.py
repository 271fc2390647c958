"""What distributions refuse with ``validate_args``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import headrace as tf

_CASES: dict[str, Callable[[Any], Any]] = {
    "binomial, more than trials": lambda d: d.Binomial(4.0, probs=0.5, validate_args=True).prob(
        5.0
    ),
    "binomial, fraction": lambda d: d.Binomial(4.0, probs=0.5, validate_args=True).cdf(2.5),
    "geometric, fraction": lambda d: d.Geometric(probs=0.5, validate_args=True).cdf(1.5),
    "geometric, negative": lambda d: d.Geometric(probs=0.5, validate_args=True).prob(-1.0),
    "deterministic, atol": lambda d: d.Deterministic(1.0, atol=-1.0, validate_args=True).prob(1.0),
    "deterministic, rtol": lambda d: d.Deterministic(1.0, rtol=-1.0, validate_args=True).prob(1.0),
}


@pytest.mark.parametrize("case", _CASES)
def test_refused(case: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError):  # when built, if the values are known
            session.run(_CASES[case](tf.contrib.distributions))
