"""NumPy as an array namespace: everything of ``numpy`` plus the functions that kernels need and
NumPy lacks.

Kernels are written against such a namespace (``xp``), so that jax.numpy can stand in its place.
Special functions come from SciPy, which is loaded when the first of them is used.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as _np

from headrace.kernels.numpy.gemm import matmul as matmul

if TYPE_CHECKING:
    from headrace.core.annotations import Array

name = "numpy"
#: Found by ``__getattr__``.
fft: Any
linalg: Any
pooling: Any
resample: Any
windows: Any

_SPECIAL = {
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "gammaln": "gammaln",
    "digamma": "digamma",
    "ndtri": "ndtri",
    "gammainc": "gammainc",
    "gammaincc": "gammaincc",
    "betainc": "betainc",
    "zeta": "zeta",
    "polygamma": "polygamma",
    "i0e": "i0e",
    "i1e": "i1e",
    "expit": "expit",
    "xlogy": "xlogy",
    "log_ndtr": "log_ndtr",
    "ndtr": "ndtr",
}


def index_add(array: Array, index: Array | Sequence[Any], values: Array) -> Array:
    """A copy of ``array`` with ``values`` added at ``index``; repeated indices accumulate."""
    out = _np.array(array)
    _np.add.at(out, index, values)
    return out


def index_set(array: Array, index: Sequence[Any], values: object) -> Array:
    """A copy of ``array`` with ``values`` put at ``index``."""
    out = _np.array(array)
    out[index] = values
    return out


def __getattr__(attr: str) -> Any:
    if attr in _SPECIAL:
        value = getattr(importlib.import_module("scipy.special"), _SPECIAL[attr])
    else:
        value = getattr(_np, attr)
    globals()[attr] = value
    return value
