"""Whether sums of products are certainly finite, told from the norms of what is multiplied.

No sum of products is larger than the product of the norms (Cauchy-Schwarz), and neither is a part
of one. The kernel library's relu turns NaN into 0: a convolution that may give NaN is computed
without, and relu afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["LARGEST_SQUARE", "is_bounded", "squared_norm"]

#: Squares of norms up to which a float32 result is certainly finite.
LARGEST_SQUARE = 1e76


def squared_norm(array: Array) -> float:
    """Infinite or NaN where an element is, or is very large."""
    return float(np.vdot(array, array))


def is_bounded(x: Array, w: Array, added: Sequence[Any]) -> bool:
    """Whether sums of products of elements of ``x`` and ``w``, plus elements of ``added``, are
    certainly finite.
    """
    if not squared_norm(x) * squared_norm(w) < LARGEST_SQUARE:
        return False
    return all(squared_norm(a) < LARGEST_SQUARE for a in added)
