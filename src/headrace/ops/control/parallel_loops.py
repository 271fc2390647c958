"""``pfor``, ``for_loop`` and ``vectorized_map``: one function for every number below a limit.

TensorFlow's ``pfor`` rewrites the iterations into operations over all of them. Here they are the
rounds of one loop: the same values, in the time that the rounds take one after another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.core import dtypes, nest
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.ops.array.basic import constant
from headrace.ops.array.joining import stack
from headrace.ops.control.functional import map_fn

__all__ = ["for_loop", "pfor", "vectorized_map"]


def for_loop(
    loop_fn: Callable[[Tensor], Any],
    loop_fn_dtypes: object,
    iters: int | Tensor,
    parallel_iterations: int | None = None,
) -> Any:
    """``loop_fn(0)`` … ``loop_fn(iters - 1)``, each output stacked; None stays None.

    >>> for_loop(lambda i: tf.gather(x, i) * 2, tf.float32, 3)
    """
    like: list[Any] = []

    def values_of(i: Tensor) -> list[Tensor]:
        result = loop_fn(i)
        like[:] = [result]
        return [convert_to_tensor(v) for v in nest.flatten(result) if v is not None]

    with name_scope(None, "loop_body"):
        if get_default_graph()._is_eager:
            rounds = [values_of(constant(i)) for i in range(int(iters))]
            stacked = [stack(list(column)) for column in zip(*rounds)]
        else:
            types: Any = _types_of_tensors(loop_fn, loop_fn_dtypes)
            numbers = apply_op("Range", 0, iters, 1)
            stacked = map_fn(
                values_of, numbers, types, parallel_iterations=parallel_iterations
            )  # fmt: skip
    outputs, given = iter(stacked), nest.flatten(like[0])
    flat = [None if v is None else next(outputs) for v in given]
    return nest.pack_sequence_as(like[0], flat) if nest.is_sequence(like[0]) else flat[0]


def _types_of_tensors(loop_fn: Callable[[Tensor], Any], given: object) -> list[dtypes.DType]:
    """The types of what is no None in one round, which is built only to find that out."""
    found = nest.flatten(loop_fn(constant(0)))
    types = [None] * len(found) if given is None else nest.flatten(given)
    if len(types) != len(found):
        raise ValueError(
            f"loop_fn gives {len(found)} outputs, but loop_fn_dtypes has {len(types)} types"
        )
    return [
        convert_to_tensor(v).dtype.base_dtype if t is None else dtypes.as_dtype(t)
        for v, t in zip(found, types)
        if v is not None
    ]


def pfor(
    loop_fn: Callable[[Tensor], Any],
    iters: int | Tensor,
    parallel_iterations: int | None = None,
) -> Any:
    """``loop_fn`` for 0 … ``iters - 1``, each output stacked; its types need not be said."""
    if parallel_iterations is not None:
        if parallel_iterations < 1:
            raise ValueError(
                f"parallel_iterations must be None or a positive integer, not {parallel_iterations}"
            )
        if parallel_iterations == 1:
            raise ValueError("Found parallel_iterations == 1. Use for_loop instead.")
    return for_loop(loop_fn, None, iters, parallel_iterations)


def vectorized_map(fn: Callable[[Any], Any], elems: object) -> Any:
    """``fn`` of each row of ``elems`` (a tensor or a structure of them), the results stacked."""
    tensors = [convert_to_tensor(e) for e in nest.flatten(elems)]
    sizes = [t._shape[0] for t in tensors if t._shape and t._shape[0] is not None]
    rows = sizes[0] if sizes else apply_op("GatherV2", apply_op("Shape", tensors[0]), 0, 0)

    def one(i: Tensor) -> Any:
        picked = [apply_op("GatherV2", t, i, 0) for t in tensors]
        return fn(nest.pack_sequence_as(elems, picked) if nest.is_sequence(elems) else picked[0])

    return pfor(one, rows)
