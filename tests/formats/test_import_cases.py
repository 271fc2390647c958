"""What ``import_graph_def`` accepts and refuses is what TensorFlow 1.15 accepts and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headrace as tf
from tests.golden.import_cases import CASES, node, outcome

WANTED = json.loads((Path(__file__).parent.parent / "golden/import_cases.json").read_text())


def test_all_cases_are_recorded() -> None:
    assert set(WANTED) == set(CASES)


@pytest.mark.parametrize("label", sorted(CASES))
def test_as_tensorflow(label: str) -> None:
    assert outcome(tf, CASES[label]) == WANTED[label]


def test_limits_that_a_later_tensorflow_lifted() -> None:
    """A graph of TF 2 may hold what TF 1.15's registry refuses: the kernel decides."""
    text = node("c", "AddN", T="type:DT_FLOAT", N="i:0")
    assert outcome(tf, text) == ["ValueError"]
    assert outcome(tf, text + "versions{producer:2000}")[0] == [["c", "AddN"]]
