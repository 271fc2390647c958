"""``tf.contrib.factorization.KMeans``: the graph of one iteration of k-means.

>>> model = KMeans(inputs=x, num_clusters=25, distance_metric="cosine", use_mini_batch=True)
>>> all_scores, cluster_idx, scores, initialized, init_op, train_op = model.training_graph()

Centres are a variable of the model that starts empty; ``init_op`` fills it from the inputs. With
mini-batches over several steps there are two copies: assignments use the one of the last iteration,
updates go into the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core import dtypes
from headrace.core.build import apply_many
from headrace.core.scopes import colocate_with, control_dependencies
from headrace.core.tensor import Operation
from headrace.layers import layer_ops as ops
from headrace.layers.factorization.first_centers import (
    CENTERS_OF_NAME,
    RANDOM_INIT,
    FirstCenters,
)
from headrace.ops.math import segments
from headrace.ops.math.clustering_ops import NEAREST_NEIGHBORS
from headrace.ops.state import ref_scatter, ref_state
from headrace.variables.variable import Variable

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike


__all__ = ["COSINE_DISTANCE", "SQUARED_EUCLIDEAN_DISTANCE", "KMeans"]

SQUARED_EUCLIDEAN_DISTANCE = "squared_euclidean"
COSINE_DISTANCE = "cosine"


class _State(NamedTuple):
    """The model's variables. ``updated`` is ``centers`` itself unless there are two copies."""

    centers: Any
    initialized: Any
    counts: Any
    updated: Any
    steps_left: Any


class KMeans:
    """k-means over ``inputs`` (a matrix, or a list of shards of one).

    ``initial_clusters`` is a matrix of centres, a function (inputs, k) that chooses up to k of
    them, or "random", "kmeans_plus_plus", "kmc2". Full batches replace the centres by the means of
    their points; mini-batches (``use_mini_batch``) move them by the mean of all points seen in an
    iteration of ``mini_batch_steps_per_iteration`` steps.
    """

    def __init__(
        self,
        inputs: object,
        num_clusters: object,
        initial_clusters: object = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        use_mini_batch: bool = False,
        mini_batch_steps_per_iteration: int = 1,
        random_seed: int = 0,
        kmeans_plus_plus_num_retries: int = 2,
        kmc2_chain_length: int = 200,
    ) -> None:
        if isinstance(initial_clusters, str) and initial_clusters not in CENTERS_OF_NAME:
            raise ValueError(f"Unsupported initialization algorithm '{initial_clusters}'")
        if distance_metric not in (SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE):
            raise ValueError(f"Unsupported distance metric '{distance_metric}'")
        self._inputs = inputs if isinstance(inputs, list) else [inputs]
        self._num_clusters = num_clusters
        self._initial_clusters = initial_clusters
        self._cosine = distance_metric == COSINE_DISTANCE
        self._use_mini_batch = use_mini_batch
        self._steps = int(mini_batch_steps_per_iteration)
        self._two_copies = use_mini_batch and self._steps > 1
        self._random_seed = random_seed
        self._retries = kmeans_plus_plus_num_retries
        self._chain_length = kmc2_chain_length

    @property
    def _keeps_unit_centers(self) -> bool:
        return self._cosine and (not self._use_mini_batch or self._steps > 1)

    def training_graph(self) -> tuple[Any, Any, Any, Any, Any, Any]:
        """(distances to all centres, nearest centre, its distance, whether there are centres, the
        op that chooses them, the op of one step); the first three have an entry per input.
        """
        first, number = self._first_clusters()
        state = self._variables(number)
        init_op = FirstCenters(
            self._inputs,
            number,
            first,
            self._cosine,
            self._random_seed,
            self._retries,
            self._chain_length,
            state.centers,
            state.updated,
            state.initialized,
        ).op()
        inputs, centers = self._inputs, state.centers
        if self._cosine:
            inputs = [self._call_beside(t, _unit_rows, t) for t in inputs]
            if not self._keeps_unit_centers:
                centers = _unit_rows(centers)
        all_scores, scores, cluster_idx = self._assignments(inputs, centers)
        train_op: Any
        if self._use_mini_batch:
            with control_dependencies([self._start_iteration(state)]):
                train_op = _mini_batch_step(inputs, cluster_idx, state.updated, state.counts)
        else:
            train_op = self._full_batch_step(inputs, number, cluster_idx, state.centers)
        return all_scores, cluster_idx, scores, state.initialized, init_op, train_op

    def _first_clusters(self) -> tuple[Any, Any]:
        if isinstance(self._initial_clusters, str) or callable(self._initial_clusters):
            return self._initial_clusters, ops.convert_to_tensor(self._num_clusters)
        first = ops.convert_to_tensor(self._initial_clusters)
        return first, ops.shape(first)[0]

    def _variables(self, number: Any) -> _State:
        nothing = ops.constant([], dtype=dtypes.float32)
        centers = Variable(nothing, name="clusters", validate_shape=False)
        initialized = Variable(False, dtype=dtypes.bool, name="initialized")
        if self._two_copies:
            updated = Variable(nothing, name="clusters_updated", validate_shape=False)
            left = Variable(self._steps, dtype=dtypes.int64, name="update_in_steps")
            zeros = Variable(ops.zeros([number], dtype=dtypes.int64))
            return _State(centers, initialized, zeros, updated, left)
        counts: Any = None
        if self._use_mini_batch:
            counts = Variable(ops.ones([number], dtype=dtypes.int64))
        return _State(centers, initialized, counts, centers, None)

    # assignments --------------------------------------------------------------------------------

    @staticmethod
    def _call_beside(place: object, function: Callable[..., Any], *args: object) -> Any:
        with colocate_with(place, ignore_existing=True):
            return function(*args)

    def _assignments(self, inputs: list[Any], centers: TensorLike) -> tuple[Any, Any, Any]:
        measure = _cosine_distances if self._cosine else _squared_distances
        all_scores = [self._call_beside(t, measure, t, centers) for t in inputs]
        if self._cosine and not self._keeps_unit_centers:
            centers = self._call_beside(centers, _unit_rows, centers)
        nearest = [self._call_beside(t, self._nearest, t, centers) for t in inputs]
        distances, indices = zip(*nearest)
        return tuple(all_scores), distances, indices

    def _nearest(self, rows: TensorLike, centers: TensorLike) -> tuple[Any, Any]:
        indices, distances = apply_many(NEAREST_NEIGHBORS, rows, centers, 1)
        if self._cosine:  # of unit vectors: half of the squared distance
            distances = distances * 0.5
        return ops.squeeze(distances, [-1]), ops.squeeze(indices, [-1])

    # steps --------------------------------------------------------------------------------------

    def _start_iteration(self, state: _State) -> Any:
        """Count a step; at an iteration's end publish the updated centres."""
        if not self._two_copies:
            return ops.no_op()
        left = state.steps_left

        def publish() -> Any:
            with control_dependencies([ref_state.assign(left, self._steps - 1)]):
                fresh = state.updated
                with colocate_with(state.updated, ignore_existing=True):
                    if self._cosine:
                        fresh = _unit_rows(fresh)
                with colocate_with(state.centers, ignore_existing=True):
                    written = ref_state.assign(state.centers, fresh)
                with control_dependencies([written]):
                    zeros = ops.zeros_like(state.counts)
                    with control_dependencies([ref_state.assign(state.counts, zeros)]):
                        return ops.identity(left)

        with colocate_with(left, ignore_existing=True):
            return ops.cond(left <= 0, publish, lambda: ref_state.assign_sub(left, 1))

    def _full_batch_step(
        self, inputs: list[Any], number: Any, cluster_idx: Any, centers: TensorLike
    ) -> Any:
        sums, counts = [], []
        epsilon = ops.constant(1e-6, dtype=inputs[0].dtype)
        for rows, indices in zip(inputs, cluster_idx):
            with colocate_with(rows, ignore_existing=True):
                sums.append(segments.unsorted_segment_sum(rows, indices, number))
                ones = ops.reshape(ops.ones(ops.reshape(ops.shape(rows)[0], [-1])), [-1, 1])
                counts.append(segments.unsorted_segment_sum(ones, indices, number))
        with colocate_with(centers, ignore_existing=True):
            total: Any = ops.add_n(sums)
            fresh = total / (ops.cast(ops.add_n(counts), sums[0].dtype) + epsilon)
            if self._keeps_unit_centers:
                fresh = _unit_rows(fresh)
        return ref_state.assign(centers, fresh)


