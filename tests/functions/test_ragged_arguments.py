"""Ragged tensors go through functions, branches and loops; TF 1.15 gives the same rows."""

from __future__ import annotations

from typing import Any

import pytest

import headrace as tf

ROWS = [[1, 2], [3], [4, 5, 6]]


def run(fetches: Any) -> Any:
    with tf.Session() as sess:
        return sess.run(fetches)


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def test_a_function_takes_and_gives_rows() -> None:
    @tf.function
    def twice(x: Any) -> Any:
        return x * 2, x

    doubled, same = run(twice(tf.ragged.constant(ROWS)))
    assert doubled.to_list() == [[2, 4], [6], [8, 10, 12]]
    assert same.to_list() == ROWS


def test_a_signature_says_what_the_rows_are() -> None:
    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)])
    def lengths(x: Any) -> Any:
        return x.row_lengths()

    assert run(lengths(tf.ragged.constant(ROWS))).tolist() == [2, 1, 3]
    with pytest.raises(TypeError):
        lengths(tf.constant([[1]]))


def test_branches_and_loops() -> None:
    rows = tf.ragged.constant(ROWS)
    assert run(tf.cond(tf.constant(False), lambda: rows, lambda: rows + 1)).to_list() == [
        [2, 3],
        [4],
        [5, 6, 7],
    ]

    def grown(i: Any, x: Any) -> Any:
        return i + 1, tf.concat([x, x], 0)

    for spec in (tf.RaggedTensorSpec([None, None], tf.int32), tf.TensorShape([None, None])):
        found = tf.while_loop(
            lambda i, x: i < 2, grown, [0, rows], shape_invariants=[tf.TensorShape([]), spec]
        )[1]
        assert run(found).to_list() == ROWS * 4
    with pytest.raises(ValueError, match="after one iteration"):
        tf.while_loop(lambda i, x: i < 2, grown, [0, rows])


def test_specs() -> None:
    rows = tf.ragged.constant([[[1, 2]], [[3], []]])
    spec = rows._type_spec
    assert spec == tf.RaggedTensorSpec([2, None, None], tf.int32)
    assert spec != tf.RaggedTensorSpec([2, None, None], tf.int32, row_splits_dtype=tf.int32)
    assert [s.shape.as_list() for s in spec.component_specs] == [[None], [3], [None]]
    assert spec.is_compatible_with(rows)
    assert not spec.is_compatible_with(tf.constant(1))
    assert spec.is_subtype_of(tf.RaggedTensorSpec([None, None, None], tf.int32))
    with pytest.raises(ValueError, match="ragged_rank"):
        tf.RaggedTensorSpec(None)
    with pytest.raises(ValueError, match="less than rank"):
        tf.RaggedTensorSpec([2], ragged_rank=1)
