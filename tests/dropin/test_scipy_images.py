"""scipy.misc's old image functions, compared with SciPy 1.2's results."""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headrace.dropin import package_names, scipy_images

_GOLDEN = Path(__file__).parent.parent / "golden"


def test_results_are_scipys() -> None:
    spec = importlib.util.spec_from_file_location("cases", _GOLDEN / "make_scipy_images.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    got = module.cases(scipy_images)
    expected = json.loads((_GOLDEN / "scipy_images.json").read_text())
    assert sorted(got) == sorted(expected)
    for name, want in expected.items():
        if want == "ValueError":
            assert got[name] == want, name
            continue
        assert got[name][0] == want[0], name
        # other versions of Pillow round the resampling differently by one
        np.testing.assert_allclose(got[name][1], want[1], atol=1.01, err_msg=name)


_PROGRAM = """
import sys
import numpy as np
import scipy.misc
from PIL import Image
from scipy.misc import imread, imresize, imsave
assert Image.ANTIALIAS == Image.LANCZOS and Image.__spec__.loader is Image.__loader__
imsave(sys.argv[1], np.arange(48, dtype=np.uint8).reshape(4, 4, 3))
picture = imread(sys.argv[1])
print(picture.shape, picture.dtype, int(picture[3, 3, 2]), imread(sys.argv[1], flatten=True).dtype)
print(imresize(picture, (8, 2)).shape, scipy.misc.toimage(picture).size)
"""


@pytest.mark.parametrize("early", ["", "import scipy.misc\n"])
def test_a_program_imports_them(tmp_path: Path, early: str) -> None:
    file = tmp_path / "pictures.py"
    file.write_text(early + _PROGRAM)
    command = [sys.executable, "-m", "headrace", "run", str(file), str(tmp_path / "a.png")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "(4, 4, 3) uint8 47 float32\n(8, 2, 3) (4, 4)\n", done.stderr


def test_uninstall_takes_them_back() -> None:
    package_names.install()
    try:
        import scipy.misc
        from PIL import Image

        assert scipy.misc.imresize is scipy_images.imresize  # type: ignore[attr-defined]
        assert Image.ANTIALIAS == Image.LANCZOS  # type: ignore[attr-defined]
    finally:
        package_names.uninstall()
    assert not hasattr(sys.modules["scipy.misc"], "imresize")
    assert not hasattr(sys.modules["PIL.Image"], "ANTIALIAS")


_MOVED = """
import sys
import scipy.sparse, scipy.special
from scipy.sparse.linalg.eigen.arpack import ArpackNoConvergence, eigsh
from scipy.sparse.linalg.eigen import lobpcg
from scipy.misc import comb, factorial, logsumexp
import tensorflow as tf
assert logsumexp is scipy.special.logsumexp
assert eigsh is scipy.sparse.linalg.eigsh and issubclass(ArpackNoConvergence, Exception)
print(eigsh(scipy.sparse.eye(5, format="csr") * 3.0, 1, which="LM")[0], comb(4, 2), factorial(3))
"""


def test_functions_of_scipy_that_have_moved_are_found_where_they_were(tmp_path: Path) -> None:
    """Graph networks import `eigsh` from the module that SciPy had until 1.7."""
    file = tmp_path / "spectrum.py"
    file.write_text(_MOVED)
    command = [sys.executable, "-m", "headrace", "run", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "[3.] 6.0 6.0\n", done.stderr


def test_moved_modules_are_gone_after_uninstall() -> None:
    name = "scipy.sparse.linalg.eigen.arpack"
    package_names.install()
    try:
        assert importlib.import_module(name).__dict__["eigsh"]
    finally:
        package_names.uninstall()
    with pytest.raises(ImportError):
        importlib.import_module(name)
