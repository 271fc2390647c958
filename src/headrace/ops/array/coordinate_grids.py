"""Coordinate tensors of a grid from its axes.

>>> x, y = tf.meshgrid([1, 2, 3], [4, 5])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.scopes import name_scope
from headrace.core.seeds import count_as, ops_counted
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import const, size
from headrace.ops.array.filling import ones

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["meshgrid"]


def meshgrid(*args: TensorLike, **kwargs: Any) -> list[Tensor]:
    """Coordinate tensors from vectors; ``indexing`` "xy" exchanges the first two dimensions."""
    indexing = kwargs.pop("indexing", "xy")
    name = kwargs.pop("name", "meshgrid")
    if kwargs:
        raise TypeError(f"'{next(iter(kwargs))}' is an invalid keyword argument for this function")
    if indexing not in ("xy", "ij"):
        raise ValueError("indexing parameter must be either 'xy' or 'ij'")
    with name_scope(name, "meshgrid", list(args)):
        if not args:
            return []
        before = ops_counted(get_default_graph())
        vectors = [convert_to_tensor(a) for a in args]
        dims = [size(v) for v in vectors]
        order = list(range(len(args)))
        if indexing == "xy" and len(args) > 1:
            order[:2] = [1, 0]
        full = apply_op("Pack", [dims[i] for i in order])
        lines = [_along(v, order.index(i), len(args)) for i, v in enumerate(vectors)]
        ones_everywhere = ones(full, vectors[0]._dtype._base)
        out = [apply_op("Mul", line, ones_everywhere, name="mul") for line in lines]
        count_as(full._op.graph, before, _ops_of_meshgrid(args, order))
        return out


def _ops_of_meshgrid(args: Sequence[TensorLike], order: list[int]) -> int:
    """TF makes tensors of lists several times, and reshapes twice where axes change places."""
    lists = [not isinstance(a, Tensor) for a in args]
    exchanged = 4 if order != sorted(order) else 0
    return 5 * len(args) + 2 * sum(lists) + lists[0] + exchanged + 4


def _along(vector: Tensor, axis: int, rank: int) -> Tensor:
    return apply_op("Reshape", vector, const([-1 if i == axis else 1 for i in range(rank)]))
