"""``TransformGraph`` and ``optimize_for_inference``: the graphs and outputs of TF 1.15."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace.api.v1 as tf
from headrace.formats.graph_transforms import TransformGraph, optimize_for_inference
from headrace.formats.graphdef_reader import read_graph_def
from tests.golden.transforms import transform_programs as programs

ANSWERS = json.loads((Path(programs.HERE) / "answers.json").read_text())

#: TF 1.15 gives folded constants names of its own, and keeps any one of several equal nodes.
OTHER_NAMES = ("all", "duplicates", "fold")


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    message = read_graph_def(Path(programs.HERE) / "graph.pb")
    return programs.transformed(tf, message, TransformGraph, optimize_for_inference)


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_graphs_and_outputs_are_tensorflows(name: str, found: dict[str, Any]) -> None:
    nodes, outputs = found[name]
    want, values = ANSWERS[name]
    np.testing.assert_allclose(outputs, values, rtol=1e-4, atol=1e-5)
    if name in OTHER_NAMES:
        nodes, want = ([n[1] for n in listed] for listed in (nodes, want))
    assert sorted(nodes) == sorted(want)
