"""Programs with tapes, gradients and control flow give what TensorFlow 1.15 gives, in graphs,
functions and eagerly.

The programs are in golden/flow_programs.py, TensorFlow's answers in golden/flow_programs.json
(make_flow_programs.py).
"""

from __future__ import annotations

import json
import os

import pytest

import headrace as tf
from headrace.eager.eager_context import EAGER, eager_mode
from tests import golden
from tests.golden.flow_programs import PROGRAMS, results

with open(os.path.join(os.path.dirname(golden.__file__), "flow_programs.json")) as _file:
    _GOLDEN = json.load(_file)


def test_every_program_has_golden_results() -> None:
    assert {f"{name}/{m}" for name, (_, modes) in PROGRAMS.items() for m in modes} == set(_GOLDEN)


@pytest.mark.parametrize("key", sorted(_GOLDEN))
def test_program(key: str) -> None:
    name, mode = key.split("/")
    try:
        assert results(tf, name, mode, eager_mode) == _GOLDEN[key]
    finally:
        EAGER._collections.clear()  # names of scopes are counted there
