"""tf.gfile, tf.io.gfile, tf.python_io: every function as TF 1.15."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headrace as tf
from tests.golden import gfile_programs

GOLDEN = json.loads(
    (Path(__file__).parent.parent / "golden" / "gfile.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("part", ["files", "folders", "records", "patterns", "lines"])
def test_as_tensorflow(part: str) -> None:
    found = json.loads(json.dumps(getattr(gfile_programs, part)(tf)))
    assert len(found) == len(GOLDEN[part])
    different = [(i, a, b) for i, (a, b) in enumerate(zip(found, GOLDEN[part])) if a != b]
    assert not different
