"""argmax and argmin over the first axis of long rows: NumPy's answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as tf


@given(
    rows=st.integers(1, 70),
    dtype=st.sampled_from([np.float32, np.float64, np.int32, np.uint8, np.int64]),
    levels=st.integers(1, 5),
    seed=st.integers(0, 100),
)
@settings(max_examples=40, deadline=None)
def test_the_first_of_equal_ones(rows: int, dtype: Any, levels: int, seed: int) -> None:
    x = np.random.RandomState(seed).randint(0, levels, (rows, 700)).astype(dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run([tf.argmin(x, 0), tf.argmax(x, 0)])
    np.testing.assert_array_equal(found[0], np.argmin(x, 0))
    np.testing.assert_array_equal(found[1], np.argmax(x, 0))


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_special_values(special: float) -> None:
    x = np.random.RandomState(0).rand(9, 600, 2).astype(np.float32)
    x[4, 7], x[2, 7, 0], x[:, 8] = special, -special, special
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run([tf.argmin(x, 0), tf.argmax(x, 0, output_type=tf.int32)])
    np.testing.assert_array_equal(found[0], np.argmin(x, 0))
    np.testing.assert_array_equal(found[1], np.argmax(x, 0))
