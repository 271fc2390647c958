"""The ops of ``tf.contrib.tensor_forest``: trees and statistics are resources of the session.

A tree is read and written as TensorFlow's ``decision_trees.Model``, statistics as
``tensorforest.FertileStats`` (wire/forest_messages.py).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.build import apply_op
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, KernelNode, define
from headrace.core.shapes import Shape
from headrace.kernels.numpy.forest_trees import ForestTree, GrowingLeaves
from headrace.ops.math.clustering_ops import RandomWords
from headrace.ops.queues.waiting_resource import WaitingResource, boxed, resource_key, unboxed
from headrace.ops.state import forest_files
from headrace.wire.forest_messages import forest_message

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.core.tensor import Tensor
    from headrace.lower.session_state import RunContext

__all__ = ["feature_usage_counts", "forest_params", "tree_size"]


class _Holder(WaitingResource):
    """The tree or the statistics of a handle, once created."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.value: Any = None

    def needed(self) -> Any:
        if self.value is None:
            raise errors.FailedPreconditionError(
                None, None, f"{self.name} was used before it was initialized"
            )
        return self.value


@functools.lru_cache(64)
def forest_params(serialized: bytes) -> Any:
    """The message of an op's attribute ``params``."""
    return forest_message("TensorForestParams").FromString(serialized)


def at_depth(param: Any, depth: int) -> float:
    """The value of a parameter that may depend on a node's depth."""
    kind = param.WhichOneof("kind")
    if kind == "linear":
        p = param.linear
        return float(min(max(p.slope * depth + p.y_intercept, p.min_val), p.max_val))
    if kind == "exponential":
        p = param.exponential
        return float(p.bias + p.multiplier * p.base ** (p.depth_multiplier * depth))
    if kind == "threshold":
        p = param.threshold
        return float(p.on_value if depth >= p.threshold else p.off_value)
    return float(param.constant_value)


def _bytes(text: object) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode(errors="surrogateescape")


def _params(node: KernelNode) -> Any:
    return forest_params(_bytes(node.attrs["params"]))


# handles ----------------------------------------------------------------------------------------


def _handle_kernel(kind: str) -> Callable[..., Any]:
    def kernel(xp: ArrayNamespace, *, node: KernelNode, rt: RunContext) -> Array:
        name = node.attrs["shared_name"] or node.key
        made = rt.session_resource(resource_key(kind, node), lambda: _Holder(f"{kind} {name}"))
        assert isinstance(made, _Holder)
        return boxed(made)

    return kernel


def _holder(handle: Array) -> _Holder:
    found = unboxed(handle)
    assert isinstance(found, _Holder)
    return found


def _op(name: str, signature: str, kernel: Any, shape: Callable[[Inference], list[Shape]]) -> None:
    define(
        name,
        signature,
        shape=shape,
        kernel=kernel,
        grad=NOT_DIFFERENTIABLE,
        stateful=True,
        host_only=True,
    )


_NAMES = "-> resource: resource; container: str='', shared_name: str=''"
_op("DecisionTreeResourceHandleOp", _NAMES, _handle_kernel("tree"), lambda c: [()])
_op("FertileStatsResourceHandleOp", _NAMES, _handle_kernel("fertile stats"), lambda c: [()])


# creating, reading, writing ---------------------------------------------------------------------


def _new_tree(params: Any, text: bytes) -> ForestTree:
    tree = ForestTree(params.num_outputs, params.inequality_test_type == 1)
    if text:
        forest_files.read_tree(tree, text)
    return tree


def _create_tree(
    xp: ArrayNamespace, handle: Array, config: Array, *, node: KernelNode
) -> tuple[()]:
    holder = _holder(handle)
    with holder.lock:
        if holder.value is None:
            holder.value = _new_tree(_params(node), _bytes(np.asarray(config).item()))
    return ()


def _read_tree(xp: ArrayNamespace, handle: Array, config: Array, *, node: KernelNode) -> tuple[()]:
    holder = _holder(handle)
    with holder.lock:
        holder.value = _new_tree(_params(node), _bytes(np.asarray(config).item()))
    return ()


def _write_tree(xp: ArrayNamespace, handle: Array) -> Array:
    holder = _holder(handle)
    with holder.lock:
        return np.array(forest_files.tree_text(holder.needed()), object)


def _create_stats(
    xp: ArrayNamespace, handle: Array, config: Array, *, node: KernelNode
) -> tuple[()]:
    """The text waits for the tree, which the first batch brings."""
    holder = _holder(handle)
    with holder.lock:
        if holder.value is None:
            holder.value = _bytes(np.asarray(config).item())
    return ()


