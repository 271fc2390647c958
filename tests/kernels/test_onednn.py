"""oneDNN under the NumPy kernels: same results, and a clean answer where it is not there."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from headrace.core.opdef import KernelNode, bind_kernel, lookup
from headrace.kernels import accel
from headrace.kernels.numpy import gemm, numpy_xp


@pytest.fixture
def onednn() -> Any:
    found = accel.library()
    if found is None:
        pytest.skip(f"no kernel library: {accel.status()}")
    return found


def _matrix(rows: int, columns: int, salt: int) -> Any:
    return np.random.RandomState(salt).uniform(-1, 1, (rows, columns)).astype(np.float32)


@pytest.mark.parametrize("transposed", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("shape", [(1, 7, 5), (64, 33, 17), (300, 200, 130)])
def test_products(onednn: Any, shape: tuple[int, int, int], transposed: tuple[int, int]) -> None:
    m, k, n = shape
    a = _matrix(k, m, 1).T if transposed[0] else _matrix(m, k, 1)
    b = _matrix(n, k, 2).T if transposed[1] else _matrix(k, n, 2)
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(onednn.matmul(a, b, None), wanted, rtol=1e-5, atol=1e-5)
    out = np.empty((m, n), np.float32)
    assert onednn.matmul(a, b, out) is out
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-5)


def test_what_it_does_not_take_is_left_to_numpy(onednn: Any) -> None:
    a, b = _matrix(40, 60, 1)[:, ::2], _matrix(60, 50, 2)[::2]
    assert onednn.matmul(a, b, None) is None
    np.testing.assert_allclose(gemm.matmul(a, b), a @ b, rtol=1e-6)


@pytest.mark.parametrize("size", [16 * 1024, 100_003])
def test_adam_is_the_pure_kernel(onednn: Any, size: int) -> None:
    rng = np.random.RandomState(0)
    var, m, v, g = (rng.uniform(0.1, 1, size).astype(np.float32) for _ in range(4))
    numbers = [np.float32(x) for x in (0.81, 0.998, 0.01, 0.9, 0.999, 1e-7)]
    opdef = lookup("ApplyAdam")
    pure = bind_kernel(opdef, KernelNode("a", "ApplyAdam", {"use_nesterov": False}), numpy_xp)
    wanted = pure(var, m, v, *numbers, g)
    assert opdef.inplace is not None
    opdef.inplace(var, m, v, *numbers, g, use_nesterov=False)
    for new, old in zip(wanted, (var, m, v)):
        np.testing.assert_allclose(old, new, rtol=1e-5, atol=1e-6)


def test_adam_leaves_small_and_strided_arrays_alone(onednn: Any) -> None:
    x = np.ones(100, np.float32)
    assert not onednn.adam(x, x, x, 0.1, 0.9, 0.999, 1e-8, x)
    y = np.ones(200_000, np.float32)[::2]
    assert not onednn.adam(y, y, y, 0.1, 0.9, 0.999, 1e-8, y)
    assert y.max() == 1


@pytest.mark.once
def test_it_can_be_switched_off() -> None:
    code = (
        "import headrace.executors; from headrace.kernels import accel; "
        "print(accel.library(), accel.status())"
    )
    env = {**os.environ, "HEADRACE_ONEDNN": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "None switched off by HEADRACE_ONEDNN"


@pytest.mark.parametrize("shape", [(128, 512), (4, 100, 200)])
def test_gradient_of_relu(onednn: Any, shape: tuple[int, ...]) -> None:
    rng = np.random.RandomState(0)
    g = rng.randn(*shape).astype(np.float32)
    f = np.maximum(rng.randn(*shape), 0).astype(np.float32)
    np.testing.assert_array_equal(onednn.relu_grad(g, f), g * (f > 0))
    assert onednn.relu_grad(g[:1, :1], f[:1, :1]) is None
    assert onednn.relu_grad(g.astype(np.float64), f.astype(np.float64)) is None
