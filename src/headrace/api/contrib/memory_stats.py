"""``tf.contrib.memory_stats``: memory of the process, as operations."""

from headrace.api.missing import module_getattr
from headrace.ops.io.memory_stat_ops import BytesInUse, BytesLimit, MaxBytesInUse

__all__ = ["BytesInUse", "BytesLimit", "MaxBytesInUse"]

__getattr__ = module_getattr("contrib.memory_stats", __name__)
