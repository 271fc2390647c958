"""Native bilinear and bicubic resizing: the bits of the NumPy code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.kernels.hot_work import HotWork
from headrace.kernels.native.llvm_library import available
from headrace.kernels.numpy import resample

pytestmark = [
    pytest.mark.skipif(available() is None, reason="no LLVM here"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
DTYPES = [np.uint8, np.int8, np.uint16, np.int16, np.int32, np.float32, np.float64]
SIZES = [((3, 7, 5, 3), (11, 4)), ((1, 40, 30, 1), (96, 96)), ((2, 9, 8, 6), (3, 20))]


def images(shape: tuple[int, ...], dtype: Any) -> Any:
    made = np.random.RandomState(0).uniform(-100, 100, shape)
    if np.dtype(dtype).kind == "f":
        made.flat[:3] = np.nan, np.inf, -0.0
    return made.astype(dtype) if np.dtype(dtype).kind != "u" else np.abs(made).astype(dtype)


@pytest.mark.parametrize("how", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["bilinear", "bicubic"])
def test_the_same_bits(
    kind: str, dtype: Any, how: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "headrace.kernels.native.resize_kernels"
    for shape, size in SIZES:
        x = images(shape, dtype)
        monkeypatch.setattr(resample, "NATIVE", HotWork("never", 1 << 60, module))
        expected = getattr(resample, kind)(x, size, *how)
        monkeypatch.setattr(resample, "NATIVE", HotWork("at once", 0, module))
        found = getattr(resample, kind)(x, size, *how)
        assert resample.NATIVE.reason == "native" and found.dtype == np.float32
        np.testing.assert_array_equal(found, expected)
        number = ~np.isnan(expected)  # the sign of a NaN is the processor's choice
        np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(expected[number]))


def test_through_the_api(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "headrace.kernels.native.resize_kernels"
    monkeypatch.setattr(resample, "NATIVE", HotWork("at once", 0, module))
    x = images((2, 20, 30, 3), np.uint8)
    with tf.Graph().as_default(), tf.Session() as session:
        y = tf.image.resize_bilinear(tf.constant(x)[:, ::2], [8, 9])
        z = tf.image.resize_bicubic(tf.constant(x), [5, 61])
        found = session.run([y, z])
    monkeypatch.setattr(resample, "NATIVE", HotWork("never", 1 << 60, module))
    np.testing.assert_array_equal(found[0], resample.bilinear(x[:, ::2], (8, 9), False, False))
    np.testing.assert_array_equal(found[1], resample.bicubic(x, (5, 61), False, False))
