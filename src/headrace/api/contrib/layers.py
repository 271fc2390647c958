"""``tf.contrib.layers``: so far its initializers."""

from headrace.api.missing import module_getattr
from headrace.variables.initializers import (
    contrib_variance_scaling_initializer as variance_scaling_initializer,
)
from headrace.variables.initializers import xavier_initializer, xavier_initializer_conv2d

__all__ = ["variance_scaling_initializer", "xavier_initializer", "xavier_initializer_conv2d"]

__getattr__ = module_getattr("contrib.layers", __name__)
