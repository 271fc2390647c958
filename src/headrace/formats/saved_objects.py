"""The objects that ``tf.saved_model.save`` writes: what a root object holds, numbered.

    tree = SavedObjects(module, [concrete])
    tree.nodes          # the root is number 0; variables, functions, tables, lists, dicts, modules
    tree.bound(concrete)   # the numbers of what a trace takes from outside

What a trace uses from outside must be in the tree: variables and tables as attributes of the root
or of what it holds. Eager tensors that a trace uses are constants, which the tree adds itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core import dtypes
from headrace.core.tensor import Tensor
from headrace.eager.module import Module
from headrace.formats.saved_assets import SavedAsset
from headrace.formats.saved_model_load import LoadedFunction, LoadedSignature
from headrace.formats.saved_tables import (
    entry_dtypes,
    entry_functions,
    is_table,
    table_functions,
)
from headrace.functions.concrete_function import ConcreteFunction
from headrace.functions.function import BoundFunction, Function
from headrace.ops.state.lookup_tables import LookupInterface
from headrace.ops.state.table_initializers import TextFileInitializer
from headrace.variables.variable import Variable

if TYPE_CHECKING:
    from headrace.core.graph import Graph

__all__ = [
    "AssetFile",
    "BareFunction",
    "Constant",
    "SavedNode",
    "SavedObjects",
    "attributes_of",
    "is_function",
    "traces_of",
]

_FUNCTIONS = (Function, BoundFunction, LoadedFunction)


class AssetFile(NamedTuple):
    """A file that is copied into the model; ``tensor`` holds its name for who reads it."""

    tensor: Tensor

    @property
    def path(self) -> str:
        return os.fsdecode(self.tensor._static.item())


class Constant(NamedTuple):
    """An eager tensor that functions use."""

    tensor: Tensor


class BareFunction(NamedTuple):
    """One trace, with the names of its arguments."""

    concrete: ConcreteFunction


class SavedNode(NamedTuple):
    """One object: its path from the root, and its children by name and number."""

    value: Any
    path: str
    children: list[tuple[str, int]]


def is_function(value: object) -> bool:
    """Whether it is a ``tf.function``, of this program or of a loaded model."""
    return isinstance(value, _FUNCTIONS)


def traces_of(function: Any) -> list[ConcreteFunction]:
    """The traces that are saved of a function: those that were made, or the declared one."""
    if isinstance(function, LoadedFunction):
        return function.concrete_functions
    if isinstance(function, BoundFunction):
        function = function._function
    found = list(dict.fromkeys(function._cache().values()))
    if not found and function.input_signature is not None:
        found = [function.get_concrete_function()]
    return found


class SavedObjects:
    """The objects below a root, breadth first, then the constants of their functions."""

    def __init__(self, root: object, signatures: Iterable[ConcreteFunction]) -> None:
        self.nodes: list[SavedNode] = []
        self._ids: dict[int, int] = {}
        #: Objects that only live while the model is saved: their ids must stay theirs.
        self._kept: list[object] = []
        self._walk(root)
        if any([traces_of(n.value) for n in self.nodes if is_function(n.value)]):
            self._ids.clear()  # tracing may have made variables
            self.nodes.clear()
            self._walk(root)
        self.variables = [(i, n) for i, n in enumerate(self.nodes) if isinstance(n.value, Variable)]
        self.tables = [(i, n) for i, n in enumerate(self.nodes) if is_table(n.value)]
        self.assets = [(i, n) for i, n in enumerate(self.nodes) if isinstance(n.value, AssetFile)]
        self._by_variable = {n.value.handle._op._attrs["shared_name"]: i for i, n in self.variables}
        self._by_tensor = {id(n.value.resource_handle): i for i, n in self.tables}
        self._by_tensor.update({id(n.value.tensor): i for i, n in self.assets})
        #: The numbers of the functions that save and restore a changing table.
        self.entry_functions = {
            i: self._add_bare(entry_functions(n.value))
            for i, n in self.tables
            if entry_dtypes(n.value) is not None
        }
        functions = [n.value for n in self.nodes if is_function(n.value)]
        self._add_constants([t for f in functions for t in traces_of(f)])
        bare = [n.value.concrete for n in self.nodes if isinstance(n.value, BareFunction)]
        self._add_constants(bare)
        self._add_constants(signatures)
        self.constants = [(i, n) for i, n in enumerate(self.nodes) if isinstance(n.value, Constant)]

    def _walk(self, root: object) -> None:
        """Number the root and what is below it, breadth first."""
        self._add(root, "")
        at = 0
        while at < len(self.nodes):
            node = self.nodes[at]
            for name, value in _children(node.value):
                path = f"{node.path}/{name}" if node.path else name
                node.children.append((name, self._add(value, path)))
            at += 1

    def _add(self, value: object, path: str) -> int:
        if isinstance(value, LoadedSignature):
            value = value.concrete
        key = id(value._function) if isinstance(value, BoundFunction) else id(value)
        known = self._ids.get(key)
        if known is None:
            known = self._ids[key] = len(self.nodes)
            self._kept.append(value)
            if isinstance(value, ConcreteFunction):
                value = BareFunction(value)
            elif isinstance(value, SavedAsset):
                value = AssetFile(value.asset_path)
            self.nodes.append(SavedNode(value, path, []))
        return known

    def _add_bare(self, traces: tuple[ConcreteFunction, ConcreteFunction]) -> tuple[int, int]:
        save, restore = (self._add(BareFunction(t), "") for t in traces)
        return save, restore

    def _add_constants(self, traces: Iterable[ConcreteFunction]) -> None:
        for concrete in traces:
            for outside in concrete.graph.external_captures:
                if id(outside) not in self._by_tensor and outside.dtype != dtypes.resource:
                    self._by_tensor[id(outside)] = len(self.nodes)
                    self.nodes.append(SavedNode(Constant(outside), "", []))

    def bound(self, concrete: ConcreteFunction) -> list[int]:
        """What a trace takes from outside, in the order of its further arguments."""
        graph = concrete.graph
        found = [self._number(t, graph.name) for t in graph.external_captures]
        for handle in variable_handles(graph):
            number = self._by_variable.get(handle._op._attrs["shared_name"])
            if number is None:
                raise _untracked(graph.name, f"variable '{handle._op.name}'")
            found.append(number)
        return found

    def _number(self, outside: Tensor, function: str) -> int:
        number = self._by_tensor.get(id(outside))
        if number is None:
            raise _untracked(function, f"resource {outside!r} (a lookup table?)")
        return number


def _untracked(function: str, what: str) -> AssertionError:
    return AssertionError(
        "Tried to export a function which references an 'untracked' resource: the function "
        f"'{function}' uses the {what}, which must be an attribute of the saved object (or of "
        "something that it holds)"
    )


def variable_handles(graph: Graph) -> list[Tensor]:
    """The handles by which a function's graph knows variables."""
    return [op._outputs[0] for op in graph._ops if op.type == "VarHandleOp"]


