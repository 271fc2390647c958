"""``tf.gradients`` inside of a function with respect to something outside of it.

The function knows what comes from outside by placeholders (captures). Gradients that arrive at a
placeholder go on in the graph around, from the tensor that it stands for, as far as that leads to
an x. All gradient operations are made in the function; values of the graph around that they need
are captured like any others.

    x = tf.constant(2.0)
    y = x * x                       # outside
    f = tf.function(lambda: tf.gradients(y * 3.0, x))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.autodiff.backward_pass import Tape
from headrace.core.contexts import Context
from headrace.core.graph import Graph
from headrace.core.schedule import Loop
from headrace.core.tensor import Tensor

if TYPE_CHECKING:
    from headrace.autodiff.aggregate import Grad

__all__ = ["backprop_outwards"]


class _OuterTape(Tape):
    """A pass over the operations of a graph around the function.

    Its own operations are made in the function.
    """

    def __init__(self, function: Graph, walked: Graph) -> None:
        super().__init__(function)
        self.walked = walked
        self.open = ()

    def context_for(self, context: Context | None) -> Context | None:
        return self.called_in

    def loop(self, unit: Loop) -> None:
        raise LookupError(
            "No gradient can be made inside of a function for the loop "
            f"'{unit.context.name}' outside of it: call "
            "tf.gradients outside too, or make the loop in the function"
        )


def backprop_outwards(
    tape: Tape,
    ys: Sequence[Tensor],
    starts: Sequence[Any],
    xs: Sequence[Tensor],
    stops: set[Tensor],
) -> list[Any]:
    """``Tape.recorded`` where some xs are of the graphs around the function."""
    function: Any = tape.walked if isinstance(tape, _OuterTape) else tape.graph
    inside = [x if x._op.graph is function else function.inside(x) for x in xs]
    inner_stops = {
        s
        for s in (t if t._op.graph is function else function.inside(t) for t in stops)
        if s is not None
    }
    ways = [(o, i) for o, i in _ways_out(function, xs, stops) if i not in inner_stops]
    wanted = [x for x in inside if x is not None] + [i for _, i in ways]
    walk = tape.backprop if isinstance(tape, _OuterTape) else tape.recorded
    found = iter(walk(ys, starts, wanted, inner_stops))
    out = [None if x is None else next(found) for x in inside]
    further = {o for o, _ in ways}  # their gradients are told by the pass outside
    out = [None if x in further else g for x, g in zip(xs, out)]
    arrived = [(outer, grad) for (outer, _), grad in zip(ways, found) if grad is not None]
    for home in dict.fromkeys(o._op.graph for o, _ in arrived):
        here = [(o, g) for o, g in arrived if o._op.graph is home]
        more = _backprop_outside(tape.graph, home, here, xs, stops)
        out = [_sum(a, b) for a, b in zip(out, more)]
    return out


def _ways_out(
    function: Any, xs: Sequence[Tensor], stops: set[Tensor]
) -> list[tuple[Tensor, Tensor]]:
    """Captures that stand for a tensor which depends on an x."""
    found = []
    aims: dict[Graph, list[Tensor]] = {}
    for outer, inner in function.captures:
        home = outer._op.graph
        if home._is_eager or outer in stops:
            continue
        if home not in aims:
            aims[home] = _targets_in(home, xs, stops)
        between = _OuterTape(function, home).ops_between([outer], aims[home], stops)
        if outer._op in between or (outer not in xs and outer in aims[home]):
            found.append((outer, inner))
    return found


def _targets_in(home: Any, xs: Sequence[Tensor], stops: set[Tensor]) -> list[Tensor]:
    """What the xs, and tensors further outside that lead to them, are known by in a graph."""
    here = [x for x in xs if x._op.graph is home]
    if not home._is_function:
        return here
    inside = [home.inside(x) for x in xs if x._op.graph is not home]
    return [
        *here,
        *(t for t in inside if t is not None),
        *(i for _, i in _ways_out(home, xs, stops)),
    ]


def _backprop_outside(
    function: Graph,
    home: Graph,
    arrived: list[tuple[Tensor, Any]],
    xs: Sequence[Tensor],
    stops: set[Tensor],
) -> list[Any]:
    """Gradients of the xs from those of tensors of a graph around."""
    tape = _OuterTape(function, home)
    ys, starts = [o for o, _ in arrived], [g for _, g in arrived]
    if home._is_function:
        return backprop_outwards(tape, ys, starts, xs, stops)
    here = [x for x in xs if x._op.graph is home]
    found = iter(tape.backprop(ys, starts, here, stops))
    return [next(found) if x._op.graph is home else None for x in xs]


def _sum(a: Grad | None, b: Grad | None) -> Grad | None:
    from headrace.autodiff.aggregate import total

    if a is None or b is None:
        return b if a is None else a
    return total([a, b])
