"""Where an op's two seeds come from, as in TF 1.15.

The graph has a seed (``set_random_seed``), an op may have one (``seed=``); a random op gets a pair
made of both. An op without a seed of its own in a graph with one gets, as its second seed, the
number of operations that the graph had when it was made. TensorFlow counts in the same way, so a
program with a graph-level seed gives TensorFlow's numbers as long as the same operations were added
before; a seed on the op itself does not depend on that. Where Headrace makes fewer operations than
TensorFlow for the same call (a check that needs none, a gradient with known shapes), the caller
says so with ``count_as`` or ``count_more`` and the numbering goes on as if they had all been made.

    >>> set_random_seed(1)
    >>> get_seed(None)  # in an empty graph
    (1, 0)
    >>> get_seed(42)
    (1, 42)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from headrace.core.graph import Graph, get_default_graph

__all__ = [
    "DEFAULT_GRAPH_SEED",
    "count_as",
    "count_more",
    "counted_with",
    "get_seed",
    "ops_counted",
    "random_ops_numbered",
    "set_random_seed",
]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

#: Stands in for the graph's seed if only the op has one.
DEFAULT_GRAPH_SEED = 87654321
_MAX_INT32 = 2**31 - 1


def set_random_seed(seed: int | None) -> None:
    """Set the seed of the default graph; ops that are made afterwards use it."""
    get_default_graph().seed = seed


def get_seed(op_seed: Any) -> tuple[int | None, int | None]:
    """The pair of seeds for an op that was given ``op_seed``; (None, None) means any."""
    graph = get_default_graph()
    if graph._is_eager:
        return graph._op_seeds(op_seed)
    graph_seed = graph.seed
    if graph_seed is None and op_seed is None:
        return None, None
    if hasattr(op_seed, "graph"):
        raise TypeError(f"Expected int for argument 'seed2' not {op_seed!r}.")
    if graph_seed is None:
        graph_seed = DEFAULT_GRAPH_SEED
    elif op_seed is None:
        op_seed = _number_in_function(graph) if graph._is_function else ops_counted(graph)
    seeds = graph_seed % _MAX_INT32, op_seed % _MAX_INT32
    # a kernel takes (0, 0) for "anything", which is not what seeds of 0 ask for
    return (0, _MAX_INT32) if seeds == (0, 0) else seeds


def _number_in_function(graph: Graph) -> int:
    """TF 2 numbers the random ops of a function, whatever other operations there are."""
    graph._random_ops += 1
    return graph._random_ops - 1


def random_ops_numbered(function: Graph) -> int:
    """How many random ops of a function have the graph's seed and none of their own."""
    return function._random_ops


def ops_counted(graph: Graph) -> int:
    """How many operations TensorFlow's graph of the same program would have."""
    return len(graph._ops) + graph._uncounted


def count_as(graph: Graph, start: int, ops: int) -> None:
    """What was made since ``start`` (a value of ``ops_counted``) counts as so many operations."""
    graph._uncounted = start + ops - len(graph._ops)


def count_more(graph: Graph, ops: int) -> None:
    """TensorFlow would have made so many operations more (fewer if negative)."""
    graph._uncounted += ops


def counted_with(
    ops: int,
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """A function for which TensorFlow makes ``ops`` operations more, whatever the arguments."""

    def decorate(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        @wraps(function)
        def counted(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
            result = function(*args, **kwargs)
            count_more(get_default_graph(), ops)
            return result

        return counted

    return decorate
