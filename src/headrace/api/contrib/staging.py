"""``tf.contrib.staging``."""

from headrace.api.missing import module_getattr
from headrace.ops.queues.staging_area import StagingArea

__all__ = ["StagingArea"]

__getattr__ = module_getattr("contrib.staging", __name__)
