"""``tf.keras``: of Keras, Headrace's v2 API has the optimizers and initializers."""

from headrace.api.v2 import initializers, optimizers
from headrace.api.v2.name_lookup import module_getattr

__all__ = ["initializers", "optimizers"]

__getattr__ = module_getattr("keras", __name__)
