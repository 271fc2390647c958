"""A resource variable with a caching device is what its cached read gives, as in TF 1.15."""

from __future__ import annotations

import headrace as tf


def test_fetched_while_it_is_written() -> None:
    v = tf.get_variable(
        "v", [], initializer=tf.zeros_initializer(), use_resource=True, caching_device="/cpu:0"
    )
    add = v.assign_add(1.0)
    s = tf.Session()
    s.run(tf.global_variables_initializer())
    assert [s.run([v, add]) for _ in range(3)] == [[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]]
    with tf.control_dependencies([add]):
        both = [v + 0.0, v.read_value()]
    assert s.run(both) == [3.0, 4.0]  # the cached read does not wait, a read of its own does
    assert s.run(v) == 4.0
