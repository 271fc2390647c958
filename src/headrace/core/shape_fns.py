"""Shape rules that many ops share. Each takes an Inference and returns one plain shape per
output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.core import shapes
from headrace.core.infer import Inference
from headrace.core.shapes import Shape

__all__ = [
    "broadcast",
    "fixed",
    "from_attr",
    "no_outputs",
    "ranked",
    "reduction",
    "scalar",
    "scalars",
    "unchanged",
    "unknown",
]

Rule = Callable[[Inference], list[Shape]]


def unchanged(c: Inference) -> list[Shape]:
    """The output has the shape of the first input."""
    return [c.op._inputs[0]._shape]


def broadcast(c: Inference) -> list[Shape]:
    """Two inputs, broadcast against each other."""
    a, b = c.op._inputs[0]._shape, c.op._inputs[1]._shape
    return [a if a == b else shapes.broadcast(a, b)]


def broadcast_all(c: Inference) -> list[Shape]:
    out = c.shape(0)
    for i in range(1, c.n_inputs):
        out = shapes.broadcast(out, c.shape(i))
    return [out]


def same_shape_inputs(c: Inference) -> list[Shape]:
    """All inputs have one shape, which is the output's."""
    out: Shape = None
    for shape in c.shapes():
        out = shapes.merge(out, shape)
    return [out]


def scalar(c: Inference) -> list[Shape]:
    return [()]


def scalars(n: int) -> Rule:
    return lambda c: [()] * n


def no_outputs(c: Inference) -> list[Shape]:
    return []


def unknown(c: Inference) -> list[Shape]:
    return [None]


def unknowns(n: int) -> Rule:
    return lambda c: [None] * n


def fixed(*found: Shape) -> Rule:
    return lambda c: list(found)


def ranked(ranks: Sequence[int | None], rule: Rule) -> Rule:
    """``rule`` after the check that inputs have these ranks (None: any)."""

    def checked(c: Inference) -> list[Shape]:
        for i, rank in enumerate(ranks):
            if rank is not None:
                c.require_rank(i, rank)
        return rule(c)

    return checked


def from_attr(name: str = "shape") -> Rule:
    return lambda c: [c.attr(name)]


def from_shape_input(i: int) -> Rule:
    """Input i holds the output's shape."""
    return lambda c: [c.shape_value(i)]


def normalize_axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"Invalid reduction dimension {axis} for input with {rank} dimensions.")
    return axis + rank if axis < 0 else axis


def reduction(c: Inference) -> list[Shape]:
    """Input 0 reduced over the axes in input 1, attribute keep_dims."""
    shape, keep = c.shape(0), c.attr("keep_dims")
    axes = c.value(1)
    if shape is None:
        return [None]
    if axes is None:
        if keep:
            return [(None,) * len(shape)]
        count = shapes.num_elements(c.shape(1))
        return [None] if count is None or count > 1 else [(None,) * (len(shape) - count)]
    gone = {normalize_axis(int(a), len(shape)) for a in axes.reshape(-1)}
    if keep:
        return [tuple(1 if i in gone else d for i, d in enumerate(shape))]
    return [tuple(d for i, d in enumerate(shape) if i not in gone)]
