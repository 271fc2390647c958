"""Dead code: pure nodes whose results nothing reads."""

from __future__ import annotations

from headrace.program.nodes import Block, If, Node, Program, Statement, While

__all__ = ["remove_dead"]


def remove_dead(program: Program) -> Program:
    """Drop pure nodes whose results nothing reads."""
    live = {f for f in program.fetches if f is not None} | set(program.effects)
    body, dropped = _live_block(program.body, live)
    notes = dict(program.notes)
    if dropped:
        notes["dead code"] = notes.get("dead code", 0) + dropped
    return program._replace(body=body, notes=notes)


def _live_block(block: Block, live: set[int]) -> tuple[Block, int]:
    out: list[Statement] = []
    dropped = 0
    for statement in reversed(block):
        if isinstance(statement, Node):
            traits = statement.opdef.traits
            if statement.writes or traits.stateful or not live.isdisjoint(statement.outputs):
                live.update(statement.inputs)
                out.append(statement)
            else:
                dropped += 1
        elif isinstance(statement, If):
            body, n = _live_block(statement.body, live)
            dropped += n
            if body:
                live.add(statement.pred)
                out.append(If(statement.pred, statement.branch, body))
        else:
            for v in statement.values:
                live.update((v.init, v.next, v.value))
            live.add(statement.cond)
            body, n = _live_block(statement.body, live)
            test, m = _live_block(statement.test, live)
            dropped += n + m
            out.append(While(statement.values, test, statement.cond, body, statement.op))
    out.reverse()
    return tuple(out), dropped
