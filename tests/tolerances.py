"""How far a result may be from TensorFlow's, per dtype: (relative, absolute).

One table for every test. A sample that needs more says why (``Sample(tol=..., why=...)``).
Integers, bools and strings must be equal.
"""

from typing import Any

import numpy as np

TOLERANCES: dict[str, tuple[float, float]] = {
    "float16": (2e-3, 2e-3),
    "bfloat16": (1.6e-2, 1.6e-2),
    "float32": (2e-6, 1e-6),
    "float64": (1e-12, 1e-12),
    "complex64": (2e-6, 1e-6),
    "complex128": (1e-12, 1e-12),
}

#: Gradients against central differences: (step, relative, absolute). In float64 truncation and
#: rounding are about 1e-9 each; in float32, for ops that have no float64, the step must be coarse.
FINITE_DIFFERENCES: dict[str, tuple[float, float, float]] = {
    "float64": (1e-6, 1e-5, 1e-6),
    "float32": (1e-2, 2e-2, 2e-3),
}


def assert_close(actual: Any, wanted: Any, rtol: float | None = None, what: str = "value") -> None:
    """Same dtype, same shape, equal within the table (or the given relative tolerance)."""
    actual, wanted = np.asarray(actual), np.asarray(wanted)
    assert _kind(actual) == _kind(wanted), f"{what}: dtype {actual.dtype} instead of {wanted.dtype}"
    assert actual.shape == wanted.shape, f"{what}: shape {actual.shape} instead of {wanted.shape}"
    if wanted.dtype.name not in TOLERANCES:
        np.testing.assert_array_equal(actual, wanted, err_msg=what)
        return
    table_rtol, atol = TOLERANCES[wanted.dtype.name]
    if wanted.dtype.name in ("bfloat16", "float16"):
        actual, wanted = actual.astype(np.float32), wanted.astype(np.float32)
    np.testing.assert_allclose(
        actual, wanted, max(rtol or 0, table_rtol), max(atol, rtol or 0), err_msg=what
    )


def _kind(array: Any) -> str:
    return "string" if array.dtype.kind in "OSU" else array.dtype.name
