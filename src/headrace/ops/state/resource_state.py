"""Ops on resource variables: VarHandleOp, ReadVariableOp, AssignVariableOp, gathers and scatters
through a handle.

A handle is a scalar of type ``resource``; what is known of its variable (type, static shape) is
found by following the handle to its ``VarHandleOp``. Each read is an operation of its own, ordered
by control dependencies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import shape_fns, shapes
from headrace.core.build import apply, apply_op, apply_operation
from headrace.core.convert import make_const
from headrace.core.dtypes import DType, int32
from headrace.core.graph import get_default_graph
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, KernelNode, OpDef, define
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.state import ref_state as state
from headrace.ops.state import state_kernels

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, DTypeLike, TensorLike

__all__ = [
    "assign_add_variable_op",
    "assign_sub_variable_op",
    "assign_variable_op",
    "handle_dtype",
    "handle_shape",
    "read_variable_op",
    "resource_gather",
    "resource_scatter_add",
    "resource_scatter_update",
    "var_handle_op",
    "var_is_initialized_op",
    "variable_shape",
]


# what is known of a handle ----------------------------------------------------------------------

#: Ops that pass a handle on.
_FORWARDS = frozenset(["Identity", "Switch", "Enter", "Merge", "Exit", "NextIteration"])


def _handle_op(handle: Tensor) -> Operation | None:
    op = handle._op
    while op.type in _FORWARDS:
        op = op._inputs[0]._op
    return op if op.type == "VarHandleOp" else None


def handle_shape(handle: Tensor) -> Shape:
    """The static shape of the variable behind a handle."""
    op = _handle_op(handle)
    return None if op is None else op._attrs["shape"]


def handle_dtype(handle: Tensor) -> DType | None:
    op = _handle_op(handle)
    return None if op is None else op._attrs["dtype"]


# shape rules ------------------------------------------------------------------------------------


def _handle_type_checked(c: Inference, dtype: DType) -> None:
    have = handle_dtype(c.op._inputs[0])
    if have is not None and have is not dtype:
        raise ValueError(
            f"Trying to use a variable of type {have.name} with the wrong dtype: "
            f"{dtype.name}. Use tf.cast."
        )


def _read_shape(c: Inference) -> list[Shape]:
    _handle_type_checked(c, c.attr("dtype"))
    return [handle_shape(c.op._inputs[0])]


def _write_shape(c: Inference) -> list[Shape]:
    _handle_type_checked(c, c.attr("dtype"))
    shapes.merge(handle_shape(c.op._inputs[0]), c.shape(1))
    return []


def _gather_shape(c: Inference) -> list[Shape]:
    params, indices, batch = handle_shape(c.op._inputs[0]), c.shape(1), c.attr("batch_dims")
    if params is not None and len(params) < batch + 1:
        raise ValueError(f"Shape must be at least rank {batch + 1} but is rank {len(params)}")
    if params is None or indices is None:
        return [None]
    return [params[:batch] + indices[batch:] + params[batch + 1 :]]


def _gather_nd_shape(c: Inference) -> list[Shape]:
    params, indices = handle_shape(c.op._inputs[0]), c.shape(1)
    if params is None or indices is None or not indices or indices[-1] is None:
        return [None]
    depth = indices[-1]
    if depth > len(params):
        raise ValueError(
            "indices.shape[-1] must be <= params.rank, but saw indices.shape[-1] = "
            f"{depth} and params.rank = {len(params)}"
        )
    return [indices[:-1] + params[depth:]]


def _scatter_shape(c: Inference) -> list[Shape]:
    state.check_scatter_shapes(handle_shape(c.op._inputs[0]), c.shape(1), c.shape(2))
    return []


def _scatter_nd_shape(c: Inference) -> list[Shape]:
    state.check_scatter_nd_shapes(handle_shape(c.op._inputs[0]), c.shape(1), c.shape(2))
    return []


def _variable_shape_shape(c: Inference) -> list[Shape]:
    known = handle_shape(c.op._inputs[0])
    return [(None,) if known is None else (len(known),)]


# kernels ----------------------------------------------------------------------------------------


def _assign_kernel(
    xp: ArrayNamespace, current: Array | None, value: Array, *, node: KernelNode
) -> Array:
    declared = None if node.op is None else handle_shape(node.op._inputs[0])
    check_assigned_shape(declared, np.shape(value))
    return value


def check_assigned_shape(declared: Shape, have: Shape) -> None:
    """Refuse what AssignVariableOp refuses."""
    if declared is not None and not shapes.compatible(declared, have):
        raise state_kernels.invalid(
            "Trying to assign variable with wrong shape. Expected "
            f"{shapes.show(declared)} got {shapes.show(have)}"
        )


def _gather_kernel(xp: ArrayNamespace, params: Array, indices: Array, *, batch_dims: int) -> Any:
    indices = xp.asarray(indices)
    if params.ndim <= batch_dims:
        raise state_kernels.invalid(f"params must be at least {batch_dims + 1} dimensional")
    if xp.name == "numpy":
        state_kernels.check_indices(indices, params.shape[batch_dims])
    if batch_dims == 0:
        return xp.take(params, indices, axis=0)
    grid = tuple(
        xp.arange(n).reshape((1,) * i + (n,) + (1,) * (indices.ndim - i - 1))
        for i, n in enumerate(params.shape[:batch_dims])
    )
    return params[(*grid, indices)]


def _gather_nd_kernel(xp: ArrayNamespace, params: Array, indices: Array) -> Array:
    if xp.name == "numpy":
        indices = np.asarray(indices)
        state_kernels.check_nd_indices(indices, params.shape, "param shape")
    depth = indices.shape[-1]
    if depth == 0:
        return xp.broadcast_to(params, indices.shape[:-1] + params.shape)
    return params[tuple(indices[..., i] for i in range(depth))]


def _destroy_kernel(
    xp: ArrayNamespace, current: Array | None, *, ignore_lookup_error: bool, node: KernelNode
) -> None:
    if current is None and not ignore_lookup_error:
        raise errors.NotFoundError(
            None, node.op, "Resource does not exist: the variable was never initialized."
        )
    return None


def _variable_shape_kernel(xp: ArrayNamespace, value: Array, *, out_type: DType) -> Array:
    return np.array(np.shape(value), out_type.np_dtype)


# gradients --------------------------------------------------------------------------------------


def _gather_grad(op: Operation, grad: Tensor) -> list[Any]:
    """The rows that were read, as IndexedSlices of the variable."""
    handle, indices = op.inputs
    if op._attrs["batch_dims"]:
        raise LookupError(
            "The gradient of ResourceGather with batch_dims is not defined (nor is it in TF 1.15)."
        )
    shape = variable_shape(handle)
    plain = handle_shape(handle)
    if plain is not None and None not in plain and 0 not in plain[1:]:
        values = apply_op("Reshape", grad, np.array((-1, *plain[1:]), np.int32))
    else:
        size = apply_op("Reshape", apply_op("Size", indices), [1])
        inner = apply_op("StridedSlice", shape, [1], [0], [1], end_mask=1)
        values = apply_op("Reshape", grad, apply_op("ConcatV2", [size, inner], 0))
    return [IndexedSlices(values, apply_op("Reshape", indices, [-1]), shape), None]


def _gather_nd_grad(op: Operation, grad: Tensor) -> list[Any]:
    handle, indices = op.inputs
    shape = variable_shape(handle, indices.dtype)
    plain = indices._shape
    if plain is not None and len(plain) == 2 and plain[-1] == 1:
        rows = apply_op("Squeeze", indices, squeeze_dims=[-1])
        return [IndexedSlices(grad, rows, shape), None]
    return [apply_op("ScatterNd", indices, grad, shape), None]


# definitions ------------------------------------------------------------------------------------

_WRITES: dict[str, Any] = {
    "grad": NOT_DIFFERENTIABLE,
    "writes": (0,),
    "stateful": True,
    "looks_up": True,
}

VAR_HANDLE = define(
    "VarHandleOp",
    "-> resource: resource; container: str='', shared_name: str='', dtype: type, shape: shape",
    shape=shape_fns.scalar,
    kernel=state.variable_kernel,
    grad=NOT_DIFFERENTIABLE,
    stateful=True,
    role="handle",
)
READ_VARIABLE = define(
    "ReadVariableOp",
    "resource: resource -> value: dtype; dtype: type",
    shape=_read_shape,
    kernel=lambda xp, value: value,
    grad=lambda op, g: [g],
    reads=(0,),
    view=True,
    role="read",
    expression="{0}",
    rearranges=True,
)
ASSIGN_VARIABLE = define(
    "AssignVariableOp",
    "resource: resource, value: dtype ->; dtype: type",
    shape=_write_shape,
    kernel=_assign_kernel,
    uninit_ok=True,
    role="assign",
    **_WRITES,
)
ASSIGN_ADD_VARIABLE = define(
    "AssignAddVariableOp",
    "resource: resource, value: dtype ->; dtype: type",
    shape=_write_shape,
    kernel=state.add_kernel,
    inplace=state.add_inplace,
    **_WRITES,
    update="{0} + {1}",
)
ASSIGN_SUB_VARIABLE = define(
    "AssignSubVariableOp",
    "resource: resource, value: dtype ->; dtype: type",
    shape=_write_shape,
    kernel=state.sub_kernel,
    inplace=state.sub_inplace,
    **_WRITES,
    update="{0} - {1}",
)
VAR_IS_INITIALIZED = define(
    "VarIsInitializedOp",
    "resource: resource -> is_initialized: bool",
    shape=shape_fns.scalar,
    kernel=state.is_initialized_kernel,
    grad=NOT_DIFFERENTIABLE,
    reads=(0,),
    uninit_ok=True,
    role="is initialized",
)
VARIABLE_SHAPE = define(
    "VariableShape",
    "input: resource -> output: out_type; out_type: type(index)=int32",
    shape=_variable_shape_shape,
    kernel=_variable_shape_kernel,
    grad=NOT_DIFFERENTIABLE,
    reads=(0,),
    looks_up=True,
)
RESOURCE_GATHER = define(
    "ResourceGather",
    "resource: resource, indices: Tindices -> output: dtype; "
    "batch_dims: int=0, validate_indices: bool=True, dtype: type, Tindices: type(index)",
    shape=_gather_shape,
    kernel=_gather_kernel,
    grad=_gather_grad,
    reads=(0,),
    looks_up=True,
)
RESOURCE_GATHER_ND = define(
    "ResourceGatherNd",
    "resource: resource, indices: Tindices -> output: dtype; dtype: type, Tindices: type(index)",
    shape=_gather_nd_shape,
    kernel=_gather_nd_kernel,
    grad=_gather_nd_grad,
    reads=(0,),
    looks_up=True,
    view=True,
)
#: TF 2's note to its own runtime that a variable is about to be read whole, as a checkpoint does.
DISABLE_COPY_ON_READ = define(
    "DisableCopyOnRead",
    "resource: resource ->",
    shape=shape_fns.no_outputs,
    kernel=lambda xp, value: None,
    grad=NOT_DIFFERENTIABLE,
    reads=(0,),
    uninit_ok=True,
)
DESTROY_RESOURCE = define(
    "DestroyResourceOp",
    "resource: resource ->; ignore_lookup_error: bool=True",
    shape=shape_fns.no_outputs,
    kernel=_destroy_kernel,
    uninit_ok=True,
    **_WRITES,
)
RESOURCE_COUNT_UP_TO = define(
    "ResourceCountUpTo",
    "resource: resource -> output: T; limit: int, T: type(index)",
    shape=shape_fns.scalar,
    kernel=state.count_kernel,
    **_WRITES,
)
RESOURCE_STRIDED_SLICE_ASSIGN = define(
    "ResourceStridedSliceAssign",
    f"ref: resource, begin: Index, end: Index, strides: Index, value: T ->; {state.STRIDED_ATTRS}",
    shape=shape_fns.no_outputs,
    kernel=state_kernels.strided_kernel,
    inplace=state_kernels.strided_inplace,
    known_inputs=(1, 2, 3),
    **_WRITES,
)


def _define_scatter(name: str, how: str, types: str) -> OpDef:
    return define(
        name,
        f"resource: resource, indices: Tindices, updates: dtype ->; dtype: {types}, "
        "Tindices: type(index)",
        shape=_scatter_shape,
        kernel=state_kernels.scatter_kernel(how, by_count=True),
        inplace=state_kernels.scatter_inplace(how, by_count=True),
        **_WRITES,
    )


def _define_scatter_nd(name: str, how: str) -> OpDef:
    return define(
        name,
        "ref: resource, indices: Tindices, updates: T ->; T: type, Tindices: type(index), "
        "use_locking: bool=True",
        shape=_scatter_nd_shape,
        kernel=state_kernels.scatter_nd_kernel(how),
        inplace=state_kernels.scatter_nd_inplace(how),
        **_WRITES,
    )


RESOURCE_SCATTER_UPDATE = _define_scatter("ResourceScatterUpdate", "update", "type")
RESOURCE_SCATTER_ADD = _define_scatter("ResourceScatterAdd", "add", "type(number)")
RESOURCE_SCATTER_SUB = _define_scatter("ResourceScatterSub", "sub", "type(number)")
RESOURCE_SCATTER_MUL = _define_scatter("ResourceScatterMul", "mul", "type(number)")
RESOURCE_SCATTER_DIV = _define_scatter("ResourceScatterDiv", "div", "type(number)")
RESOURCE_SCATTER_MIN = _define_scatter("ResourceScatterMin", "min", "type(number)")
RESOURCE_SCATTER_MAX = _define_scatter("ResourceScatterMax", "max", "type(number)")
RESOURCE_SCATTER_ND_UPDATE = _define_scatter_nd("ResourceScatterNdUpdate", "update")
RESOURCE_SCATTER_ND_ADD = _define_scatter_nd("ResourceScatterNdAdd", "add")
RESOURCE_SCATTER_ND_SUB = _define_scatter_nd("ResourceScatterNdSub", "sub")


# wrappers (tensorflow.python.ops.resource_variable_ops) ------------------------------------------


def var_handle_op(
    dtype: DTypeLike,
    shape: TensorLike,
    container: str = "",
    shared_name: str = "",
    name: str | None = None,
) -> Tensor:
    """A handle to the variable of this name."""
    box = container or get_default_graph()._container
    return apply(
        VAR_HANDLE,
        container=box,
        shared_name=shared_name,
        dtype=dtype,
        shape=shapes.to_plain(shape),
        name=name,
    )


def read_variable_op(resource: Tensor, dtype: DTypeLike, name: str | None = None) -> Tensor:
    return apply(READ_VARIABLE, resource, dtype=dtype, name=name)


def var_is_initialized_op(resource: Tensor, name: str | None = None) -> Tensor:
    return apply(VAR_IS_INITIALIZED, resource, name=name)


def _typed(resource: Tensor) -> dict[str, Any]:
    dtype = handle_dtype(resource)
    return {} if dtype is None else {"dtype": dtype}


def assign_variable_op(resource: Tensor, value: TensorLike, name: str | None = None) -> Operation:
    return apply_operation(ASSIGN_VARIABLE, resource, value, name=name, **_typed(resource))


def assign_add_variable_op(
    resource: Tensor, value: TensorLike, name: str | None = None
) -> Operation:
    return apply_operation(ASSIGN_ADD_VARIABLE, resource, value, name=name, **_typed(resource))


def assign_sub_variable_op(
    resource: Tensor, value: TensorLike, name: str | None = None
) -> Operation:
    return apply_operation(ASSIGN_SUB_VARIABLE, resource, value, name=name, **_typed(resource))


def resource_gather(
    resource: Tensor,
    indices: TensorLike,
    dtype: DTypeLike,
    batch_dims: int = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    return apply(
        RESOURCE_GATHER,
        resource,
        indices,
        dtype=dtype,
        batch_dims=batch_dims,
        validate_indices=validate_indices,
        name=name,
    )


def resource_scatter_add(
    resource: Tensor, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Operation:
    return apply_operation(RESOURCE_SCATTER_ADD, resource, indices, updates, name=name)


def resource_scatter_update(
    resource: Tensor, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Operation:
    return apply_operation(RESOURCE_SCATTER_UPDATE, resource, indices, updates, name=name)


def variable_shape(handle: Tensor, out_type: DType = int32) -> Tensor:
    """The shape of a handle's variable as a tensor: a constant where it is known."""
    plain = handle_shape(handle)
    if plain is None or None in plain:
        return apply(VARIABLE_SHAPE, handle, out_type=out_type)
    graph = handle._op.graph
    return make_const(
        graph, np.array(plain, out_type.np_dtype), out_type, graph._full_name("Const")
    )
