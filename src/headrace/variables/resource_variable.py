"""Resource variables: a handle, and reads and writes that are operations of their own."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from headrace.core import convert as conversion
from headrace.core import dtypes
from headrace.core.annotations import DTypeLike
from headrace.core.build import apply, apply_operation
from headrace.core.dtypes import DType
from headrace.core.func_graph import out_of_scope
from headrace.core.graph import get_default_graph
from headrace.core.opdef import lookup
from headrace.core.scopes import init_scope, name_scope
from headrace.core.shapes import TensorShape, as_shape
from headrace.core.tapes import ACTIVE, variable_accessed
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.basic import identity
from headrace.ops.state import resource_state as ops
from headrace.variables.initial_values import checked_initial_value, guarded
from headrace.variables.variable import Variable, checked_collections, checked_distribution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import ConstraintLike, ShapeLike, TensorLike
    from headrace.core.opdef import OpDef
    from headrace.variables.variable import VariableAggregation, VariableSynchronization

__all__ = ["ResourceVariable", "is_resource_variable"]


def is_resource_variable(var: TensorLike) -> bool:
    """Whether ``var`` is updated through a handle."""
    return isinstance(var, ResourceVariable) or hasattr(var, "_should_act_as_resource_variable")


class ResourceVariable(Variable):
    """A variable behind a handle, with reads that are ordered like any other operation."""

    _scatter_prefix: ClassVar[str] = "Resource"
    #: ``ResourceVariable(...)`` while eager execution is on makes an eager variable, which is of a
    #: subclass.
    _made_eagerly: ClassVar[bool] = True

    _handle: Tensor
    _handle_name: str
    _dtype: DType
    _shape: TensorShape
    _graph_element: Tensor
    _cached_value: Tensor | None = None
    _parent_op: Operation | None = None

    def __init__(
        self,
        initial_value: object = None,
        trainable: bool | None = None,
        collections: Sequence[str] | None = None,
        validate_shape: bool = True,
        caching_device: object = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        variable_def: object = None,
        import_scope: str | None = None,
        constraint: ConstraintLike | None = None,
        distribute_strategy: object = None,
        synchronization: VariableSynchronization | None = None,
        aggregation: VariableAggregation | None = None,
        shape: object = None,
        expected_shape: object = None,
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
        known = None if shape is None else as_shape(shape)
        self._build(initial_value, name, want, known, validate_shape)
        self.graph.add_to_collections(listed, self)

    def _build(
        self,
        initial_value: Any,
        name: str | None,
        dtype: DType | None,
        shape: TensorShape | None,
        validate_shape: bool = True,
    ) -> None:
        from_function = callable(initial_value)
        with (
            init_scope(),
            name_scope(name, "Variable", [] if from_function else [initial_value]) as scope,
        ):
            graph = get_default_graph()
            handle_name = scope[:-1]
            with graph._attribute_scope({"_class": [b"loc:@" + handle_name.encode()]}):
                with graph.name_scope("Initializer"), graph.device(None):
                    given = initial_value() if from_function else initial_value
                    value = conversion.convert(given, dtype, "initial_value")
                self._shape = self._variable_shape(value, scope, shape)
                self._dtype = value.dtype.base_dtype
                # without the check later values may have any shape: TF 1.15's kernel does not look
                declared = self._shape if validate_shape else TensorShape(None)
                self._handle = ops.var_handle_op(
                    self._dtype, declared, shared_name=handle_name, name=scope
                )
            self._handle_name = handle_name
            self._initial_value = value
            with graph.name_scope("IsInitialized"):
                self._is_initialized_op = ops.var_is_initialized_op(self._handle)
            with (
                graph.name_scope("Assign") as assign_scope,
                graph.colocate_with(None, ignore_existing=True),
                self._on_device(),
            ):
                self._initializer_op = ops.assign_variable_op(
                    self._handle, guarded(scope, value), name=assign_scope
                )
            with graph.name_scope("Read"):
                with self._on_device():
                    self._graph_element = self._read()
                if self._caching_device is not None:
                    with graph.device(self._caching_device):
                        self._cached_value = identity(self._graph_element)

    @staticmethod
    def _variable_shape(value: Tensor, scope: str, shape: TensorShape | None) -> TensorShape:
        if value._op._context is not None:
            raise ValueError(
                f"Initializer for variable {scope} is from inside a control-flow "
                "construct, such as a loop or "
                "conditional. When creating a variable inside a loop or conditional, use "
                "a lambda as the initializer."
            )
        if shape is None:
            return value.shape
        if not value.shape.is_compatible_with(shape):
            raise ValueError(
                f"The initial value's shape ({value.shape}) is not compatible with the "
                "explicitly supplied `shape` "
                f"argument ({shape})."
            )
        return shape

    def _on_device(self) -> AbstractContextManager[Any]:
        device = self._handle._op._device
        return self._handle.graph.device(device) if device else nullcontext()

    # reading ------------------------------------------------------------------------------------
    def _read(self) -> Tensor:
        if ACTIVE[0]:
            variable_accessed(self)
        return apply(ops.READ_VARIABLE, self._handle, dtype=self._dtype)

    def value(self) -> Tensor:
        if self._cached_value is not None:
            return self._cached_value
        with self._on_device():
            return self._read()

    def read_value(self) -> Tensor:
        with name_scope("Read"), self._on_device():
            value = self._read()
        return identity(value)

    def _ref(self) -> Tensor:
        return self.value()

    def _as_graph_element(self) -> Tensor:
        return self._graph_element

    def is_initialized(self, name: str | None = None) -> Tensor:
        return ops.var_is_initialized_op(self._handle, name)

    def sparse_read(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """Some rows of the variable, without reading the others."""
        if ACTIVE[0]:
            variable_accessed(self)
        value = ops.resource_gather(self._handle, indices, self._dtype, name=name or "Gather")
        return identity(value)

    def gather_nd(self, indices: TensorLike, name: str | None = None) -> Tensor:
        if ACTIVE[0]:
            variable_accessed(self)
        value = apply(
            ops.RESOURCE_GATHER_ND,
            self._handle,
            indices,
            dtype=self._dtype,
            name=name or "GatherNd",
        )
        return identity(value)

    @property
    def handle(self) -> Tensor:
        """The handle by which operations reach the variable."""
        return self._handle

    @property
    def name(self) -> str:
        return self._handle_name + ":0"

    @property
    def _unique_id(self) -> str:
        return self._handle_name

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def op(self) -> Operation:
        return self._handle._op

    @property
    def create(self) -> Any:
        return self._initializer_op

    @property
    def shape(self) -> TensorShape:
        return self._shape

    def set_shape(self, shape: ShapeLike) -> None:
        self._shape = self._shape.merge_with(shape)
        self._graph_element.set_shape(shape)

    # writing ------------------------------------------------------------------------------------
    def _lazy_read(self, op: Operation) -> UnreadVariable:
        return UnreadVariable(self, op)

    def _write(
        self, opdef: OpDef, value: TensorLike, name: str | None, read_value: bool
    ) -> Operation | Variable:
        graph = get_default_graph()
        if graph._is_eager:
            raise out_of_scope(self._handle)
        with (graph if graph._is_function else self._handle.graph).as_default():
            tensor = conversion.convert(value, self._dtype)
            if opdef is ops.ASSIGN_VARIABLE:
                self._shape.assert_is_compatible_with(tensor.shape)
            op = apply_operation(opdef, self._handle, tensor, dtype=self._dtype, name=name)
            return self._lazy_read(op) if read_value else op

    def assign(
        self, value: Any, use_locking: Any = None, name: str | None = None, read_value: bool = True
    ) -> Any:
        return self._write(ops.ASSIGN_VARIABLE, value, name, read_value)

    def assign_add(
        self,
        delta: TensorLike,
        use_locking: object = None,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        return self._write(ops.ASSIGN_ADD_VARIABLE, delta, name, read_value)

    def assign_sub(
        self,
        delta: TensorLike,
        use_locking: bool | None = None,
        name: str | None = None,
        read_value: bool = True,
    ) -> Operation | Variable | None:
        return self._write(ops.ASSIGN_SUB_VARIABLE, delta, name, read_value)

    def count_up_to(self, limit: int) -> Tensor:
        """Count up by one; OutOfRangeError at ``limit``."""
        return apply(ops.RESOURCE_COUNT_UP_TO, self._handle, limit=limit, T=self._dtype)

    def _scatter(
        self, op_type: str, indices: Tensor, updates: Tensor, name: str | None
    ) -> Variable:
        values = conversion.convert(updates, self._dtype)
        return self._lazy_read(
            apply_operation(lookup(op_type), self._handle, indices, values, name=name)
        )


class UnreadVariable(ResourceVariable):
    """The variable after a write: reading it happens after that write."""

    _parent_op: Operation

    def __init__(self, variable: ResourceVariable, parent_op: Operation) -> None:
        self.__dict__.update(variable.__dict__)
        self._cached_value = None
        self._parent_op = parent_op
        if (
            not parent_op.graph._is_function
        ):  # in a function, a read that nobody asked for would hold up later writes
            self._graph_element = self.value()

    def _as_graph_element(self) -> Tensor:
        return self.value() if self._parent_op.graph._is_function else self._graph_element

    def _read(self) -> Tensor:
        with get_default_graph().control_dependencies([self._parent_op]):
            return super()._read()

    @property
    def name(self) -> str:
        return self._parent_op.name

    @property
    def op(self) -> Operation:
        """The write."""
        return self._parent_op
