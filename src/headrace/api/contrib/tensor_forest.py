"""``tf.contrib.tensor_forest``: random forests in a graph, without their estimators."""

from headrace.api.missing import module_getattr

__all__: list[str] = []

__getattr__ = module_getattr(
    "contrib.tensor_forest",
    __name__,
    modules={"python": "headrace.api.contrib.tensor_forest_python"},
)
