"""Handles, control flow, datasets, iterators, files and Python functions give what TensorFlow 1.15
gives.

The programs are in golden/handle_programs.py, TensorFlow's answers in golden/handle_programs.json.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import headrace as tf
from tests.golden import handle_programs

with open(os.path.join(os.path.dirname(handle_programs.__file__), "handle_programs.json")) as _file:
    _GOLDEN = json.load(_file)


def test_every_program_has_golden_results() -> None:
    assert set(handle_programs.PROGRAMS) == set(_GOLDEN)


@pytest.mark.parametrize("name", sorted(_GOLDEN))
def test_program(name: str, tmp_path: Path) -> None:
    assert handle_programs.result(tf, name, str(tmp_path)) == _GOLDEN[name]
