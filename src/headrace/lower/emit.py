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

__all__ = ["EXPRESSIONS", "INTO", "UPDATES", "inverse_of", "number_of"]

#: Python expressions. Operators serve arrays and NumPy scalars alike, and are ten times faster on
#: scalars.
EXPRESSIONS: dict[str, str] = {
    "Add": "{0} + {1}",
    "AddV2": "{0} + {1}",
    "Sub": "{0} - {1}",
    "Mul": "{0} * {1}",
    "RealDiv": "{0} / {1}",
    "Neg": "-{0}",
    "Less": "{0} < {1}",
    "LessEqual": "{0} <= {1}",
    "Greater": "{0} > {1}",
    "GreaterEqual": "{0} >= {1}",
    "Square": "{0} * {0}",
    "Identity": "{0}",
    "StopGradient": "{0}",
    "ReadVariableOp": "{0}",
}

#: The new value of a small variable, input 0, whose shape is that of what it is updated with.
UPDATES: dict[str, str] = {
    "ApplyGradientDescent": "{0} - {1} * {2}",
    "ResourceApplyGradientDescent": "{0} - {1} * {2}",
    "AssignAdd": "{0} + {1}",
    "AssignAddVariableOp": "{0} + {1}",
    "AssignSub": "{0} - {1}",
    "AssignSubVariableOp": "{0} - {1}",
}

#: Forms that write their result into ``{out}``, for numeric types. The output may be one of the
#: inputs.
INTO: dict[str, str] = {
    "Add": "np.add({0}, {1}, out={out})",
    "AddV2": "np.add({0}, {1}, out={out})",
    "BiasAdd": "np.add({0}, {1}, out={out})",
    "Sub": "np.subtract({0}, {1}, out={out})",
    "Mul": "np.multiply({0}, {1}, out={out})",
    "RealDiv": "np.divide({0}, {1}, out={out})",
    "Neg": "np.negative({0}, out={out})",
    "Square": "np.multiply({0}, {0}, out={out})",
    "Maximum": "np.maximum({0}, {1}, out={out})",
    "Minimum": "np.minimum({0}, {1}, out={out})",
    "Relu": "np.maximum(0, {0}, out={out})",
    "Tanh": "np.tanh({0}, out={out})",
    "Exp": "np.exp({0}, out={out})",
    "Log": "np.log({0}, out={out})",
    "Sqrt": "np.sqrt({0}, out={out})",
    "Sin": "np.sin({0}, out={out})",
    "Cos": "np.cos({0}, out={out})",
    "Abs": "np.absolute({0}, out={out})",
    "Floor": "np.floor({0}, out={out})",
    "Ceil": "np.ceil({0}, out={out})",
    "Log1p": "np.log1p({0}, out={out})",
    "Expm1": "np.expm1({0}, out={out})",
}


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
