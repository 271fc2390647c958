"""``tf.contrib.tensor_forest.python.tensor_forest``."""

from headrace.api.missing import module_getattr
from headrace.train.forest.forest_graphs import RandomForestGraphs, RandomTreeGraphs
from headrace.train.forest.forest_params import ForestHParams, build_params_proto
from headrace.train.forest.forest_variables import ForestVariables, TreeVariables

__all__ = [
    "ForestHParams", "ForestVariables", "RandomForestGraphs", "RandomTreeGraphs", "TreeVariables",
    "build_params_proto",
]  # fmt: skip

__getattr__ = module_getattr("contrib.tensor_forest.python.tensor_forest", __name__)
