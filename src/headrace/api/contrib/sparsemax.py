"""``tf.contrib.sparsemax``."""

from headrace.api.missing import module_getattr
from headrace.layers.sparsemax import sparsemax, sparsemax_loss

__all__ = ["sparsemax", "sparsemax_loss"]

__getattr__ = module_getattr("contrib.sparsemax", __name__)
