"""Every example runs, in a process of its own, and ends with its closing line.

What it measures is not looked at.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
UNMODIFIED = "mnist_like_unmodified"
NAMES = sorted(p.stem for p in EXAMPLES.glob("[a-z]*.py") if p.stem != UNMODIFIED)

NUMBER = r"\d+\.\d+"
CLOSING = re.compile(rf"slow {NUMBER} (ms|MB), fast {NUMBER} (ms|MB): {NUMBER} times")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "HEADRACE_EXAMPLES_QUICK": "1"},
    )


@pytest.mark.parametrize("name", NAMES)
def test_example(name: str) -> None:
    done = run(str(EXAMPLES / f"{name}.py"))
    assert done.returncode == 0, done.stderr
    assert CLOSING.fullmatch(done.stdout.splitlines()[-1]), done.stdout


def test_unmodified_program() -> None:
    program = str(EXAMPLES / f"{UNMODIFIED}.py")
    done = run("-m", "headrace", "run", "--report", program, "--steps", "20")
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(rf"accuracy {NUMBER} after 20 steps", done.stdout.splitlines()[-1])
    assert "headrace report" in done.stderr


def test_readme_lists_every_example() -> None:
    listed = set(re.findall(r"`(\w+)\.py`", (EXAMPLES / "README.md").read_text()))
    assert listed == {*NAMES, UNMODIFIED, "_timing"}