def _read_stats(xp: ArrayNamespace, handle: Array, config: Array, *, node: KernelNode) -> tuple[()]:
    holder = _holder(handle)
    with holder.lock:
        holder.value = _bytes(np.asarray(config).item())
    return ()


def _write_stats(xp: ArrayNamespace, handle: Array, *, node: KernelNode) -> Array:
    holder = _holder(handle)
    with holder.lock:
        value = holder.needed()
        if isinstance(value, GrowingLeaves):
            value = forest_files.stats_text(value) if _params(node).checkpoint_stats else b""
    return np.array(value, object)


def _is_there(xp: ArrayNamespace, handle: Array) -> np.bool_:
    return np.bool_(_holder(handle).value is not None)


def _scalar(c: Inference) -> list[Shape]:
    return [()]


def _nothing(c: Inference) -> list[Shape]:
    return []


for _prefix, _kind, _config, _create, _read, _write in (
    ("Tree", "tree", "tree_config", _create_tree, _read_tree, _write_tree),
    ("FertileStats", "stats", "stats_config", _create_stats, _read_stats, _write_stats),
):
    _given = f"{_kind}_handle: resource, {_config}: string -> ; params: str"
    _op(f"Create{_prefix}Variable", _given, _create, _nothing)
    _op(f"{_prefix}Deserialize", _given, _read, _nothing)
    _more = "; params: str" if _kind == "stats" else ""
    _op(
        f"{_prefix}Serialize",
        f"{_kind}_handle: resource -> {_config}: string{_more}",
        _write,
        _scalar,
    )
    _op(
        f"{_prefix}IsInitializedOp",
        f"{_kind}_handle: resource -> is_initialized: bool",
        _is_there,
        _scalar,
    )


# what a tree says -------------------------------------------------------------------------------


def _tree_size(xp: ArrayNamespace, handle: Array) -> np.int32:
    holder = _holder(handle)
    with holder.lock:
        return np.int32(holder.needed().size)


def _usage(xp: ArrayNamespace, handle: Array, *, node: KernelNode) -> Array:
    holder = _holder(handle)
    with holder.lock:
        tree = holder.needed()
        used = tree.feature[: tree.size]
        return np.bincount(used[used >= 0], minlength=_params(node).num_features).astype(np.int32)


def _traverse(
    xp: ArrayNamespace,
    handle: Array,
    data: Array,
    indices: Array,
    values: Array,
    shape: Array,
    *,
    node: KernelNode,
) -> Array:
    _refuse_sparse(indices)
    holder = _holder(handle)
    with holder.lock:
        leaves: Array = holder.needed().leaves_of(data)
        return leaves


def _predict(
    xp: ArrayNamespace,
    handle: Array,
    data: Array,
    indices: Array,
    values: Array,
    shape: Array,
    *,
    node: KernelNode,
) -> tuple[Array, Array]:
    _refuse_sparse(indices)
    params, holder = _params(node), _holder(handle)
    with holder.lock:
        tree = holder.needed()
        found = tree.values[tree.leaves_of(data)]
        if not params.is_regression:
            total = found.sum(1, keepdims=True)
            found = np.divide(found, total, out=np.zeros_like(found), where=total > 0)
        paths = np.empty(len(data) if params.inference_tree_paths else 0, object)
        for i in range(len(paths)):
            paths[i] = forest_files.path_text(tree, tree.path_to(data[i]))
    return found, paths


def _refuse_sparse(indices: Array) -> None:
    if np.size(indices):
        raise errors.UnimplementedError(
            None, None, "tensor_forest: sparse features are not supported; give dense ones"
        )


_DATA = (
    "input_data: float32, sparse_input_indices: int64, sparse_input_values: float32, "
    "sparse_input_shape: int64"
)


def _rows_by(*widths: object) -> Callable[[Inference], list[Shape]]:
    def shape(c: Inference) -> list[Shape]:
        data = c.shape(1)
        rows = None if not data else data[0]
        return [(rows, None), (None,)] if widths else [(rows,)]

    return shape


_op("TreeSize", "tree_handle: resource -> tree_size: int32", _tree_size, _scalar)
_op(
    "FeatureUsageCounts",
    "tree_handle: resource -> feature_counts: int32; params: str",
    _usage,
    lambda c: [(None,)],
)
_op(
    "TraverseTreeV4",
    f"tree_handle: resource, {_DATA} -> leaf_ids: int32; input_spec: str, params: str",
    _traverse,
    _rows_by(),
)
_op(
    "TreePredictionsV4",
    f"tree_handle: resource, {_DATA} -> predictions: float32, tree_paths: string; "
    "input_spec: str, params: str",
    _predict,
    _rows_by(None),
)


