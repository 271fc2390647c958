"""Queues, readers and batches give what TensorFlow 1.15 gives (tests/golden/queue_programs.py)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as tf
from tests.golden.queue_programs import PROGRAMS
from tests.train.time_limit import within

GOLDEN = json.loads(
    (Path(__file__).parent.parent / "golden" / "queue_programs.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_tensorflow(program: Callable[[Any, str], Any], tmp_path: Path) -> None:
    def run() -> Any:
        with tf.Graph().as_default():
            return program(tf, str(tmp_path))

    assert json.loads(json.dumps(within(120, run))) == GOLDEN[program.__name__]
