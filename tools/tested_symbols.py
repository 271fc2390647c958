"""Write api/tested.txt: the public names that tests compare with TensorFlow 1.15.

    python tools/tested_symbols.py

Runs the tests that read golden files with the plugin tests/golden/recording.py (some minutes), and
writes the names that compared programs used. ``headrace coverage --tested`` counts only these.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTED = ROOT / "src" / "headrace" / "api" / "tested.txt"
#: Tests that compare ops one by one, not public names, and take long.
_LEFT_OUT = "not test_samples and not hostile and not graphdef_samples"


def compared_tests() -> list[str]:
    """Test files that compare with golden values."""
    found = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if path.parent.name in ("kernels", "wire"):  # bytes and arrays: no public names
            continue
        text = path.read_text(encoding="utf-8")
        if "golden" in text or "op_behaviour" in text:
            found.append(str(path))
    return found


def as_text(names: list[str]) -> str:
    """Lines ``namespace: name name …``, as in known.txt."""
    by_namespace: dict[str, list[str]] = defaultdict(list)
    for name in names:
        namespace, _, last = name.rpartition(".")
        by_namespace[namespace].append(last)
    return "".join(f"{n}: {' '.join(sorted(m))}\n" for n, m in sorted(by_namespace.items()))


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "names")
        result = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p",
             "tests.golden.recording", "-k", _LEFT_OUT, *compared_tests()],
            cwd=ROOT,
            env={**os.environ, "HEADRACE_TESTED_SYMBOLS": str(out)},
            check=False,
        )  # fmt: skip
        if result.returncode:
            print("a test failed: tested.txt is as it was", file=sys.stderr)
            return 1
        from headrace.cli.symbol_check import (
            have,  # attributes are by class name: some do not exist
        )

        TESTED.write_text(as_text(list(filter(have, out.read_text().split()))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
