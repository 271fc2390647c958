"""``tf.autodiff``: automatic differentiation."""

import typing as _typing

from headrace.api.v2.name_lookup import module_getattr
from headrace.eager.forward_accumulator import ForwardAccumulator
from headrace.eager.tape import GradientTape

__all__ = ["ForwardAccumulator", "GradientTape"]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("autodiff", __name__)
