"""TF 2's signatures where TF 1.15's functions take their parameters in another order or with other
defaults.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.autodiff import gradients as autodiff
from headrace.core import convert, infer
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Tensor
from headrace.ops.array import basic
from headrace.ops.control import assertions as checks
from headrace.ops.control import case_branches, control_flow, functional, while_loops
from headrace.ops.control import dependencies as control
from headrace.ops.control import py_func as script
from headrace.ops.math import clip, segments
from headrace.ops.nn import pooling as nn_pool
from headrace.ops.random import gamma_poisson as random_rejection
from headrace.ops.sparse import sparse_arithmetic, sparse_arranging
from headrace.ops.strings import string_encoding, string_numbers
from headrace.ops.strings import string_ops as strings
from headrace.variables import initializers
from headrace.variables import variable as variables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.autodiff.gradients import UnconnectedGradients
    from headrace.core.annotations import (
        AxisLike,
        ConstraintLike,
        DeviceLike,
        DTypeLike,
        ShapeLike,
        SparseLike,
        TensorLike,
    )
    from headrace.core.dtypes import DType
    from headrace.ops.sparse.sparse_tensor import SparseTensor
    from headrace.variables.variable import VariableAggregation, VariableSynchronization

__all__ = ["Variable"]


# tensors ----------------------------------------------------------------------------------------


def constant(
    value: TensorLike, dtype: DTypeLike | None = None, shape: Any = None, name: str = "Const"
) -> Tensor:
    """A tensor with the given value; ``shape`` reshapes it or repeats a single number.

    ``dtype`` defaults to int32 for Python integers and float32 for Python floats. TF 1's function
    takes ``verify_shape`` as well and refuses tensors as values.
    """
    if isinstance(value, Tensor):
        return convert.convert_to_tensor(value, dtype)
    if shape is not None:
        _check_number_of_elements(value, TensorShape(shape))
    return basic.constant(value, dtype, shape, name)


def _check_number_of_elements(value: Any, shape: TensorShape) -> None:
    wanted, given = shape.num_elements(), np.shape(value)
    if wanted is not None and math.prod(given) not in (1, wanted):
        raise TypeError(f"Expected Tensor's shape: {tuple(shape.as_list())}, got {given}.")


def convert_to_tensor(
    value: Any, dtype: DTypeLike | None = None, dtype_hint: Any = None, name: str | None = None
) -> Tensor:
    """Any value as a tensor: ``dtype`` is a demand, ``dtype_hint`` a wish.

    A value that cannot have ``dtype`` is an error; ``dtype_hint`` is used where the value allows
    it. TF 1's function names the latter ``preferred_dtype`` and has another order of arguments.
    """
    return convert.convert_to_tensor(value, dtype, name, dtype_hint=dtype_hint)


def is_tensor(x: object) -> bool:
    """Whether ``x`` is a tensor, a variable or made of tensors."""
    return convert.is_tensor(x)


def get_static_value(tensor: object, partial: bool = False) -> Any:
    """The value of a tensor if it is known, else None.

    With ``partial`` a stack of scalars has None for the unknown.
    """
    if not isinstance(tensor, Tensor):
        tensor = convert.convert_to_tensor(tensor)
    known = infer.static_value(tensor)
    if known is not None or not partial or tensor._op.type != "Pack" or tensor._op._attrs["axis"]:
        return known
    parts = [infer.static_value(t) for t in tensor._op._inputs]
    return None if all(p is None for p in parts) else np.array(parts, dtype=object)


# control flow -----------------------------------------------------------------------------------


def cond(
    pred: TensorLike,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """``true_fn()`` if ``pred`` is true, else ``false_fn()``; a plain bool decides at once.

    Both functions take no arguments and return the same structure of the same types; in a graph
    both are traced, and one of them runs. ``tf.compat.v1.cond`` also knows ``strict`` and ``fn1``,
    ``fn2``.
    """
    if isinstance(pred, builtins.bool):
        if not callable(true_fn) or not callable(false_fn):
            raise TypeError("true_fn and false_fn must be callable.")
        return true_fn() if pred else false_fn()
    return control_flow.cond(pred, true_fn, false_fn, strict=True, name=name)


def case(
    pred_fn_pairs: Sequence[Any],
    default: Callable[..., Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """The first function whose predicate is true, else ``default``.

    ``pred_fn_pairs`` is a list of ``(scalar bool, function)`` pairs. All functions and ``default``
    return the same structure of the same types. ``exclusive`` checks that at most one predicate is
    true; with ``strict`` a list of one tensor stays a list.
    """
    return case_branches.case(pred_fn_pairs, default, exclusive, strict, name)


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: object,
    shape_invariants: object = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: object = None,
    name: str | None = None,
) -> Any:
    """Repeat ``body`` while ``cond`` is true; the result has the structure of ``loop_vars``.

    TF 1 returns a list, or the only tensor of a list of one; here a list of one stays a list.
    ``shape_invariants`` has the shapes that may change between iterations (None for what varies);
    ``maximum_iterations`` ends the loop at the latest then. The rest is as in ``tf.compat.v1``.
    """
    return while_loops.while_loop(
        cond, body, loop_vars, shape_invariants, parallel_iterations, back_prop, swap_memory, name,
        maximum_iterations, return_same_structure=True,
    )  # fmt: skip


def map_fn(
    fn: Callable[[Any], Any],
    elems: TensorLike,
    dtype: DTypeLike | None = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: TensorLike | None = None,
) -> Any:
    """``fn`` applied to each row of ``elems``, the results stacked.

    ``elems`` may be a structure of tensors with equal first dimensions. ``fn_output_signature`` (in
    place of the older ``dtype``) gives the types of ``fn``'s result where they are not those of its
    input. ``parallel_iterations``, ``back_prop`` and ``swap_memory`` are as in TF 1.
    """
    from headrace.core import nest

    signature = dtype if fn_output_signature is None else fn_output_signature
    if signature is not None:
        signature = nest.map_structure(
            lambda s: s if hasattr(s, "ragged_rank") else getattr(s, "dtype", s), signature
        )
    return functional.map_fn(
        fn, elems, signature, parallel_iterations, back_prop, swap_memory, infer_shape, name
    )


def tuple(tensors: Any, control_inputs: Any = None, name: str | None = None) -> Any:
    """The tensors, each available only when all of them are."""
    return control.tuple(tensors, name, control_inputs)


def numpy_function(
    func: Callable[..., Any] | None = None,
    inp: Sequence[TensorLike] | None = None,
    Tout: DType | None = None,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """A Python function of NumPy arrays as an operation.

    ``func`` gets arrays for the tensors ``inp`` and returns arrays of the types ``Tout``; shapes
    are unknown to the graph, and there is no gradient. Without ``func`` it is a decorator:
    ``@tf.numpy_function(Tout=tf.float32)``. ``stateful=False`` allows two equal calls to be one.
    """
    if func is None:
        return script.as_decorator(numpy_function, Tout, name)
    return script.py_func(func, inp, Tout, stateful, name)


# derivatives ------------------------------------------------------------------------------------


def gradients(
    ys: TensorLike,
    xs: TensorLike,
    grad_ys: object = None,
    name: str = "gradients",
    gate_gradients: bool = False,
    aggregation_method: object = None,
    stop_gradients: object = None,
    unconnected_gradients: UnconnectedGradients = autodiff.UnconnectedGradients.NONE,
) -> list[Any]:
    """In a graph: d(sum of ys)/dx for each x. Eagerly an error: use a GradientTape.

    ``grad_ys`` are factors for each y (ones by default); nothing flows through ``stop_gradients``.
    An x that no y depends on gives None, or zeros with ``unconnected_gradients="zero"``. TF 1's
    ``colocate_gradients_with_ops`` is gone from the arguments.
    """
    return autodiff.gradients(
        ys, xs, grad_ys, name, False, gate_gradients, aggregation_method, stop_gradients,
        unconnected_gradients,
    )  # fmt: skip


def hessians(
    ys: object,
    xs: object,
    gate_gradients: bool = False,
    aggregation_method: object = None,
    name: str = "hessians",
) -> list[Any]:
    """Second derivatives of ``ys``, in a graph.

    ``xs`` are tensors of any shape; each result has the shape ``x.shape + x.shape``. Eagerly it is
    an error: nest two GradientTapes instead.
    """
    return autodiff.hessians(ys, xs, name, False, gate_gradients, aggregation_method)


# initializers -----------------------------------------------------------------------------------


class RandomNormal(initializers.RandomNormal):
    """Normally distributed values; TF 2's default deviation is 0.05.

    Called with a shape and a dtype. ``seed`` makes the numbers repeatable; the initializer of TF 1
    (``tf.compat.v1.random_normal_initializer``) has deviation 1.
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        super().__init__(mean, stddev, seed)


