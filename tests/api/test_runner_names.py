"""The names of Headrace's that the runner of TensorFlow's own tests imports (docs/tftests.md).

Without one of them the runner takes TensorFlow inner names for missing and leaves tests out.
"""

from __future__ import annotations

import importlib

import pytest

NAMES = [
    ("api.paths", "PATHS"),
    ("api.paths", "facade"),
    ("api.raw_ops", "generated"),
    ("api.v1.context", "executing_eagerly_outside_functions"),
    ("core.graph", "Graph"),
    ("core.nest", "map_structure"),
    ("core.stacks", "default_graphs"),
    ("dropin", "install"),
    ("eager.context", "eager_mode"),
    ("eager.tensor", "EagerTensor"),
    ("errors", "InvalidArgumentError"),
]


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_the_runner_finds(module: str, name: str) -> None:
    assert hasattr(importlib.import_module(f"headrace.{module}"), name)


def test_inner_modules_are_found_by_their_paths() -> None:
    from headrace.api import paths

    assert paths.facade("core.protobuf.config_pb2", "tensorflow").ConfigProto()
    assert paths.facade("python.framework.function", "tensorflow").Defun
