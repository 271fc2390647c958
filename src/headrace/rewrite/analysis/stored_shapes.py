"""Shapes of what is kept in TensorArrays and stacks: in one round of a loop it is put there, in
another it is taken out.

All that was ever written to such a list has the same shape as far as every write agrees in ints and
in names that mean one length throughout the run (of values made outside of all loops). A list whose
handle goes anywhere else than to the operations on lists is not known; neither is one that somebody
writes to later in the program than it is read.

    a = tf.TensorArray(tf.float32, n).unstack(x)     # x: [n, batch, 8]
    a.read(i)                                        # in a loop: (Dim(x, 1), 8)

``Stores`` finds the writes of a program once. The rules for shapes here join those of dims.py.
"""

from __future__ import annotations

from typing import Any

from headrace.core.shapes import Shape
from headrace.program.nodes import Block, If, Node, Program, While
from headrace.rewrite.analysis.dims import DIMS, Dim, Dims, Times, dims_of
from headrace.rewrite.rewrite_state import RewriteState

__all__ = ["Stores", "is_steady"]

Key = tuple[
    int, str
]  # the list's handle, and the name of the gradient that it holds ("" for the list itself)


class Stores:
    """The lists of a program as it was before the walk, and who writes to them."""

    def __init__(self, program: Program) -> None:
        self.keys: dict[int, Key] = {}
        self.writes: dict[Key, list[Node]] = {}
        self.element_shapes: dict[Key, Shape] = {}
        self.lost: set[int] = set()  # handles that may be written to by others
        self._block(program.body)
        self._leaves(*[f for f in (*program.fetches, *program.effects) if f is not None])

    def _block(self, block: Block) -> None:
        for s in block:
            if isinstance(s, Node):
                self._node(s)
            elif isinstance(s, If):
                self._block(s.body)
            else:
                assert isinstance(s, While)
                self._leaves(*[v.init for v in s.values])
                self._block(s.test)
                self._block(s.body)
                self._leaves(*[v.next for v in s.values])

    def _leaves(self, *values: int) -> None:
        for value in values:
            if value in self.keys:
                self.lost.add(self.keys[value][0])

    def _node(self, node: Node) -> None:
        name, inputs, keys = node.opdef.name, node.inputs, self.keys
        if name == "TensorArrayV3" or name == "StackV2":
            key = keys[node.outputs[0]] = (node.outputs[0], "")
            self.element_shapes[key] = node.attrs.get("element_shape")
            return
        own = keys.get(inputs[0]) if inputs else None
        self._leaves(*inputs[1:])
        if own is None:
            return
        if name == "TensorArrayGradV3" and own[1] == "":
            keys[node.outputs[0]] = (own[0], node.attrs["source"] or "gradient")
        elif node.opdef.traits.stored == "write":
            self.writes.setdefault(own, []).append(node)
        elif node.opdef.traits.stored != "read":
            self.lost.add(own[0])

    def element_dims(self, handle: int, state: RewriteState) -> list[Any] | None:
        """The lengths that all elements of a list have, None for one that is not known.

        None if not even the rank is.
        """
        key = self.keys.get(handle)
        if key is None or key[0] in self.lost:
            return None
        found = self._written((key[0], ""), state)
        if key[1] == "" or found is None:
            return found
        if key not in self.writes:
            return found
        gradient = self._written(
            key, state
        )  # what is not written is zero, as large as what it is the gradient of
        return _agreeing([found, gradient])

    def _written(self, key: Key, state: RewriteState) -> list[Any] | None:
        given = []
        for raw in self.writes.get(key, ()):
            node = state.producers.get(raw.outputs[0])
            if node is None:
                return None  # comes later
            given.append(_written_dims(node, state))
        found = _agreeing(given)
        shape = self.element_shapes.get(key)
        if shape is None:
            return found
        if found is None or len(found) != len(shape):
            return list(shape)
        return [f if s is None else s for f, s in zip(found, shape)]


def _written_dims(node: Node, state: RewriteState) -> list[Any] | None:
    name = node.opdef.name
    if name == "StackPushV2" or name == "TensorArraySplitV3":
        dims = dims_of(node.inputs[1], state)
    else:
        dims = dims_of(node.inputs[2], state)
    if dims is None:
        return None
    found = [d if is_steady(d, state) else None for d in dims]
    if name == "TensorArrayScatterV3":
        return found[1:] if found else None
    return [None, *found[1:]] if name == "TensorArraySplitV3" else found


def is_steady(dim: int | Dim, state: RewriteState) -> bool:
    """The same length throughout a run."""
    if isinstance(dim, Dim):
        return state.steady(dim.value)
    if isinstance(dim, Times):
        return all(state.steady(n.value) for n in dim.names)
    return type(dim) is int


def _agreeing(given: list[list[Any] | None]) -> list[Any] | None:
    first = given[0] if given else None
    if first is None or any(g is None or len(g) != len(first) for g in given):
        return None
    return [
        a if all(g is not None and g[i] == a for g in given) else None for i, a in enumerate(first)
    ]


# rules --------------------------------------------------------------------------------------------


def _named(found: list[Any], value: int, first: int = 0) -> Dims:
    return tuple([Dim(value, i + first) if d is None else d for i, d in enumerate(found)])


def _element_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    stores: Stores | None = state.stores
    found = None if stores is None else stores.element_dims(node.inputs[0], state)
    return None if found is None else _named(found, value)


def _gathered_dims(node: Node, value: int, state: RewriteState, depth: int) -> Dims | None:
    stores: Stores | None = state.stores
    found = None if stores is None else stores.element_dims(node.inputs[0], state)
    count = dims_of(node.inputs[1], state, depth)
    if found is None or count is None or len(count) != 1:
        return None
    return (*count, *_named(found, value, 1))


DIMS.update(
    TensorArrayReadV3=_element_dims, StackPopV2=_element_dims, TensorArrayGatherV3=_gathered_dims
)
