"""Checks and small functions of ``tf.contrib.framework``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes, nest
from headrace.core.build import _graph_of
from headrace.core.convert import convert_to_tensor, is_tensor
from headrace.core.graph import Graph, get_default_graph
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.shapes import as_shape
from headrace.core.tensor import Tensor
from headrace.layers.smart_cond import constant_value
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.basic import identity
from headrace.ops.control.assertions import assert_equal, assert_same_float_dtype
from headrace.ops.control.case_branches import case
from headrace.ops.control.py_func import py_func as py_func_of_tensors
from headrace.ops.math.add_n import add_n
from headrace.ops.math.reductions import reduce_sum
from headrace.ops.nn.weights_broadcasting import (
    remove_squeezable_dimensions as squeeze_pair,
)
from headrace.ops.sparse.sparse_tensor import SparseTensor, SparseTensorValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import Array
    from headrace.core.dtypes import DType

__all__ = [
    "assert_same_float_dtype", "assert_scalar", "assert_scalar_int",
    "convert_to_tensor_or_sparse_tensor", "get_graph_from_inputs", "get_name_scope",
    "get_placeholders", "is_tensor", "prepend_name_scope", "py_func", "reduce_sum_n",
    "remove_squeezable_dimensions", "smart_case", "strip_name_scope", "with_same_shape",
    "with_shape",
]  # fmt: skip


def get_graph_from_inputs(op_input_list: Any, graph: Graph | None = None) -> Graph:
    """The graph of the inputs; ValueError if they have several, or another than ``graph``."""
    if graph and not isinstance(graph, Graph):
        raise TypeError(f"Input graph needs to be a Graph: {graph}")
    inputs, default = list(op_input_list), get_default_graph()
    if graph is None or default.building_function:
        return _graph_of(inputs, default)
    for value in inputs:
        if _graph_of([value], graph) is not graph:
            raise ValueError(f"{value} is not from the passed-in graph.")
    return graph


def get_name_scope() -> str:
    """The name scope that is open."""
    return get_default_graph().get_name_scope()


def convert_to_tensor_or_sparse_tensor(
    value: object, dtype: DType | None = None, name: str | None = None
) -> SparseTensor | Tensor:
    """A tensor, or a SparseTensor if one is given."""
    if isinstance(value, SparseTensorValue):
        value = SparseTensor(*value)
    if isinstance(value, SparseTensor):
        if dtype and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):
            raise RuntimeError(
                f"Sparse dtype: requested = {dtypes.as_dtype(dtype).name}, actual = "
                f"{value.dtype.name}"
            )
        return value
    return convert_to_tensor(value, dtype=dtype, name=name)


def assert_scalar(tensor: object, name: str | None = None) -> Tensor:
    """The tensor; ValueError unless it is a scalar."""
    with name_scope(name, "assert_scalar", [tensor]) as scope:
        tensor = convert_to_tensor(tensor, name=scope)
        shape = tensor.shape
        if shape.ndims != 0:
            raise ValueError(f"Unexpected shape {shape} for tensor {tensor.name}. Expected scalar.")
        return tensor


def assert_scalar_int(tensor: object, name: str | None = None) -> Tensor:
    """The tensor; ValueError unless it is a scalar of an integer type."""
    with name_scope(name, "assert_scalar_int", [tensor]) as scope:
        tensor = convert_to_tensor(tensor)
        if not tensor.dtype.base_dtype.is_integer:
            raise ValueError(
                f"Unexpected type {tensor.dtype} for tensor {tensor.name}. Expected integer."
            )
        return assert_scalar(tensor, name=scope)


def reduce_sum_n(tensors: Any, name: str | None = None) -> Tensor:
    """The sum of all elements of all tensors."""
    if not tensors:
        raise ValueError("No tensors provided.")
    with name_scope(name, "reduce_sum_n", tensors) as scope:
        tensors = [reduce_sum(t, name=f"{t.op.name}/sum") for t in tensors]
        return tensors[0] if len(tensors) == 1 else add_n(tensors, name=scope)


def with_shape(expected_shape: Any, tensor: object) -> Tensor:
    """The tensor; an error where its shape is another, while building if it is known."""
    tensor = convert_to_tensor(tensor)
    if not isinstance(expected_shape, Tensor):
        if tensor.shape.is_fully_defined():
            tensor.shape.assert_is_compatible_with(expected_shape)
            return tensor
        if -1 not in list(expected_shape) and None not in list(expected_shape):
            tensor.set_shape(expected_shape)
    with control_dependencies([assert_equal(shape_of(tensor), expected_shape)]):
        return identity(tensor)


def with_same_shape(expected_tensor: object, tensor: object) -> Tensor:
    """``tensor``, checked to have the shape of ``expected_tensor``."""
    expected_tensor = convert_to_tensor(expected_tensor)
    if expected_tensor.shape.is_fully_defined():
        return with_shape(expected_tensor.shape.as_list(), tensor)
    return with_shape(shape_of(expected_tensor), tensor)


def remove_squeezable_dimensions(
    predictions: object, labels: object, name: str | None = None
) -> tuple[Any, Any]:
    """Both, the one of higher rank without its last dimension of size 1."""
    labels, predictions = squeeze_pair(labels, predictions, name=name)
    return predictions, labels


def get_placeholders(graph: Graph) -> list[Tensor]:
    """The placeholders of a graph."""
    if not isinstance(graph, Graph):
        raise TypeError(f"Input graph needs to be a Graph: {graph}")
    return [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]


_MARKS = re.compile(r"(\^|loc:@)?(.*)", re.DOTALL)


def prepend_name_scope(name: str, import_scope: str | None) -> str:
    """``name`` below a scope; the marks ``^`` and ``loc:@`` stay in front."""
    if not import_scope:
        return name
    mark, rest = _split_mark(name)
    return f"{mark}{import_scope.removesuffix('/')}/{rest}"


def strip_name_scope(name: str, export_scope: str | None) -> str:
    """``name`` without a scope that it is in; see :func:`prepend_name_scope`."""
    if not export_scope:
        return name
    mark, rest = _split_mark(name)
    scope = export_scope.removesuffix("/") + "/"
    return mark + (rest[len(scope) :].lstrip("/") if rest.startswith(scope) else rest)


def _split_mark(name: str) -> tuple[str, str]:
    found = _MARKS.fullmatch(name)
    return (found[1] or "", found[2]) if found else ("", name)


def py_func(
    func: Callable[..., Any],
    args: object = (),
    kwargs: dict[str, Any] | None = None,
    output_types: dict[str, Any] | None = None,
    output_shapes: dict[str, Any] | None = None,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """``tf.py_func`` with nested arguments, keyword arguments and results.

    ``output_types`` (and ``output_shapes``) have the structure of the results, or are functions
    of the arguments that give it.
    """
    kwargs = {} if kwargs is None else kwargs
    if not isinstance(args, (list, tuple)):
        raise TypeError(f"args must be list and not {type(args)}. args: {args}")
    if not isinstance(kwargs, dict):
        raise TypeError(f"kwargs must be dict and not {type(kwargs)}. args: {kwargs}")
    types = output_types(*args, **kwargs) if callable(output_types) else output_types
    shapes = output_shapes(*args, **kwargs) if callable(output_shapes) else output_shapes
    given = (args, kwargs)

    def flat_func(*values: object) -> list[Array]:
        positional, named = nest.pack_sequence_as(given, values)
        results = func(*positional, **named)
        nest.assert_shallow_structure(types, results)
        return nest.flatten(results)

    found = py_func_of_tensors(
        flat_func, nest.flatten(given), nest.flatten(types), stateful=stateful, name=name
    )
    found = list(found) if isinstance(found, (list, tuple)) else [found]
    if shapes is not None:
        parts = nest.map_structure_up_to(types, as_shape, shapes)
        for tensor, shape in zip(found, nest.flatten(parts), strict=True):
            tensor.set_shape(shape)
    return nest.pack_sequence_as(types, found)


def smart_case(
    pred_fn_pairs: Sequence[Any],
    default: Callable[..., Any] | None = None,
    exclusive: bool = False,
    name: str = "smart_case",
) -> Any:
    """``tf.case``, decided while building as far as the conditions are known.

    ``pred_fn_pairs`` is a list of ``(condition, function)`` pairs, or a dict of them. Conditions
    that are Python bools or constants are decided at once: only the others become part of the
    graph. ``default`` is called if no condition is true (ValueError without one); ``exclusive`` has
    the graph check that at most one of the others is true.
    """
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    known = [constant_value(pred) for pred, _ in pairs]
    open_pairs: list[Any] = []
    for value, pair in zip(known, pairs, strict=True):
        if value:
            if not open_pairs:
                return pair[1]()
            default = pair[1]
            break
        if value is None:
            open_pairs.append(pair)
    if not open_pairs:
        if default is None:
            raise ValueError("smart_case: no condition is true and there is no default.")
        return default()
    return case(open_pairs, default=default, exclusive=exclusive, name=name)
