"""Ordering without data: group, tuple, with_dependencies."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from headrace.core.convert import convert_to_tensor
from headrace.core.graph import Graph, get_default_graph
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.scopes import name_scope
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.basic import identity, no_op

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["group", "tuple", "with_dependencies"]

_tuple: Any = builtins.tuple
TensorOrSlices = TypeVar("TensorOrSlices", Tensor, IndexedSlices)


def group(*inputs: object, name: str | None = None) -> Operation:
    """An operation that is done when all inputs are; it has no value."""
    graph = get_default_graph()
    if graph._is_eager:
        return None  # type: ignore[return-value]  # what was to be done is done
    ops = []
    for item in _flat(inputs):
        if item is None:
            raise TypeError(
                "Expected tf.group() expected Tensor objects not None with type '<class "
                "'NoneType'>'"
            )
        ops.append(_operation(item))
    if (
        ops and not graph._is_function
    ):  # a function waits for operations around it (core/func_graph.py)
        graph = ops[0].graph
    by_device: dict[str, list[Operation]] = {}
    for op in ops:
        by_device.setdefault(op._device, []).append(op)
    with graph.as_default():
        if len(by_device) == 1:
            return _wait(graph, ops, ops[0]._device, name or "group_deps")
        with graph.name_scope(name or "group_deps") as scope:
            if ops:  # one operation waits on each device, one for these
                ops = [_wait(graph, by_device[d], d, "NoOp") for d in sorted(by_device)]
            return _wait(graph, ops, "", scope)


def _wait(graph: Graph, ops: list[Operation], device: str, name: str) -> Operation:
    """A NoOp on a device that runs after the operations."""
    with graph.control_dependencies(ops), graph.device(device) if device else nullcontext():
        return no_op(name)


def _flat(items: Any) -> list[Any]:
    out: list[Any] = []
    for item in items:
        if isinstance(item, (list, _tuple)) and not hasattr(item, "op"):
            out.extend(_flat(item))
        elif isinstance(item, dict):
            out.extend(_flat(item.values()))
        else:
            out.append(item)
    return out


def _operation(item: object) -> Operation:
    if isinstance(item, Operation):
        return item
    if isinstance(item, Tensor):
        return item._op
    op: Operation | None = getattr(item, "op", None)
    if hasattr(item, "handle") and op is not None:
        return op  # of a resource variable: the write, not a read after it
    if hasattr(item, "_as_graph_element"):
        element = item._as_graph_element()
        return element if isinstance(element, Operation) else element._op
    if op is not None:
        return op
    raise TypeError(
        f"Expected tf.group() expected Tensor objects not {item!r} with type '{type(item)}'"
    )


def with_dependencies(
    dependencies: Sequence[Any], output_tensor: TensorOrSlices, name: str | None = None
) -> TensorOrSlices:
    """``output_tensor``, available only after all ``dependencies`` are done."""
    if get_default_graph()._is_eager:
        return (
            output_tensor if isinstance(output_tensor, IndexedSlices) else identity(output_tensor)
        )
    with name_scope(name, "control_dependency", [*dependencies, output_tensor]) as scope:
        ops = [_operation(d) for d in _flat(dependencies)]
        graph = get_default_graph()
        with graph.colocate_with(output_tensor), graph.control_dependencies(ops):
            if isinstance(output_tensor, IndexedSlices):
                return IndexedSlices(
                    identity(output_tensor.values, name=scope),
                    output_tensor.indices,
                    output_tensor.dense_shape,
                )
            return identity(convert_to_tensor(output_tensor), name=scope)


def _gateable(item: TensorLike | None) -> Any:
    """Arrays and plain values become constants."""
    plain = isinstance(item, (np.ndarray, np.generic, list, int, float, complex, str, bytes))
    return convert_to_tensor(item) if plain else item


def tuple(
    tensors: Any, name: str | None = None, control_inputs: Sequence[TensorLike] | None = None
) -> list[Any]:
    """The tensors, each available only when all of them are."""
    if get_default_graph()._is_eager:
        return list(tensors)
    with name_scope(name, "tuple", [t for t in tensors if t is not None]) as scope:
        tensors = [_gateable(t) for t in tensors]
        ops = [_operation(t) for t in tensors if t is not None]
        ops += [_operation(c) for c in control_inputs or []]
        if not ops:
            raise ValueError(f"Must have at least one Tensor: {tensors!r}")
        gate = group(*ops)
        out = [None if t is None else with_dependencies([gate], t) for t in tensors]
        del scope
        return out
