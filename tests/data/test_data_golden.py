"""Elements of datasets against TensorFlow 1.15 (graphs) and TensorFlow 2 (eager).

Same order, same values.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headrace as tf
from headrace.api import v2
from headrace.eager.eager_context import eager_mode
from tests.data.data_cases import CASES, CASES_V2, elements

GOLDEN = Path(__file__).parent.parent / "golden"
V1 = json.loads((GOLDEN / "data_v1.json").read_text())
V2 = json.loads((GOLDEN / "data_v2.json").read_text())


@pytest.mark.parametrize("name", CASES)
def test_as_in_tensorflow_1(name: str) -> None:
    assert elements(tf, CASES[name]) == V1[name]


@pytest.mark.parametrize("name", [*CASES, *CASES_V2])
def test_as_in_tensorflow_2(name: str) -> None:
    with eager_mode():
        assert elements(v2, {**CASES, **CASES_V2}[name]) == V2[name]
