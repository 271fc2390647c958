"""``tf.experimental``."""

from headrace.api.v2.experimental import dlpack
from headrace.api.v2.name_lookup import module_getattr

__all__ = ["dlpack"]

__getattr__ = module_getattr("experimental", __name__)
