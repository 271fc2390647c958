"""The messages of random forests: parameters, trees and the statistics of fertile leaves.

Descriptors are TensorFlow's (same packages, names and numbers), built from the tables below in a
pool of their own when a message is first asked for.

    >>> forest_message("TensorForestParams")(num_trees=3).SerializeToString()
    b'0\\x03'
"""

from __future__ import annotations

import functools
from typing import Any

from headrace.wire.message_tables import message_classes

__all__ = ["forest_message"]

_FOREST, _TREES = "tensorflow.tensorforest", "tensorflow.decision_trees"
#: Message: its fields (wire/message_tables.py says how).
_TREE_MESSAGES = {
    "Int32Value": "1 value int32",
    "StringValue": "1 value string",
    "Value": "1 float_value |float, 2 double_value |float, 3 int32_value |int32, "
    "4 int64_value |int64",
    "Vector": "1 value *Value",
    "SparseValueEntry": "1 key int64, 2 value Value",
    "SparseVector": "1 sparse_value *SparseValueEntry",
    "Leaf": "1 vector |Vector, 2 sparse_vector |SparseVector",
    "FeatureId": "1 id StringValue",
    "InequalityTest": "1 feature_id FeatureId, 2 type int32, 3 threshold Value",
    "BinaryNode": "1 left_child_id Int32Value, 2 right_child_id Int32Value, "
    "3 default_direction int32, 4 inequality_left_child_test InequalityTest",
    "TreeNode": "1 node_id Int32Value, 2 depth Int32Value, 3 subtree_size Int32Value, "
    "4 binary_node |BinaryNode, 5 leaf |Leaf",
    "DecisionTree": "1 nodes *TreeNode",
    "Model": "1 decision_tree DecisionTree",
}
_FOREST_MESSAGES = {
    "LinearParam": "1 slope float, 2 y_intercept float, 3 min_val float, 4 max_val float",
    "ExponentialParam": "1 bias float, 2 base float, 3 multiplier float, 4 depth_multiplier float",
    "ThresholdParam": "1 on_value float, 2 off_value float, 3 threshold float",
    "DepthDependentParam": "1 constant_value |float, 2 linear |LinearParam, "
    "3 exponential |ExponentialParam, 4 threshold |ThresholdParam",
    "SplitPruningConfig": "1 prune_every_samples DepthDependentParam, 2 type int32",
    "SplitFinishConfig": "1 check_every_steps DepthDependentParam, 2 type int32",
    "TensorForestParams": "1 leaf_type int32, 2 stats_type int32, 3 collection_type int32, "
    "4 pruning_type SplitPruningConfig, 5 finish_type SplitFinishConfig, 6 num_trees int32, "
    "7 max_nodes int32, 8 is_regression bool, 9 drop_final_class bool, 10 collate_examples bool, "
    "11 checkpoint_stats bool, 12 num_outputs int32, "
    "13 num_splits_to_consider DepthDependentParam, 14 split_after_samples DepthDependentParam, "
    "15 dominate_fraction DepthDependentParam, 16 graph_dir string, 17 num_select_features int32, "
    "18 min_split_samples DepthDependentParam, 19 inequality_test_type int32, "
    "20 use_running_stats_method bool, 21 num_features int32, "
    "22 initialize_average_splits bool, 23 inference_tree_paths bool, "
    "24 num_classes_to_track int32",
    "GiniStats": "2 square float",
    "GiniImpurityClassificationStats": "1 dense_counts |Vector, 2 sparse_counts |SparseVector, "
    "3 gini GiniStats",
    "LeastSquaresRegressionStats": "1 mean_output Vector, 2 mean_output_squares Vector",
    "LeafStat": "3 weight_sum float, 1 classification |GiniImpurityClassificationStats, "
    "2 regression |LeastSquaresRegressionStats",
    "SplitCandidate": "1 split BinaryNode, 4 left_stats LeafStat, 5 right_stats LeafStat, "
    "6 unique_id string",
    "FertileSlot": "4 leaf_stats LeafStat, 1 candidates *SplitCandidate, "
    "6 post_init_leaf_stats LeafStat, 5 node_id int32, 7 depth int32",
    "FertileStats": "1 node_to_slot *FertileSlot",
    "TreePath": "1 nodes_visited *TreeNode",
}


def forest_message(name: str) -> Any:
    """A message class by its name; KeyError if there is none."""
    return _classes()[name]


@functools.cache
def _classes() -> dict[str, Any]:
    return message_classes({_TREES: _TREE_MESSAGES, _FOREST: _FOREST_MESSAGES})