# training ---------------------------------------------------------------------------------------


def _weights(given: Array, rows: int) -> Array:
    return given.astype(np.float64) if given.size else np.ones(rows)


def _labels(labels: Array, params: Any) -> Array:
    found = labels.reshape(-1).astype(np.int64)
    if found.size and not 0 <= found.min() <= found.max() < params.num_outputs:
        raise errors.InvalidArgumentError(
            None, None, f"labels must be in [0, {params.num_outputs}), got {found.tolist()[:10]}"
        )
    return found


def _update_model(
    xp: ArrayNamespace,
    handle: Array,
    leaves: Array,
    labels: Array,
    weights: Array,
    *,
    node: KernelNode,
) -> tuple[()]:
    params, holder = _params(node), _holder(handle)
    if not params.is_regression:  # a leaf's means are set when it is made
        with holder.lock:
            holder.needed().add_to_leaves(
                leaves, _labels(labels, params), _weights(weights, len(leaves))
            )
    return ()


def _growing(tree: ForestTree, holder: _Holder, params: Any) -> GrowingLeaves:
    """The statistics of ``holder``, made of their text when the tree is first seen."""
    value = holder.needed()
    if not isinstance(value, GrowingLeaves) or value.tree is not tree:
        regression = params.is_regression
        made = GrowingLeaves(
            tree,
            params.num_outputs * (2 if regression else 1),
            regression,
            functools.partial(at_depth, params.num_splits_to_consider),
            functools.partial(at_depth, params.split_after_samples),
        )
        forest_files.read_stats(made, value if isinstance(value, bytes) else b"")
        holder.value = value = made
    return value


def _targets(labels: Array, params: Any) -> Array:
    if params.is_regression:
        outputs = labels.reshape(len(labels), -1).astype(np.float64)
        return np.concatenate([outputs, outputs * outputs], 1)
    one_hot: Array = np.eye(params.num_outputs)[_labels(labels, params)]
    return one_hot


def _random_features(seed: int, features: int) -> Callable[[], int]:
    """Uniform numbers below ``features``; the stream starts again with every batch."""
    words = RandomWords(seed or int.from_bytes(os.urandom(8), "little"))
    return lambda: words.below32(features)


def _process_input(
    xp: ArrayNamespace,
    tree_handle: Array,
    stats_handle: Array,
    data: Array,
    indices: Array,
    values: Array,
    shape: Array,
    labels: Array,
    weights: Array,
    leaves: Array,
    *,
    node: KernelNode,
) -> Array:
    _refuse_sparse(indices)
    params, tree, stats = _params(node), _holder(tree_handle), _holder(stats_handle)
    with tree.lock, stats.lock:
        growing = _growing(tree.needed(), stats, params)
        feature = _random_features(node.attrs["random_seed"], data.shape[1])
        targets = _targets(labels, params)
        return growing.add_samples(data, leaves, targets, _weights(weights, len(data)), feature)


def _grow(
    xp: ArrayNamespace,
    tree_handle: Array,
    stats_handle: Array,
    finished: Array,
    *,
    node: KernelNode,
) -> tuple[()]:
    params, tree, stats = _params(node), _holder(tree_handle), _holder(stats_handle)
    with tree.lock, stats.lock:
        growing = _growing(tree.needed(), stats, params)
        for number in finished.tolist():
            if growing.tree.size >= params.max_nodes:
                break
            growing.grow(number)
    return ()


_op(
    "UpdateModelV4",
    "tree_handle: resource, leaf_ids: int32, input_labels: float32, input_weights: float32 -> ; "
    "params: str",
    _update_model,
    _nothing,
)
_op(
    "ProcessInputV4",
    f"tree_handle: resource, stats_handle: resource, {_DATA}, input_labels: float32, "
    "input_weights: float32, leaf_ids: int32 -> finished_nodes: int32; random_seed: int, "
    "input_spec: str, params: str",
    _process_input,
    lambda c: [(None,)],
)
_op(
    "GrowTreeV4",
    "tree_handle: resource, stats_handle: resource, finished_nodes: int32 -> ; params: str",
    _grow,
    _nothing,
)


def tree_size(tree: Tensor) -> Tensor:
    """The number of nodes of a tree."""
    return apply_op("TreeSize", tree)


def feature_usage_counts(tree: Tensor, **attrs: Any) -> Tensor:
    """How many splits of a tree use each feature."""
    return apply_op("FeatureUsageCounts", tree, **attrs)
