"""GraphDefs of a TensorFlow after 1.15: their ops take types that 1.15's do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf


def _maximum_of(dtype: int, producer: int) -> Any:
    graph_def = tf.GraphDef()
    graph_def.versions.producer = producer
    x = graph_def.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = dtype
    x.attr["shape"].shape.unknown_rank = True
    maximum = graph_def.node.add(name="m", op="Maximum", input=["x", "x"])
    maximum.attr["T"].type = dtype
    return graph_def


def test_a_later_graph_may_use_more_types() -> None:
    (m,) = tf.import_graph_def(_maximum_of(4, 1395), return_elements=["m:0"], name="")
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(m, {"x:0": [1, 2]}), [1, 2])


@pytest.mark.parametrize(("dtype", "producer"), [(4, 134), (7, 1395)])
def test_other_types_are_refused(dtype: int, producer: int) -> None:
    with pytest.raises(ValueError, match="does not allow the type"):
        tf.import_graph_def(_maximum_of(dtype, producer), name="")
