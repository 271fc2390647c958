"""A decision tree that grows from a stream of samples, as arrays.

Nodes are rows: an inner one has a feature, a threshold and two children, a leaf has values. A leaf
that may still split ("fertile") has a row of statistics: candidate splits, each of the feature of
one sample that came by with that sample's value as threshold, and for every candidate the sums of
what would go to the left. All samples of a batch are counted in one pass: the candidates of each
sample's leaf are gathered to a matrix [samples, candidates] and summed by one ``bincount``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

__all__ = ["ForestTree", "GrowingLeaves"]

Array = np.ndarray[Any, Any]


def _grown(array: Array, rows: int) -> Array:
    """``array`` with room for ``rows`` rows."""
    if rows <= len(array):
        return array
    more = np.zeros((max(rows, 2 * len(array)) - len(array), *array.shape[1:]), array.dtype)
    return np.concatenate([array, more])


class ForestTree:
    """The nodes of one tree; ``outputs`` values a leaf."""

    def __init__(self, outputs: int, strict: bool) -> None:
        self.strict = strict  # the left child's test is <, not <=
        self.size = 1
        self.feature = np.full(1, -1, np.int32)  # -1: a leaf
        self.threshold = np.zeros(1, np.float32)
        self.children = np.zeros((1, 2), np.int32)
        self.values = np.zeros((1, outputs), np.float32)
        self.depth = np.zeros(1, np.int32)

    def goes_left(self, value: Array, threshold: Array) -> Array:
        return value < threshold if self.strict else value <= threshold

    def leaves_of(self, data: Array) -> Array:
        """The leaf of every row of ``data``."""
        at = np.zeros(len(data), np.int32)
        moving = np.arange(len(data))
        while True:
            feature = self.feature[at[moving]]
            moving = moving[feature >= 0]
            if not moving.size:
                return at
            nodes = at[moving]
            left = self.goes_left(data[moving, self.feature[nodes]], self.threshold[nodes])
            at[moving] = np.where(left, self.children[nodes, 0], self.children[nodes, 1])

    def path_to(self, row: Array) -> list[int]:
        """The nodes from the root to the leaf of one row."""
        path = [0]
        while self.feature[path[-1]] >= 0:
            node = path[-1]
            left = self.goes_left(row[self.feature[node]], self.threshold[node])
            path.append(int(self.children[node, 0 if left else 1]))
        return path

    def add_to_leaves(self, leaves: Array, labels: Array, weights: Array) -> None:
        """Count labels: the model of classification."""
        np.add.at(self.values, (leaves, labels), weights)

    def split(self, node: int, feature: int, threshold: float, left: Array, right: Array) -> int:
        """Make two leaves of one, with these values; the number of the left one."""
        child = self.size
        self.size += 2
        names = ("feature", "threshold", "children", "values", "depth")
        for name in names:
            setattr(self, name, _grown(getattr(self, name), self.size))
        self.feature[[child, child + 1]] = -1
        self.values[child], self.values[child + 1] = left, right
        self.depth[[child, child + 1]] = self.depth[node] + 1
        self.feature[node], self.threshold[node] = feature, threshold
        self.children[node] = child, child + 1
        return child


class GrowingLeaves:
    """Statistics of the fertile leaves of a tree.

    ``targets`` numbers are summed for each sample: a one for its class, or its outputs and their
    squares. ``splits_at`` and ``samples_at`` give, for a depth, how many candidates a leaf has and
    how many samples it waits for.
    """

    def __init__(
        self,
        tree: ForestTree,
        targets: int,
        regression: bool,
        splits_at: Callable[[int], float],
        samples_at: Callable[[int], float],
    ) -> None:
        self.tree, self.regression = tree, regression
        self._splits_at, self._samples_at = splits_at, samples_at
        self.row_of: dict[int, int] = {}
        self._free: list[int] = []
        width = max(1, int(splits_at(0)))
        self.node = np.zeros(1, np.int32)
        self.made = np.zeros(1, np.int32)
        self.feature = np.zeros((1, width), np.int32)
        self.threshold = np.zeros((1, width), np.float32)
        self.left = np.zeros((1, width, targets), np.float64)
        self.left_weight = np.zeros((1, width), np.float64)
        self.total = np.zeros((1, targets), np.float64)
        self.weight = np.zeros(1, np.float64)
        self._rows = 0
        self.add([0])

    # slots --------------------------------------------------------------------------------------

    def add(self, nodes: Iterable[int]) -> None:
        """Let leaves be fertile, with nothing counted yet."""
        for node in nodes:
            row = self._free.pop() if self._free else self._new_row()
            self.row_of[node] = row
            self.node[row] = node
            self._widen(int(self._splits_at(int(self.tree.depth[node]))))
            self.reset(node)

    def _new_row(self) -> int:
        self._rows += 1
        names = ("node", "made", "feature", "threshold", "left", "left_weight", "total", "weight")
        for name in names:
            setattr(self, name, _grown(getattr(self, name), self._rows))
        return self._rows - 1

    def _widen(self, width: int) -> None:
        more = width - self.feature.shape[1]
        if more <= 0:
            return
        for name in ("feature", "threshold", "left", "left_weight"):
            array = getattr(self, name)
            pad = [(0, 0), (0, more)] + [(0, 0)] * (array.ndim - 2)
            setattr(self, name, np.pad(array, pad))

    def reset(self, node: int) -> None:
        row = self.row_of[node]
        for array in (self.made, self.left, self.left_weight, self.total, self.weight):
            array[row] = 0

    def drop(self, node: int) -> None:
        self._free.append(self.row_of.pop(node))

    # samples ------------------------------------------------------------------------------------

    def add_samples(
        self,
        data: Array,
        leaves: Array,
        targets: Array,
        weights: Array,
        random_feature: Callable[[], int],
    ) -> Array:
        """Count samples; the nodes that are finished.

        ``targets`` is [samples, targets]. The first samples of a leaf give it its candidates and
        are not counted.
        """
        row_at = np.full(self.tree.size, -1, np.int64)
        row_at[list(self.row_of)] = list(self.row_of.values())
        rows = row_at[leaves]
        wanted = self._by_depth(self._splits_at, self.node).astype(np.int64)
        first = np.zeros(len(rows), bool)
        short = np.flatnonzero((rows >= 0) & (self.made < wanted)[rows])
        for i in short.tolist():
            row = rows[i]
            at = self.made[row]
            if at < wanted[row]:
                feature = random_feature()
                self.feature[row, at], self.threshold[row, at] = feature, data[i, feature]
                self.made[row] += 1
                first[i] = True
        counted = np.flatnonzero((rows >= 0) & ~first)
        if counted.size:
            self._count(data[counted], rows[counted], targets[counted], weights[counted])
        return self._finished(np.unique(rows[rows >= 0]))

    def _count(self, data: Array, rows: Array, targets: Array, weights: Array) -> None:
        values = np.take_along_axis(data, self.feature[rows], 1)
        left = self.tree.goes_left(values, self.threshold[rows])
        width = left.shape[1]
        weighted = targets * weights[:, None]
        self.weight += np.bincount(rows, weights, len(self.weight))
        slots = (rows[:, None] * width + np.arange(width))[left]
        sample = np.nonzero(left)[0]
        sums = np.bincount(slots, weights[sample], self.left_weight.size)
        self.left_weight += sums.reshape(self.left_weight.shape)
        if self.regression:
            for k in range(targets.shape[1]):
                sums = np.bincount(slots, weighted[sample, k], self.left_weight.size)
                self.left[:, :, k] += sums.reshape(self.left_weight.shape)
                self.total[:, k] += np.bincount(rows, weighted[:, k], len(self.total))
            return
        label, classes = targets.argmax(1), targets.shape[1]  # a sample is of one class
        sums = np.bincount(slots * classes + label[sample], weights[sample], self.left.size)
        self.left += sums.reshape(self.left.shape)
        sums = np.bincount(rows * classes + label, weights, self.total.size)
        self.total += sums.reshape(self.total.shape)

    def _finished(self, rows: Array) -> Array:
        """Enough samples were seen, and of more than one class."""
        needed = self._by_depth(self._samples_at, self.node[rows])
        done = self.weight[rows] >= needed
        if not self.regression:
            done &= (self.total[rows] > 0).sum(1) > 1
        return np.sort(self.node[rows[done]]).astype(np.int32)

    def _by_depth(self, function: Callable[[int], float], nodes: Array) -> Array:
        """``function`` of the depth of each node."""
        depths = self.tree.depth[nodes]
        table = np.array([function(d) for d in range(int(depths.max(initial=0)) + 1)])
        values: Array = table[depths]
        return values

    # splits -------------------------------------------------------------------------------------

    def best_split(self, node: int) -> int:
        """The candidate that leaves the least impurity, or -1 if none divides the samples."""
        row = self.row_of[node]
        made = int(self.made[row])
        left_weight = self.left_weight[row, :made]
        right_weight = self.weight[row] - left_weight
        left = self.left[row, :made]
        right = self.total[row] - left
        score = _variance if self.regression else _smoothed_gini
        useful = (left_weight > 0) & (right_weight > 0)
        if not useful.any():
            return -1
        scores = score(left, np.where(useful, left_weight, 1))
        scores = scores + score(right, np.where(useful, right_weight, 1))
        return int(np.argmin(np.where(useful, scores, np.inf)))

    def grow(self, node: int) -> bool:
        """Split a finished node by its best candidate; False if there is none."""
        best = self.best_split(node)
        if best < 0:
            self.reset(node)
            return False
        row = self.row_of[node]
        left = self.left[row, best].copy()
        right = self.total[row] - left
        left_weight = self.left_weight[row, best]
        right_weight = self.weight[row] - left_weight
        if self.regression:
            outputs = left.size // 2
            left, right = left[:outputs] / left_weight, right[:outputs] / right_weight
        feature, threshold = int(self.feature[row, best]), float(self.threshold[row, best])
        child = self.tree.split(node, feature, threshold, left, right)
        self.drop(node)
        self.add([child, child + 1])
        return True


def _smoothed_gini(counts: Array, weight: Array) -> Array:
    """Gini impurity with one more sample of each class, times the samples' weight."""
    classes = counts.shape[1]
    total = counts.sum(1)
    squares = (counts * counts).sum(1) + 2 * total + classes
    impurity: Array = weight * (1 - squares / (total + classes) ** 2)
    return impurity


def _variance(sums: Array, weight: Array) -> Array:
    """The sum of the outputs' variances."""
    outputs = sums.shape[1] // 2
    means = sums[:, :outputs] / weight[:, None]
    variance: Array = (sums[:, outputs:] / weight[:, None] - means * means).sum(1)
    return variance
