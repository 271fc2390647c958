"""Resources that a program initializes together, beside its variables.

>>> sess.run(initialize_resources(shared_resources()))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from headrace.core import dtypes
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import add_to_collection, get_collection, name_scope
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.basic import constant, no_op
from headrace.ops.array.joining import stack
from headrace.ops.array.masking import boolean_mask
from headrace.ops.control.dependencies import group
from headrace.ops.math.comparison import logical_not

__all__ = [
    "initialize_resources",
    "is_resource_initialized",
    "local_resources",
    "register_resource",
    "report_uninitialized_resources",
    "shared_resources",
]


class _Resource(NamedTuple):
    handle: Tensor
    create: Operation
    is_initialized: Tensor


def register_resource(
    handle: Tensor, create_op: Operation, is_initialized_op: Tensor, is_shared: bool = True
) -> None:
    """Add a resource, with the operation that creates it and a tensor that says whether it is."""
    key = GraphKeys.RESOURCES if is_shared else GraphKeys.LOCAL_RESOURCES
    add_to_collection(key, _Resource(handle, create_op, is_initialized_op))


def shared_resources() -> list[Any]:
    """What was registered as shared, in order."""
    return list(get_collection(GraphKeys.RESOURCES))


def local_resources() -> list[Any]:
    """What was registered as local, in order."""
    return list(get_collection(GraphKeys.LOCAL_RESOURCES))


def is_resource_initialized(resource: Any) -> Tensor:
    """A tensor that says whether a resource was created."""
    found: Tensor = resource.is_initialized
    return found


def initialize_resources(resource_list: Sequence[Any], name: str = "init") -> Operation:
    """An operation that creates all of them."""
    if not resource_list:
        return no_op(name=name)
    return group(*[r.create for r in resource_list], name=name)


def report_uninitialized_resources(
    resource_list: Sequence[Any] | None = None, name: str = "report_uninitialized_resources"
) -> Tensor:
    """The names of resources that were not created, in a vector of strings."""
    if resource_list is None:
        resource_list = shared_resources() + local_resources()
    with name_scope(name):
        if not resource_list:
            return constant([], dtype=dtypes.string)
        missing = logical_not(stack([r.is_initialized for r in resource_list]))
        names = constant([r.handle.name for r in resource_list])
        return boolean_mask(names, missing)
