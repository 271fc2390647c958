"""Trees and statistics as TensorFlow's messages, to be saved and restored."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.kernels.numpy.forest_trees import ForestTree, GrowingLeaves
from headrace.wire.forest_messages import forest_message

__all__ = ["path_text", "read_stats", "read_tree", "stats_text", "tree_text"]

Array = np.ndarray[Any, Any]


# trees ------------------------------------------------------------------------------------------


def _fill_split(split: Any, feature: int, threshold: float, strict: bool) -> None:
    test = split.inequality_left_child_test
    test.feature_id.id.value = str(feature)
    test.type = int(strict)
    test.threshold.float_value = threshold


def _fill_node(message: Any, tree: ForestTree, node: int) -> None:
    if node:
        message.node_id.value = node
    if tree.feature[node] < 0:
        _fill_vector(message.leaf.vector, tree.values[node], zeros=node > 0)
        return
    split = message.binary_node
    split.left_child_id.value, split.right_child_id.value = map(int, tree.children[node])
    _fill_split(split, int(tree.feature[node]), float(tree.threshold[node]), tree.strict)


def _fill_vector(vector: Any, values: Array, zeros: bool = True) -> None:
    """The root's values are not set before they are counted, as in TensorFlow."""
    for value in values.tolist():
        entry = vector.value.add()
        if value or zeros:
            entry.float_value = value


def tree_text(tree: ForestTree) -> bytes:
    """A ``decision_trees.Model``."""
    model = forest_message("Model")()
    model.decision_tree.SetInParent()
    for node in range(tree.size):
        _fill_node(model.decision_tree.nodes.add(), tree, node)
    text: bytes = model.SerializeToString()
    return text


def path_text(tree: ForestTree, nodes: list[int]) -> bytes:
    """A ``TreePath`` of these nodes."""
    path = forest_message("TreePath")()
    for node in nodes:
        _fill_node(path.nodes_visited.add(), tree, node)
    text: bytes = path.SerializeToString()
    return text


def _leaf_values(leaf: Any, outputs: int) -> Array:
    values = np.zeros(outputs, np.float32)
    if leaf.WhichOneof("kind") == "sparse_vector":
        for entry in leaf.sparse_vector.sparse_value:
            values[entry.key] = entry.value.float_value
    else:
        given = [v.float_value for v in leaf.vector.value]
        values[: len(given)] = given
    return values


def read_tree(tree: ForestTree, text: bytes) -> None:
    """Give ``tree`` the nodes of a message."""
    nodes = forest_message("Model").FromString(text).decision_tree.nodes
    count = len(nodes)
    tree.size = count
    tree.feature = np.full(count, -1, np.int32)
    tree.threshold = np.zeros(count, np.float32)
    tree.children = np.zeros((count, 2), np.int32)
    tree.values = np.zeros((count, tree.values.shape[1]), np.float32)
    tree.depth = np.zeros(count, np.int32)
    for i, node in enumerate(nodes):
        if node.WhichOneof("kind") == "binary_node":
            split = node.binary_node
            children = (split.left_child_id.value, split.right_child_id.value)
            tree.children[i] = children
            tree.depth[list(children)] = tree.depth[i] + 1  # children come after their parent
            test = split.inequality_left_child_test
            tree.feature[i] = int(test.feature_id.id.value)
            tree.threshold[i] = test.threshold.float_value
        else:
            tree.values[i] = _leaf_values(node.leaf, tree.values.shape[1])


# statistics -------------------------------------------------------------------------------------


def _fill_stats(stats: Any, leaves: GrowingLeaves, sums: Array, weight: float) -> None:
    """Classes are counted without their weight beside them where TensorFlow does."""
    if leaves.regression:
        outputs = sums.size // 2
        _fill_vector(stats.regression.mean_output, sums[:outputs])
        _fill_vector(stats.regression.mean_output_squares, sums[outputs:])
        stats.weight_sum = weight
    else:
        _fill_vector(stats.classification.dense_counts, sums)


def stats_text(leaves: GrowingLeaves) -> bytes:
    """A ``FertileStats``."""
    message = forest_message("FertileStats")()
    for node, row in leaves.row_of.items():
        slot = message.node_to_slot.add(node_id=node, depth=int(leaves.tree.depth[node]))
        _fill_stats(slot.post_init_leaf_stats, leaves, leaves.total[row], leaves.weight[row])
        slot.post_init_leaf_stats.weight_sum = leaves.weight[row]
        for k in range(int(leaves.made[row])):
            candidate = slot.candidates.add()
            feature, threshold = int(leaves.feature[row, k]), float(leaves.threshold[row, k])
            _fill_split(candidate.split, feature, threshold, leaves.tree.strict)
            weight = float(leaves.left_weight[row, k])
            _fill_stats(candidate.left_stats, leaves, leaves.left[row, k], weight)
    text: bytes = message.SerializeToString()
    return text


def _read_sums(stats: Any, regression: bool) -> tuple[list[float], float]:
    if regression:
        parts = (stats.regression.mean_output, stats.regression.mean_output_squares)
        return [v.float_value for part in parts for v in part.value], stats.weight_sum
    counts = [v.float_value for v in stats.classification.dense_counts.value]
    return counts, sum(counts)


def read_stats(leaves: GrowingLeaves, text: bytes) -> None:
    """Give fresh statistics the slots of a message; without one every leaf becomes fertile."""
    slots = forest_message("FertileStats").FromString(text).node_to_slot
    if not text:
        tree = leaves.tree
        leaves.add(n for n in range(1, tree.size) if tree.feature[n] < 0)
        if tree.feature[0] >= 0:
            leaves.drop(0)
        return
    leaves.drop(0)
    for slot in slots:
        leaves.add([slot.node_id])
        row = leaves.row_of[slot.node_id]
        sums, weight = _read_sums(slot.post_init_leaf_stats, leaves.regression)
        leaves.total[row, : len(sums)], leaves.weight[row] = sums, weight
        leaves.made[row] = len(slot.candidates)
        for k, candidate in enumerate(slot.candidates):
            test = candidate.split.inequality_left_child_test
            leaves.feature[row, k] = int(test.feature_id.id.value)
            leaves.threshold[row, k] = test.threshold.float_value
            sums, weight = _read_sums(candidate.left_stats, leaves.regression)
            leaves.left[row, k, : len(sums)], leaves.left_weight[row, k] = sums, weight
