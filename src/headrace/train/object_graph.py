"""Which variables an object holds, as checkpoints of objects name them.

The objects below a root are a graph: an edge is the name of an attribute, the number of a list's
element or the key of a dict. A variable's key in a checkpoint is the path on which it is found
first; a slot of an optimizer is filed under the variable that it belongs to.

    >>> [n.key for n in object_graph(tf.train.Checkpoint(w=w)).variables()]
    ['save_counter/.ATTRIBUTES/VARIABLE_VALUE', 'w/.ATTRIBUTES/VARIABLE_VALUE']
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from headrace.core.graph import get_default_graph
from headrace.core.tensor import Tensor
from headrace.eager.eager_context import executing_eagerly
from headrace.eager.module import Module
from headrace.train.optimizers.optimizer import Optimizer
from headrace.train.optimizers.optimizer_v2 import OptimizerV2
from headrace.train.tracked_objects import PythonState
from headrace.variables.variable import Variable

__all__ = [
    "GRAPH_KEY",
    "ObjectGraph",
    "ObjectNode",
    "children_of",
    "may_be_tracked",
    "object_graph",
]

#: The name under which a checkpoint has its object graph.
GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
_TABLE = "/.ATTRIBUTES/table"
_STATE = "/.ATTRIBUTES/py_state"
#: Attributes that list what other attributes hold too.
_UNTRACKED = frozenset(("_restorations", "_trainable_weights", "_non_trainable_weights"))


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")


class ObjectNode:
    """One object of a graph: its path from the root, its children and its slots by number."""

    __slots__ = ("children", "path", "slots", "value")

    def __init__(self, value: Any, path: str) -> None:
        self.value = value
        self.path = path
        self.children: list[tuple[str, int]] = []
        self.slots: list[tuple[int, str, int]] = []  # variable, name of the slot, slot

    @property
    def key(self) -> str:
        """The name of a variable's value in a checkpoint, or what those of a table begin with."""
        if isinstance(self.value, PythonState):
            return self.path + _STATE
        return self.path + (_TABLE if is_table(self.value) else _VALUE)


class ObjectGraph:
    """The objects below a root, numbered breadth first; slots of optimizers come last."""

    def __init__(self, root: Any) -> None:
        self.nodes: list[ObjectNode] = []
        self._ids: dict[int, int] = {}
        self._add(root, "")
        at = 0
        while at < len(self.nodes):
            node = self.nodes[at]
            for name, value in children_of(node.value):
                path = f"{node.path}/{_escaped(name)}" if node.path else _escaped(name)
                node.children.append((name, self._add(value, path)))
            at += 1
        self._add_slots()

    def _add(self, value: Tensor, path: str) -> int:
        found = self._ids.get(id(value))
        if found is None:
            found = self._ids[id(value)] = len(self.nodes)
            self.nodes.append(ObjectNode(value, path))
        return found

    def _add_slots(self) -> None:
        variables = [(i, n) for i, n in enumerate(self.nodes) if isinstance(n.value, Variable)]
        for node in list(self.nodes):
            if not isinstance(node.value, (Optimizer, OptimizerV2)):
                continue
            for name in node.value.get_slot_names():
                for i, owner in variables:
                    slot = slot_of(node.value, owner.value, name)
                    if slot is not None:
                        under = f"{owner.path}/.OPTIMIZER_SLOT/{node.path}/{_escaped(name)}"
                        node.slots.append((i, name, self._add(slot, under)))

    def variables(self) -> Iterator[ObjectNode]:
        """The nodes that are variables."""
        return (n for n in self.nodes if isinstance(n.value, Variable))

    def tables(self) -> Iterator[ObjectNode]:
        """The nodes that are tables whose entries are saved."""
        return (n for n in self.nodes if is_table(n.value))

    def states(self) -> Iterator[ObjectNode]:
        """The nodes that say themselves what is saved of them."""
        return (n for n in self.nodes if isinstance(n.value, PythonState))

    def message(self) -> Any:
        """The TrackableObjectGraph that a checkpoint has."""
        from tensorboard.compat.proto.trackable_object_graph_pb2 import TrackableObjectGraph

        graph = TrackableObjectGraph()
        for node in self.nodes:
            message = graph.nodes.add()
            for name, child in node.children:
                message.children.add(node_id=child, local_name=name)
            for owner, name, slot in node.slots:
                message.slot_variables.add(
                    original_variable_node_id=owner, slot_name=name, slot_variable_node_id=slot
                )
            if isinstance(node.value, Variable):
                message.attributes.add(
                    name="VARIABLE_VALUE",
                    full_name=node.value.name.partition(":")[0],
                    checkpoint_key=node.key,
                )
            elif is_table(node.value):
                message.attributes.add(
                    name="table", full_name=node.value.name, checkpoint_key=node.key
                )
            elif isinstance(node.value, PythonState):
                message.attributes.add(name="py_state", full_name="", checkpoint_key=node.key)
        return graph


