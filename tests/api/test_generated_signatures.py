"""``tf.raw_ops`` and ``gen_*_ops`` take what TensorFlow 1.15's functions take, in its order."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

import headrace as tf
from headrace.api.raw_ops import generated, snake_case
from tests.golden.make_generated_signatures import found

GOLDEN: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[1] / "golden" / "generated_signatures.json").read_text("utf-8")
)


def test_parameters_of_every_op() -> None:
    ours = found(tf.raw_ops)
    common = sorted(set(ours) & set(GOLDEN))
    assert len(common) > 750
    assert {op: ours[op] for op in common} == {op: GOLDEN[op] for op in common}


def test_the_functions_by_position_have_the_same() -> None:
    for op in ("SampleDistortedBoundingBox", "TFRecordReaderV2", "MatMul", "ExpandDims"):
        names = [*inspect.signature(generated(snake_case(op))).parameters]
        assert names == [n.rstrip("=") for n in GOLDEN[op]]


def test_a_keyword_that_tensorflow_does_not_know() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'OUT_TYPE'"):
        tf.raw_ops.DecodeCSV(records=["1"], record_defaults=[[1]], OUT_TYPE=[tf.int32])
