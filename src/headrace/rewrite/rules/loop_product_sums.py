"""Sums of products over the rounds of a loop: the rows of all rounds are kept and multiplied at
once.

The gradient of a weight that a loop uses is ``total += a.T @ b`` in every round of the backward
loop, with few rows: a matrix as large as the weight is made, added and forgotten. Nobody looks at
the total before the loop ends, so that it need not be a loop variable at all
(ops/internal/loop_sums.py). The gradients of biases, sums of the rows themselves, go the same way.
"""

from __future__ import annotations

from typing import NamedTuple

from headrace.core import dtypes, shapes
from headrace.core.opdef import lookup
from headrace.program.nodes import Block, If, Node, Statement, While
from headrace.rewrite.rewrite_state import RewriteState
from headrace.rewrite.rules.fused_products import MAX_INNER, WRITTEN

__all__ = ["Summed", "sums_over_rounds"]

_REAL = (dtypes.float32, dtypes.float64)


class Summed(NamedTuple):
    """A loop without the sums that it made."""

    before: list[Node]
    loop: While
    after: list[Node]


class _Sum(NamedTuple):
    """A loop variable that only sums up."""

    value: int
    init: int
    terms: list[Node]  # what is added in a round
    adding: list[Node]


def sums_over_rounds(loop: While, state: RewriteState) -> Summed | None:
    """All such variables of a loop at once."""
    made = {o: s for s in loop.body if isinstance(s, Node) for o in s.outputs}
    uses = _uses(loop)
    found = [_sum_of(v.value, v.init, v.next, made, uses, state) for v in loop.values]
    sums = [s for s in found if s is not None]
    if not sums:
        return None
    before, after = [], []
    instead: dict[int, Node | None] = {}  # by the identity of a node, what takes its place
    for s in sums:
        op = s.terms[0].op
        handle = state.new_value(dtypes.variant, ())
        before.append(Node(lookup("_RowSum"), (), (handle,), {}, op))
        instead.update((id(n), None) for n in s.adding)
        instead.update((id(n), _kept(n, handle, state)) for n in s.terms)
        after.append(_total(s, handle, state))
    gone = {s.value for s in sums}
    body = [instead.get(id(s), s) for s in loop.body]
    values = tuple(v for v in loop.values if v.value not in gone)
    rest = tuple(s for s in body if s is not None)
    return Summed(before, loop._replace(values=values, body=rest), after)


def _kept(term: Node, handle: int, state: RewriteState) -> Node:
    product = term.opdef.name == "MatMul"
    attrs = {"T": state.dtype(term.outputs[0])}
    inputs = term.inputs if product else term.inputs[:1]
    name = "_AddProduct" if product else "_AddRows"
    return Node(lookup(name), (handle, *inputs), (), attrs, term.op)


def _total(s: _Sum, handle: int, state: RewriteState) -> Node:
    info = state.values[s.value]
    total = state.new_value(info.dtype, info.shape)
    state.uses[total] = state.uses.get(s.value, 0)
    state.replaced[s.value] = total
    attrs = {"T": info.dtype, "from_zero": _is_zero(s.init, state)}
    return Node(lookup("_SumOfProducts"), (handle, s.init), (total,), attrs, s.adding[0].op)


def _is_zero(value: int, state: RewriteState) -> bool:
    node = state.producers.get(value)
    if node is not None and node.opdef.name == "Fill":
        value = node.inputs[1]
    known = state.constants.get(value)
    if known is not None:
        return not known.any()
    return node is not None and node.opdef.name == "ZerosLike"


# finding ------------------------------------------------------------------------------------------


def _sum_of(
    value: int,
    init: int,
    following: int,
    made: dict[int, Node],
    uses: dict[int, int],
    state: RewriteState,
) -> _Sum | None:
    """``value`` is used once, by the sum that is its own next value, which is used nowhere else."""
    add = made.get(following)
    if add is None or not _adds(add) or uses.get(value, 0) != 1:
        return None
    if value not in add.inputs or uses.get(following, 0) != 1:
        return None
    shape = shapes.known(state.shape(value))
    if shape is None or state.dtype(value) not in _REAL:
        return None
    adding: list[Node] = []
    terms: list[Node] = []
    stack = [following]
    while stack:
        at = stack.pop()
        node = made.get(at)
        if at == value:
            continue
        if node is None or uses.get(at, 0) != 1 or state.shape(at) != shape:
            return None
        if _adds(node):
            adding.append(node)
            stack.extend(node.inputs)
        else:
            terms.append(node)
    rank = state.rank(value)
    return _Sum(value, init, terms, adding) if _may_wait(terms, rank, state) else None


def _adds(node: Node) -> bool:
    return node.opdef.role == "+" or node.opdef.name == "AddN"


def _may_wait(terms: list[Node], rank: int | None, state: RewriteState) -> bool:
    """All are products over rows (for a matrix), or all are sums of rows (for a vector), of not
    too many rows.
    """
    if not terms or not all((_is_product if rank == 2 else _is_row_sum)(t, state) for t in terms):
        return False
    if not state.mutable.isdisjoint([i for t in terms for i in t.inputs]):
        state.no(WRITTEN)
        return False
    for t in terms:
        rows = state.shape(t.inputs[0])
        if rows is not None and rows[0] is not None and rows[0] > MAX_INNER:
            state.no("the products are large enough by themselves")
            return False
    return True


def _is_product(node: Node, state: RewriteState) -> bool:
    name, attrs = node.opdef.name, node.attrs
    return bool(name == "MatMul" and attrs["transpose_a"] and not attrs["transpose_b"])


def _is_row_sum(node: Node, state: RewriteState) -> bool:
    if state.rank(node.inputs[0]) != 2:
        return False
    if node.opdef.name == "BiasAddGrad":
        return bool(node.attrs["data_format"] == "NHWC")
    if node.opdef.name != "Sum" or node.attrs["keep_dims"]:
        return False
    axes = state.constants.get(node.inputs[1])
    return axes is not None and axes.size == 1 and int(axes.reshape(-1)[0]) in (0, -2)


def _uses(loop: While) -> dict[int, int]:
    """How often each value is used in a loop, by whatever."""
    uses: dict[int, int] = {}

    def use(*values: int) -> None:
        for value in values:
            uses[value] = uses.get(value, 0) + 1

    use(loop.cond, *[v.next for v in loop.values])
    stack: list[Block] = [loop.test, loop.body]
    while stack:
        for s in stack.pop():
            _use_in(s, use, stack)
    return uses


def _use_in(s: Statement, use: object, stack: list[Block]) -> None:
    assert callable(use)
    if isinstance(s, Node):
        use(*s.inputs)
    elif isinstance(s, If):
        use(s.pred)
        stack.append(s.body)
    else:
        use(s.cond, *[x for v in s.values for x in (v.init, v.next)])
        stack += [s.test, s.body]
