"""Names that NumPy and Python have lost since TensorFlow 1: programs find them, packages do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headrace import dropin
from headrace.dropin import removed_names

_PROGRAM = """
import collections, fractions, inspect, time
import numpy as np
from collections import Mapping
print(np.zeros(2, np.float).dtype, np.int is int, np.object is object, np.NaN != np.NaN)
print(np.product([2, 3]), np.cast[np.int32](3.7), np.asscalar(np.array(4)), np.in1d([1], [1]))
print(issubclass(dict, collections.Mapping), issubclass(dict, Mapping), fractions.gcd(12, 18))
print(time.clock() >= 0, inspect.getargspec(lambda a, *b, c=1, **d: 0).keywords)
print(hasattr(np, "nothing"))
"""
_PRINTED = """\
float64 True True True
6 3 4 [ True]
True True 6
True d
False
"""


def test_a_program_finds_them(tmp_path: Path) -> None:
    file = tmp_path / "old.py"
    file.write_text(_PROGRAM)
    command = [sys.executable, "-m", "headrace", "run", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, _PRINTED), done.stderr
    assert done.stderr.count("numpy.NaN is not in this version") == 1
    assert "old.py:5: FutureWarning: numpy.float" in done.stderr


def test_they_are_gone_after_uninstall() -> None:
    before = np.__dict__["__getattr__"]
    dropin.install()
    try:
        with pytest.warns(FutureWarning, match=r"numpy\.float is not"):
            assert np.float is float  # type: ignore[attr-defined]
    finally:
        dropin.uninstall()
    assert np.__dict__["__getattr__"] is before
    with pytest.raises(AttributeError):
        np.float  # type: ignore[attr-defined] # noqa: B018


def test_packages_do_not_see_them() -> None:
    removed_names.install()
    try:
        code = compile("found = hasattr(numpy, 'float')", f"{np.__path__[0]}/x.py", "exec")
        names: dict[str, object] = {"numpy": np}
        exec(code, names)
        assert names["found"] is False
    finally:
        removed_names.uninstall()
