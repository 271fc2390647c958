"""What Python's library, NumPy and packages accepted when TensorFlow 1 was current."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headrace import dropin

_STANDARD = """
import base64, json, random, threading, unittest
import xml.etree.ElementTree as ET
random.seed(1)
drawn = random.sample([4, 5, 6], 2)
random.seed(1)
print(random.sample({4, 5, 6}, 2) == drawn, len(random.sample({4: 5, 6: 7}.keys(), 2)))
row = [1, 2, 3]
random.shuffle(row, lambda: 0.0)
print(row, threading.Thread(target=print).isAlive(), json.loads("[1]", encoding="utf-8"))
print([e.tag for e in ET.fromstring("<a><b/><c/></a>").getchildren()])
print(base64.decodestring(base64.encodestring(b"x")))
unittest.TestCase().assertEquals(1, 1)
unittest.TestCase().assertItemsEqual([1, 2], [2, 1])
"""
_NUMPY = """
import math
import numpy as np
a = np.array([[1.5]])
print(float(a), int(a), "%.2f and %d" % (a, a), math.floor(a[0]), float(np.array(2.0)))
for bad in (np.zeros(2), np.array(["x"]), np.zeros(0)):
    try:
        float(bad)
    except (TypeError, ValueError) as e:
        print(type(e).__name__)
print(np.unicode is str, np.array([1, 2], copy=False), np.zeros(1, ">f4").newbyteorder().dtype)
"""
_SCIPY = """
import scipy, scipy.integrate, scipy.ndimage, scipy.signal
print(scipy.integrate.simps([1, 2, 3]), scipy.signal.hann(3), scipy.interp(0.5, [0, 1], [2, 4]))
print(scipy.ndimage.imread.__name__, scipy.linalg.__name__, scipy.randn(2).shape)
"""
_TENSORFLOW_CORE = """
import tensorflow_core as core
from tensorflow_core.python.ops import rnn_cell
from tensorflow_core.examples.tutorials.mnist import input_data
import tensorflow as tf
print(core is tf, rnn_cell.BasicLSTMCell is tf.nn.rnn_cell.BasicLSTMCell)
"""
_FAKES = """
import yaml
from skimage.measure import compare_psnr
print(yaml.load("text"), yaml.load("text", "Safe"), compare_psnr(1, 2))
"""
_PANDAS = """
import pandas as pd
d = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
print(d.append({"a": 5, "b": 6}, ignore_index=True).as_matrix().tolist())
print(d.append(d).shape, [n for n, _ in d.iteritems()], pd.np.zeros(1))
"""
_NETWORKX = """
import networkx as nx, numpy as np
g = nx.from_numpy_matrix(np.eye(3)[::-1])
a = nx.adjacency_matrix(g)
print(nx.to_numpy_matrix(g).shape, (a * a).todense().tolist(), sorted(g.node))
print([len(s) for s in nx.connected_component_subgraphs(g)])
"""
_MATPLOTLIB = """
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
plt.hold(True)
plt.style.use("seaborn-whitegrid")
print(plt.figure().gca(projection="3d").name, matplotlib.cm.get_cmap("jet").name)
figure = plt.figure()
plt.axes().set_axis_bgcolor("w")
figure.canvas.draw()
print(len(figure.canvas.tostring_rgb()) % 3)
"""
_SKLEARN = """
from sklearn.cross_validation import train_test_split
from sklearn.externals import joblib
print(len(train_test_split([1, 2, 3, 4])), callable(joblib.dump))
"""


def _run(tmp_path: Path, program: str) -> str:
    file = tmp_path / "old.py"
    file.write_text("import tensorflow as tf\n" + program)
    command = [sys.executable, "-m", "headrace", "run", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        (
            _STANDARD,
            "True 2\n[2, 3, 1] False [1]\n['b', 'c']\nb'x'\n",
        ),
        (
            _NUMPY,
            "1.5 1 1.50 and 1 1 2.0\nTypeError\nValueError\nTypeError\nTrue [1 2] float32\n",
        ),
        (_SCIPY, "4.0 [0. 1. 0.] 3.0\nimread scipy.linalg (2,)\n"),
        (_TENSORFLOW_CORE, "True True\n"),
    ],
    ids=["standard", "numpy", "scipy", "tensorflow_core"],
)
def test_a_program_may_use_them(tmp_path: Path, program: str, printed: str) -> None:
    assert _run(tmp_path, program) == printed


@pytest.mark.parametrize(
    ("package", "program", "printed"),
    [
        (
            "pandas",
            _PANDAS,
            "[[1, 3], [2, 4], [5, 6]]\n(4, 2) ['a', 'b'] [0.]\n",
        ),
        (
            "networkx",
            _NETWORKX,
            "(3, 3) [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] [0, 1, 2]\n[2, 1]\n",
        ),
        ("matplotlib", _MATPLOTLIB, "3d jet\n0\n"),
        ("sklearn", _SKLEARN, "2 True\n"),
    ],
)
def test_packages_that_are_installed(
    tmp_path: Path, package: str, program: str, printed: str
) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    assert _run(tmp_path, program) == printed


def test_the_mechanism_with_packages_made_up(tmp_path: Path) -> None:
    (tmp_path / "yaml.py").write_text(
        "FullLoader = 'Full'\ndef load(stream, Loader):\n    return Loader + ' ' + stream\n"
    )
    (tmp_path / "skimage").mkdir()
    (tmp_path / "skimage/__init__.py").write_text("")
    (tmp_path / "skimage/measure.py").write_text("")
    (tmp_path / "skimage/metrics.py").write_text(
        "def peak_signal_noise_ratio(a, b):\n    return a + b\n"
        "mean_squared_error = normalized_root_mse = structural_similarity = None\n"
    )
    assert _run(tmp_path, _FAKES) == "Full text Safe text 3\n"


def test_they_are_gone_after_uninstall() -> None:
    import json
    import random
    import threading

    before = random.sample, random.shuffle, json.loads, np.ndarray.__dict__["__float__"]
    dropin.install()
    try:
        assert random.sample is not before[0]
        with pytest.warns(FutureWarning, match=r"float\(\) of an array of shape \(1,\)"):
            assert float(np.ones(1)) == 1.0
    finally:
        dropin.uninstall()
    after = random.sample, random.shuffle, json.loads, np.ndarray.__dict__["__float__"]
    assert after == before
    assert not hasattr(threading.Thread, "isAlive")
    with pytest.raises(TypeError):
        float(np.ones(1))
