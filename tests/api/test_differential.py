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

Row = tuple[dict[str, Any], dict[str, Any]]


def _rows(name: str) -> list[Row]:
    with gzip.open(os.path.join(store.HERE, name), "rt") as file:
        return [json.loads(line) for line in file]


ROWS = _rows("differential.json.gz")
#: Cases that once differed, made with ``--pick``.
FOUND = _rows("differential_found.json.gz")

#: Case id → why it differs.
_LINEAR = "a matrix with NaN: TensorFlow's decomposition reports it, LAPACK's gives NaN"
DIFFERENT: dict[int, str] = {
    470: "0 * inf in a row with infinities",
    480: "0 * inf in a row with infinities",
    588: "XLA's own error for an empty tensor",
    685: "a filter without rows",
}

CHUNK = 50


@pytest.fixture(scope="module")
def library() -> Library:
    return Library("headrace")


@pytest.mark.parametrize(
    "rows",
    [rows[i : i + CHUNK] for rows in (ROWS, FOUND) for i in range(0, len(rows), CHUNK)],
    ids=lambda rows: str(rows[0][0]["id"]),
)
def test_calls_give_what_tensorflow_gives(rows: list[Row], library: Library) -> None:
    wrong = []
    for case, theirs in rows:
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
