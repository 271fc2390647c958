"""Stages hand facts to each other in declared fields, not in keys of an instance's ``__dict__``."""

from __future__ import annotations

import re
from pathlib import Path

import headrace

ROOT = Path(headrace.__file__).parent
#: Packages between a graph and its runs.
PACKAGES = (
    *("core", "ops", "autodiff", "program", "rewrite"),
    *("lower", "executors", "session", "functions", "variables"),
)
#: Where all fields of an object are copied, whatever they are, or a class is read.
COPIES = {
    "core/device_spec.py": "fields are set by their names, which a string gives",
    "core/thread_scopes.py": "the property that a thread scope is",
    "core/inline.py": "the copy of an operation or context has what the original has",
    "core/tensor.py": "users put attributes on tensors and operations, as with TensorFlow",
    "functions/function_gradients.py": "a state with another table of values",
    "ops/control/tensor_array.py": "the same array with another flow",
    "ops/ragged/ragged_dispatch.py": "the operators of a class, by their names",
    "variables/initial_values.py": "the copy of an operation has what the original has",
    "variables/resource_variable.py": "an object becomes another variable's",
    "variables/variable.py": "a class is asked what it defines itself",
}


def test_no_channel_is_a_key_in_a_dict() -> None:
    found = {
        f"{path.relative_to(ROOT)}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if re.search(r"__dict__\b|\bsetattr\(", path.read_text())
    }
    assert found - set(COPIES) == set(), "declare a field with its type and default instead"
    assert set(COPIES) - found == set(), "take these out of the table"
