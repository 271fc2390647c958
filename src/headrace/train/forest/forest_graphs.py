"""``RandomForestGraphs``: the graphs that train a forest and ask it.

>>> forest = RandomForestGraphs(ForestHParams(num_classes=10, num_features=784).fill())
>>> train_op = forest.training_graph(x, labels)
>>> probabilities, paths, variance = forest.inference_graph(x)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply, apply_many, apply_operation
from headrace.core.opdef import lookup
from headrace.core.scopes import control_dependencies, device
from headrace.core.tensor import Operation, Tensor
from headrace.layers import layer_ops as ops
from headrace.ops.state.forest_ops import feature_usage_counts, tree_size
from headrace.train.forest.forest_data import parse_data, parse_labels
from headrace.train.forest.forest_variables import ForestVariables, TreeVariables
from headrace.variables.variable_lists import local_variables

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike


__all__ = ["RandomForestGraphs", "RandomTreeGraphs"]


def _epoch() -> Any:
    """The epoch that ``limit_epochs`` counts, or [0]."""
    for v in local_variables():
        if "limit_epochs/epoch" in v.op.name:
            return ops.reshape(v, [1])
    return [0]


class RandomForestGraphs:
    """The graphs of all trees of a forest with (filled) ``params``.

    ``tree_configs`` and ``tree_stats`` are serialized trees and statistics to start from.
    """

    def __init__(
        self,
        params: Any,
        tree_configs: Any = None,
        tree_stats: Any = None,
        device_assigner: Any = None,
        variables: Any = None,
        tree_variables_class: Any = TreeVariables,
        tree_graphs: Any = None,
        training: bool = True,
    ) -> None:
        self.params = params
        self.device_assigner = device_assigner or (lambda op: "/device:CPU:0")
        self.variables = variables or ForestVariables(
            params,
            device_assigner=self.device_assigner,
            training=training,
            tree_variables_class=tree_variables_class,
            tree_configs=tree_configs,
            tree_stats=tree_stats,
        )
        kind = tree_graphs or RandomTreeGraphs
        self.trees = [kind(self.variables[i], params, i) for i in range(params.num_trees)]

    def _on(self, tree: int) -> Any:
        return device(self.variables.device_dummies[tree].device)

    def _bag_features(self, tree_num: int, input_data: Any) -> Tensor:
        columns = ops.split(input_data, self.params.num_features, axis=1)
        return ops.concat([columns[i] for i in self.params.bagged_features[tree_num]], 1)

    def get_all_resource_handles(self) -> list[Any]:
        """The trees' handles, then the statistics'."""
        made = [self.variables[i] for i in range(len(self.trees))]
        return [v.tree for v in made] + [v.stats for v in made]

    def training_graph(
        self,
        input_data: Any,
        input_labels: Any,
        num_trainers: int = 1,
        trainer_id: int = 0,
        **tree_kwargs: Any,
    ) -> Operation:
        """An operation that trains the trees (of trainer ``trainer_id``) with one batch."""
        dense, sparse, spec = parse_data(input_data)
        labels = parse_labels(input_labels)
        each = self.params.num_trees / num_trainers
        grown = []
        for i in range(int(trainer_id * each), int((trainer_id + 1) * each)):
            with self._on(i):
                seed = self.params.base_random_seed
                seed = seed + i if seed else 0
                data, targets = self._bag(i, dense, labels, sparse, seed)
                grown.append(
                    self.trees[i].training_graph(
                        data, targets, seed, data_spec=spec, sparse_features=sparse, **tree_kwargs
                    )
                )
        trained: Operation = ops.group(*grown, name="train")
        return trained

    def _bag(self, tree: int, data: Any, labels: Any, sparse: Any, seed: int) -> tuple[Any, Any]:
        """The rows and columns of a batch that one tree sees."""
        if self.params.bagging_fraction < 1.0:
            if sparse is not None:
                raise NotImplementedError("Bagging not supported with sparse features.")
            rows = ops.strided_slice(ops.shape(data), [0], [1])
            drawn = ops.random_uniform(rows, seed=seed)
            kept = ops.less(drawn, ops.ones_like(drawn) * self.params.bagging_fraction)
            at = ops.squeeze(ops.where(kept), axis=[1])
            data, labels = ops.gather(data, at), ops.gather(labels, at)
        return self._bagged_columns(tree, data, sparse), labels

    def _bagged_columns(self, tree: int, data: Any, sparse: Any) -> Any:
        if not self.params.bagged_features:
            return data
        if sparse is not None:
            raise NotImplementedError("Feature bagging not supported with sparse features.")
        return self._bag_features(tree, data)

    def inference_graph(self, input_data: Any, **inference_args: Any) -> tuple[Any, Any, Any]:
        """(mean over the trees, their paths, their variance) for a batch."""
        dense, sparse, spec = parse_data(input_data)
        answers = []
        for i in range(self.params.num_trees):
            with self._on(i):
                data = self._bagged_columns(i, dense, sparse)
                answers.append(
                    self.trees[i].inference_graph(
                        data, spec, sparse_features=sparse, **inference_args
                    )
                )
        predictions, paths = zip(*answers)
        count = self.params.num_trees
        with self._on(0):
            every = ops.stack(predictions, axis=1)
            mean = ops.div(ops.reduce_sum(every, 1), count, name="probabilities")
            every_path = ops.stack(paths, axis=1)
            squares = ops.div(ops.reduce_sum(every * every, 1), count)
            return mean, every_path, ops.maximum(0.0, squares - mean * mean)

    def average_size(self) -> Tensor:
        """The mean number of nodes."""
        sizes = []
        for i, tree in enumerate(self.trees):
            with self._on(i):
                sizes.append(tree.size())
        mean: Tensor = ops.reduce_mean(ops.cast(ops.stack(sizes), dtypes.float32))
        return mean

    def training_loss(
        self, features: TensorLike, labels: TensorLike, name: str = "training_loss"
    ) -> Tensor:
        """Minus the mean number of nodes: what grows is counted, whatever the batch."""
        loss: Tensor = ops.negative(self.average_size(), name=name)
        return loss

    def validation_loss(self, features: TensorLike, labels: TensorLike) -> Tensor:
        """The same."""
        loss: Tensor = ops.negative(self.average_size())
        return loss

    def feature_importances(self) -> Tensor:
        """The share of the splits that use each feature."""
        counts = [tree.feature_usage_counts() for tree in self.trees]
        total = ops.reduce_sum(ops.stack(counts, 0), 0)
        shares: Tensor = total / ops.reduce_sum(total)
        return shares


class RandomTreeGraphs:
    """The operations that train one tree of a forest and predict with it.

    ``variables`` are its ``TreeVariables``, ``params`` the ``ForestHParams`` of the forest and
    ``tree_num`` its number. Made by ``RandomForestGraphs``.
    """

    def __init__(self, variables: Any, params: Any, tree_num: int) -> None:
        self.variables = variables
        self.params = params
        self.tree_num = tree_num

    def _data(self, data: TensorLike, sparse: Any) -> list[Any]:
        parts: list[Any] = [[], [], []]
        if sparse is not None:
            parts = [sparse.indices, sparse.values, sparse.dense_shape]
        return [[] if data is None else data, *parts]

    def _attrs(self, spec: Any = None) -> dict[str, Any]:
        attrs = {"params": self.params.serialized_params_proto}
        return attrs if spec is None else {"input_spec": spec.SerializeToString(), **attrs}

    def training_graph(
        self,
        input_data: Any,
        input_labels: Any,
        random_seed: int,
        data_spec: Any,
        sparse_features: Any = None,
        input_weights: Any = None,
    ) -> Operation:
        """An operation that trains the tree with one batch; seed 0 stands for any."""
        ops.cast(_epoch(), dtypes.int32)
        weights = [] if input_weights is None else input_weights
        tree, stats = self.variables.tree, self.variables.stats
        data = self._data(input_data, sparse_features)
        leaves = apply(lookup("TraverseTreeV4"), tree, *data, **self._attrs(data_spec))
        update = apply_operation(
            lookup("UpdateModelV4"), tree, leaves, input_labels, weights, **self._attrs()
        )
        finished = apply(
            lookup("ProcessInputV4"), tree, stats, *data, input_labels, weights, leaves,
            random_seed=random_seed, **self._attrs(data_spec),
        )  # fmt: skip
        with control_dependencies([update]):
            return apply_operation(lookup("GrowTreeV4"), tree, stats, finished, **self._attrs())

    def inference_graph(
        self, input_data: Any, data_spec: Any, sparse_features: Any = None
    ) -> tuple[Tensor, Tensor]:
        """(probabilities or means, paths) of one batch."""
        data = self._data(input_data, sparse_features)
        found = apply_many(
            lookup("TreePredictionsV4"), self.variables.tree, *data, **self._attrs(data_spec)
        )
        return found[0], found[1]

    def size(self) -> Tensor:
        """The number of nodes."""
        return tree_size(self.variables.tree)

    def feature_usage_counts(self) -> Tensor:
        """How many splits use each feature."""
        return feature_usage_counts(self.variables.tree, **self._attrs())
