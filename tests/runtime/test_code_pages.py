"""Memory of a compiler's code is given back, and the compiler works afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from headrace.kernels.native import llvm_library
from headrace.runtime import code_pages

pytestmark = pytest.mark.skipif(
    llvm_library.available() is None or not sys.platform.startswith("linux"),
    reason=f"no LLVM: {llvm_library.status()}",
)

PROGRAM = """
import re, time
import numpy as np
import headrace as tf
from headrace.runtime import code_pages

def resident():
    found, inside = 0, False
    for line in open("/proc/self/smaps"):
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            inside = "libllvmlite" in line
        elif inside and line.startswith("Rss:"):
            found += int(line.split()[1])
    return found

x = np.linspace(-1, 1, 1000 * 100).astype(np.float32).reshape(1000, 100)
with tf.Session() as session:
    code_pages.IDLE_SECONDS = 3600
    session.run(tf.tanh(tf.constant(x)) * 2.0)
    p = tf.placeholder(tf.float32, x.shape)
    first = session.run(tf.tanh(p) * 2.0, {p: x})
    before = resident()
    assert code_pages.release_code("libllvmlite") > 0
    assert resident() < before / 4, (before, resident())
    second = session.run(tf.exp(p) * 2.0, {p: x})  # compiled after that
    assert resident() > before / 4
    assert np.allclose(second, np.exp(x) * 2) and np.allclose(first, np.tanh(x) * 2)
print("well")
"""


@pytest.mark.once
def test_code_is_released_and_read_again(tmp_path: object) -> None:
    environment = {"HEADRACE_NATIVE": "always", "HEADRACE_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout == "well\n", done.stderr


def test_only_segments_that_are_never_written() -> None:
    """Relocated data has no way back: it must not be released."""
    llvm_library.load().binding  # noqa: B018
    (path, base), *_ = code_pages._libraries("libllvmlite")
    constant = [(base + a, base + b) for a, b in code_pages._constant_segments(path)]
    assert constant
    with open("/proc/self/maps") as maps:
        for line in maps:
            if path in line and "w" in line.split()[1]:
                lo, hi = (int(x, 16) for x in line.split()[0].split("-"))
                assert not any(a < hi and lo < b for a, b in constant)


def test_libraries_that_are_not_there() -> None:
    assert code_pages.release_code("no such library") == 0
