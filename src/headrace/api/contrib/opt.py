"""``tf.contrib.opt``."""

from headrace.api.missing import module_getattr
from headrace.train.optimizers.external_optimizer import (
    ExternalOptimizerInterface,
    ScipyOptimizerInterface,
)

__all__ = ["ExternalOptimizerInterface", "ScipyOptimizerInterface"]

__getattr__ = module_getattr("contrib.opt", __name__)
