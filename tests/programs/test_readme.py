"""The README's example runs as it stands and prints what the README shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent.parent / "README.md"


def test_the_example_prints_what_the_readme_shows(tmp_path: Path) -> None:
    text = README.read_text(encoding="utf-8")
    program = re.findall(r"```python\n(.*?)```", text, re.S)[0]
    shown = text[text.index(program) :].split("```")[2].strip().splitlines()
    (tmp_path / "example.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    wanted = [line for line in shown if "…" not in line]
    assert len(wanted) >= 3
    assert [line for line in printed if line in wanted] == wanted, done.stdout
