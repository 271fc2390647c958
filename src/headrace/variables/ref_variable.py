"""TF 1's reference variable.

A VariableV2, its initial value, Assign and a snapshot called ``read``.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from headrace.core import convert as conversion
from headrace.core import dtypes
from headrace.core.annotations import DTypeLike
from headrace.core.build import apply, apply_op
from headrace.core.dtypes import DType
from headrace.core.graph import Graph, get_default_graph
from headrace.core.scopes import init_scope, name_scope
from headrace.core.shapes import TensorShape, as_shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.basic import IDENTITY
from headrace.ops.state import ref_state as state
from headrace.variables.initial_values import checked_initial_value, guarded
from headrace.variables.variable import (
    Variable,
    checked_collections,
    checked_distribution,
    gather_rows,
)

if TYPE_CHECKING:
    from headrace.core.annotations import ConstraintLike, ShapeLike, TensorLike
    from headrace.variables.variable import VariableAggregation, VariableSynchronization

__all__ = ["RefVariable"]


class RefVariable(Variable):
    """A variable whose tensor is a reference to it (dtype ``float32_ref``)."""

    def __init__(
        self,
        initial_value: object = None,
        trainable: bool | None = None,
        collections: object = None,
        validate_shape: bool = True,
        caching_device: object = None,
        name: str | None = None,
        variable_def: object = None,
        dtype: DTypeLike | None = None,
        expected_shape: object = None,
        import_scope: str | None = None,
        constraint: ConstraintLike | None = None,
        synchronization: VariableSynchronization | None = None,
        aggregation: VariableAggregation | None = None,
        shape: object = None,
    ) -> None:
        if variable_def is not None:
            if initial_value is not None:
                raise ValueError("variable_def and initial_value are mutually exclusive.")
            from headrace.variables.variable_proto import fill_from_proto

            fill_from_proto(self, variable_def, import_scope)
            return
        checked_initial_value(initial_value, constraint)
        self._synchronization, self._aggregation, self._trainable = checked_distribution(
            synchronization, aggregation, trainable, name
        )
        self._constraint = constraint
        self._caching_device = caching_device
        listed = checked_collections(collections, self._trainable)
        want = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
        self._build(
            initial_value, name, want, validate_shape, None if shape is None else as_shape(shape)
        )
        self.graph.add_to_collections(listed, self)

    def _build(
        self,
        initial_value: Any,
        name: str | None,
        dtype: DType | None,
        validate: bool,
        shape: TensorShape | None,
    ) -> None:
        from_function = callable(initial_value)
        with (
            init_scope(),
            name_scope(name, "Variable", [] if from_function else [initial_value]) as scope,
        ):
            graph = get_default_graph()
            if from_function:
                with graph._attribute_scope({"_class": [b"loc:@" + scope[:-1].encode()]}):
                    with graph.name_scope("Initializer"), graph.device(None):
                        value = conversion.convert(initial_value(), dtype, "initial_value")
                    self._make_variable(value, scope, validate, shape)
            else:
                value = conversion.convert(initial_value, dtype, "initial_value")
                self._make_variable(value, scope, validate, shape)
            self._initial_value = value
            assigned = apply(
                state.ASSIGN,
                self._variable,
                guarded(scope, value),
                validate_shape=validate,
                use_locking=True,
            )
            self._initializer_op = assigned.op
            with self._read_place(graph):
                self._snapshot: Tensor = apply(IDENTITY, self._variable, name="read")

    def _make_variable(
        self, value: Tensor, scope: str, validate: bool, shape: TensorShape | None
    ) -> None:
        if value._op._context is not None:
            raise ValueError(
                f"Initializer for variable {scope} is from inside a control-flow "
                "construct, such as a loop or "
                "conditional. When creating a variable inside a loop or conditional, use "
                "a lambda as the initializer."
            )
        static = value.shape
        if validate and not static.is_fully_defined():
            raise ValueError(f"initial_value must have a shape specified: {value}")
        if shape is not None and not static.is_compatible_with(shape):
            raise ValueError(
                f"The initial value's shape ({static}) is not compatible with the "
                "explicitly supplied `shape` "
                f"argument ({shape})."
            )
        known = shape if shape is not None else static if validate else None
        self._variable: Tensor = state.variable_op_v2(known, value.dtype.base_dtype, name=scope)

    def _read_place(self, graph: Graph) -> AbstractContextManager[None]:
        if self._caching_device is not None:
            return graph.device(self._caching_device)
        return graph.colocate_with(self._variable.op)

    # reading ------------------------------------------------------------------------------------
    def value(self) -> Tensor:
        return self._snapshot

    def _AsTensor(self) -> Tensor:
        return self._snapshot

    def read_value(self) -> Tensor:
        return apply(IDENTITY, self._variable, name="read")

    def _ref(self) -> Tensor:
        return self._variable

    def _as_graph_element(self) -> Tensor:
        return self._variable

    def sparse_read(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """Some rows of the variable."""
        return gather_rows(self, indices, name)

    def gather_nd(self, indices: TensorLike, name: str | None = None) -> Tensor:
        return apply_op("GatherNd", self, indices, name=name)

    @property
    def name(self) -> str:
        return self._variable.name

    @property
    def dtype(self) -> DType:
        return self._variable._dtype

    @property
    def op(self) -> Operation:
        return self._variable._op

    @property
    def shape(self) -> TensorShape:
        return self._variable.shape

    def set_shape(self, shape: ShapeLike) -> None:
        """Add knowledge about the static shape."""
        self._variable.set_shape(shape)
        self._snapshot.set_shape(shape)

    # writing ------------------------------------------------------------------------------------
    def assign(
        self, value: Any, use_locking: Any = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        out = state.assign(self._variable, value, use_locking=bool(use_locking), name=name)
        return out if read_value else out.op

    def assign_add(
        self,
        delta: TensorLike,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        out = state.assign_add(self._variable, delta, use_locking=bool(use_locking), name=name)
        return out if read_value else out.op

    def assign_sub(
        self,
        delta: TensorLike,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        out = state.assign_sub(self._variable, delta, use_locking=bool(use_locking), name=name)
        return out if read_value else out.op

    def count_up_to(self, limit: int) -> Tensor:
        """Count up by one; OutOfRangeError at ``limit``."""
        return state.count_up_to(self._variable, limit)

    def _scatter(self, op_type: str, indices: Tensor, updates: Tensor, name: str | None) -> Tensor:
        return apply_op(op_type, self._variable, indices, updates, name=name)
