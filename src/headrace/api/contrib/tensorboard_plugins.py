"""``tf.contrib.tensorboard.plugins``: the projector."""

from headrace.api.missing import module_getattr

__all__: list[str] = []

__getattr__ = module_getattr(
    "contrib.tensorboard.plugins",
    __name__,
    modules={"projector": "headrace.api.contrib.projector"},
)
