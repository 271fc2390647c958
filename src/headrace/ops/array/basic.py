"""The ops that everything else stands on: Placeholder, Const, Identity, NoOp and their like."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import convert, dtypes, infer, shape_fns, shapes
from headrace.core.build import apply, apply_list, apply_operation
from headrace.core.dispatch import dispatched
from headrace.core.graph import Graph, get_default_graph
from headrace.core.opdef import NOT_DIFFERENTIABLE, KernelNode, bind_kernel, define
from headrace.core.shapes import show, to_plain
from headrace.core.tensor import Operation, Tensor
from headrace.kernels.numpy import numpy_xp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import ArrayNamespace, DTypeLike, ShapeLike, TensorLike
    from headrace.core.infer import Inference

__all__ = [
    "constant",
    "identity",
    "no_op",
    "placeholder",
    "placeholder_with_default",
    "stop_gradient",
]


def _placeholder_kernel(xp: ArrayNamespace, *, node: KernelNode) -> Any:
    shape = node.attrs["shape"]
    text = "" if shape is None else f" and shape {show(shape)}"
    raise errors.InvalidArgumentError(
        None,
        node.op,
        f"You must feed a value for placeholder tensor '{node.name}' with dtype "
        f"{dtypes.kernel_name(node.attrs['dtype'])}{text}. "
        f"Add it to feed_dict in sess.run.",
    )


PLACEHOLDER = define(
    "Placeholder",
    "-> output: dtype; dtype: type, shape: shape=None",
    shape=shape_fns.from_attr("shape"),
    kernel=_placeholder_kernel,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    role="placeholder",
)


def _default_shape(c: Inference) -> list[Any]:
    """The declared shape, which the default must fit."""
    shapes.merge(c.shape(0), c.attr("shape"))
    return [c.attr("shape")]


PLACEHOLDER_WITH_DEFAULT = define(
    "PlaceholderWithDefault",
    "input: dtype -> output: dtype; dtype: type, shape: shape",
    shape=_default_shape,
    kernel=lambda xp, x: x,
    grad=lambda op, g: [g],
    view=True,
    role="placeholder",
)
IDENTITY = define(
    "Identity",
    "input: T -> output: T",
    shape=shape_fns.unchanged,
    kernel=lambda xp, x: x,
    grad=lambda op, g: [g],
    view=True,
    whole=True,
    role="identity",
    expression="{0}",
    fails="never",
    batching="same",
    rearranges=True,
)
IDENTITY_N = define(
    "IdentityN",
    "input: *T -> output: *T",
    shape=lambda c: c.shapes(),
    kernel=lambda xp, *x: x if len(x) > 1 else x[0],
    grad=lambda op, *g: list(g),
    view=True,
)
STOP_GRADIENT = define(
    "StopGradient",
    "input: T -> output: T",
    shape=shape_fns.unchanged,
    kernel=lambda xp, x: x,
    grad=NOT_DIFFERENTIABLE,
    view=True,
    whole=True,
    role="stop gradient",
    expression="{0}",
    fails="never",
    batching="same",
)
PREVENT_GRADIENT = define(
    "PreventGradient",
    "input: T -> output: T; message: str=''",
    shape=shape_fns.unchanged,
    kernel=lambda xp, x: x,
    grad=lambda op, g: _prevented(op),
    view=True,
)
NO_OP = define(
    "NoOp",
    "->",
    shape=shape_fns.no_outputs,
    kernel=lambda xp: None,
    grad=NOT_DIFFERENTIABLE,
    role="nothing",
)


def _prevented(op: Operation) -> Any:
    raise LookupError(f"Gradient explicitly disabled. Reason: {op._attrs['message']!r}.")


def _bind(op: Operation) -> Callable[..., Any]:
    return bind_kernel(op._opdef, KernelNode(op.name, op.type, op._attrs, op), numpy_xp)


infer.kernel_binder = _bind


def placeholder(
    dtype: DTypeLike, shape: ShapeLike | None = None, name: str | None = None
) -> Tensor:
    """A tensor whose value is given with every run, in ``feed_dict``.

    ``shape`` may have None where sizes vary; without a shape anything may be fed. Running what
    depends on a placeholder without feeding it is an InvalidArgumentError.

        x = tf.placeholder(tf.float32, [None, 784])
        sess.run(y, {x: batch})
    """
    if get_default_graph()._is_eager:
        raise RuntimeError("tf.placeholder() is not compatible with eager execution.")
    return apply(PLACEHOLDER, dtype=dtype, shape=to_plain(shape), name=name)


def placeholder_with_default(
    input: object, shape: ShapeLike | None, name: str | None = None
) -> Tensor:
    """A tensor that may be fed, and has the value of ``input`` if it is not.

    ``shape`` may be less specific than the shape of ``input``, e.g. ``[None, 3]``.
    """
    return apply(PLACEHOLDER_WITH_DEFAULT, input, shape=to_plain(shape), name=name)


def constant(
    value: object,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    name: str = "Const",
    verify_shape: bool = False,
) -> Tensor:
    """A constant; with ``shape`` a shorter value is repeated in its last element, as TF 1.15
    does.
    """
    want = None if dtype is None else dtypes.as_dtype(dtype)
    graph = get_default_graph()
    if graph._is_eager:
        return _eager_constant(graph, value, want, shape)
    if isinstance(value, Tensor):
        raise TypeError(f"Cannot create a constant from a tensor: {value}. Use tf.identity.")
    array = convert.make_ndarray(value, want)
    if shape is not None:
        array = _filled(array, to_plain(shape), verify_shape)
    final = want.base_dtype if want is not None else dtypes.FROM_NUMPY[array.dtype]
    return convert.make_const(graph, array, final, graph._full_name(name or "Const"))


def _eager_constant(
    graph: Graph, value: object, want: dtypes.DType | None, shape: object
) -> Tensor:
    """TF 2's rules.

    A tensor is taken as it is, and only a single value is repeated to fill a shape.
    """
    if isinstance(value, Tensor):
        tensor = convert.convert(value, want)
        if shape is None:
            return tensor
        value = infer.static_value(tensor)
        want = tensor._dtype
    try:
        array = convert.make_ndarray(value, want)
    except TypeError as error:
        if want is None or not isinstance(value, (int, float, str, bytes)):
            raise
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {want.name}") from error
    final = want.base_dtype if want is not None else dtypes.FROM_NUMPY[array.dtype]
    if shape is not None:
        plain: Any = to_plain(shape)
        if array.size != 1 and array.size != int(np.prod(plain, dtype=np.int64)):
            raise TypeError(
                "Eager execution of tf.constant with unsupported shape. Tensor "
                f"{array} has {array.size} elements, but got `shape` {plain} with "
                f"{int(np.prod(plain, dtype=np.int64))} elements)."
            )
        array = _filled(array, plain, False)
    return graph._constant(array, final)


def _filled(array: np.ndarray[Any, Any], shape: Any, verify: bool) -> np.ndarray[Any, Any]:
    wanted = int(np.prod(shape, dtype=np.int64))
    if array.shape == tuple(shape):
        return array
    if not wanted and not verify:  # whatever the values are, as in TensorFlow
        return np.empty(shape, array.dtype)
    if verify and array.ndim:
        raise TypeError(f"Expected Tensor's shape: {tuple(shape)}, got {array.shape}.")
    if array.size == wanted:
        return array.reshape(shape)
    if array.size > wanted:
        raise ValueError(
            f"Too many elements provided. Needed at most {wanted}, but received {array.size}"
        )
    if not array.size:
        return np.full(shape, b"" if array.dtype.kind == "O" else 0, array.dtype)
    out = np.empty(wanted, array.dtype)
    out[: array.size] = array.reshape(-1)
    out[array.size :] = array.reshape(-1)[-1]
    return out.reshape(shape)


@dispatched("unary")
def identity(input: object, name: str | None = None) -> Tensor:
    """A tensor with the same value. A variable gives its value."""
    return apply(IDENTITY, input, name=name)


def identity_n(input: Sequence[TensorLike], name: str | None = None) -> list[Tensor]:
    """Each tensor of a list unchanged, as one operation."""
    return apply_list(IDENTITY_N, list(input), name=name)


def stop_gradient(input: TensorLike, name: str | None = None) -> Tensor:
    """The tensor unchanged; gradients do not pass through it."""
    return apply(STOP_GRADIENT, input, name=name)


def prevent_gradient(input: TensorLike, message: str = "", name: str | None = None) -> Tensor:
    return apply(PREVENT_GRADIENT, input, message=message, name=name)


def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing; useful to hang control dependencies on."""
    return apply_operation(NO_OP, name=name)