class RandomUniform(initializers.RandomUniform):
    """Uniformly distributed values; TF 2's default range is -0.05 to 0.05.

    Called with a shape and a dtype. Values are in [``minval``, ``maxval``); the initializer of TF 1
    (``tf.compat.v1.random_uniform_initializer``) has the range 0 to 1.
    """

    def __init__(
        self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None
    ) -> None:
        super().__init__(minval, maxval, seed)


class TruncatedNormal(initializers.TruncatedNormal):
    """Normally distributed values without the tails; TF 2's default deviation is 0.05.

    Values further than two deviations from ``mean`` are drawn again. The initializer of TF 1
    (``tf.compat.v1.truncated_normal_initializer``) has deviation 1.
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        super().__init__(mean, stddev, seed)


# checks -----------------------------------------------------------------------------------------


def assert_none_equal(
    x: object, y: object, summarize: object = None, message: object = None, name: str | None = None
) -> Any:
    """Check that ``x`` and ``y`` (broadcast) differ in every element.

    Eagerly it raises InvalidArgumentError at once; in a graph it returns an operation.
    """
    return checks.assert_none_equal_v2(x, y, message, summarize, name)


def assert_scalar(
    tensor: TensorLike, message: str | None = None, name: str | None = None
) -> Tensor:
    """Check while the graph is built that a tensor has rank 0; returns the tensor."""
    return checks.assert_scalar(tensor, name, message)


def assert_all_finite(x: object, message: str, name: str | None = None) -> Tensor:
    """``x``, after a check that no element is NaN or infinite.

    A failing check is an InvalidArgumentError with ``message``.
    """
    return clip.verify_tensor_all_finite(x, message, name)


# others -----------------------------------------------------------------------------------------


def avg_pool2d(
    input: object,
    ksize: object,
    strides: object,
    padding: str,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The mean of each window of a batch of pictures; see ``tf.nn.avg_pool``.

    ``input`` is [batch, height, width, channels], or [batch, channels, height, width] with
    ``data_format`` "NCHW". ``ksize`` and ``strides`` are one number, two (rows, columns) or four.
    ``padding`` is "SAME" (padded pixels do not count) or "VALID".
    """
    return nn_pool.avg_pool2d(input, ksize, strides, padding, data_format, name)


