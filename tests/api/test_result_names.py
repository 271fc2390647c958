"""What calls return has TF 1.15's names, types, static shapes and named tuples.

Programs look tensors up by name.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import headrace as tf
from tests.golden.make_result_names import results

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "result_names.json").read_text(encoding="utf-8")
)
_SPARSE = (
    "TensorFlow passes a part of the sparse tensor on through an Identity or a constant of its own"
)
_SIGNAL = "computed in other operations, or while the graph is built"
#: Calls whose results have other names, by what they begin with, and why.
DIFFERENT = {
    "tf.gradients(x-u": "negated after the sum, which is smaller",
    "tf.gradients(tf.nn.softmax_cross": "a matrix of logits is not reshaped",
    "tf.gradients(tf.concat(": "one split",
    "tf.gradients(tf.gather(": "slices of a gradient are not reshaped where they have their shape",
    "tf.gradients(tf.nn.embedding_lookup(": "as for gather",
    "tf.cond(s>0,lambda:V.assign_add": "a merge of references gives a value",
    "tf.foldl(": "a loop with a number of iterations has no counter of its own",
    "tf.foldr(": "a loop with a number of iterations has no counter of its own",
    "tf.TensorArray(tf.float32,4).unstack(x).gather(": "the number of elements is known here",
    "tf.signal.": _SIGNAL,
    "tf.switch_case(": "made of conditional branches, not of a Case operation",
    "tf.sparse_add(": _SPARSE,
    "tf.sparse_concat(": _SPARSE,
    "tf.sparse_reduce_sum_sparse(": "more of the shape is known here",
    "tf.sparse_reorder(": _SPARSE,
    "tf.sparse_reset_shape(": _SPARSE,
    "tf.sparse_reshape(": _SPARSE,
    "tf.sparse_retain(": _SPARSE,
    "tf.sparse_transpose(": _SPARSE,
    "tf.nn.safe_embedding_lookup_sparse(": "the last operation is named after the call",
    "tf.nn.atrous_conv2d(": "a dilated convolution is one operation",
    "tf.nn.convolution(im,w,'SAME',dilation_rate": "a dilated convolution is one operation",
    "tf.nn.depthwise_conv2d(im,P([3,3,3,2]),[1,1,1,1],'SAME',rate": (
        "a dilated convolution is one operation"
    ),
    "tf.gather_nd(t,": "more of the shape is known here",
    "tf.einsum(": "a product without reshapes where the axes lie right",
    "tf.image.rot90(": "a number of turns that is known needs no branches",
}


def reason(call: str) -> str | None:
    return next((why for start, why in DIFFERENT.items() if call.startswith(start)), None)


def found(call: str, known: bool) -> Any:
    return json.loads(json.dumps(results(tf, call, known)))


@pytest.mark.parametrize("row", GOLDEN, ids=[re.sub(r"\W+", "_", r[0])[:60] for r in GOLDEN])
def test_results_are_tensorflows(row: Any) -> None:
    call, with_shapes, without = row
    same = [found(call, True) == with_shapes, found(call, False) == without]
    if reason(call) is None:
        assert found(call, True) == with_shapes
        assert found(call, False) == without
    elif all(same) and call in DIFFERENT:
        pytest.fail(f"{call} is no longer different: take it out of DIFFERENT")


def test_few_calls_are_different() -> None:
    other = [r[0] for r in GOLDEN if reason(r[0]) is not None]
    assert len(other) < 0.06 * len(GOLDEN)
    started = {s for s in DIFFERENT if any(r[0].startswith(s) for r in GOLDEN)}
    assert started == set(DIFFERENT), "a reason without a call"
