"""What a checkpoint holds is read into the memory of the variables that it is for.

A restored tensor that only an assignment reads may stay in its file until the assignment comes
(ops/io/variable_restores.py). Both keep their places; between them nothing may be asked of it.
"""

from __future__ import annotations

from headrace.core import shapes
from headrace.lower.fusion import PlanBlock, PlanStatement
from headrace.lower.select_product_updates import count_uses
from headrace.program.nodes import Node, Program

__all__ = ["count_restores", "take_restores"]


def take_restores(block: PlanBlock, program: Program) -> PlanBlock:
    """The block with restored values that go from the file to their variables."""
    found = [at for at, s in enumerate(block) if isinstance(s, Node) and s.opdef.traits.restores]
    if not found:
        return block
    from headrace.ops.io.variable_restores import RESTORE_STORED

    out: list[PlanStatement] = [*block]
    uses = count_uses(block, program)
    assigned = {
        s.inputs[1]: at for at, s in enumerate(block) if isinstance(s, Node) and _assigns(s)
    }
    for at in found:
        node = out[at]
        assert isinstance(node, Node)
        keys: list[str | None] = []
        for value in node.outputs:
            place = assigned.get(value) if uses[value] == 1 else None
            keys.append(None if place is None else _taken(out, place, program))
        if any(key is not None for key in keys):
            attrs = {**node.attrs, "keys": tuple(keys)}
            out[at] = node._replace(opdef=RESTORE_STORED, attrs=attrs)
    return tuple(out)


def _assigns(node: Node) -> bool:
    return node.opdef.role == "assign" and len(node.writes) == 1


def _taken(out: list[PlanStatement], place: int, program: Program) -> str | None:
    """Let an assignment take a value from its file; the key of its variable.

    None where the variable's shape may change.
    """
    node = out[place]
    assert isinstance(node, Node)
    variable = program.variables[node.writes[0]]
    shape = program.values[variable.start].shape
    if shapes.known(shape) is None or not node.attrs.get("validate_shape", True):
        return None
    from headrace.ops.io.variable_restores import assignment_of_stored

    out[place] = node._replace(opdef=assignment_of_stored(node.opdef))
    return variable.key


def count_restores(block: PlanBlock) -> int:
    """How many assignments of a plan read from a file."""
    return sum(
        sum(key is not None for key in s.attrs["keys"])
        for s in block
        if isinstance(s, Node) and s.opdef.traits.restores and "keys" in s.attrs
    )
