"""Iterator ops: a resource of the session that goes through a dataset, and optionals.

The value of an iterator's handle is the :class:`IteratorResource` itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, KernelNode, define
from headrace.core.shapes import compatible, show, to_plain
from headrace.data.functions.user_functions import bound
from headrace.data.ops.dataset_ops import OUT, stage_of
from headrace.data.runtime.iteration import IteratorResource

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.core.annotations import Array, ArrayNamespace
    from headrace.core.dtypes import DType
    from headrace.data.functions.user_functions import DataFunction
    from headrace.data.runtime.stages import Stage
    from headrace.lower.session_state import RunContext

__all__ = ["OptionalValue"]

_SCALAR = lambda c: [()]
_numbers = itertools.count()


def _op(name: str, signature: str, kernel: Any, shape: Callable[..., Any] = _SCALAR) -> None:
    define(
        name,
        signature,
        shape=shape,
        kernel=kernel,
        grad=NOT_DIFFERENTIABLE,
        stateful=True,
        host_only=True,
    )


def _output_shapes(c: Inference) -> list[Any]:
    return list(c.attr("output_shapes"))


def _key(node: KernelNode) -> tuple[str, str]:
    name = node.attrs.get("shared_name") or node.name
    return ("iterator", f"{node.attrs.get('container', '')}/{name}")


def _made(node: KernelNode, own_seeds: bool = True) -> IteratorResource:
    attrs = node.attrs
    return IteratorResource(node.name, attrs["output_types"], attrs["output_shapes"], own_seeds)


def _iterator(xp: ArrayNamespace, *, node: KernelNode, rt: RunContext) -> IteratorResource:
    return rt.session_resource(_key(node), lambda: _made(node))


for _name in ("Iterator", "IteratorV2"):
    _op(_name, f"-> handle: resource; shared_name: str, container: str, {OUT}", _iterator)


def _anonymous(xp: ArrayNamespace, *, node: KernelNode) -> tuple[IteratorResource, None]:
    return _made(node, own_seeds=False), None


_op("AnonymousIterator", f"-> handle: resource; {OUT}", lambda xp, *, node: _made(node))
_op(
    "AnonymousIteratorV2",
    f"-> handle: resource, deleter: variant; {OUT}",
    _anonymous,
    lambda c: [(), ()],
)


def _one_shot(
    xp: ArrayNamespace, *, dataset_factory: DataFunction, node: KernelNode, rt: RunContext
) -> IteratorResource:
    found: IteratorResource = rt.session_resource(_key(node), lambda: _made(node))
    found.make_once(lambda: stage_of(bound(dataset_factory, rt, ())()[0]))
    return found


_op(
    "OneShotIterator",
    f"-> handle: resource; dataset_factory: func, {OUT}, container: str='', shared_name: str=''",
    _one_shot,
)


def _make(xp: ArrayNamespace, dataset: Stage, iterator: IteratorResource) -> tuple[Any, ...]:
    iterator.make(stage_of(dataset))
    return ()


_op("MakeIterator", "dataset: variant, iterator: resource -> ", _make, lambda c: [])


def _delete(xp: ArrayNamespace, handle: IteratorResource, deleter: object) -> tuple[Any, ...]:
    handle.close()
    return ()


_op("DeleteIterator", "handle: resource, deleter: variant -> ", _delete, lambda c: [])


def _get_next(xp: ArrayNamespace, iterator: IteratorResource) -> Array | tuple[Array, ...]:
    element = iterator.get_next()
    return element if len(element) != 1 else element[0]


for _name in ("IteratorGetNext", "IteratorGetNextSync"):
    _op(_name, f"iterator: resource -> components: *output_types; {OUT}", _get_next, _output_shapes)


def _to_string(xp: ArrayNamespace, iterator: IteratorResource, *, rt: RunContext) -> Array:
    if iterator.string_handle is None:
        iterator.string_handle = f"{iterator.name}/{next(_numbers)}".encode()
    rt.session_resource(("iterator handle", iterator.string_handle), lambda: iterator)
    out = np.empty((), object)
    out[()] = iterator.string_handle
    return out


def _from_string(
    xp: ArrayNamespace,
    handle: Array,
    *,
    output_types: Sequence[DType],
    output_shapes: Sequence[Any],
    rt: RunContext,
) -> IteratorResource:
    name = handle.item() if isinstance(handle, np.ndarray) else handle
    found: IteratorResource | None = rt.state.resources.get(("iterator handle", name))
    if found is None:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"The string handle {name!r} does not name an iterator of this session. Get one with "
            "sess.run(iterator.string_handle()).",
        )
    if output_types and found.types and tuple(output_types) != tuple(found.types):
        theirs, ours = ([t.name for t in ts] for ts in (found.types, output_types))
        raise errors.InvalidArgumentError(
            None,
            None,
            f"Data type mismatch: the iterator's elements are {theirs}, expected {ours}.",
        )
    for i, (its, mine) in enumerate(zip(found.shapes, map(to_plain, output_shapes))):
        if not compatible(its, mine):
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Incompatible shapes at component {i}: expected {show(mine)} but got {show(its)}.",
            )
    return found


_op("IteratorToStringHandle", "resource_handle: resource -> string_handle: string", _to_string)
for _name in ("IteratorFromStringHandle", "IteratorFromStringHandleV2"):
    _op(
        _name,
        "string_handle: string -> resource_handle: resource; output_types: list(type)=[], "
        "output_shapes: list(shape)=[]",
        _from_string,
    )

# optionals --------------------------------------------------------------------------------------


class OptionalValue:
    """An element, or none."""

    __slots__ = ("components",)

    def __init__(self, components: tuple[Any, ...] | None) -> None:
        self.components = components


def _next_as_optional(xp: ArrayNamespace, iterator: IteratorResource) -> OptionalValue:
    try:
        return OptionalValue(iterator.get_next())
    except errors.OutOfRangeError:
        return OptionalValue(None)


def _value(xp: ArrayNamespace, optional: OptionalValue) -> Array | tuple[Array, Array]:
    if optional.components is None:
        raise errors.InvalidArgumentError(None, None, "The given optional does not have a value.")
    found = optional.components
    return found if len(found) != 1 else found[0]


_op(
    "IteratorGetNextAsOptional",
    f"iterator: resource -> optional: variant; {OUT}",
    _next_as_optional,
)
_op(
    "OptionalFromValue",
    "components: *Toutput_types -> optional: variant",
    lambda xp, *c: OptionalValue(c),
)
_op("OptionalNone", "-> optional: variant", lambda xp: OptionalValue(None))
_op(
    "OptionalHasValue",
    "optional: variant -> has_value: bool",
    lambda xp, optional: np.bool_(optional.components is not None),
)
define(
    "OptionalGetValue",
    f"optional: variant -> components: *output_types; {OUT}",
    shape=_output_shapes,
    kernel=_value,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    host_only=True,
    view=True,
)
