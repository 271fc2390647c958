"""Ops on reference variables (TF 1's default kind): VariableV2, Assign, AssignAdd, the scatters,
and their wrappers.

A reference output carries the variable itself, so that ``tf.assign(tf.assign(v, x), y)`` writes
twice. The wrappers take either kind of variable; a resource variable is updated through its own
methods.

    >>> tf.assign_add(v, [1.0, 2.0])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import shape_fns, shapes
from headrace.core.build import apply, apply_op
from headrace.core.dtypes import DType, as_dtype
from headrace.core.graph import get_default_graph
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, KernelNode, define
from headrace.core.shapes import Shape, to_plain
from headrace.core.tensor import Tensor
from headrace.ops.state import state_kernels as kernels

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, DTypeLike, ShapeLike, TensorLike

__all__ = [
    "assign",
    "assign_add",
    "assign_sub",
    "count_up_to",
    "is_variable_initialized",
    "variable_op",
    "variable_op_v2",
]


# shape rules ------------------------------------------------------------------------------------


def _assign_shape(c: Inference) -> list[Shape]:
    if c.attr("validate_shape"):
        return [shapes.merge(c.shape(0), c.shape(1))]
    return [c.shape(1)]


def _merged(c: Inference) -> list[Shape]:
    return [shapes.merge(c.shape(0), c.shape(1))]


def check_scatter_shapes(variable: Shape, indices: Shape, updates: Shape) -> None:
    """updates: indices.shape + variable.shape[1:], or a scalar."""
    if variable is None or indices is None or updates is None or updates == ():
        return
    shapes.merge(updates, indices + variable[1:])


def _is_empty(shape: Shape) -> bool:
    return shape is not None and shapes.num_elements(shape) == 0


def _has_elements(shape: Shape) -> bool:
    return bool(shapes.num_elements(shape))


def check_scatter_nd_shapes(variable: Shape, indices: Shape, updates: Shape) -> None:
    """indices: [..., depth]; updates: indices.shape[:-1] + variable.shape[depth:].

    Nothing is compared while the depth is unknown, as in TensorFlow.
    """
    if () in (indices, updates):
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if indices is None or updates is None:
        return
    outer, depth = indices[:-1], indices[-1]
    n = len(outer)
    if _is_empty(variable) and (_has_elements(indices) or _has_elements(updates)):
        raise ValueError("Indices and updates specified for empty output shape")
    if depth is None:
        return
    if len(updates) < n or not shapes.compatible(outer, updates[:n]):
        raise ValueError(
            f"The outer {n} dimensions of indices.shape={shapes.show(indices)} must match "
            f"the outer {n} dimensions of "
            f"updates.shape={shapes.show(updates)}"
        )
    if variable is None or depth > len(variable):
        return
    inner = variable[depth:]
    if not shapes.compatible(inner, updates[n:]):
        raise ValueError(
            f"The inner {len(inner)} dimensions of input.shape={shapes.show(variable)} "
            "must match the inner "
            f"{len(updates) - n} dimensions of updates.shape={shapes.show(updates)}"
        )


# kernels ----------------------------------------------------------------------------------------


def variable_kernel(xp: ArrayNamespace, *, node: KernelNode) -> Array:
    raise errors.InternalError(
        None, node.op, f"variable '{node.name}' is read by the executor, not computed"
    )


def _assign_kernel(
    xp: ArrayNamespace,
    current: Array | None,
    value: Array,
    *,
    validate_shape: bool,
    node: KernelNode,
) -> Array:
    if validate_shape:
        want = _declared_shape(node) if current is None else np.shape(current)
        check_assigned_shape(want, np.shape(value))
    return value


def check_assigned_shape(want: Shape, have: Shape) -> None:
    """Refuse what Assign refuses."""
    if want is not None and have != want:
        raise kernels.invalid(
            "Assign requires shapes of both tensors to match. lhs shape= "
            f"{shapes.show(want)} rhs shape= "
            f"{shapes.show(have)}"
        )


def _read_across_resize(xp: ArrayNamespace, before: Array, now: Array) -> Array:
    """What a read from before an Assign gives after it: TensorFlow copies a value of the same size
    into the array that the read shares, and allocates a new array for any other.
    """
    return now if np.size(before) == np.size(now) else before


def _declared_shape(node: KernelNode) -> Shape:
    """The static shape of a variable that has no value yet."""
    if node.op is None:
        return None
    shape: Shape = node.op._inputs[0]._shape
    return None if shape is None or None in shape else shape


def check_same_shape(ref: Array, value: Array) -> None:
    have, given = np.shape(ref), np.shape(value)
    if have != given:
        raise kernels.invalid(
            f"Cannot update variable with shape {shapes.show(have)} using a Tensor with "
            f"shape {shapes.show(given)}, "
            "shapes must be equal."
        )


def add_kernel(xp: ArrayNamespace, ref: Array, value: Array) -> Array:
    check_same_shape(ref, value)
    return xp.add(ref, value)


def sub_kernel(xp: ArrayNamespace, ref: Array, value: Array) -> Array:
    check_same_shape(ref, value)
    return xp.subtract(ref, value)


def add_inplace(ref: Array, value: Array) -> None:
    check_same_shape(ref, value)
    np.add(ref, value, out=ref)


def sub_inplace(ref: Array, value: Array) -> None:
    check_same_shape(ref, value)
    np.subtract(ref, value, out=ref)


def count_kernel(xp: ArrayNamespace, ref: Array, *, limit: int) -> tuple[Array, Array]:
    """The new value, and the value before counting."""
    if limit > np.iinfo(ref.dtype).max:
        raise errors.InvalidArgumentError(
            None, None, f"Attr limit has value {limit} out of range for an {ref.dtype}"
        )
    if ref >= limit:
        raise errors.OutOfRangeError(None, None, f"Reached limit of {limit}")
    return xp.add(ref, np.array(1, ref.dtype)), ref


def is_initialized_kernel(xp: ArrayNamespace, value: Array | None) -> Any:
    return np.bool_(value is not None)


# definitions ------------------------------------------------------------------------------------

_WRITES: dict[str, Any] = {"grad": NOT_DIFFERENTIABLE, "writes": (0,), "stateful": True}

VARIABLE_V2 = define(
    "VariableV2",
    "-> ref: &dtype; shape: shape, dtype: type, container: str='', shared_name: str=''",
    shape=shape_fns.from_attr("shape"),
    kernel=variable_kernel,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    role="variable",
)
VARIABLE = define(
    "Variable",
    "-> ref: &dtype; shape: shape, dtype: type, container: str='', shared_name: str=''",
    # the first VariableDef could not say "unknown": an empty shape stands for it
    shape=lambda c: [c.attr("shape") or None],
    kernel=variable_kernel,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    role="variable",
)
ASSIGN = define(
    "Assign",
    "ref: &T, value: T -> output_ref: &T; T: type, validate_shape: bool=True, "
    "use_locking: bool=True",
    shape=_assign_shape,
    kernel=_assign_kernel,
    uninit_ok=True,
    role="assign",
    **_WRITES,
)
READ_ACROSS_RESIZE = define(
    "_ReadAcrossResize",
    "before: T, now: T -> value: T; T: type",
    shape=shape_fns.unknown,
    kernel=_read_across_resize,
    grad=NOT_DIFFERENTIABLE,
    view=True,
)
ASSIGN_ADD = define(
    "AssignAdd",
    "ref: &T, value: T -> output_ref: &T; T: type(number), use_locking: bool=False",
    shape=_merged,
    kernel=add_kernel,
    inplace=add_inplace,
    **_WRITES,
    update="{0} + {1}",
)
ASSIGN_SUB = define(
    "AssignSub",
    "ref: &T, value: T -> output_ref: &T; T: type(number), use_locking: bool=False",
    shape=_merged,
    kernel=sub_kernel,
    inplace=sub_inplace,
    **_WRITES,
    update="{0} - {1}",
)
COUNT_UP_TO = define(
    "CountUpTo",
    "ref: &T -> output: T; limit: int, T: type(index)",
    shape=lambda c: [c.require_rank(0, 0)],
    kernel=count_kernel,
    **_WRITES,
)
IS_VARIABLE_INITIALIZED = define(
    "IsVariableInitialized",
    "ref: &dtype -> is_initialized: bool; dtype: type",
    shape=shape_fns.scalar,
    kernel=is_initialized_kernel,
    grad=NOT_DIFFERENTIABLE,
    reads=(0,),
    uninit_ok=True,
    role="is initialized",
)


STRIDED_ATTRS = (
    "T: type, Index: type(index), begin_mask: int=0, end_mask: int=0, ellipsis_mask: "
    "int=0, new_axis_mask: int=0, "
    "shrink_axis_mask: int=0"
)
STRIDED_SLICE_ASSIGN = define(
    "StridedSliceAssign",
    "ref: &T, begin: Index, end: Index, strides: Index, value: T -> output_ref: &T; "
    f"{STRIDED_ATTRS}",
    shape=shape_fns.unchanged,
    kernel=kernels.strided_kernel,
    inplace=kernels.strided_inplace,
    known_inputs=(1, 2, 3),
    **_WRITES,
)


# wrappers ---------------------------------------------------------------------------------------


def variable_op_v2(
    shape: ShapeLike | None,
    dtype: DTypeLike,
    name: str = "Variable",
    container: str = "",
    shared_name: str = "",
) -> Tensor:
    """The variable operation alone, without initialiser or snapshot."""
    box = container or get_default_graph()._container
    return apply(
        VARIABLE_V2,
        shape=to_plain(shape),
        dtype=as_dtype(dtype),
        container=box,
        shared_name=shared_name,
        name=name,
    )


def variable_op(
    shape: ShapeLike,
    dtype: DTypeLike,
    name: str = "Variable",
    set_shape: bool = True,
    container: str = "",
    shared_name: str = "",
) -> Tensor:
    """The pre-1.0 spelling of :func:`variable_op_v2`."""
    return variable_op_v2(shape if set_shape else None, dtype, name, container, shared_name)


def is_ref(ref: TensorLike) -> bool:
    """Whether ``ref`` is a reference variable or tensor (and not a resource variable)."""
    dtype = getattr(ref, "dtype", None)
    return isinstance(dtype, DType) and dtype._is_ref


def _require_variable(ref: Tensor, op: str) -> None:
    if not hasattr(ref, "handle"):
        method = {"Assign": "assign", "AssignAdd": "assign_add", "AssignSub": "assign_sub"}
        raise AttributeError(
            f"{type(ref).__name__!r} object has no attribute {method.get(op, 'handle')!r}: "
            f"'{op}' changes variables (a tf.Variable, or a slice of one)"
        )


def assign(
    ref: Any,
    value: TensorLike,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Any:
    """Give a variable a new value; the result is the variable after the assignment.

    The assignment happens when the result is fetched or depended on. ``validate_shape=False`` lets
    the value have another shape than the variable. ``use_locking`` has no effect: writes of one
    variable never interleave.

        v = tf.Variable(1.0)
        sess.run(tf.assign(v, 3.0))
    """
    if is_ref(ref):
        check = True if validate_shape is None else validate_shape
        lock = True if use_locking is None else use_locking
        return apply(ASSIGN, ref, value, validate_shape=check, use_locking=lock, name=name)
    if not hasattr(ref, "assign"):  # a slice of a variable, v[1:3], has it too
        _require_variable(ref, "Assign")
    return ref.assign(value, name=name)


def assign_add(
    ref: Any, value: TensorLike, use_locking: bool | None = None, name: str | None = None
) -> Any:
    """Add ``value`` to a variable. The result is the new value.

    It happens when the result is fetched or depended on. ``value`` has the variable's shape.
    ``use_locking`` has no effect: concurrent updates are never lost.
    """
    if is_ref(ref):
        return apply(ASSIGN_ADD, ref, value, use_locking=bool(use_locking), name=name)
    _require_variable(ref, "AssignAdd")
    return ref.assign_add(value)  # TF 1.15 drops the name here


def assign_sub(
    ref: Any, value: TensorLike, use_locking: bool | None = None, name: str | None = None
) -> Any:
    """Subtract ``value`` from a variable. The result is the new value.

    It happens when the result is fetched or depended on. ``value`` has the variable's shape.
    ``use_locking`` has no effect: concurrent updates are never lost.
    """
    if is_ref(ref):
        return apply(ASSIGN_SUB, ref, value, use_locking=bool(use_locking), name=name)
    _require_variable(ref, "AssignSub")
    return ref.assign_sub(value)  # TF 1.15 drops the name here


def count_up_to(ref: Any, limit: int, name: str | None = None) -> Tensor:
    """Count a scalar variable up by one; OutOfRangeError at ``limit``."""
    if is_ref(ref):
        return apply(COUNT_UP_TO, ref, limit=limit, name=name)
    _require_variable(ref, "CountUpTo")
    return apply_op("ResourceCountUpTo", ref.handle, limit=limit, T=ref.dtype, name=name)


def is_variable_initialized(ref: Any, name: str | None = None) -> Tensor:
    """Whether a variable has a value in the session."""
    if is_ref(ref):
        return apply(IS_VARIABLE_INITIALIZED, ref, name=name)
    _require_variable(ref, "IsVariableInitialized")
    initialized: Tensor = ref.is_initialized(name=name)
    return initialized
