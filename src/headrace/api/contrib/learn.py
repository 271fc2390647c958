"""``tf.contrib.learn``: its data sets."""

from headrace.api.missing import module_getattr

__all__: list[str] = []

__getattr__ = module_getattr(
    "contrib.learn", __name__, modules={"datasets": "headrace.api.contrib.learn_datasets"}
)
