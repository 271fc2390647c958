"""``tf.autodiff``: automatic differentiation."""

from headrace.api.v2.name_lookup import module_getattr
from headrace.eager.forward_accumulator import ForwardAccumulator
from headrace.eager.tape import GradientTape

__all__ = ["ForwardAccumulator", "GradientTape"]

__getattr__ = module_getattr("autodiff", __name__)
