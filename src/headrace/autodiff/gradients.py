"""``tf.gradients``: new operations that compute derivatives, added to the user's graph.

The operations between the xs and the ys are visited in reverse running order; each one's gradient
function turns the gradients of its outputs into gradients of its inputs. A loop is visited as one
unit (see while_grad.py). Gradient operations of a branch of ``tf.cond`` are made in that branch.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from headrace.autodiff.aggregate import (
    as_dense,
    is_trainable,
    no_dims,
    zeros_like,
)
from headrace.autodiff.backward_pass import Tape
from headrace.core import dtypes, shapes
from headrace.core.build import apply_op
from headrace.core.contexts import named_pass
from headrace.core.convert import convert_to_tensor
from headrace.core.func_graph import is_function_graph
from headrace.core.graph import get_default_graph
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.scopes import name_scope
from headrace.core.tensor import Operation, Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import Array, TensorLike
    from headrace.ops.control.tensor_array import TensorArray
    from headrace.variables.variable import Variable

__all__ = [
    "AggregationMethod",
    "UnconnectedGradients",
    "gradients",
    "gradients_through",
    "hessians",
    "unconnected_mode",
]


class UnconnectedGradients(enum.Enum):
    """What an x that no y depends on gets.

    ``NONE`` gives None, as ``tf.gradients`` does by default, and ``ZERO`` zeros of the shape of x.
    The values are the words "none" and "zero", which are accepted in their place.
    """

    NONE = "none"
    ZERO = "zero"


def unconnected_mode(value: object) -> UnconnectedGradients:
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise ValueError(
            f"Unknown value for unconnected_gradients: {value!r}; it is 'none' or 'zero'"
        ) from None


class AggregationMethod:
    """TF's choices; all give the same sum here."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


_AGGREGATION_METHODS = (
    None,
    AggregationMethod.ADD_N,
    AggregationMethod.EXPERIMENTAL_TREE,
    AggregationMethod.EXPERIMENTAL_ACCUMULATE_N,
)


def gradients(
    ys: object,
    xs: TensorLike,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: object = None,
    stop_gradients: object = None,
    unconnected_gradients: UnconnectedGradients = UnconnectedGradients.NONE,
) -> list[Any]:
    """d(sum of ys)/dx for each x in ``xs``, as new tensors; None where no y depends on x.

    ``grad_ys`` are the gradients of the ys that the pass starts with (ones). Gradients do not flow
    through ``stop_gradients``. ``unconnected_gradients`` "zero" gives zeros instead of None.
    ``aggregation_method`` and ``colocate_gradients_with_ops`` change no number; ``gate_gradients``
    counts only for the names and seeds that follow. A gradient may be IndexedSlices (of
    ``tf.gather``).

        loss = tf.reduce_sum(tf.square(w))
        (g,) = tf.gradients(loss, [w])                          # 2 * w
    """
    if get_default_graph()._is_eager:
        raise RuntimeError(
            "tf.gradients is not supported when eager execution is enabled. Use "
            "tf.GradientTape instead."
        )
    if aggregation_method not in _AGGREGATION_METHODS:
        raise ValueError(f"Invalid aggregation_method specified {aggregation_method}.")
    return gradients_through(
        None,
        ys,
        xs,
        grad_ys,
        name,
        gate_gradients,
        stop_gradients,
        unconnected_gradients,
        colocate_gradients_with_ops,
    )


def gradients_through(
    recorded: Collection[Operation] | None,
    ys: object,
    xs: object,
    grad_ys: TensorLike | None = None,
    name: str = "gradients",
    gate_gradients: bool = False,
    stop_gradients: object = None,
    unconnected_gradients: object = UnconnectedGradients.NONE,
    colocate_gradients_with_ops: bool = False,
) -> list[Any]:
    """``gradients`` along the operations that a tape recorded; None: along all."""
    mode = unconnected_mode(unconnected_gradients)
    ys_list, xs_list = _as_list(ys), _as_list(xs)
    stop_list = [] if stop_gradients is None else _as_list(stop_gradients)
    grads_given = [None] * len(ys_list) if grad_ys is None else _as_list(grad_ys)
    if len(grads_given) != len(ys_list):
        raise ValueError(f"{len(ys_list)} ys need as many grad_ys, {len(grads_given)} were given")
    with name_scope(name, "gradients", [*map(_anchor, ys_list), *map(_anchor, xs_list)]) as scope:
        graph = get_default_graph()
        y_tensors = [_as_target(y) for y in ys_list]
        if is_function_graph(graph):
            y_tensors = [graph.capture(y) for y in y_tensors]
        x_tensors = [_as_source(x) for x in xs_list]
        stops = {_as_source(s) for s in stop_list}
        own = set(x_tensors)
        starts = [_start(y, g, i, own) for i, (y, g) in enumerate(zip(y_tensors, grads_given))]
        tape = Tape(y_tensors[0]._op.graph if y_tensors else x_tensors[0]._op.graph)
        tape.gated = gate_gradients
        tape.colocated = colocate_gradients_with_ops
        tape.only = recorded
        with named_pass(scope):
            if any(x._op.graph is not tape.graph for x in x_tensors) and tape.graph._is_function:
                from headrace.autodiff.across_functions import backprop_outwards

                found = backprop_outwards(tape, y_tensors, starts, x_tensors, stops)
            else:
                found = tape.recorded(y_tensors, starts, x_tensors, stops)
        if mode is UnconnectedGradients.ZERO:
            found = [
                zeros_like(_dense_source(x)) if g is None else g for g, x in zip(found, x_tensors)
            ]
    return found


