"""Products that only an optimizer's update reads become part of it.

The gradient of a dense layer's weights, ``MatMul(x, dy, transpose_a=True)`` or a sum of such
products, is made, written to memory, and read again by the update. As one step
(ops/training/product_updates.py) the update takes it while it is in registers. The step stands
where the update stood: what it reads must not be a variable, which an earlier update may have
overwritten.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from headrace.core import shapes
from headrace.core.dtypes import float32
from headrace.lower.fusion import Fused, PlanBlock, PlanIf, PlanStatement, PlanWhile, statements
from headrace.lower.select_updates import gradient_position
from headrace.lower.session_state import MIN_OVERWRITTEN
from headrace.ops.linalg.matmul import MATMUL
from headrace.ops.math.add_n import ADD_N
from headrace.ops.training.product_updates import MAX_PAIRS, with_products
from headrace.program.nodes import Node, Program

if TYPE_CHECKING:
    from headrace.core.tensor import Operation

__all__ = ["count_uses", "take_products"]


def take_products(
    block: PlanBlock, program: Program, apart: dict[Operation, str] | None = None
) -> PlanBlock:
    """The block with products in the updates that read them; ``apart`` gets the reasons of those
    that have none.
    """
    if not any(isinstance(s, Node) and s.writes and _is_large(s, program) for s in block):
        return block
    return _Products(block, program, {} if apart is None else apart).taken()


def _is_large(node: Node, program: Program) -> bool:
    """Whether the variable is overwritten rather than replaced."""
    size = shapes.num_elements(program.values[node.inputs[0]].shape)
    return size is not None and size > MIN_OVERWRITTEN


class _Products:
    def __init__(self, block: PlanBlock, program: Program, apart: dict[Operation, str]) -> None:
        self.block, self.program, self.apart = block, program, apart
        self.variables = {i for v in program.variables for i in (v.start, v.current)}
        self.uses = count_uses(block, program)
        self.places: dict[int, int] = {}  # of values of the outermost block
        for at, s in enumerate(block):
            node = _alone(s)
            if node is not None:
                self.places.update(dict.fromkeys(node.outputs, at))

    def taken(self) -> PlanBlock:
        out: list[PlanStatement | None] = [*self.block]
        for at, s in enumerate(self.block):
            if isinstance(s, Node) and s.writes and _is_large(s, self.program):
                self._take(s, at, out)
        return tuple([s for s in out if s is not None])

    def _take(self, node: Node, at: int, out: list[PlanStatement | None]) -> None:
        opdef = with_products(node.opdef)
        place = None if opdef is None else gradient_position(node, self.program)
        if opdef is None or place is None:
            self.apart[node.op] = "its rule has no form that takes a product as the gradient"
            return
        found = self._products(node.inputs[place])
        if isinstance(found, str) or len(found) > MAX_PAIRS:
            many = f"its gradient is a sum of more than {MAX_PAIRS} products"
            self.apart[node.op] = found if isinstance(found, str) else many
            return
        factors = tuple(i for product in found for i in product.inputs)
        inputs = (*node.inputs[:place], *factors, *node.inputs[place + 1 :])
        out[at] = node._replace(opdef=opdef, inputs=inputs)
        for value in (node.inputs[place], *(p.outputs[0] for p in found)):
            out[self.places[value]] = None

    def _products(self, gradient: int) -> list[Node] | str:
        """The products that a gradient is the sum of; why there are none."""
        node = self._producer(gradient)
        if self.uses[gradient] != 1:
            return "its gradient is read by other steps, too"
        if node is not None and node.opdef is MATMUL:
            why = self._why_stays(node)
            return why or [node]
        if node is None or (node.opdef.role != "+" and node.opdef is not ADD_N):
            return "its gradient is no product"
        shape = self.program.values[gradient].shape
        found: list[Node] = []
        for i in node.inputs:
            same = self.program.values[i].shape == shape
            more = self._products(i) if same else "its gradient is no sum of products alone"
            if isinstance(more, str):
                return more
            found += more
        return found

    def _producer(self, value: int) -> Node | None:
        place = self.places.get(value)
        return None if place is None else _alone(self.block[place])

    def _why_stays(self, node: Node) -> str:
        """Why a product cannot be made where its update is; empty if it can."""
        attrs = node.attrs
        if not attrs["transpose_a"] or attrs["transpose_b"]:
            return "its gradient is no product of a transposed batch"
        if self.program.values[node.outputs[0]].dtype is not float32:
            return "its gradient is a product of another type than float32"
        stays = all(self._stays(i) for i in node.inputs)
        return "" if stays else "a factor of its gradient may be overwritten before it"

    def _stays(self, value: int) -> bool:
        """Whether a value lies in memory that no update overwrites."""
        while value not in self.variables:
            node = self._producer(value)
            if node is None or not node.opdef.traits.view:
                return node is None or node.opdef.role not in ("read", "identity")
            value = node.inputs[0]
        return False


def _alone(s: PlanStatement) -> Node | None:
    """The only node of a statement."""
    if isinstance(s, Fused) and len(s.nodes) == 1:
        return s.nodes[0]
    return s if isinstance(s, Node) else None


def count_uses(block: PlanBlock, program: Program) -> Counter[int]:
    """How often each value is read."""
    found: Counter[int] = Counter()
    for s in statements(block):
        if isinstance(s, PlanWhile):
            found.update(i for v in s.loop.values for i in (v.init, v.next))
            found[s.loop.cond] += 1
        else:
            found.update([s.pred] if isinstance(s, PlanIf) else s.inputs)
    found.update(f for f in (*program.fetches, *program.effects) if f is not None)
    return found
