"""Small programs have TF 1.15's outcome: values, static shapes, classes and stages of errors."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import pytest

import headrace as tf
from tests.ops.op_behaviour import GOLDEN, cases, outcome

WANTED = json.loads(Path(GOLDEN).read_text())
#: Cases that end differently, each with the reason.
DIFFERENT: dict[str, str] = {}


def close(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    return a == b or (
        isinstance(a, float)
        and isinstance(b, float)
        and math.isclose(a, b, rel_tol=2e-6, abs_tol=1e-7)
    )


@pytest.mark.parametrize("source", cases())
def test_as_in_tensorflow(source: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = json.loads(json.dumps(outcome(tf, source)))
    if source in DIFFERENT:
        assert not close(found, WANTED[source]), "no longer different: take it out of DIFFERENT"
        return
    wanted = WANTED[source]
    assert found.keys() == wanted.keys(), (found, wanted)
    for key in wanted:
        assert close(found[key], wanted[key]), (key, found[key], wanted[key])