def _as_list(value: object) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _anchor(value: TensorLike) -> Any:
    return value if isinstance(value, Tensor) else getattr(value, "_graph_anchor", value)


def _as_source(x: Tensor | Variable) -> Tensor:
    """The tensor that a gradient with respect to x flows to: a variable's reference or handle."""
    if isinstance(x, Tensor):
        return x
    if isinstance(x, IndexedSlices):
        return x.values
    handle = getattr(x, "handle", None)
    if isinstance(handle, Tensor):
        return handle
    reference: Callable[[], Tensor] | None = getattr(x, "_ref", None)
    if callable(reference):
        return reference()
    return convert_to_tensor(x)


def _dense_source(x: Tensor) -> Tensor:
    if x._dtype is dtypes.resource:
        return apply_op("ReadVariableOp", x, dtype=x._op._attrs["dtype"])
    return x


def _as_target(y: Tensor) -> Tensor:
    if isinstance(y, IndexedSlices):
        return y.values
    return convert_to_tensor(y)


def _start(y: Tensor, given: Array | Tensor | None, i: int, xs: set[Tensor]) -> Tensor | None:
    """The gradient that a y starts with: ones, or what the caller gave.

    An integer has one only with respect to itself.
    """
    if given is None:
        if y._dtype._base.is_complex:
            raise TypeError(
                f"Gradients of complex tensors must set grad_ys (y.dtype = {y._dtype!r})"
            )
        if not is_trainable(y) and not (y._dtype._base.is_integer and y in xs):
            return None
        one = convert_to_tensor(1, y._dtype._base, name=f"grad_ys_{i}")
        if y._shape == ():
            return apply_op("Fill", no_dims(), one)
        shape = shapes.known(y._shape)
        return apply_op(
            "Fill",
            list(shape) if shape is not None else apply_op("Shape", y, out_type=dtypes.int32),
            one,
        )
    if isinstance(given, IndexedSlices):
        return given
    tensor = convert_to_tensor(given, preferred_dtype=y._dtype._base, name=f"grad_ys_{i}")
    if tensor._dtype._base is not y._dtype._base:
        raise TypeError(
            f"Gradient type {tensor._dtype.name} generated for {y.name} of type {y._dtype.name}"
        )
    return tensor


def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: object = None,
) -> list[Tensor]:
    """The Hessian of the sum of ys with respect to each x, of shape x.shape + x.shape.

    Blocks between different x are left out. The other arguments are those of ``tf.gradients``.
    """

    def derive(of: Tensor, by: Tensor) -> Tensor:
        found = gradients(
            of,
            by,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
        )
        return as_dense(found[0])

    return [_hessian(derive(ys, x), x, derive) for x in _as_list(xs)]


def _hessian(first: Tensor, x: Tensor, derive: Callable[[Any, Any], Tensor]) -> Tensor:
    """A loop over the elements of the gradient."""
    from headrace.ops.control.tensor_array import TensorArray
    from headrace.ops.control.while_loops import while_loop

    source = convert_to_tensor(x)
    flat = apply_op("Reshape", first, [-1])
    n = apply_op("Size", flat, out_type=dtypes.int32)

    def body(j: Tensor, rows: TensorArray) -> Any:
        return apply_op("AddV2", j, 1), rows.write(j, derive(apply_op("GatherV2", flat, j, 0), x))

    rows = TensorArray(source.dtype.base_dtype, size=n)
    _, rows = while_loop(lambda j, _: apply_op("Less", j, n), body, [convert_to_tensor(0), rows])
    shape = apply_op("Shape", source, out_type=dtypes.int32)
    result: Tensor = apply_op("Reshape", rows.stack(), apply_op("ConcatV2", [shape, shape], 0))
    if source._shape is not None:
        result.set_shape(source._shape + source._shape)
    return result
