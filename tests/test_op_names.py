"""Facts about ops stand on their definitions: tables of op names elsewhere do not grow.

``python tools/op_names.py --tables`` lists them. A table that is a per-op rule of one stage (how an
op is written in NumPy, which primitive it is) is in its place; the others wait to become traits.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tools import op_names

#: Tables that are rules of a stage, one entry an op, where DESIGN puts them: what stands beside the
#: name is code or a shape of code, not a fact about the op.
RULES = {
    "autodiff/op_counts.py:_RULES": "how many multiplications an op takes",
    "data/functions/batch_rules.py:RULES": "how a map function's op runs on a whole batch",
    "kernels/native/vector_math.py:MATH": "the op's polynomial in native code",
    "lower/emit.py:EXPRESSIONS": "the op as a Python expression",
    "lower/emit.py:INTO": "the op as a NumPy call that writes where it is told",
    "lower/emit.py:UPDATES": "the op as the new value of a small variable",
    "lower/settled_steps.py:_BINDERS": "the op as a primitive of the kernel library",
    "rewrite/rule_table.py:RULES": "the ops at which a rewrite's pattern ends",
    "rewrite/analysis/dims.py:DIMS": "the lengths of the op's result",
    "rewrite/analysis/dims.py:PARTS": "the elements of a shape that the op makes",
}
#: All other tables; lower it when one becomes a trait.
MAX_TABLES = 95


@pytest.fixture(scope="module")
def names() -> frozenset[str]:
    """In a process of its own: other tests and other parts of Headrace define further ops."""
    code = "from tools import op_names; print(*op_names.op_names())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["", *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return frozenset(done.stdout.split())


def test_tables_of_op_names_do_not_grow(names: frozenset[str]) -> None:
    found = op_names.tables(names)
    gone = set(RULES) - set(found)
    assert not gone, f"these are no tables any more; take them out of RULES: {sorted(gone)}"
    others = sorted(set(found) - set(RULES))
    assert len(others) <= MAX_TABLES, f"make a trait of the new one among {others}"
