"""``out[rows[i]] op= updates[i]`` in the order of i, for arrays whose places are within bounds.

    >>> join_rows("add", out, rows, updates)

NumPy's ``ufunc.at`` has a fast loop for one dimension only, so wider rows go through the numbers of
their elements. Once many elements were written this way, compiled code does it (the same bits).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.hot_work import HotWork

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["join_rows", "join_rows_natively"]

NATIVE = HotWork("scattered rows", 1 << 21, "headrace.kernels.native.scatter_kernels")

_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "min": np.minimum,
    "max": np.maximum,
}


def join_rows_natively(how: str, out: Array, rows: Array, updates: Array) -> bool:
    """Whether compiled code has done it."""
    kernels = NATIVE.kernels(updates.size)
    if kernels is None or not kernels.takes(how, out, rows, updates):
        return False
    kernels.scatter(how, out, rows, updates)
    return True


def join_rows(how: str, out: Array, rows: Array, updates: Array) -> None:
    """On a C-contiguous ``out`` with 1-D ``rows``; ``updates`` may be a number."""
    if updates.ndim and join_rows_natively(how, out, rows, updates):
        return
    if how == "update":
        out[rows] = updates
        return
    width = out[:1].size
    if width > 1 and rows.size:
        start = rows.astype(np.int64) * width
        flat = (start[:, None] + np.arange(width)).reshape(-1)
        values = updates.reshape(-1) if updates.ndim else updates
        _UFUNCS[how].at(out.reshape(-1), flat, values)
    else:
        _UFUNCS[how].at(
            out.reshape(out.shape[0]) if width == 1 else out, rows, _column(updates, rows, width)
        )


def _column(updates: Array, rows: Array, width: int) -> Any:
    return updates.reshape(rows.shape) if updates.ndim and width == 1 else updates
