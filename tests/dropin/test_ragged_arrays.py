"""np.array of lists of different lengths: programs get an array of objects, packages the error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headrace import dropin

_PROGRAM = """
import numpy as np
rows = np.array([[1, 2], [3]])
print(rows.dtype, rows.shape, rows[0] + rows[1])
print(np.asarray([[1], [2, 3], []]).shape, np.array([["a"], "bc"]).shape)
print(np.array([[[1, 2], [3]], [[4], [5, 6]]]).shape, np.array([[1, 2], [3, 4]]).dtype.kind)
for call in (lambda: np.array([[1, 2], [3]], dtype=np.int32), lambda: np.sum([[1, 2], [3]]),
             lambda: np.array([[1, 2], [3]], float)):
    try:
        call()
    except ValueError as e:
        print("ValueError")
shuffled = rows[np.random.permutation(np.arange(len(rows)))]
print(sorted(map(len, shuffled)))
"""
_PRINTED = """\
object (2,) [1, 2, 3]
(3,) (2,)
(2, 2) i
ValueError
ValueError
ValueError
[1, 2]
"""


def test_a_program_makes_them(tmp_path: Path) -> None:
    file = tmp_path / "old.py"
    file.write_text(_PROGRAM)
    command = [sys.executable, "-m", "headrace", "run", "--api", "v1", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, _PRINTED), done.stderr
    assert "old.py:3: FutureWarning: np.array is called as before NumPy 2" in done.stderr


def test_packages_and_uninstalled_processes_do_not() -> None:
    before = np.array, np.asarray, np.asanyarray
    package = compile("numpy.array([[1, 2], [3]])", f"{np.__path__[0]}/x.py", "exec")
    dropin.install()
    try:
        for make in (np.array, np.asarray, np.asanyarray):
            with pytest.warns(FutureWarning, match="before NumPy 2"):
                assert make([[1, 2], [3]]).dtype == object
        with pytest.raises(ValueError, match="inhomogeneous"):
            exec(package, {"numpy": np})
    finally:
        dropin.uninstall()
    assert (np.array, np.asarray, np.asanyarray) == before
    with pytest.raises(ValueError, match="inhomogeneous"):
        np.array([[1, 2], [3]])