def _children(value: object) -> list[tuple[str, Any]]:
    """What an object holds that is saved with it."""
    if isinstance(value, (Variable, AssetFile, BareFunction)) or is_function(value):
        return []
    if isinstance(value, LookupInterface):
        return _table_children(value)
    if isinstance(value, (list, tuple)):
        return [(str(i), v) for i, v in enumerate(value) if _is_saved(v)]
    if isinstance(value, dict):
        return [(k, v) for k, v in value.items() if isinstance(k, str) and _is_saved(v)]
    return attributes_of(value)


def attributes_of(value: object) -> list[tuple[str, Any]]:
    """What is saved of an object's attributes, and the functions of its class."""
    ignored: frozenset[str] = getattr(value, "_TF_MODULE_IGNORED_PROPERTIES", frozenset())
    own = [
        (k, v)
        for k, v in vars(value).items()
        if k not in ignored and k != "signatures" and _is_saved(v)
    ]
    seen = {k for k, _ in own}
    for kind in type(value).__mro__:
        for name, attribute in vars(kind).items():
            if isinstance(attribute, Function) and name not in seen:
                seen.add(name)
                own.append((name, getattr(value, name)))
    return own


def _is_saved(value: object) -> bool:
    kinds = (Variable, Module, LookupInterface, ConcreteFunction, LoadedSignature)
    if isinstance(value, kinds) or is_function(value):
        return True
    if isinstance(value, (list, tuple)):
        return any(_is_saved(v) for v in value)
    return isinstance(value, dict) and any(_is_saved(v) for v in value.values())


def _table_children(table: LookupInterface) -> list[tuple[str, Any]]:
    """A table's functions and its vocabulary file."""
    if not is_table(table):  # a table of ids with buckets, around the table of its vocabulary
        inner = getattr(table, "_table", None)
        return [] if inner is None else [("_table", inner)]

    made: list[tuple[str, Any]] = [*table_functions(table)]
    initializer = getattr(table, "_initializer", None)
    if isinstance(initializer, TextFileInitializer):
        made.append(("_filename", AssetFile(initializer._filename)))
    return made
