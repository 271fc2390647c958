"""Facts about ops stand on their definitions: tables of op names elsewhere do not grow.

``python tools/op_names.py --tables`` lists them. A table that is a per-op rule of one stage (how an
op is written in NumPy, which primitive it is) is in its place; the others wait to become traits.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from tools import op_names

#: Tables that are rules of a stage, one entry an op, where DESIGN puts them: what stands beside the
#: name is code or a shape of code, not a fact about the op.
RULES = {
    "api/device_setter.py:STANDARD_PS_OPS": "TensorFlow's public default of an argument",
    "autodiff/op_counts.py:_RULES": "how many operations TensorFlow's gradient of the op makes",
    "data/functions/batch_rules.py:RULES": "how a map function's op runs on a whole batch",
    "formats/freezing.py:_CONVERSIONS": "the op on a resource as nodes on a constant",
    "formats/subgraphs.py:_VARIABLE_OPS": "TensorFlow's own list of what its function pins",
    "kernels/native/vector_math.py:MATH": "the op's polynomial in native code",
    "kernels/numpy/activation_kernels.py:ACTIVATIONS": "the names in fused_ops, as functions",
    "kernels/onednn/elementwise_primitives.py:FUNCTIONS": "the op as a primitive of oneDNN",
    "lower/select_forms.py:_SHORTCUTS": "the op as an expression of Python or NumPy",
    "lower/select_primitives.py:_BINDERS": "the op as a primitive of the kernel library",
    "profiler/flop_counts.py:_RULES": "the floating-point operations that TensorFlow counts",
    "rewrite/analysis/dims.py:DIMS": "the lengths of the op's result",
    "rewrite/analysis/dims.py:PARTS": "the elements of a shape that the op makes",
    "rewrite/analysis/dims.py:_PARTS_OF_ONE": "the same for ops with several results",
    "rewrite/rule_table.py:RULES": "the ops at which a rewrite's pattern ends",
    "rewrite/simplifications.py:SIMPLIFICATIONS": "the same, of a part of that table",
    "rewrite/rules/pairwise_distances.py:_OUTER": "the ops at which the rule's pattern begins",
    "rewrite/rules/rearrangements.py:_CHANGES_NOTHING": "when the op gives what it is given",
}
#: What op names in strings of other modules are for (tools/op_names.py), and how many there are.
KINDS = {
    "built": 365,  # an operation of that type is made, or its definition looked up
    "pattern": 290,  # what a rewrite looks for
    "table": 400,  # an entry of a rule table: RULES above, or a rule that is registered by name
    "name": 23,  # the name of a result, as TensorFlow calls it
    "file": 58,  # of a node in a file
}
#: Questions to an op's name that a trait or a role should answer, by package: none are added, and
#: the packages that are not here have none.
FACTS = {
    **{"core": 13, "program": 4, "lower": 17, "kernels": 9, "autodiff": 2},
    **{"variables": 4, "functions": 4, "data": 14, "train": 10, "eager": 2, "autograph": 1},
    "api": 6,
}


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
    assert not others, f"make a trait of {others}: what an op is, stands on its definition"


def test_op_names_in_code_are_of_a_kind_that_is_allowed(names: frozenset[str]) -> None:
    found = list(op_names.kinds(names))
    counts = Counter(kind for kind, _, _ in found)
    facts = Counter(module.partition("/")[0] for kind, module, _ in found if kind == "fact")
    assert set(counts) - {"fact"} <= set(KINDS)
    for kind, most in KINDS.items():
        assert counts[kind] <= most, f"{counts[kind]} op names are {kind!r}, {most} were"
    for package, count in facts.items():
        assert count <= FACTS.get(package, 0), (
            f"{package} asks {count} times what an op is called: a trait or a role would do "
            "(python tools/op_names.py --facts)"
        )
