"""``tf.image.resize`` as TF 2 does it: every method, with and without antialias, and gradients."""

from __future__ import annotations

import os

import numpy as np
import pytest

from headrace.api import v2 as tf
from tests.eager_fixture import v2_behavior  # noqa: F401 (used by its name)
from tests.golden import resize_v2_programs, store


def test_values_are_those_of_tensorflow_2() -> None:
    wanted = np.load(os.path.join(store.HERE, "resize_v2.npz"))
    found = resize_v2_programs.results(tf)
    assert sorted(found) == sorted(wanted.files)
    for name in wanted.files:
        np.testing.assert_allclose(found[name], wanted[name], 1e-4, 1e-5, err_msg=name)


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ValueError, match="Resize method is not implemented"):
        tf.image.resize(np.zeros((1, 2, 2, 1), np.float32), [1, 1], "lanczos7")
