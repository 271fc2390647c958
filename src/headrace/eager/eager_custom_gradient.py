"""``tf.custom_gradient`` while eager execution is on, and ``tf.recompute_grad``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.autodiff.aggregate import as_dense
from headrace.autodiff.custom_gradient import custom_gradient
from headrace.core import nest
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.tapes import variable_accessed
from headrace.eager.tape import GradientTape, stop_recording
from headrace.eager.tape_record import ACTIVE, TAPES, record_operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor

__all__ = ["call_with_gradient", "recompute_grad"]


class _Watcher(GradientTape):
    """A tape that only notes which variables are used."""

    def _wants(self, inputs: TensorLike) -> bool:
        return False


def call_with_gradient(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The value of a function under ``tf.custom_gradient``, recorded with the gradient that it
    gives.
    """
    if not ACTIVE[0] or not TAPES.items:
        return f(*args, **kwargs)[0]
    inputs = [a if hasattr(a, "handle") else convert_to_tensor(a) for a in nest.flatten(args)]
    for a in inputs:
        if hasattr(a, "handle"):
            variable_accessed(a)
    given = nest.pack_sequence_as(args, inputs)
    with _Watcher() as watcher:
        result, grad_fn = f(*given, **kwargs)
    own = {id(a) for a in inputs}
    variables = [v for v in watcher.watched_variables() if id(v) not in own]
    with stop_recording():
        # copies: tensors that only the record below leads to
        outputs = [apply_op("Identity", convert_to_tensor(r)) for r in nest.flatten(result)]
    places = [getattr(a, "handle", a) for a in [*inputs, *variables]]
    record_operation(
        getattr(f, "__name__", "custom"),
        outputs,
        places,
        _backward(f, grad_fn, len(inputs), variables),
    )
    return nest.pack_sequence_as(result, outputs) if nest.is_sequence(result) else outputs[0]


def _backward(
    f: Callable[..., Any], grad_fn: Callable[..., Any], count: int, variables: list[Any]
) -> Callable[..., list[Any]]:
    def backward(*dys: Any) -> list[Any]:
        given = [as_dense(d) for d in dys]
        if not variables:
            grads, more = grad_fn(*given), []
        else:
            grads, more = grad_fn(*given, variables=variables)
            if len(more) != len(variables):
                raise ValueError(
                    "Must return gradient for each variable from @custom_gradient grad_fn."
                )
        flat = nest.flatten(grads) if isinstance(grads, (list, tuple)) else [grads]
        if len(flat) != count:
            raise ValueError(
                f"custom_gradient function expected to return {count} gradients, but "
                f"returned {len(flat)} instead."
            )
        return [None if g is None else _as_gradient(g) for g in [*flat, *more]]

    return backward


def _as_gradient(g: Tensor) -> Tensor:
    return g if hasattr(g, "dense_shape") else convert_to_tensor(g)


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` whose intermediate results are computed again in the backward pass instead of being
    kept.
    """

    @functools.wraps(f)
    def decorated(*args: object, **kwargs: object) -> Any:
        if not get_default_graph()._is_eager:
            return f(*args, **kwargs)
        return _recomputed(f, args, kwargs)

    return decorated


def _recomputed(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    @custom_gradient
    def inner(*given: Any) -> tuple[Any, ...]:
        with stop_recording(), _Watcher() as watcher:
            result = f(*given, **kwargs)
        used = watcher.watched_variables()
        for v in used:  # noted by the watcher around, so that they are asked for
            v.value()

        def grad(*dys: Any, variables: Sequence[TensorLike] | None = None) -> Any:
            with GradientTape() as tape:
                tape.watch(given)
                again = f(*given, **kwargs)
            found = tape.gradient(again, [*given, *(variables or ())], list(dys))
            own = found[: len(given)]
            return own if variables is None else (own, found[len(given) :])

        return result, grad

    return inner(*args)
