"""Types of a program's own that ``run`` fetches and accepts as feeds.

Libraries of distributions register their random variables here, so that ``sess.run(variable)``
gives its sample.

    register_session_run_conversion_functions(
        Squared, lambda s: ([s.tensor], lambda values: values[0]), lambda s, v: [(s.tensor, v)]
    )
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from headrace.core.tensor import Tensor

__all__ = ["Conversion", "conversion_of", "register_session_run_conversion_functions"]


class Conversion(NamedTuple):
    """How one type is fetched and fed."""

    kind: type
    fetch: Callable[[Any], tuple[list[Any], Callable[[list[Any]], Any]]]
    feed: Callable[[Any, Any], list[tuple[Tensor, Any]]] | None
    fed_tensors: Callable[[Any], list[Tensor]] | None


_registered: list[Conversion] = []


def register_session_run_conversion_functions(
    tensor_type: type,
    fetch_function: Callable[[Any], tuple[list[Any], Callable[[list[Any]], Any]]],
    feed_function: Callable[[Any, Any], list[tuple[Tensor, Any]]] | None = None,
    feed_function_for_partial_run: Callable[[Any], list[Tensor]] | None = None,
) -> None:
    """Let ``run`` fetch and feed objects of `tensor_type`.

    `fetch_function` takes an object and gives its tensors and a function from the list of their
    values to the result. `feed_function` takes an object and the value fed for it and gives pairs
    of tensor and value; `feed_function_for_partial_run` gives these tensors without a value.
    ValueError if the type, or a subclass of it, is registered already.
    """
    if any(issubclass(c.kind, tensor_type) for c in _registered):
        raise ValueError(f"{tensor_type} has already been registered so ignore it.")
    _registered.insert(
        0, Conversion(tensor_type, fetch_function, feed_function, feed_function_for_partial_run)
    )


def conversion_of(value: object) -> Conversion | None:
    """The conversion that was registered for the type of `value`, the last one first."""
    for conversion in _registered:
        if isinstance(value, conversion.kind):
            return conversion
    return None
