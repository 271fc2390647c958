"""The notebook extension, in IPython where it is installed and in a small shell where it is not."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

import pytest

import headrace
from headrace import dropin


class _Shell:
    """What the extension uses of IPython's shell."""

    def __init__(self) -> None:
        self.magics: dict[str, dict[str, Any]] = {"line": {}}
        self.magics_manager = self

    def register_magic_function(self, function: Any, magic_kind: str, magic_name: str) -> None:
        self.magics[magic_kind][magic_name] = function


def test_tensorflow_is_headrace_between_load_and_unload() -> None:
    shell = _Shell()
    headrace.load_ipython_extension(shell)
    try:
        import tensorflow as tf  # type: ignore[import-not-found, import-untyped, unused-ignore]

        assert tf.Session is headrace.Session
        with pytest.raises(ValueError, match="v1 or v2"):
            shell.magics["line"]["headrace"]("v3")
        shell.magics["line"]["headrace"]("v1")
        assert dropin.is_installed()
    finally:
        headrace.unload_ipython_extension(shell)
    assert not dropin.is_installed() and not shell.magics["line"]


def test_in_ipython() -> None:
    pytest.importorskip("IPython")
    program = textwrap.dedent("""
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        for cell in CELLS:
            shell.run_cell(cell).raise_error()
    """)
    first, imports = "%load_ext headrace", "import tensorflow as tf"
    for cells in (
        (first, imports, "print(tf.Session().run(tf.add(1, 2)))"),
        (first, "%headrace v2", imports, "print(tf.add(1, 2).numpy())"),
    ):
        command = [sys.executable, "-c", f"CELLS = {cells!r}\n{program}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.stdout.split() == ["3"], done.stdout


def test_reload() -> None:
    """``%reload_ext headrace`` reloads the package."""
    program = "import importlib, headrace as tf; s = tf.Session; tf = importlib.reload(tf);"
    program += "print(tf.Session is s, tf.layers.dense.__name__, tf.train.AdamOptimizer.__name__)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split() == ["True", "dense", "AdamOptimizer"], done.stderr
