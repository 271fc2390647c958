"""``for x in dataset`` in a function that AutoGraph converts: a loop of the graph over an iterator.

The iterator's next element is a loop variable, an optional; the loop goes on while it has a value.
Where the loop can end early (``break``), the next element is read only if it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.autograph.loop_operators import while_stmt
from headrace.core.build import apply_op
from headrace.core.graph import get_default_graph
from headrace.data.api.iterators import OwnedIterator
from headrace.data.api.optional import Optional
from headrace.ops.control.control_flow import cond
from headrace.ops.math.comparison import logical_and

if TYPE_CHECKING:
    from headrace.core.tensor import Tensor
    from headrace.data.api.dataset import DatasetV2

__all__ = ["dataset_for"]

Thunk = Callable[[], Any]


def _python_for(items: Any, extra_test: Thunk | None, body: Callable[[Any], None]) -> None:
    if extra_test is not None and not extra_test():
        return
    for item in items:
        body(item)
        if extra_test is not None and not extra_test():
            return


def dataset_for(
    iterated: DatasetV2 | OwnedIterator,
    extra_test: Thunk | None,
    body: Callable[[Any], None],
    get_state: Thunk,
    set_state: Callable[[Any], None],
    names: tuple[str, ...],
    options: dict[str, Any],
) -> None:
    """The loop over a dataset or an iterator."""
    if get_default_graph()._is_eager:
        _python_for(iterated, extra_test, body)
        return
    iterator = iterated if isinstance(iterated, OwnedIterator) else OwnedIterator(iterated)
    spec = iterator.element_spec
    upcoming: Any = iterator.get_next_as_optional()._variant_tensor

    def following() -> Any:
        return iterator.get_next_as_optional()._variant_tensor

    def test() -> Tensor:
        there = Optional(upcoming, spec).has_value()
        return there if extra_test is None else logical_and(there, extra_test())

    def step() -> None:
        nonlocal upcoming
        body(Optional(upcoming, spec).get_value())
        if extra_test is None:
            upcoming = following()
        else:
            upcoming = cond(extra_test(), following, lambda: apply_op("OptionalNone"))

    def get_all() -> tuple[bool | Tensor, ...]:
        return (upcoming, *get_state())

    def set_all(state: Sequence[Tensor]) -> None:
        nonlocal upcoming
        upcoming = state[0]
        set_state(tuple(state[1:]))

    while_stmt(test, step, get_all, set_all, ("<next element>", *names), options)
