"""How single ops look in generated NumPy code.

Most steps are a call of the bound kernel. For the ops listed here there is a shorter or an ``out=``
form; each is bound to its kernel by the differential tests (numpy against reference executor).
``{0}``, ``{1}`` are the inputs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from headrace.core.dtypes import DType

__all__ = ["inverse_of", "number_of"]


@functools.cache
def number_of(dtype: DType) -> Callable[[int], Any]:
    """From a size to a NumPy scalar.

    Sizes come again, and to make one takes four times as long as to find it.
    """
    return functools.lru_cache(64)(dtype.np_dtype.type)


@functools.cache
def inverse_of(dtype: DType) -> Callable[[int], Any]:
    """From a size to one over it, of rank 0 since it is there to be multiplied with arrays."""
    make = dtype.np_dtype.type

    @functools.lru_cache(64)
    def inverse(size: int) -> Any:
        made = np.asarray(make(1) / make(size))
        made.flags.writeable = False
        return made

    return inverse
