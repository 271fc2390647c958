"""``tf.contrib.tfprof``: the older names of ``tf.profiler``."""

from headrace.api.missing import module_getattr

__all__: list[str] = []

__getattr__ = module_getattr(
    "contrib.tfprof",
    __name__,
    modules={"model_analyzer": "headrace.api.contrib.tfprof_analyzer"},
)
