"""``tf.contrib.tensor_forest.python``."""

from headrace.api.missing import module_getattr

__all__: list[str] = []

__getattr__ = module_getattr(
    "contrib.tensor_forest.python",
    __name__,
    modules={"tensor_forest": "headrace.api.contrib.random_forest"},
)
