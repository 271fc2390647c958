"""``tf.test`` of TF 2: the test case, what the build has, and a gradient checker of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.api.platform.test import (
    Benchmark,
    TestCase,
    benchmark_config,
    gpu_device_name,
    is_built_with_cuda,
    is_built_with_gpu_support,
    is_built_with_rocm,
    is_gpu_available,
    main,
)
from headrace.api.platform.test import assert_equal_graph_def as _assert_equal_graph_def
from headrace.api.v2.name_lookup import module_getattr as _module_getattr

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = [
    "Benchmark",
    "TestCase",
    "assert_equal_graph_def",
    "benchmark_config",
    "compute_gradient",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_gpu_available",
    "main",
]


def assert_equal_graph_def(expected: object, actual: object) -> None:
    """Raise an AssertionError unless two GraphDefs have the same nodes, in any order."""
    _assert_equal_graph_def(actual, expected)


def compute_gradient(
    f: Callable[..., Any], x: Sequence[Any], delta: float | None = None
) -> tuple[list[Any], list[Any]]:
    """The Jacobians of ``f(*x)``, by its gradient and by differences: two lists, one array [size of
    y, size of x] for each x.

    >>> theoretical, numerical = compute_gradient(lambda a: a * a, [np.float32([1, 2])])
    """
    from headrace.core.convert import convert_to_tensor

    if not isinstance(x, (list, tuple)):
        raise ValueError("`x` must be a list or tuple of values that can be converted to tensors.")
    at = [convert_to_tensor(v) for v in x]
    step = 1.0 / 1024 if delta is None else delta
    pairs = [(_by_gradient(f, at, i), _by_differences(f, at, i, step)) for i in range(len(at))]
    return [t for t, _ in pairs], [n for _, n in pairs]


def _by_gradient(f: Callable[..., Any], at: list[Any], i: int) -> Array:
    from headrace.core.convert import convert_to_tensor
    from headrace.eager.tape import GradientTape

    with GradientTape(persistent=True) as tape:
        tape.watch(at[i])
        y: Any = convert_to_tensor(f(*at))
    value = y.numpy()
    out = np.zeros((value.size, int(np.prod(at[i].shape.as_list()))), at[i].dtype.as_numpy_dtype)
    for row in range(value.size):
        seed = np.zeros(value.size, value.dtype)
        seed[row] = 1
        found = tape.gradient(
            y, at[i], output_gradients=convert_to_tensor(seed.reshape(value.shape))
        )
        if found is not None:
            dense: Any = convert_to_tensor(found)
            out[row] = dense.numpy().reshape(-1)
    return out


def _by_differences(f: Callable[..., Any], at: list[Any], i: int, step: float) -> Array:
    from headrace.core.convert import convert_to_tensor

    def value(moved: Any) -> Any:
        arguments = [*at[:i], convert_to_tensor(moved), *at[i + 1 :]]
        y: Any = convert_to_tensor(f(*arguments))
        return y.numpy()

    start = at[i].numpy()
    columns = []
    for j in range(start.size):
        up, down = start.copy(), start.copy()
        up.reshape(-1)[j] += step
        down.reshape(-1)[j] -= step
        columns.append(((value(up) - value(down)) / (2 * step)).reshape(-1))
    return (
        np.stack(columns, axis=1).astype(start.dtype)
        if columns
        else np.zeros((value(start).size, 0), start.dtype)
    )


__getattr__ = _module_getattr("test", __name__)


def __dir__() -> list[str]:
    return sorted(__all__)
