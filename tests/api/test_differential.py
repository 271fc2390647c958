"""Random calls of the public API against TensorFlow 1.15's outcomes: values, dtypes, static shapes,
errors.

golden/differential.json.gz holds some hundreds of cases with TensorFlow's outcomes, as
tools/differential_fuzz.py wrote them: ``python tools/differential_fuzz.py --tf1-python PATH --cases
900 --seed 11 --golden tests/golden/differential.json.gz``. differential_raw.json.gz holds calls of
raw operations (``--what raw --cases 600 --seed 12``), differential_programs.json.gz whole programs
(``--what programs --cases 160 --seed 12``). DIFFERENT lists the cases that are known to differ,
each with the reason; the tool finds more with other seeds.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from typing import Any

import pytest
from tools.differential.compare import difference
from tools.differential.render import call_of
from tools.differential.run import run_cases
from tools.differential.runner import Library, outcome_of

from tests.golden import store

Row = tuple[dict[str, Any], dict[str, Any]]


def _rows(name: str) -> list[Row]:
    with gzip.open(os.path.join(store.HERE, name), "rt") as file:
        return [json.loads(line) for line in file]


ROWS = _rows("differential.json.gz")
#: Cases that once differed, made with ``--pick``.
FOUND = _rows("differential_found.json.gz")
RAW = _rows("differential_raw.json.gz")
PROGRAMS = _rows("differential_programs.json.gz")

#: Case id → why it differs.
_LINEAR = "a matrix with NaN: TensorFlow's decomposition reports it, LAPACK's gives NaN"
DIFFERENT: dict[int, str] = {
    470: "0 * inf in a row with infinities",
    480: "0 * inf in a row with infinities",
    588: "XLA's own error for an empty tensor",
    685: "a filter without rows",
}

#: Of the raw operations.
DIFFERENT_RAW: dict[int, str] = {
    162: "TensorFlow's XLA device takes another Tout than its CPU kernels",
    193: "the eigenvectors that are not asked for have no shape in TensorFlow",
    370: "TensorFlow has no CPU kernel for MaxPoolGradGradWithArgmax",
}

CHUNK = 50


@pytest.fixture(scope="module")
def library() -> Library:
    return Library("headrace")


def _chunks(rows: list[Row]) -> list[list[Row]]:
    return [rows[i : i + CHUNK] for i in range(0, len(rows), CHUNK)]


def _number(rows: list[Row]) -> str:
    return str(rows[0][0]["id"])


@pytest.mark.parametrize("rows", _chunks(ROWS) + _chunks(FOUND), ids=_number)
def test_calls_give_what_tensorflow_gives(rows: list[Row], library: Library) -> None:
    _compare(rows, library, DIFFERENT)


@pytest.mark.parametrize("rows", _chunks(RAW), ids=_number)
def test_raw_operations_give_what_tensorflow_gives(rows: list[Row], library: Library) -> None:
    _compare(rows, library, DIFFERENT_RAW, ("static",))


@pytest.mark.parametrize("rows", _chunks(PROGRAMS), ids=_number)
def test_programs_give_what_tensorflow_gives(rows: list[Row], library: Library) -> None:
    _compare(rows, library, {})


@pytest.mark.once
def test_programs_do_not_depend_on_what_ran_before() -> None:
    """Families of programs of one structure: bit by bit what each gives in a process of its own."""
    cases = [case for case, _ in PROGRAMS[:60]]
    alone = run_cases(sys.executable, "headrace", cases, {}, fresh=True)
    for order in (cases, cases[::-1]):
        assert run_cases(sys.executable, "headrace", order, {}) == alone


def _compare(
    rows: list[Row], library: Library, different: dict[int, str], also: tuple[str, ...] = ()
) -> None:
    wrong = []
    for case, theirs in rows:
        found = difference(case, theirs, outcome_of(library, case))
        if (
            found is not None
            and found[0] not in ("known", "missing", *also)
            and case["id"] not in different
        ):
            wrong.append(f"#{case['id']} {call_of(case)}: {found[0]}: {found[1]}")
    assert not wrong, "\n".join(wrong)


def test_the_list_of_differences_is_short_and_true(library: Library) -> None:
    assert len(DIFFERENT) <= len(ROWS) // 40
    assert len(DIFFERENT_RAW) <= len(RAW) // 40
    for table, numbers in ((ROWS, DIFFERENT), (RAW, DIFFERENT_RAW)):
        rows = {case["id"]: (case, theirs) for case, theirs in table}
        for number in numbers:
            case, theirs = rows[number]
            assert difference(case, theirs, outcome_of(library, case)) is not None, number
