"""``ForestHParams``: what a random forest is made with, and the message that its ops are given."""

from __future__ import annotations

import math
import numbers
import random
from typing import Any

from headrace.wire.forest_messages import forest_message

__all__ = ["ForestHParams", "build_params_proto"]

#: Numbers of TensorFlow's enumerations: models of leaves and their statistics.
_LEAF_MODELS = {"all_dense": (0, 0), "all_sparse": (1, 1), "sparse_then_dense": (3, 3)}
_REGRESSION = (2, 2)
_FINISH = {"basic": 0, "hoeffding": 2, "bootstrap": 3}
_PRUNING = {"none": 0, "half": 1, "quarter": 2, "10_percent": 3, "hoeffding": 4}
_SPLITS = {"less_or_equal": 0, "less": 1}


class ForestHParams:
    """The parameters of a forest; ``num_classes`` and ``num_features`` must be among ``kwargs``.

    A leaf waits for ``split_after_samples`` samples and then takes the best of
    ``num_splits_to_consider`` candidates. ``fill`` computes what was left open.
    """

    num_classes: int
    num_features: int

    def __init__(
        self,
        num_trees: int = 100,
        max_nodes: int = 10000,
        bagging_fraction: float = 1.0,
        num_splits_to_consider: object = 0,
        feature_bagging_fraction: float = 1.0,
        max_fertile_nodes: int = 0,
        split_after_samples: object = 250,
        valid_leaf_threshold: int = 1,
        dominate_method: str = "bootstrap",
        dominate_fraction: float = 0.99,
        model_name: str = "all_dense",
        split_finish_name: str = "basic",
        split_pruning_name: str = "none",
        prune_every_samples: object = 0,
        early_finish_check_every_samples: object = 0,
        collate_examples: bool = False,
        checkpoint_stats: bool = False,
        use_running_stats_method: bool = False,
        initialize_average_splits: bool = False,
        inference_tree_paths: bool = False,
        param_file: str | None = None,
        split_name: str = "less_or_equal",
        **kwargs: object,
    ) -> None:
        given = {k: v for k, v in locals().items() if k not in ("self", "kwargs", "__class__")}
        self.__dict__.update(given, **kwargs)

    def values(self) -> dict[str, Any]:
        """All parameters by name."""
        return self.__dict__

    def fill(self) -> ForestHParams:
        """Set what depends on other parameters; returns itself."""
        p: Any = self
        classes, features = p.num_classes, p.num_features
        p.bagged_num_features = int(p.feature_bagging_fraction * features)
        p.bagged_features = None
        if p.feature_bagging_fraction < 1.0:
            p.bagged_features = [
                random.sample(range(features), p.bagged_num_features) for _ in range(p.num_trees)
            ]
        p.regression = getattr(p, "regression", False)
        p.num_outputs = classes if p.regression else 1
        p.num_output_columns = classes + 1
        by_default = min(max(10, math.floor(math.sqrt(features))), 1000)
        p.num_splits_to_consider = p.num_splits_to_consider or by_default
        p.base_random_seed = getattr(p, "base_random_seed", 0)
        kinds = _REGRESSION if p.regression else _LEAF_MODELS[p.model_name]
        p.leaf_model_type, p.stats_model_type = kinds
        p.finish_type = 0 if p.regression else _FINISH[p.split_finish_name]
        p.pruning_type = _PRUNING[p.split_pruning_name]
        _refuse_other_strategies(p)
        p.prune_every_samples = p.early_finish_check_every_samples = 0
        p.split_type = _SPLITS[p.split_name]
        return self


def _refuse_other_strategies(p: Any) -> None:
    for name, differs in (
        ("split_finish_name", p.finish_type),
        ("split_pruning_name", p.pruning_type),
        ("initialize_average_splits", p.initialize_average_splits),
    ):
        if differs:
            raise NotImplementedError(
                f"tensor_forest: {name}={getattr(p, name)!r} is not supported; leave it "
                "at its default (splits are then decided after split_after_samples samples)"
            )


def _set_number(message: Any, value: Any) -> None:
    """A number, or the text of a message for values that depend on the depth."""
    from google.protobuf import text_format

    if isinstance(value, numbers.Number):
        message.constant_value = value
    elif value.isdigit():
        message.constant_value = int(value)
    else:
        text_format.Merge(value, message)


#: Fields of the message that are set as they are: field -> the parameter's name.
_PLAIN_FIELDS = {
    "is_regression": "regression",
    "num_outputs": "num_classes",
    "leaf_type": "leaf_model_type",
    "stats_type": "stats_model_type",
    "inequality_test_type": "split_type",
}
_PLAIN_FIELDS |= {
    name: name
    for name in (
        "num_trees",
        "max_nodes",
        "num_features",
        "collate_examples",
        "checkpoint_stats",
        "use_running_stats_method",
        "initialize_average_splits",
        "inference_tree_paths",
    )
}


def build_params_proto(params: Any) -> Any:
    """The ``TensorForestParams`` of filled parameters."""
    from google.protobuf import text_format

    fields = {field: getattr(params, name) for field, name in _PLAIN_FIELDS.items()}
    proto = forest_message("TensorForestParams")(**fields)
    proto.pruning_type.type = params.pruning_type
    proto.finish_type.type = params.finish_type
    _set_number(proto.pruning_type.prune_every_samples, params.prune_every_samples)
    _set_number(proto.finish_type.check_every_steps, params.early_finish_check_every_samples)
    _set_number(proto.split_after_samples, params.split_after_samples)
    _set_number(proto.num_splits_to_consider, params.num_splits_to_consider)
    proto.dominate_fraction.constant_value = params.dominate_fraction
    if params.param_file:
        with open(params.param_file) as f:
            text_format.Merge(f.read(), proto)
    return proto
