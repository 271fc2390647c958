"""Draws that cannot be: more than the memory holds, more classes than there are."""

from __future__ import annotations

import pytest

import headrace as tf


def test_more_draws_than_memory() -> None:
    draws = tf.multinomial([[0.0, 1.0]] * 1000, 2**31 - 1)
    with tf.Session() as session:
        with pytest.raises(tf.errors.ResourceExhaustedError, match="OOM"):
            session.run(draws)


def test_more_classes_than_can_be_drawn() -> None:
    sampled = tf.nn.fixed_unigram_candidate_sampler([[1]], 1, 2, True, 3, unigrams=[0.0, 1.0, 0.0])
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="only 1 have"):
            session.run(sampled)
