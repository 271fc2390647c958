"""What TensorFlow 1.15 refuses is refused at the same time, with its class and its words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headrace as tf
from tests.golden.make_refused_calls import CALLS, outcome

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "refused_calls.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("call, wanted", GOLDEN, ids=[c for c, _ in GOLDEN])
def test_refused_as_in_tensorflow(call: str, wanted: list[str]) -> None:
    found = outcome(tf, call)
    assert found[:2] == wanted[:2]
    assert found[2].rstrip(".").startswith(wanted[2].rstrip("."))


def test_every_call_was_compared() -> None:
    assert [call for call, _ in GOLDEN] == CALLS
    assert all(len(wanted) == 3 for _, wanted in GOLDEN)