def _unit_rows(rows: TensorLike) -> Any:
    return ops.l2_normalize(rows, axis=1)


def _squared_distances(rows: TensorLike, centers: TensorLike) -> Any:
    own = ops.reduce_sum(ops.square(rows), 1, keepdims=True)
    others = ops.reduce_sum(ops.square(centers), 1, keepdims=True)
    return own - 2 * ops.matmul(rows, centers, transpose_b=True) + ops.transpose(others)


def _cosine_distances(rows: TensorLike, centers: TensorLike) -> Any:
    return 1 - ops.matmul(rows, centers, transpose_b=True)


def _mini_batch_step(inputs: list[Any], cluster_idx: Any, centers: Any, counts: Any) -> Operation:
    """A centre x of n points that gets k new ones moves by (their sum - k x) / (n + k)."""
    updates = []
    for rows, indices in zip(inputs, cluster_idx):
        with colocate_with(rows, ignore_existing=True):
            ids, of_row = ops.unique(indices)
            number = ops.size(ids)
            with colocate_with(counts, ignore_existing=True):
                old_counts = ops.gather(counts, ids)
            with colocate_with(centers, ignore_existing=True):
                old_centers = ops.gather(centers, ids)
            ones = ops.ones_like(of_row, dtype=counts.dtype)
            more: Any = segments.unsorted_segment_sum(ones, of_row, number)
            moved: Any = segments.unsorted_segment_sum(rows, of_row, number)
            column = _column_shape(rows, number)
            moved = moved - ops.cast(ops.reshape(more, column), rows.dtype) * old_centers
            rate = ops.reciprocal(ops.cast(old_counts + more, rows.dtype))
            moved = moved * ops.reshape(rate, column)
        updates.append(ref_scatter.scatter_add(counts, ids, more))
        updates.append(ref_scatter.scatter_add(centers, ids, moved))
    grouped: Operation = ops.group(*updates)
    return grouped


def _column_shape(rows: TensorLike, number: Any) -> Any:
    """[number, 1, 1 …] for as many dimensions as ``rows`` has."""
    ones = ops.ones(ops.reshape(ops.rank(rows) - 1, [1]), dtype=dtypes.int32)
    return ops.concat([ops.reshape(number, [1]), ones], 0)
