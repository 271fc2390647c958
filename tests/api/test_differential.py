"""Random calls of the public API against TensorFlow 1.15's outcomes: values, dtypes, static shapes,
errors.

golden/differential.json.gz holds some hundreds of cases with TensorFlow's outcomes, as
tools/differential_fuzz.py wrote them: ``python tools/differential_fuzz.py --tf1-python PATH --cases
900 --seed 11 --golden tests/golden/differential.json.gz``. DIFFERENT lists the cases that are known
to differ, each with the reason; the tool finds more with other seeds.
"""

from __future__ import annotations

import gzip
import json
import os
from typing import Any

import pytest
from tools.differential.compare import difference
from tools.differential.render import call_of
from tools.differential.runner import Case, Library

from tests.golden import store

with gzip.open(os.path.join(store.HERE, "differential.json.gz"), "rt") as _file:
    ROWS: list[tuple[dict[str, Any], dict[str, Any]]] = [json.loads(line) for line in _file]

#: Case id → why it differs.
_LINEAR = "a matrix with NaN: TensorFlow's decomposition reports it, LAPACK's gives NaN"
_SPLITS = "TensorFlow's shape inference splits constant strings: it knows the number of rows"
DIFFERENT: dict[int, str] = {
    335: _SPLITS,
    414: _SPLITS,
    765: _SPLITS,
    470: "0 * inf in a row with infinities",
    480: "0 * inf in a row with infinities",
    588: "XLA's own error for an empty tensor",
    685: "a filter without rows",
}

CHUNK = 50


@pytest.fixture(scope="module")
def library() -> Library:
    return Library("headrace")


@pytest.mark.parametrize("first", range(0, len(ROWS), CHUNK))
def test_calls_give_what_tensorflow_gives(first: int, library: Library) -> None:
    wrong = []
    for case, theirs in ROWS[first : first + CHUNK]:
        found = difference(case, theirs, Case(library, case).outcome())
        if (
            found is not None
            and found[0] not in ("known", "missing")
            and case["id"] not in DIFFERENT
        ):
            wrong.append(f"#{case['id']} {call_of(case)}: {found[0]}: {found[1]}")
    assert not wrong, "\n".join(wrong)


def test_the_list_of_differences_is_short_and_true(library: Library) -> None:
    assert len(DIFFERENT) <= len(ROWS) // 40
    rows = {case["id"]: (case, theirs) for case, theirs in ROWS}
    for number in DIFFERENT:
        case, theirs = rows[number]
        assert difference(case, theirs, Case(library, case).outcome()) is not None, number
