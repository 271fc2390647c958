"""Constants made of nested lists: types, values and errors are TF 1.15's (``tests/golden``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import headrace.api.v1 as tf
from tests.golden import constant_cases

GOLDEN: dict[str, Any] = json.loads(
    (Path(constant_cases.__file__).parent / "constant_cases.json").read_text()
)


@pytest.mark.parametrize("case", sorted(GOLDEN))
def test_constants_and_refusals_are_tensorflows(case: str) -> None:
    assert constant_cases.outcomes(tf)[case] == GOLDEN[case]
