"""What depends on what: the tensors and operations that can be reached from some inputs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from headrace.core.tensor import Operation, Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["reachable_from"]


class _Reached:
    """A set by identity: tensors may define ``==`` element by element."""

    def __init__(self) -> None:
        self._ids: set[int] = set()

    def add(self, item: object) -> None:
        self._ids.add(id(item))

    def __contains__(self, item: object) -> bool:
        return id(item) in self._ids


def reachable_from(inputs: TensorLike, targets: Iterable[Any]) -> _Reached:
    """Everything that depends on ``inputs``, searched until all ``targets`` are found."""
    from headrace.core import nest

    reached = _Reached()
    missing = {id(t) for t in targets}
    stack: list[Any] = [x for x in nest.flatten(inputs) if isinstance(x, (Tensor, Operation))]
    for start in stack:
        reached.add(start)
    while stack and missing:
        item = stack.pop()
        missing.discard(id(item))
        consumers = item.consumers() if isinstance(item, Tensor) else []
        for op in consumers:
            for following in (op, *op.outputs):
                if following not in reached:
                    reached.add(following)
                    missing.discard(id(following))
                    stack.append(following)
    return reached
