"""Names that NumPy and Python have lost since TensorFlow 1: programs find them, packages do not."""

from __future__ import annotations

import subprocess
import sys
import warnings
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
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, _PRINTED), done.stderr
    assert done.stderr.count("numpy.NaN is not in this version") == 1
    assert "old.py:5: FutureWarning: numpy.float" in done.stderr


_NUMPYS = """
import tensorflow as tf
import xml.etree.ElementTree as tree
import numpy as np
import numpy.lib.arraypad as arraypad
from numpy.lib.index_tricks import s_
from numpy.linalg.linalg import LinAlgError
from numpy.testing.utils import assert_allclose
print(np.lib.pad([1], 1, "constant"), arraypad.pad([2], 1, "constant"), s_[1:2], np.alen([1, 2]))
print(np.math.sqrt(4.0), np.warnings.__name__, np.core.float_ is np.float64, np.typeDict["int8"])
print(np.sctypes["float"][1], np.obj2sctype("f4"), issubclass(np.RankWarning, Warning))
print(np.percentile([1, 2, 4], 50, interpolation="lower"))
print(np.nanquantile([1.0], 0.5, interpolation="nearest"))
print(np.lib.DataSource is np.DataSource, LinAlgError is np.linalg.LinAlgError)
print(len(tree.fromstring("<a><b/></a>").getchildren()), np.recfromcsv(["A,b", "1,2"]).a)
"""
_NUMPYS_PRINTED = """\
[0 1 0] [0 2 0] slice(1, 2, None) 2
2.0 warnings True <class 'numpy.int8'>
<class 'numpy.float32'> <class 'numpy.float32'> True
2
1.0
True True
1 1
"""


def test_modules_of_numpy_have_what_they_had(tmp_path: Path) -> None:
    file = tmp_path / "old.py"
    file.write_text(_NUMPYS)
    command = [sys.executable, "-m", "headrace", "run", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, _NUMPYS_PRINTED), done.stderr


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


def test_packages_built_on_tensorflow_see_them(tmp_path: Path) -> None:
    """Two packages, one of which imports TensorFlow: that one is of the same age as a program."""
    for name, text in (("old", "import tensorflow as tf\n"), ("other", "import json\n")):
        folder = tmp_path / "site-packages" / name
        folder.mkdir(parents=True)
        (folder / "main.py").write_text(text)
    removed_names.install()
    packages = removed_names._PACKAGES
    removed_names._PACKAGES = (*packages, str(tmp_path))
    try:
        for name, expected in (("old", True), ("other", False)):
            file = str(tmp_path / "site-packages" / name / "helper.py")
            names: dict[str, object] = {"numpy": np}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile("found = hasattr(numpy, 'float')", file, "exec"), names)
            assert names["found"] is expected, name
    finally:
        removed_names._PACKAGES = packages
        removed_names.uninstall()


_RAGGED = """
import numpy as np
pairs = np.array(list(zip([[1, 2], [3, 4]], [[1], [2, 3]])))
print(pairs.shape, pairs.dtype, pairs[1][1])
pictures = np.array([np.zeros((2, 2, 3)), np.zeros((3, 2, 3))])
print(pictures.shape, pictures[1].shape)
print(np.array([[1, 2], [3, 4]]).dtype, np.array([1, 2], ndmin=2).shape)
try:
    np.array([[1], [2, 3]], dtype=np.float32)
except ValueError as e:
    print("ValueError")
print(np.reshape(np.arange(6), newshape=[2, 3]).shape, np.fromstring(b"ab", np.uint8).tolist())
a = np.arange(4, dtype=np.uint8)
a.itemset(1, 7)
print(a.tostring(), np.fromstring("1 2", sep=" ").tolist(), a.ptp(), np.uint8(3).tostring())
"""


def test_ragged_rows_are_an_array_of_objects(tmp_path: Path) -> None:
    file = tmp_path / "ragged.py"
    file.write_text(_RAGGED)
    command = [sys.executable, "-m", "headrace", "run", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    printed = "(2, 2) object [2, 3]\n(2,) (3, 2, 3)\nint64 (1, 2)\nValueError\n"
    printed += "(2, 3) [97, 98]\nb'\\x00\\x07\\x02\\x03' [1.0, 2.0] 7 b'\\x03'\n"
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
    assert "ragged.py:3: FutureWarning: np.array is called as before NumPy 2" in done.stderr


def test_ragged_rows_are_refused_after_uninstall_and_in_packages() -> None:
    own = np.array
    removed_names.install()
    try:
        code = compile("numpy.array([[1], [2, 3]])", f"{np.__path__[0]}/x.py", "exec")
        with pytest.raises(ValueError, match="inhomogeneous"):
            exec(code, {"numpy": np})
    finally:
        removed_names.uninstall()
    assert np.array is own
    assert not hasattr(np.zeros(2), "tostring") or np.__version__ < "2.3"