def poisson(
    shape: ShapeLike,
    lam: object,
    dtype: DTypeLike = "float32",
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws from Poisson distributions with the rates ``lam``.

    The result has the shape ``shape + lam.shape``. (``tf.random_poisson`` of v1 takes ``lam``
    first.)
    """
    return random_rejection.random_poisson(lam, shape, dtype, seed, name)


def string_length(input: TensorLike, unit: str = "BYTE", name: str | None = None) -> Tensor:
    """The length of each string, in bytes or, with ``unit="UTF8_CHAR"``, in characters."""
    return strings.string_length(input, name, unit)


def string_to_hash_bucket(input: TensorLike, num_buckets: int, name: str | None = None) -> Tensor:
    """A bucket from 0 to ``num_buckets - 1`` for each string, equal for equal strings.

    The hash may change between processes in TensorFlow; prefer ``to_hash_bucket_fast``.
    """
    return string_encoding.string_to_hash_bucket(input, num_buckets, name)


def string_to_number(
    input: TensorLike, out_type: DTypeLike = "float32", name: str | None = None
) -> Tensor:
    """The numbers that strings spell, as ``out_type``; text that is no number is an error."""
    return string_numbers.string_to_number(input, out_type, name)


def sparse_concat(
    axis: int, sp_inputs: SparseLike, expand_nonconcat_dims: bool = False, name: str | None = None
) -> SparseTensor:
    """Sparse tensors of one rank put together along ``axis``.

    ``expand_nonconcat_dims=True`` lets the other dimensions differ: the result has the largest.
    """
    return sparse_arranging.sparse_concat(axis, sp_inputs, name, expand_nonconcat_dims)


def sparse_reduce_max(
    sp_input: SparseLike,
    axis: AxisLike | None = None,
    keepdims: bool | None = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Any:
    """The largest entry along ``axis`` (None: over everything).

    Implicit zeros do not count: a row without entries gives 0, one with only negative entries its
    largest entry. ``output_is_sparse=True`` gives a SparseTensor.
    """
    return sparse_arithmetic.sparse_reduce_max_v2(sp_input, axis, keepdims, output_is_sparse, name)


def sparse_reduce_sum(
    sp_input: SparseLike,
    axis: AxisLike | None = None,
    keepdims: bool | None = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Any:
    """The sum of the entries along ``axis`` (None: over everything).

    ``output_is_sparse=True`` gives a SparseTensor.
    """
    return sparse_arithmetic.sparse_reduce_sum_v2(sp_input, axis, keepdims, output_is_sparse, name)


def sparse_split(
    sp_input: SparseLike, num_split: int, axis: int, name: str | None = None
) -> list[SparseTensor]:
    """A sparse tensor cut into ``num_split`` parts along ``axis``.

    If the size does not divide, the first parts are one larger.
    """
    return sparse_arranging.sparse_split(
        sp_input=sp_input, num_split=num_split, axis=axis, name=name
    )


def _segments(function: Callable[..., Any]) -> Callable[..., Any]:
    def adapted(
        data: Tensor,
        indices: Tensor,
        segment_ids: object,
        num_segments: object = None,
        name: str | None = None,
        sparse_gradient: bool = False,
    ) -> Any:
        return function(data, indices, segment_ids, name, num_segments)

    adapted.__name__ = function.__name__
    adapted.__doc__ = function.__doc__
    return adapted


sparse_segment_mean = _segments(segments.sparse_segment_mean)
sparse_segment_sqrt_n = _segments(segments.sparse_segment_sqrt_n)
sparse_segment_sum = _segments(segments.sparse_segment_sum)


# variables --------------------------------------------------------------------------------------


class _Variables(type(variables.Variable)):  # type: ignore[misc]
    """``Variable(...)`` with TF 2's parameters; every variable is an instance of it."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is Variable:
            return _make_variable(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is Variable:
            return isinstance(instance, variables.Variable)
        return bool(super().__instancecheck__(instance))

    def __subclasscheck__(cls, subclass: type) -> bool:
        if cls is Variable:
            return issubclass(subclass, variables.Variable)
        return bool(super().__subclasscheck__(subclass))


class Variable(variables.Variable, metaclass=_Variables):
    """A value that a program changes as it goes."""


def _make_variable(
    initial_value: object = None,
    trainable: bool | None = None,
    validate_shape: bool = True,
    caching_device: DeviceLike | None = None,
    name: str | None = None,
    variable_def: object = None,
    dtype: DTypeLike | None = None,
    import_scope: str | None = None,
    constraint: ConstraintLike | None = None,
    synchronization: VariableSynchronization = variables.VariableSynchronization.AUTO,
    aggregation: VariableAggregation = variables.VariableAggregation.NONE,
    shape: ShapeLike | None = None,
    experimental_enable_variable_lifting: bool = True,
) -> Any:
    return variables.create_variable(
        initial_value, trainable, None, validate_shape, caching_device, name, variable_def, dtype,
        None, import_scope, constraint, True, synchronization, aggregation, shape,
    )  # fmt: skip
