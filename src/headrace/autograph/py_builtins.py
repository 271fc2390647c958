"""Python's builtins over tensors: ``len``, ``int``, ``float``, ``abs``, ``range``, ``max``,
``min``, ``sorted``, ``print``.

``BUILTIN_HANDLERS`` lets other packages say what a builtin does with their objects:

    BUILTIN_HANDLERS["enumerate"].append((is_dataset, lambda ds, start=0: ds.enumerate(start)))
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.autograph.staged import as_value, is_staged
from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.scopes import control_dependencies
from headrace.core.tensor import Tensor
from headrace.ops.array import ranges
from headrace.ops.array.basic import constant
from headrace.ops.array.casting import cast
from headrace.ops.array.joining import stack
from headrace.ops.control.assertions import Assert
from headrace.ops.control.control_flow import cond
from headrace.ops.control.tensor_array import TensorArray
from headrace.ops.io.printing import print_v2
from headrace.ops.math import binary as math_binary
from headrace.ops.math import unary as math_unary
from headrace.ops.strings.string_numbers import string_to_number

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Operation

__all__ = ["BUILTINS", "BUILTIN_HANDLERS", "len_", "print_"]

Predicate = Callable[[Any], bool]

#: By the builtin's name: (which first argument, what to do). Later entries are asked first.
BUILTIN_HANDLERS: dict[str, list[tuple[Predicate, Callable[..., Any]]]] = {
    name: []
    for name in (
        "abs",
        "all",
        "any",
        "enumerate",
        "filter",
        "len",
        "map",
        "next",
        "print",
        "sorted",
        "zip",
    )
}


def _handled(name: str, plain: Callable[..., Any], argument: int = 0) -> Callable[..., Any]:
    """The builtin, or what a handler for its argument does."""
    handlers = BUILTIN_HANDLERS[name]

    def called(*args: object, **kwargs: object) -> Any:
        if handlers and len(args) > argument:
            for accepts, handler in reversed(handlers):
                if accepts(args[argument]):
                    return handler(*args, **kwargs)
        return plain(*args, **kwargs)

    called.__name__ = name
    return called


def _abs(x: float | Tensor) -> Any:
    return math_unary.abs(x) if is_staged(x) else builtins.abs(x)


def _float(x: object = 0.0) -> Any:
    x = as_value(x)
    if not is_staged(x):
        return float(x)
    if x.dtype.base_dtype is dtypes.string:
        return string_to_number(x, out_type=dtypes.float32)
    return cast(x, dtypes.float32)


def _int(x: Any = 0, base: Any = None) -> Any:
    x = as_value(x)
    if not is_staged(x):
        return int(x) if base is None else int(x, base)
    if base not in (None, 10):
        raise NotImplementedError(f"base {base} not supported for int")
    if x.dtype.base_dtype is dtypes.string:
        return string_to_number(x, out_type=dtypes.int32)
    return cast(x, dtypes.int32)


def len_(x: object) -> Any:
    """A number where the static shape has it, else a scalar tensor."""
    if isinstance(x, TensorArray):
        return x.size()
    x = as_value(x)
    if not is_staged(x):
        return len(x)
    shape = x._shape
    if shape == ():
        raise ValueError(f"len requires a non-scalar tensor, got one of shape {x.shape}")
    if shape is not None and shape[0] is not None:
        return shape[0]
    sizes = apply_op("Shape", x)
    if shape is not None:
        return sizes[0]
    rank = apply_op("Size", sizes)
    return cond(rank > 0, lambda: sizes[0], lambda: _no_length(rank))


def _no_length(rank: Tensor) -> Tensor:
    check = Assert(constant(False), ["len requires non-zero rank, got", rank])
    with control_dependencies([check]):
        return constant(0)


def _range(start: object, stop: object = None, step: object = None) -> Any:
    start, stop, step = as_value(start), as_value(stop), as_value(step)
    if not any(map(is_staged, (start, stop, step))):
        return range(*(v for v in (start, stop, step) if v is not None))
    if step is not None:
        return ranges.range(start, stop, step)
    if stop is not None:
        # a stop below the start is an empty range in Python, an error in tf.range
        return ranges.range(start, math_binary.maximum(start, stop))
    return ranges.range(math_binary.maximum(start, 0))


def _extreme(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: object) -> Any:
        if not any(map(is_staged, args)):
            return plain(*args, **kwargs)
        if kwargs:
            raise ValueError(
                f"These keyword arguments are currently not supported: {tuple(kwargs)}"
            )
        if len(args) == 1:
            x = args[0]
            rank = None if x._shape is None else len(x._shape)
            if rank == 0:
                return x
            if rank != 1:
                raise ValueError(
                    f"{name}(arg) currently support only tensor with rank 1, but got a "
                    f"tensor with rank {rank}"
                )
        else:
            x = stack(list(args))
            if x._shape is None or len(x._shape) != 1:
                raise ValueError(
                    f"{name}(arg1, arg2, *args) currently support only scalar tensor, but "
                    "got tensors that stack to "
                    f"shape {x.shape}"
                )
        return apply_op(name.capitalize(), x, constant([0]), keep_dims=False)

    called.__name__ = name
    return called


def _sorted(x: Any, key: Any = None, reverse: Any = False) -> Any:
    if not is_staged(x):
        return sorted(x, key=key, reverse=reverse)
    from headrace.ops.array.sorting import sort

    if key is not None:
        raise ValueError("sorted of a tensor takes no key")
    if x._shape is None or len(x._shape) != 1:
        raise ValueError(
            f"sorted only supports only 1-dimension tensors, got one of shape {x.shape}"
        )
    return sort(x, direction="DESCENDING" if reverse else "ASCENDING")


def print_(*objects: TensorLike, **kwargs: object) -> Operation | None:
    """``print`` when the graph runs, if a tensor is among what is printed
    (Feature.BUILTIN_FUNCTIONS).
    """
    if not any(map(is_staged, objects)):
        # the user's own print, while tracing
        getattr(builtins, "print")(*objects, **kwargs)  # noqa: B009
        return None
    import sys

    file = kwargs.pop("file", None) or sys.stdout
    kwargs.pop("flush", None)
    return print_v2(*objects, output_stream=file, **kwargs)


#: What is called in the place of a builtin.
BUILTINS: dict[Any, Callable[..., Any]] = {
    abs: _handled("abs", _abs),
    all: _handled("all", builtins.all),
    any: _handled("any", builtins.any),
    enumerate: _handled("enumerate", builtins.enumerate),
    filter: _handled("filter", builtins.filter, 1),
    float: _float,
    int: _int,
    len: _handled("len", len_),
    map: _handled("map", builtins.map, 1),
    max: _extreme("max", builtins.max),
    min: _extreme("min", builtins.min),
    next: _handled("next", builtins.next),
    range: _range,
    sorted: _handled("sorted", _sorted),
    zip: _handled("zip", builtins.zip),
}
