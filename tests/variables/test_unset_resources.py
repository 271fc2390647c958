"""Variables without a value: which error each use of them gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import headrace as tf

UPDATES: dict[str, Callable[[Any], Any]] = {
    "assign_add": lambda v: v.assign_add([1.0, 1.0]),
    "assign_sub": lambda v: v.assign_sub([1.0, 1.0]),
    "gather": lambda v: tf.gather(v, [0]),
    "gather_nd": lambda v: tf.gather_nd(v, [[0]]),
    "scatter_add": lambda v: tf.scatter_add(v, [0], [1.0]),
    "scatter_nd_update": lambda v: tf.scatter_nd_update(v, [[0]], [1.0]),
    "slice": lambda v: v[0:1].assign([1.0]),
    "embedding_lookup": lambda v: tf.nn.embedding_lookup(v, [0]),
}


@pytest.mark.parametrize("what", UPDATES)
@pytest.mark.parametrize("resource", [False, True])
def test_updates_and_lookups_of_a_resource_do_not_find_it(what: str, resource: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.Variable([1.0, 2.0], use_resource=resource)
        made = UPDATES[what](v)
        want = tf.errors.NotFoundError if resource else tf.errors.FailedPreconditionError
        with pytest.raises(want, match="uninitialized value"):
            sess.run(made)


@pytest.mark.parametrize("resource", [False, True])
def test_reads_need_an_initialized_variable(resource: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.Variable([1.0, 2.0], use_resource=resource)
        for read in (v, v.read_value(), v + 1.0):
            with pytest.raises(tf.errors.FailedPreconditionError):
                sess.run(read)
