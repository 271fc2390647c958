"""What rules see and change: values and constants, who makes and uses what, substitutions.

``uses`` is kept up to date while rules fire (it decides what pays, never what is right): a value
that another one replaced takes over its uses, and what an absorbed node read is used once less.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.core.dtypes import DType
from headrace.core.opdef import lookup
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation
from headrace.program.binding_times import constant_stages, is_function
from headrace.program.constants import Constants, attributes_key
from headrace.program.nodes import (
    Block,
    Firing,
    NearMiss,
    Node,
    Program,
    Statement,
    ValueInfo,
    count_uses,
    walk,
)

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["CONSTANT", "RewriteState", "is_pure"]

_Answer = TypeVar("_Answer")

#: Stands for a constant where op types are named.
CONSTANT = "<constant>"
#: Reasons that are kept; what is wrong a hundred times over is wrong for one reason.
MAX_MISSES = 100


class _Loop:
    """A loop that the walk is in: what is moved out of it, and how many branches it lies in."""

    def __init__(self, branches: int) -> None:
        self.before: list[Statement] = []
        self.branches = branches
        self.in_test = True  # the test, which runs at least once, comes first


class RewriteState:
    """The state of one walk."""

    def __init__(self, program: Program) -> None:
        self.values: list[ValueInfo] = list(program.values)
        self.constants: Constants = program.constants.copy()
        self.stages = constant_stages(self.constants)
        #: values of variables that change during the run: reads of them may not be moved
        self.mutable = frozenset(v.current for v in program.variables if v.written)
        self.uses = count_uses(program)
        self.results = {f for f in (*program.fetches, *program.effects) if f is not None}
        self.replaced: dict[int, int] = {}
        self.producers: dict[int, Node] = {}  # value -> the node that makes it
        self.makers: dict[int, str] = dict.fromkeys(self.constants, CONSTANT)  # value -> its type
        self.scopes: list[dict[Hashable, Node]] = [{}]
        self.loops: list[_Loop] = []
        self.made_at: dict[int, int] = {}  # depth of loops at which a value is made, if not 0
        self.branches = 0  # branches that the walk is in
        self.guarded: set[int] = set()  # values that are made in branches
        self.firings: list[Firing] = []
        self.misses: list[NearMiss] = []
        self.reason: str | None = None
        self.retired: list[Node] = []
        #: what is known of shapes and of integer vectors (see shapes.py)
        self.dims: dict[int, tuple[Any, ...] | None] = {}
        self.parts: dict[int, tuple[Any, ...] | None] = {}
        self.stores: Any = None  # what is kept in lists through loops (see stored_shapes.py)
        self.same_constant: dict[Hashable, int] = {}
        #: keys of attributes, by the identity of the dictionary that is kept with its key
        self.attribute_keys: dict[int, tuple[dict[str, Any], Hashable | None]] = {}
        self.fills: dict[
            int, float | None
        ] = {}  # what every element of a constant is (see algebra.py)
        self.emit: Callable[[Node], None]  # set by the walk: a new node in the present block

    # questions ----------------------------------------------------------------------------------
    def shape(self, value: int) -> Shape:
        return self.values[value].shape

    def dtype(self, value: int) -> DType:
        return self.values[value].dtype

    def rank(self, value: int) -> int | None:
        shape = self.values[value].shape
        return None if shape is None else len(shape)

    def producer(self, value: int, *types: str) -> Node | None:
        """The node that makes a value, if it is of one of the types (names or roles of ops) and
        runs as often as the present node does.
        """
        node = self.producers.get(value)
        if node is None or (node.opdef.name not in types and node.opdef.role not in types):
            return None
        if self.made_at and self.made_at.get(value, 0) != len(self.loops):
            return None
        return node

    def once(self, value: int) -> bool:
        """Just one input is this value."""
        return self.uses.get(value, 0) == 1

    def no(self, reason: str) -> _Answer | None:
        """The answer (None) of a rule whose pattern was there but whose check failed."""
        self.reason = reason
        return None

    def lookup(self, key: Hashable) -> Node | None:
        found: Node | None
        for scope in reversed(self.scopes):
            found = scope.get(key)
            if found is not None:
                return found
        return None

    def attributes_key(self, attrs: dict[str, Any]) -> Hashable | None:
        """What is equal for equal attributes; None if there is no such key.

        Many operations share one dictionary of attributes.
        """
        known = self.attribute_keys.get(id(attrs))
        if known is None:
            try:
                key: Hashable | None = attributes_key(attrs)
            except TypeError:
                key = None
            known = self.attribute_keys[id(attrs)] = (attrs, key)
        return known[1]

    def name_of(self, value: int) -> str:
        tensor = self.values[value].tensor
        return "a constant" if tensor is None else tensor._op.name

    def holds_result(self, block: Block) -> bool:
        return any(o in self.results for n in walk(block) for o in n.outputs)

    def steady(self, value: int) -> bool:
        """There is just one such value in a run.

        It is made neither in rounds nor in a branch, and not written to.
        """
        return not (value in self.made_at or value in self.guarded or value in self.mutable)

    def refine(self, value: int, dims: Sequence[Any]) -> None:
        """Add the lengths that were found out to the static shape."""
        info = self.values[value]
        old = info.shape or (None,) * len(dims)
        shape = tuple([d if o is None and type(d) is int else o for o, d in zip(old, dims)])
        if shape != info.shape:
            self.values[value] = info._replace(shape=shape)

    # making -------------------------------------------------------------------------------------
    def new_value(self, dtype: DType, shape: Shape) -> int:
        self.values.append(ValueInfo(dtype, shape, None))
        return len(self.values) - 1

    def copy_of(self, value: int) -> int:
        """A new value like another one, for a copy of the node that makes it."""
        self.values.append(self.values[value])
        return len(self.values) - 1

    def constant(self, array: Array, like: int) -> int:
        """A constant in the place of the value ``like``."""
        info = self.values[like]
        self.values.append(ValueInfo(info.dtype, array.shape, info.tensor))
        value = len(self.values) - 1
        self.constants[value] = array
        self.makers[value] = CONSTANT
        return value

    def new_constant(self, array: Array, dtype: DType) -> int:
        value = self.new_value(dtype, array.shape)
        self.constants[value] = array
        self.makers[value] = CONSTANT
        return value

    def add(
        self,
        op_type: str,
        inputs: Sequence[int],
        dtype: DType,
        shape: Shape,
        op: Operation,
        **attrs: object,
    ) -> int:
        """A new node before the present one; it goes through the rules itself. Returns its
        value.
        """
        opdef = lookup(op_type)
        value = self.new_value(dtype, shape)
        for i in inputs:
            self.uses[i] = self.uses.get(i, 0) + 1
        self.uses[value] = 0
        given = {**{k: v for k, v in opdef.defaults.items()}, **attrs}
        self.emit(Node(opdef, tuple(inputs), (value,), given, op))
        return self.replaced.get(value, value)

    # bookkeeping of the walk --------------------------------------------------------------------
    def note_miss(self, rule: str, node: Node) -> None:
        assert self.reason is not None
        if len(self.misses) < MAX_MISSES:
            self.misses.append(NearMiss(rule, node.op.name, self.reason))
        self.reason = None

    def current(self, node: Node) -> Node:
        """The node with inputs that were replaced since."""
        replaced = self.replaced
        if not replaced:
            return node
        inputs = tuple([replaced.get(i, i) for i in node.inputs])
        if inputs == node.inputs:
            return node
        return Node(node.opdef, inputs, node.outputs, node.attrs, node.op, node.writes)

    def place(self, node: Node, depth: int | None = None) -> None:
        name = node.opdef.name
        for value in node.outputs:
            self.producers[value] = node
            self.makers[value] = name
        depth = len(self.loops) if depth is None else depth
        if depth:
            self.made_at.update(dict.fromkeys(node.outputs, depth))
        if self.branches:
            self.guarded.update(node.outputs)

    def substitute(self, node: Node, answer: tuple[int, ...]) -> None:
        uses = self.uses
        for old, new in zip(node.outputs, answer):
            self.replaced[old] = new
            uses[new] = uses.get(new, 0) + uses.get(old, 0)
        self.release(node.inputs)

    def swap(self, old: Node, new: Node) -> None:
        uses = self.uses
        for i in new.inputs:
            uses[i] = uses.get(i, 0) + 1
        if not self.retired:
            self.release(old.inputs)
            return
        left = [i for node in self.retired for i in node.inputs if not uses.get(i)]
        for i in left:
            uses[i] = 1
        done, self.retired = self.retired, []
        self.release(left, done)

    def retire(self, *nodes: Node) -> None:
        """Nodes that the present rule replaces (the one it was asked about first).

        What it adds may count on that.
        """
        self.retired = list(nodes)
        for node in nodes:
            for i in node.inputs:
                self.uses[i] = self.uses.get(i, 1) - 1

    def release(self, values: Sequence[int], done: Sequence[Node] = ()) -> None:
        """One use less of each; what nobody uses any more uses nothing itself."""
        uses = self.uses
        stack = list(values)
        while stack:
            value = stack.pop()
            left = uses[value] = uses.get(value, 1) - 1
            if left == 0:
                node = self.producers.get(value)
                if node is None or not is_pure(node) or any(uses.get(o) for o in node.outputs):
                    continue
                if not any(node is d for d in done):
                    stack.extend(node.inputs)

    def forget(self, block: Block) -> None:
        """A block that never runs uses nothing."""
        for node in walk(block):
            self.release(node.inputs)

    # loops --------------------------------------------------------------------------------------
    @contextmanager
    def inside_loop(self, values: Sequence[int]) -> Iterator[_Loop]:
        frame = _Loop(self.branches)
        self.loops.append(frame)
        self.scopes.append({})
        for value in values:
            self.made_at[value] = len(self.loops)
        yield frame
        self.scopes.pop()
        self.loops.pop()

    def move_out(self, node: Node, depth: int) -> None:
        """Before the loop at ``depth`` (0 is the outermost)."""
        self.loops[depth].before.append(node)
        self.place(node, depth)


def is_pure(node: Node) -> bool:
    """A function that reads no variable: where it stands does not matter."""
    return not node.opdef.traits.reads and is_function(node)
