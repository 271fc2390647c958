"""A bounded run of tools/fuzz_readers.py.

Every kind of input once, with the limits of time and memory.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_TOOL = Path(__file__).parent.parent.parent / "tools" / "fuzz_readers.py"
_KINDS = [
    "jpeg",
    "png,gif,bmp",
    "tensor,example,records,records.gz,records.zlib",
    "elements,spec,pattern",
    "csv,csv.gz",
    "text,text.gz,text.zlib",
]


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
@pytest.mark.parametrize("kinds", _KINDS)
def test_readers_withstand_what_the_fuzzer_makes(kinds: str) -> None:
    command = [sys.executable, str(_TOOL), "--kinds", kinds, "--inputs", "150", "--seed", "7"]
    done = subprocess.run(
        [*command, "--seconds", "900"], capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_fuzzer_sees_what_goes_wrong() -> None:
    """A reader that raises something of its own, one that hangs and one that takes all memory are
    findings.
    """
    program = (
        "import sys, time; sys.argv[0] = 'x'; sys.path.insert(0, sys.argv[1])\n"
        "import fuzz_readers as f\n"
        "def raises(tf, sess, data): raise KeyError('own')\n"
        "def takes(tf, sess, data): return bytearray(10**13)\n"
        "for reader in (raises, takes):\n"
        "    f.READERS['spec'] = [reader]\n"
        "    assert f.run_one('spec', b'') is not None\n"
    )
    subprocess.run([sys.executable, "-c", program, str(_TOOL.parent)], check=True, timeout=300)
