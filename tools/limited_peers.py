"""A copy of ONNX Runtime and OpenVINO that believes the CPU has no AVX-512, for ``benchmarks --isa
avx2`` on a CPU that has it.

    python -m tools.limited_peers PEERS/ort/bin/python DIRECTORY
    HEADRACE_PEER_ORT=DIRECTORY/python python -m benchmarks --group inference --isa avx2

Both multiply float32 matrices with MLAS, which asks the CPU and knows no setting (oneDNN, PyTorch,
XLA and OpenBLAS do: tests/instruction_sets.py). Its test of what the system saves of AVX-512's
registers is changed in the copy so that it always fails. Another version may be compiled in another
way: then this says that it found no such test.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from pathlib import Path

__all__ = ["limit"]

#: ``not rax; test al, 0xe0; je`` and ``and edx, 0xe0; jne``, with what stands instead of the test:
#: ``or al, 1`` and ``or edx, 0xe0``.
_TESTS = [
    (rb"(?<=\x48\xf7\xd0)\xa8\xe0(?=\x0f\x84|\x74)", b"\x0c\x01"),
    (rb"\x81\xe2(?=\xe0\x00\x00\x00\x0f\x85)", b"\x81\xca"),
]
_LIBRARIES = {
    "onnxruntime": "capi/onnxruntime_pybind11_state*.so",
    "openvino": "libs/libopenvino_intel_cpu_plugin.so",
}
_PYTHON = """#!/bin/sh
PYTHONPATH="{directory}${{PYTHONPATH:+:$PYTHONPATH}}" exec "{python}" "$@"
"""


def limit(code: bytes) -> tuple[bytes, int]:
    """The code without the tests, and how many there were."""
    count = 0
    for pattern, instead in _TESTS:
        code, found = re.subn(pattern, lambda _, new=instead: new, code)  # (no escapes)
        count += found
    return code, count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python", type=Path)
    parser.add_argument("directory", type=Path)
    options = parser.parse_args()
    directory = options.directory.absolute()
    asked = [str(options.python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(
        subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    )
    for name, pattern in _LIBRARIES.items():
        shutil.copytree(packages / name, directory / name, dirs_exist_ok=True)
        for file in (directory / name).glob(pattern):
            code, count = limit(file.read_bytes())
            file.write_bytes(code)
            print(f"{file}: {count} tests" if count else f"{file}: NOT LIMITED, no such test")
    wrapper = directory / "python"
    wrapper.write_text(_PYTHON.format(directory=directory, python=options.python.absolute()))
    wrapper.chmod(0o755)


if __name__ == "__main__":
    main()
