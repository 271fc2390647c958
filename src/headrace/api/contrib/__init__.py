"""``tf.contrib``: what there is of it; any other name says clearly that it is missing."""

from headrace.api.contrib import layers
from headrace.api.missing import module_getattr

__all__ = ["layers"]

__getattr__ = module_getattr(
    "contrib",
    __name__,
    modules={"data": "headrace.api.contrib.data", "eager": "headrace.api.contrib.eager"},
)
