"""A pytest plugin: the process is as one in which llvmlite is not installed.

python -m tests.instruction_sets nollvm
"""

from __future__ import annotations

import sys

assert not any(name.startswith("llvmlite") for name in sys.modules)
# "None in sys.modules causes an import to raise ModuleNotFoundError"
sys.modules["llvmlite"] = None  # type: ignore[assignment]
