"""``tf.contrib.tensorboard``: its plugins."""

from headrace.api.missing import module_getattr

__all__: list[str] = []

__getattr__ = module_getattr(
    "contrib.tensorboard",
    __name__,
    modules={"plugins": "headrace.api.contrib.tensorboard_plugins"},
)
