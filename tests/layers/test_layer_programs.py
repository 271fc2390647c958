"""Programs with layers and recurrent networks against TensorFlow 1.15.

Names, collections, first values, results, gradients.
"""

import gzip
import importlib
import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from tests.golden.make_layers import MODULES
from tests.golden.observe import observe

HERE = Path(__file__).parent.parent / "golden"
#: Programs in which Headrace makes fewer operations than TensorFlow (which it counts); all names
#: that exist are the same.
FEWER_OPS = {"conv_dilated", "conv_separable_layers", "dense_rank_3_and_4", "small_network"}

#: Programs with cells that are one fused operation in TensorFlow: variables and numbers are the
#: same, operations are not.
FUSED = {"gru_block", "lstm_block", "lstm_block_fused"}


def comparable(ops):
    """Names of operations, without those that only the engine makes.

    Switches, gradients, shapes of constants.
    """
    inner = re.compile(r"Switch(_\d+)?$|cond(_\d+)?/Identity|^gradients|(ones|zeros)_like")
    return sorted(name for name, _ in ops if not inner.search(name))


def named(ops):
    """Names of the operations that people look for."""
    kinds = (
        "BiasAdd",
        "Conv2D",
        "MatMul",
        "Placeholder",
        "Sigmoid",
        "Softmax",
        "Tanh",
        "VariableV2",
        "VarHandleOp",
    )
    return sorted(n for n, kind in ops if kind in kinds and not n.startswith("gradients"))


def _shapes(structure):
    return {key: shape for key, (_, shape) in structure["shapes"].items()}


@cache
def golden(module):
    structures = json.loads(gzip.decompress((HERE / f"{module}.json.gz").read_bytes()))
    with np.load(HERE / f"{module}.npz") as arrays:
        return structures, dict(arrays)


def cases():
    for module in MODULES:
        for program in importlib.import_module(f"tests.golden.{module}").PROGRAMS:
            yield pytest.param(module, program, id=program.__name__)


@pytest.mark.parametrize(("module", "program"), cases())
def test_program(module, program):
    structures, arrays = golden(module)
    name = program.__name__
    want = structures[name]
    have, values = observe(tf, program)
    assert have["variables"] == want["variables"]
    assert have["collections"] == want["collections"]
    assert _shapes(have) == _shapes(want)
    if name not in FUSED:
        assert have["shapes"] == want["shapes"]
        if (
            module != "layer_programs"
        ):  # loops and splits have other helpers here, which are counted all the same
            assert named(have["ops"]) == named(want["ops"])
        elif name not in FEWER_OPS:
            assert comparable(have["ops"]) == comparable(want["ops"])
    expected = {k.partition("|")[2]: v for k, v in arrays.items() if k.partition("|")[0] == name}
    assert values.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(values[key], value, rtol=2e-4, atol=2e-5, err_msg=key)
        if key.startswith("init:"):
            np.testing.assert_allclose(values[key], value, rtol=1e-6, atol=1e-6, err_msg=key)
