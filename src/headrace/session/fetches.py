"""Fetching: any nesting of fetchable things, and its result in the same shape.

``plan_fetches`` flattens a structure into unique graph elements and returns a function that
rebuilds the structure from their values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from headrace import errors
from headrace.core.contexts import guards_of
from headrace.core.graph import Graph
from headrace.core.indexed_slices import IndexedSlices, SparseTensorValue
from headrace.core.tensor import Operation, Tensor
from headrace.program.snapshot import FinalValue
from headrace.session.conversions import conversion_of

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["IndexedSlicesValue", "plan_fetches"]

Rebuild = Callable[[tuple[Any, ...]], Any]
Element: TypeAlias = Tensor | Operation | FinalValue


class Slots:
    """Unique elements in the order in which they are first met."""

    def __init__(self) -> None:
        self.index: dict[Element, int] = {}

    def taker(self, element: Element) -> Rebuild:
        """How to take the element's value.

        Who asks for it again gets a copy: no two results share memory.
        """
        known = len(self.index)
        slot = self.index.setdefault(element, known)
        if slot == known:
            return lambda values: values[slot]
        return lambda values: _copy(values[slot])


def _copy(value: Array | np.generic | None) -> Array | np.generic | None:
    return value.copy() if isinstance(value, np.ndarray) else value


def plan_fetches(graph: Graph, fetches: object) -> tuple[list[Element], Rebuild]:
    """The unique elements that ``fetches`` needs, and how its result is put together from their
    values.
    """
    if type(fetches) is Tensor and _is_plain(graph, fetches):
        return [fetches], _first
    if fetches is None:
        raise TypeError("Fetch argument None has invalid type <class 'NoneType'>")
    slots = Slots()
    rebuild = _plan(graph, fetches, slots)
    return list(slots.index), rebuild


def _is_plain(graph: Graph, tensor: Tensor) -> bool:
    op = tensor._op
    return op.graph is graph and op._role != "handle" and graph.is_fetchable(tensor)


def _first(values: tuple[Any, ...]) -> Any:
    return values[0]


def _plan(graph: Graph, fetch: Any, slots: Slots) -> Rebuild:
    if isinstance(fetch, (list, tuple)):
        return _sequence(graph, fetch, slots)
    if isinstance(fetch, Mapping):
        parts = [(k, _plan(graph, v, slots)) for k, v in fetch.items()]
        kind: Any = type(fetch) if type(fetch) is not dict else dict
        return lambda values: _mapping(kind, [(k, p(values)) for k, p in parts])
    conversion = conversion_of(fetch)
    if conversion is not None:
        tensors, contract = conversion.fetch(fetch)
        takers = [slots.taker(_element(graph, t)) for t in tensors]
        return lambda values: contract([t(values) for t in takers])
    if hasattr(type(fetch), "_from_arrays"):  # RaggedTensor
        parts_of = [slots.taker(_element(graph, t)) for t in fetch._to_components()]
        return lambda values: fetch._from_arrays([t(values) for t in parts_of])
    if isinstance(fetch, IndexedSlices):
        return _composite(
            graph, fetch, slots, IndexedSlicesValue, ("values", "indices", "dense_shape")
        )
    if hasattr(fetch, "dense_shape") and hasattr(fetch, "indices") and hasattr(fetch, "values"):
        return _composite(
            graph, fetch, slots, SparseTensorValue, ("indices", "values", "dense_shape")
        )
    if dataclasses.is_dataclass(fetch) and not isinstance(fetch, type):
        names = [f.name for f in dataclasses.fields(fetch)]
        inner = [_plan(graph, getattr(fetch, n), slots) for n in names]
        cls = type(fetch)
        return lambda values: cls(**{n: p(values) for n, p in zip(names, inner)})
    if hasattr(type(fetch), "__attrs_attrs__"):
        names = [a.name for a in type(fetch).__attrs_attrs__]
        inner = [_plan(graph, getattr(fetch, n), slots) for n in names]
        cls = type(fetch)
        return lambda values: cls(**{n: p(values) for n, p in zip(names, inner)})
    return slots.taker(_element(graph, fetch))


def _sequence(graph: Graph, fetch: Any, slots: Slots) -> Rebuild:
    parts = [_plan(graph, f, slots) for f in fetch]
    if isinstance(fetch, list):
        return lambda values: [p(values) for p in parts]
    if hasattr(fetch, "_fields"):
        cls = type(fetch)
        return lambda values: cls(*[p(values) for p in parts])
    return lambda values: tuple([p(values) for p in parts])


def _mapping(kind: type[Any], items: list[tuple[Any, Any]]) -> Any:
    try:
        return kind(items)
    except TypeError:  # defaultdict and the like take something else first
        return dict(items)


def _composite(
    graph: Graph, fetch: object, slots: Slots, cls: type[Any], names: tuple[str, ...]
) -> Rebuild:
    parts = [
        None if getattr(fetch, n) is None else slots.taker(_element(graph, getattr(fetch, n)))
        for n in names
    ]
    return lambda values: cls(*[None if p is None else p(values) for p in parts])


class IndexedSlicesValue(NamedTuple):
    """What fetching IndexedSlices gives."""

    values: Any
    indices: Any
    dense_shape: Any


def _is_variable(fetch: object, handle: Tensor) -> bool:
    """A resource variable itself, and not the result of an assignment to one."""
    return handle._op._role == "handle" and getattr(fetch, "_parent_op", None) is None


_INSIDE = (
    " It is inside of a branch or a loop and may have no value, or one for each "
    "iteration: fetch what the tf.cond or "
    "tf.while_loop returns."
)


def _element(graph: Graph, fetch: object) -> Element:
    handle = getattr(fetch, "handle", None)
    try:
        if isinstance(handle, Tensor) and _is_variable(fetch, handle):
            graph.as_graph_element(handle)
            cached = getattr(fetch, "_cached_value", None)
            return FinalValue(handle._op) if cached is None else cached
        element: Tensor | Operation = graph.as_graph_element(
            fetch, allow_tensor=True, allow_operation=True
        )
    except TypeError as error:
        raise TypeError(
            f"Fetch argument {fetch!r} has invalid type {type(fetch)}, must be a string "
            f"or Tensor. ({error})"
        ) from None
    except ValueError as error:
        raise ValueError(
            f"Fetch argument {fetch!r} cannot be interpreted as a Tensor. ({error})"
        ) from None
    except KeyError as error:
        raise ValueError(
            f"Fetch argument {fetch!r} cannot be interpreted as a Tensor. ({error.args[0]})"
        ) from None
    if not graph.is_fetchable(element):
        op = element._op if isinstance(element, Tensor) else element
        inside = "" if op._context is None else _INSIDE
        raise errors.InaccessibleTensorError(
            f"Operation {op.name!r} has been marked as not fetchable.{inside}"
        )
    if isinstance(element, Tensor) and element._op._role == "handle":
        return FinalValue(element._op)
    return element


def with_dead_check(
    graph: Graph, elements: list[Any], rebuild: Callable[[tuple[Any, ...]], Any]
) -> tuple[list[Any], Callable[[tuple[Any, ...]], Any]]:
    """Fetches behind Switch operations that the program made itself: what was not switched to has
    no value, which is an error.
    """
    from headrace.program.flow_structure import place_flat_operations

    place_flat_operations(graph)
    needed: list[tuple[Tensor, int]] = []
    for e in elements:
        if isinstance(e, Tensor) and e._op in graph._flat_placed:
            needed += [(c.pred, c.branch) for c in guards_of(e._op._context)]
            if e._op._role == "switch":
                needed.append((e._op._inputs[1], e._value_index))
    count = len(elements)

    def checked(values: tuple[Any, ...]) -> Any:
        for value, (pred, branch) in zip(values[count:], needed):
            if bool(value) != bool(branch):
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    "Retval[0] does not have value: it is fetched from the side that a Switch by "
                    f"{pred.name} did not take",
                )
        return rebuild(values[:count])

    return [*elements, *(pred for pred, _ in needed)], checked if needed else rebuild
