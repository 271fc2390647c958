"""tf.image, tf.io and tf.test of TF 2, through the API, against TF 2.21
(golden/make_v2_namespaces.py).
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

import headrace.compat.v2 as tf
from tests.eager_fixture import v2_behavior
from tests.golden import make_v2_namespaces as golden

__all__ = ["v2_behavior"]

_VALUES = np.load(Path(golden.HERE) / "v2_namespaces.npz")
_SIGNATURES = json.loads((Path(golden.HERE) / "v2_signatures.json").read_text())
_CASES = [name for name, _ in golden.cases(tf)]


@pytest.mark.parametrize("name", _CASES)
def test_values(name: str) -> None:
    found = golden.arrays(dict(golden.cases(tf))[name]())
    for i, value in enumerate(found):
        want = _VALUES[f"{name}/{i}"]
        if want.dtype.kind in "OSU":
            assert value.tolist() == want.tolist()
            continue
        assert value.dtype == want.dtype and value.shape == want.shape
        np.testing.assert_allclose(
            value, want, rtol=2e-5, atol=2e-4 if np.abs(want).max(initial=0) > 2 else 2e-6
        )


@pytest.mark.parametrize("space", ["image", "io", "test"])
def test_signatures(space: str) -> None:
    """Every function has TF 2.21's parameters, in its order, with its defaults.

    No name of TF 1 alone is there.
    """
    module = getattr(tf, space)
    checked = 0
    for name in module.__all__:
        function = getattr(module, name)
        if not inspect.isfunction(function):
            continue
        want = _SIGNATURES.get(f"{space}.{name}")
        if want is None:
            raise AssertionError(f"TF 2.21 has no function tf.{space}.{name}")
        found = inspect.signature(function).parameters.values()
        assert [[p.name, None if p.default is p.empty else repr(p.default)] for p in found] == want
        checked += 1
    assert checked >= {"image": 50, "io": 20, "test": 5}[space]


def test_names_of_tf_1_alone_are_not_there() -> None:
    for name in (
        "resize_images",
        "resize_bilinear",
        "per_image_whitening",
        "extract_image_patches",
    ):
        with pytest.raises(AttributeError, match=r"v2 API|TensorFlow 2's API"):
            getattr(tf.image, name)
    with pytest.raises(AttributeError):
        tf.io.tf_record_iterator  # noqa: B018
