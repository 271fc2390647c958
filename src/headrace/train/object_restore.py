"""Restoring objects from a checkpoint: matching two object graphs, now and later.

An object of the checkpoint is matched with the one that stands at the same place in the program.
Variables get their values at once (eagerly) or when the restore operations run (in a graph). What
the program does not have yet is restored when it is set as an attribute.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import get_default_session
from headrace.eager.eager_context import executing_eagerly
from headrace.ops.io.checkpoint_ops import open_checkpoint
from headrace.train.object_graph import GRAPH_KEY, children_of, is_table, object_graph, slot_of
from headrace.train.optimizers.optimizer import Optimizer
from headrace.train.optimizers.optimizer_v2 import OptimizerV2
from headrace.train.tracked_objects import PythonState
from headrace.variables.variable import Variable

if TYPE_CHECKING:
    from headrace.core.tensor import Tensor
    from headrace.session.session import BaseSession

__all__ = [
    "CheckpointLoadStatus",
    "InitializationOnlyStatus",
    "NameBasedSaverStatus",
    "Restoration",
    "saved_graph",
]

_log = logging.getLogger("tensorflow")


def saved_graph(path: str) -> Any:
    """The TrackableObjectGraph of a checkpoint; None for a checkpoint by names."""
    from tensorboard.compat.proto.trackable_object_graph_pb2 import TrackableObjectGraph

    reader = open_checkpoint(path)
    if GRAPH_KEY not in reader:
        return None
    return TrackableObjectGraph.FromString(reader.read(GRAPH_KEY).item())


def _session(session: Any) -> Any:
    session = get_default_session() if session is None else session
    if session is None:
        raise RuntimeError(
            "When graph building, a session is needed: pass session= or use `with session:`"
        )
    return session


def _load(variable: Variable, value: Any, session: Any) -> None:
    try:
        variable.load(value, session)
    except ValueError as error:
        raise errors.InvalidArgumentError(
            None, None, f"the checkpoint's value of {variable.name} does not fit: {error}"
        ) from None


class Restoration:
    """A checkpoint that is being restored into the objects below ``root``."""

    def __init__(self, root: Any, path: str, graph: Any) -> None:
        self.root, self.path, self.graph = root, path, graph
        self.matched: dict[int, Any] = {}
        self.waiting: dict[int, Variable] = {}  # in a graph: to be restored by a session
        self.tables: dict[int, Any] = {}  # likewise
        self._fills: dict[int, Any] = {}  # the operations that do it
        self._reader = open_checkpoint(path)
        self.match()

    def match(self) -> None:
        """Match whatever the program has by now, and restore variables that are new."""
        stack: list[tuple[Any, int]] = [(self.root, 0)]
        seen: set[int] = set()
        while stack:
            value, i = stack.pop()
            if i in seen or i >= len(self.graph.nodes):
                continue
            seen.add(i)
            self._bind(value, i)
            node, children = self.graph.nodes[i], dict(children_of(value))
            for child in node.children:
                if child.local_name in children:
                    stack.append((children[child.local_name], child.node_id))
        for i, value in list(self.matched.items()):
            if not isinstance(value, (Optimizer, OptimizerV2)):
                continue
            for slot in self.graph.nodes[i].slot_variables:
                owner = self.matched.get(slot.original_variable_node_id)
                is_variable = isinstance(owner, Variable)
                found = slot_of(value, owner, slot.slot_name) if is_variable else None
                if found is not None:
                    self._bind(found, slot.slot_variable_node_id)

    def _bind(self, value: Tensor, i: int) -> None:
        before = self.matched.get(i)
        if before is value:
            return
        if before is not None and isinstance(value, (list, tuple, dict)):
            return  # a list that was set anew holds the same objects
        if before is not None:
            _log.warning(
                "Inconsistent references when loading the checkpoint into this object graph. "
                "For example, in the saved checkpoint object, `model.layer.weight` and "
                "`model.layer_copy.weight` reference the same variable, while in the current "
                "object these are two different variables."
            )
            return
        self.matched[i] = value
        if not isinstance(value, (Variable, list, tuple, dict)):
            value.__dict__.setdefault("_restorations", []).append(self)
        if isinstance(value, Variable):
            for attribute in self.graph.nodes[i].attributes:
                if attribute.name == "VARIABLE_VALUE":
                    self._restore(i, value, attribute.checkpoint_key)
        elif isinstance(value, PythonState):
            for attribute in self.graph.nodes[i].attributes:
                if attribute.name == "py_state":
                    value.deserialize(self._reader.read(attribute.checkpoint_key).item())
        elif is_table(value):
            if executing_eagerly():
                self._fill(value, i)
            else:
                self.tables[i] = value

    def _restore(self, i: int, variable: Variable, key: str) -> None:
        if executing_eagerly():
            variable.assign(self._reader.read(key))
        else:
            self.waiting[i] = variable

    def _fill(self, table: Any, i: int) -> Any:
        """Give a table its entries: at once, or by the operation that is returned."""
        for attribute in self.graph.nodes[i].attributes:
            parts = [
                self._reader.read(f"{attribute.checkpoint_key}-{part}")
                for part in ("keys", "values")
            ]
            tensors = [
                convert_to_tensor(array, dtype) for array, dtype in zip(parts, table.entry_dtypes)
            ]
            return table.import_entries(*tensors)
        return None

    def run(self, session: Any) -> None:
        """Give the variables and tables of a graph their values in a session."""
        for i, table in self.tables.items():
            if i not in self._fills:
                self._fills[i] = self._fill(table, i)
            session.run(self._fills[i])
        for i, variable in self.waiting.items():
            for attribute in self.graph.nodes[i].attributes:
                _load(variable, self._reader.read(attribute.checkpoint_key), session)

    def unresolved(self) -> Iterator[str]:
        """What the checkpoint has and the program has not."""
        for i, node in enumerate(self.graph.nodes):
            if node.attributes and i not in self.matched:
                yield node.attributes[0].checkpoint_key or node.attributes[0].full_name


class CheckpointLoadStatus:
    """What became of a ``restore``."""

    def __init__(self, restoration: Restoration) -> None:
        self._restoration = restoration

    def assert_consumed(self) -> CheckpointLoadStatus:
        """AssertionError unless everything in the checkpoint and the program was matched."""
        self.assert_existing_objects_matched()
        missing = list(self._restoration.unresolved())
        if missing:
            raise AssertionError(
                f"Unresolved object in checkpoint {self._restoration.path}: {missing[0]}"
                + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
            )
        return self

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """AssertionError unless every variable of the program has a value in the checkpoint."""
        self._restoration.match()
        known = {id(v) for v in self._restoration.matched.values()}
        unused = [
            n for n in object_graph(self._restoration.root).variables() if id(n.value) not in known
        ]
        if unused:
            raise AssertionError(
                f"Found {len(unused)} Python objects that were not bound to checkpointed values, "
                "likely due to changes in the Python program. Showing "
                f"{min(len(unused), 10)} of {len(unused)} unmatched objects: "
                f"{[n.path for n in unused[:10]]}"
            )
        return self

    def assert_nontrivial_match(self) -> CheckpointLoadStatus:
        """AssertionError if nothing but the root was matched."""
        self._restoration.match()
        if len(self._restoration.matched) <= 1:
            raise AssertionError(
                "Nothing except the root object matched a checkpointed value. Typically this means "
                f"that the checkpoint {self._restoration.path} does not match the Python program."
            )
        return self

    def expect_partial(self) -> CheckpointLoadStatus:
        """A checkpoint that has more than the program is fine."""
        return self

    def run_restore_ops(self, session: BaseSession | None = None) -> None:
        """In a graph: give the variables their values. Eagerly they have them already."""
        if executing_eagerly():
            return
        self._restoration.match()
        self._restoration.run(_session(session))

    def initialize_or_restore(self, session: Any = None) -> None:
        """In a graph: initialize what the checkpoint does not have, restore the rest."""
        if executing_eagerly():
            return
        session = _session(session)
        self._restoration.match()
        waiting = {id(v) for v in self._restoration.waiting.values()}
        found = [n.value for n in object_graph(self._restoration.root).variables()]
        session.run([v.initializer for v in found if id(v) not in waiting])
        self._restoration.run(session)


class InitializationOnlyStatus:
    """``restore(None)``: there is no checkpoint yet."""

    def __init__(self, root: Any) -> None:
        self._root = root

    def _refuse(self) -> Tensor:
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_consumed = assert_existing_objects_matched = assert_nontrivial_match = _refuse

    def expect_partial(self) -> InitializationOnlyStatus:
        """Nothing is expected."""
        return self

    def run_restore_ops(self, session: BaseSession | None = None) -> None:
        """There is nothing to restore."""
        self._refuse()

    def initialize_or_restore(self, session: Any = None) -> None:
        """In a graph: run the initializers of all variables."""
        if not executing_eagerly():
            found = [n.value for n in object_graph(self._root).variables()]
            _session(session).run([v.initializer for v in found])


class NameBasedSaverStatus:
    """``restore`` of a checkpoint that a ``tf.train.Saver`` wrote: variables by their names."""

    def __init__(self, root: Any, path: str) -> None:
        self._root, self._path = root, path
        self._reader = open_checkpoint(path)
        self._missing: list[str] = []
        if executing_eagerly():
            self._assign(lambda variable, value: variable.assign(value))

    def _assign(self, assign: Callable[[Any, Any], Any]) -> None:
        self._missing = []
        for node in object_graph(self._root).variables():
            name = node.value.name.partition(":")[0]
            if name in self._reader:
                assign(node.value, self._reader.read(name))
            elif node.path != "save_counter":
                self._missing.append(name)

    def assert_consumed(self) -> NameBasedSaverStatus:
        """AssertionError unless every variable and every name was matched."""
        self.assert_existing_objects_matched()
        names = {n.value.name.partition(":")[0] for n in object_graph(self._root).variables()}
        unused = [n for n in self._reader.names() if n not in names]
        if unused:
            raise AssertionError(f"Some objects in the checkpoint were not used: {unused}")
        return self

    def assert_existing_objects_matched(self) -> NameBasedSaverStatus:
        """AssertionError unless every variable's name is in the checkpoint."""
        self._assign(lambda variable, value: None)
        if self._missing:
            raise AssertionError(f"Some objects had no values in the checkpoint: {self._missing}")
        return self

    assert_nontrivial_match = assert_existing_objects_matched

    def expect_partial(self) -> NameBasedSaverStatus:
        """A checkpoint that has more than the program is fine."""
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        """In a graph: give the variables their values."""
        if not executing_eagerly():
            session = _session(session)
            self._assign(lambda variable, value: variable.load(value, session))

    def initialize_or_restore(self, session: BaseSession | None = None) -> None:
        """In a graph: give the variables their values."""
        self.run_restore_ops(session)