def is_table(value: object) -> bool:
    """Whether it is a lookup table that changes, whose entries belong to a checkpoint."""
    if isinstance(value, Variable) or not hasattr(value, "_gather_saveables_for_checkpoint"):
        return False
    if not hasattr(value, "import_entries"):
        raise NotImplementedError(
            f"{type(value).__name__} says with _gather_saveables_for_checkpoint what is saved of "
            "it, which checkpoints of objects do not ask here: derive it from "
            "tf.train.experimental.PythonState, or keep its state in tf.Variable attributes"
        )
    return True


def object_graph(root: object) -> ObjectGraph:
    """The objects below ``root`` as they are now."""
    return ObjectGraph(root)


def slot_of(optimizer: Any, variable: Any, name: str) -> Any:
    """A slot of a variable, or None."""
    if isinstance(optimizer, OptimizerV2):
        return optimizer._slots.get(variable._unique_id, {}).get(name)
    return optimizer.get_slot(variable, name)


def children_of(value: object) -> list[tuple[str, Any]]:
    """(name, object) of what an object holds and a checkpoint saves."""
    if isinstance(value, Variable) or is_table(value):
        return []
    if isinstance(value, (list, tuple)):
        return [(str(i), v) for i, v in enumerate(value) if _is_tracked(v)]
    if isinstance(value, dict):
        return [(k, v) for k, v in value.items() if isinstance(k, str) and _is_tracked(v)]
    if isinstance(value, Optimizer):
        return _optimizer_children(value)
    if isinstance(value, OptimizerV2):
        return _optimizer_v2_children(value)
    ignored: frozenset[str] = getattr(value, "_TF_MODULE_IGNORED_PROPERTIES", frozenset())
    ignored |= _UNTRACKED
    return [(k, v) for k, v in vars(value).items() if k not in ignored and _is_tracked(v)]


def _optimizer_children(optimizer: Any) -> list[tuple[str, Any]]:
    """Variables that belong to no other (``beta1_power``), of the current graph."""
    graph = None if executing_eagerly() else get_default_graph()
    found = {n: v for (n, g), v in optimizer._non_slot_dict.items() if graph is None or g is graph}
    return [*sorted(found.items()), *getattr(optimizer, "_tracked", {}).items()]


def _optimizer_v2_children(optimizer: Any) -> list[tuple[str, Any]]:
    found = [(n, v) for n, v in sorted(optimizer._hyper.items()) if isinstance(v, Variable)]
    counter = optimizer._iterations
    return found if counter is None else [("iter", counter), *found]


def may_be_tracked(value: object) -> bool:
    """Whether a program may give it to ``tf.train.Checkpoint``: what holds variables, and
    functions, tables and datasets of this package, even if there is nothing to save in them.
    """
    if isinstance(value, (Variable, Module, Optimizer, OptimizerV2, list, tuple, dict)):
        return True
    own = type(value).__module__.partition(".")[0] == __name__.partition(".")[0]
    return own and not isinstance(value, Tensor)


def _is_tracked(value: Tensor) -> bool:
    if isinstance(value, (Variable, Module, Optimizer, OptimizerV2)) or is_table(value):
        return True
    if hasattr(value, "_iterator_resource"):
        warnings.warn(
            "The position of a dataset's iterator is not saved: after a restore it goes on where "
            "it is. Save the number of elements and use Dataset.skip.",
            stacklevel=2,
        )
        return False
    if isinstance(value, (list, tuple)):
        return any(_is_tracked(v) for v in value)
    return isinstance(value, dict) and any(_is_tracked(v) for v in value.values())
