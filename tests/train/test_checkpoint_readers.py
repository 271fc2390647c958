"""Readers of checkpoints, initialization from them, warm starts: as TF 1.15."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headrace as tf
from tests.golden import reader_programs

GOLDEN = json.loads(
    (Path(__file__).parent.parent / "golden" / "readers.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("part", ["readers", "initialized", "waited", "slim_functions"])
def test_as_tensorflow(part: str) -> None:
    found = json.loads(json.dumps(getattr(reader_programs, part)(tf)))
    for key, value in found.items():
        assert value == GOLDEN[part.partition("_")[0]][key], key
