"""Cases of the libraries around the ops (metrics, tables, distributions …) against TensorFlow
1.15.
"""

import importlib
import json
import math
from functools import cache
from pathlib import Path

import pytest

import headrace as tf
from tests.golden.make_cases import MODULES, cases, outcome

HERE = Path(__file__).parent.parent / "golden"


@cache
def golden(module):
    return json.loads((HERE / f"{module}.json").read_text())


def close(have, want, where):
    """Equal structure and text; numbers as near as single precision lets them be."""
    if isinstance(want, dict):
        assert isinstance(have, dict), where
        assert have.keys() == want.keys(), where
        for key, value in want.items():
            close(have[key], value, f"{where}.{key}")
    elif isinstance(want, list):
        assert isinstance(have, list), where
        assert len(have) == len(want), (where, have, want)
        for i, value in enumerate(want):
            close(have[i], value, f"{where}[{i}]")
    elif isinstance(want, float) and isinstance(have, (int, float)):
        same = math.isclose(have, want, rel_tol=1e-4, abs_tol=2e-5)
        assert same or (math.isnan(have) and math.isnan(want)), (where, have, want)
    else:
        assert have == want, (where, have, want)


def _all():
    for name in MODULES:
        module = importlib.import_module(f"tests.golden.{name}")
        for case_name, case in cases(module).items():
            yield pytest.param(name, case, id=f"{name}-{case_name}")


@pytest.mark.parametrize(("module", "case"), _all())
def test_case(module, case):
    have = json.loads(json.dumps(outcome(tf, case)))
    close(have, golden(module)[case.__name__], case.__name__)
