"""The resources of a forest: for each tree its nodes and the statistics of its fertile leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core.build import apply, apply_operation
from headrace.core.graph_keys import GraphKeys
from headrace.core.opdef import lookup
from headrace.core.scopes import add_to_collection, control_dependencies, device
from headrace.core.tensor import Operation, Tensor
from headrace.ops.state.shared_resources import register_resource
from headrace.train.forest.forest_params import build_params_proto
from headrace.train.saveables import SaveableObject, SaveSpec
from headrace.variables.variable_scope import get_variable

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike


__all__ = ["ForestVariables", "TreeVariables", "fertile_stats_variable", "tree_variable"]


class _ResourceSaveable(SaveableObject):
    """Saves what ``<prefix>Serialize`` gives and restores it after creating the resource."""

    def __init__(
        self, params: Any, handle: Tensor, create: Operation, prefix: str, name: str
    ) -> None:
        more = {"params": params.serialized_params_proto}
        text = apply(lookup(f"{prefix}Serialize"), handle, **(more if prefix != "Tree" else {}))
        super().__init__(handle, [SaveSpec(text, "", name)], name)
        self._more, self._create, self._prefix = more, create, prefix

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Operation:
        with control_dependencies([self._create]):
            read = lookup(f"{self._prefix}Deserialize")
            return apply_operation(read, self.op, restored_tensors[0], **self._more)


def _variable(
    params: Any, config: Any, name: str, container: str | None, handle_op: str, prefix: str
) -> Tensor:
    handle = apply(lookup(handle_op), container=container or "", shared_name=name, name=name)
    create_op = lookup(f"Create{prefix}Variable")
    create = apply_operation(create_op, handle, config, params=params.serialized_params_proto)
    is_there = apply(lookup(f"{prefix}IsInitializedOp"), handle)
    saveable = _ResourceSaveable(params, handle, create, prefix, handle.name)
    add_to_collection(GraphKeys.SAVEABLE_OBJECTS, saveable)
    register_resource(handle, create, is_there)
    return handle


def tree_variable(
    params: TensorLike,
    tree_config: object,
    stats_handle: Tensor | None,
    name: str,
    container: str | None = None,
) -> Tensor:
    """The handle of a tree, grown by the statistics of ``stats_handle``."""
    return _variable(params, tree_config, name, container, "DecisionTreeResourceHandleOp", "Tree")


def fertile_stats_variable(
    params: TensorLike, stats_config: object, name: str, container: str | None = None
) -> Tensor:
    """The handle of a tree's statistics."""
    return _variable(
        params, stats_config, name, container, "FertileStatsResourceHandleOp", "FertileStats"
    )


class TreeVariables:
    """The resources of tree ``tree_num``; statistics only for ``training``.

    ``params`` are ``ForestHParams``; ``tree_config`` and ``tree_stat`` are a serialized tree and
    its statistics to begin with (empty: a tree of one leaf).
    """

    def __init__(
        self, params: Any, tree_num: int, training: bool, tree_config: Any = "", tree_stat: Any = ""
    ) -> None:
        if not hasattr(params, "params_proto"):
            params.params_proto = build_params_proto(params)
        params.serialized_params_proto = params.params_proto.SerializeToString()
        self.stats = None
        if training:
            name = self.get_tree_name("stats", tree_num)
            self.stats = fertile_stats_variable(params, tree_stat, name)
        name = self.get_tree_name("tree", tree_num)
        self.tree = tree_variable(params, tree_config, self.stats, name)

    def get_tree_name(self, name: str, num: int) -> str:
        """The name of a resource of a tree."""
        return f"{name}-{num}"


class ForestVariables:
    """The variables of all trees, by number.

    ``params`` are ``ForestHParams``; ``device_assigner`` is a function as in ``tf.device``. Without
    ``training`` there are no statistics of leaves. ``tree_configs`` and ``tree_stats`` are
    serialized trees and statistics to begin with.
    """

    def __init__(
        self,
        params: Any,
        device_assigner: Any,
        training: bool = True,
        tree_variables_class: Any = TreeVariables,
        tree_configs: Any = None,
        tree_stats: Any = None,
    ) -> None:
        with device(device_assigner):
            self.device_dummies = [
                get_variable(name=f"device_dummy_{i}", shape=0) for i in range(params.num_trees)
            ]
        self.variables = []
        for i, dummy in enumerate(self.device_dummies):
            given = {}
            if tree_configs is not None:
                given["tree_config"] = tree_configs[i]
            if tree_stats is not None:
                given["tree_stat"] = tree_stats[i]
            with device(dummy.device):
                self.variables.append(tree_variables_class(params, i, training, **given))

    def __setitem__(self, t: int, val: object) -> None:
        self.variables[t] = val

    def __getitem__(self, t: int) -> Any:
        return self.variables[t]
