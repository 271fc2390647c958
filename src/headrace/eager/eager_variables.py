"""Variables with a value: what ``tf.Variable`` makes while eager execution is on.

The value lives in the eager state under a key of its own and goes when the last reference to the
variable's handle goes. Eagerly a read is a look into the state; in the body of a function that is
being traced the same object makes read and assign operations on a handle with the same key, so that
the function reaches the same value.

    >>> v = tf.Variable([1.0, 2.0])
    >>> v.assign_add([1.0, 1.0])
    <tf.Variable 'Variable:0' shape=(2,) dtype=float32, numpy=array([2., 3.], dtype=float32)>
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from headrace.core import convert as conversion
from headrace.core import dtypes
from headrace.core.build import apply, apply_operation
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.opdef import lookup
from headrace.core.scopes import name_scope
from headrace.core.shapes import TensorShape, as_shape, compatible, to_plain
from headrace.core.tapes import ACTIVE, variable_accessed
from headrace.core.tensor import Tensor
from headrace.eager.eager_context import STATE
from headrace.eager.eager_state_ops import VariableHandle, write_variable
from headrace.eager.eager_tensor import EagerTensor, _text, wrap
from headrace.eager.tape_record import record
from headrace.ops.array.indexing import slice_helper
from headrace.ops.state import resource_state as ops
from headrace.variables.initial_values import checked_initial_value
from headrace.variables.resource_variable import ResourceVariable
from headrace.variables.variable import checked_distribution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import Array, ConstraintLike, ShapeLike, TensorLike
    from headrace.core.opdef import OpDef
    from headrace.core.tensor import Operation
    from headrace.variables.variable import VariableAggregation, VariableSynchronization

__all__ = ["EagerVariable", "new_key"]

_numbers = itertools.count()
_READ = ops.READ_VARIABLE


def new_key(name: str) -> str:
    """A key in the eager state that no other variable has."""
    return f"{name}/{next(_numbers)}"


def _not_eager(*args: object, **kwargs: object) -> NoReturn:
    raise RuntimeError("This operation is not supported when eager execution is enabled.")


def _undefined(what: str) -> property:
    def get(self: EagerVariable) -> NoReturn:
        raise AttributeError(f"Tensor.{what} is undefined when eager execution is enabled.")

    return property(get)


class EagerVariable(ResourceVariable):
    """A variable of eager execution: it has a value from the beginning, read with ``numpy()``."""

    _in_graph_mode = False
    _handle: Any
    _graph_element: Any = None
    _initializer_op: Any = None
    _is_initialized_op: Any = None

    def __init__(
        self,
        initial_value: object = None,
        trainable: bool | None = None,
        collections: Sequence[str] | None = None,
        validate_shape: bool = True,
        caching_device: object = None,
        name: str | None = None,
        dtype: object = None,
        variable_def: object = None,
        import_scope: str | None = None,
        constraint: ConstraintLike | None = None,
        distribute_strategy: object = None,
        synchronization: VariableSynchronization | None = None,
        aggregation: VariableAggregation | None = None,
        shape: ShapeLike | None = None,
        expected_shape: object = None,
    ) -> None:
        if variable_def is not None:
            raise RuntimeError(
                "Creating tf.Variable from variable_def is not supported when eager "
                "execution is enabled."
            )
        checked_initial_value(initial_value, constraint)
        self._synchronization, self._aggregation, self._trainable = checked_distribution(
            synchronization, aggregation, trainable, name
        )
        self._constraint = constraint
        self._initial_value = None
        want = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
        with name_scope(name, "Variable") as scope:
            given = initial_value() if callable(initial_value) else initial_value
            value = conversion.convert(given, want)
        if not isinstance(value, EagerTensor):
            raise ValueError(
                "Tensor-typed variable initializers must either be wrapped in an "
                f"init_scope or callable: {value}"
            )
        if shape is None:
            shape = value.shape
        elif not as_shape(shape).is_compatible_with(value.shape):
            raise ValueError(
                "In this `tf.Variable` creation, the initial value's shape "
                f"({value.shape}) is not compatible with the "
                f"explicitly supplied `shape` argument ({as_shape(shape)})."
            )
        self._bind(scope[:-1], value._dtype, as_shape(shape), stored(value._static))
        if collections is not None and GraphKeys.GLOBAL_STEP in collections:
            get_default_graph().add_to_collection(GraphKeys.GLOBAL_STEP, self)

    def _bind(
        self, name: str, dtype: dtypes.DType, shape: TensorShape, value: Array | np.generic
    ) -> None:
        """Make the handle.

        ``value`` None leaves the variable without a value (a function will give it one).
        """
        key = new_key(name)
        if value is not None:
            STATE.values[key] = value
        self._handle_name = name
        self._dtype = dtype
        self._shape = shape
        attrs = {"container": "", "shared_name": key, "dtype": dtype, "shape": to_plain(shape)}
        self._key = key
        self._handle = VariableHandle(key, name, attrs)
        self._handle.variable = weakref.ref(self)

    # reading ------------------------------------------------------------------------------------
    def value(self) -> Tensor:
        if ACTIVE[0]:
            variable_accessed(self)
        if not get_default_graph()._is_eager:
            return apply(_READ, self._handle, dtype=self._dtype)
        value = STATE.values.get(self._key)
        if value is None:
            return apply(_READ, self._handle, dtype=self._dtype)
        out = wrap(value, self._dtype)
        if ACTIVE[0]:
            record(_READ, {"dtype": self._dtype}, (self._handle,), (out,))
        return out

    _eager_read = value

    def read_value(self) -> Tensor:
        return self.value()

    def _read(self) -> Tensor:
        return self.value()

    def numpy(self) -> Any:
        if not get_default_graph()._is_eager:
            raise NotImplementedError("numpy() is only available when eager execution is enabled.")
        return self.value().numpy()

    def sparse_read(self, indices: TensorLike, name: str | None = None) -> Tensor:
        if ACTIVE[0]:
            variable_accessed(self)
        return ops.resource_gather(self._handle, indices, self._dtype, name=name or "Gather")

    def gather_nd(self, indices: object, name: str | None = None) -> Tensor:
        if ACTIVE[0]:
            variable_accessed(self)
        return apply(ops.RESOURCE_GATHER_ND, self._handle, indices, dtype=self._dtype, name=name)

    def _as_graph_element(self) -> Tensor:
        return self.value()

    _graph_anchor = None  # type: ignore[assignment]

    def is_initialized(self, name: str | None = None) -> Tensor:
        return ops.var_is_initialized_op(self._handle, name)

    def initialized_value(self) -> Tensor:
        return self.value()

    op = _undefined("op")
    graph = _undefined("graph")
    eval = _not_eager

    @property
    def initializer(self) -> Any:
        return None

    @property
    def initial_value(self) -> NoReturn:
        raise RuntimeError("This property is not supported when eager execution is enabled.")

    @property
    def _shared_name(self) -> str:
        return self._handle_name

    @property
    def _unique_id(self) -> str:
        return self._key

    @property
    def create(self) -> Tensor:
        raise RuntimeError("This operation is not supported when eager execution is enabled.")

    @property
    def device(self) -> str:
        return "/job:localhost/replica:0/task:0/device:CPU:0"

    def load(self, value: object, session: object = None) -> None:
        self.assign(value)

    def set_shape(self, shape: ShapeLike) -> None:
        self._shape = self._shape.merge_with(shape)

    # writing ------------------------------------------------------------------------------------
    def _lazy_read(self, op: Operation | None) -> Any:
        return self if op is None else super()._lazy_read(op)

    def _write(self, opdef: OpDef, value: object, name: str | None, read_value: bool) -> Any:
        tensor = conversion.convert(value, self._dtype)
        if opdef is ops.ASSIGN_VARIABLE and not compatible(self._shape._plain, tensor._shape):
            raise ValueError(
                f"Cannot assign value to variable '{self.name}': Shape mismatch.The "
                f"variable shape {self._shape}, and "
                f"the assigned value shape {tensor.shape} are incompatible. (Shapes "
                f"{self._shape} and {tensor.shape} are "
                "incompatible.)"
            )
        if get_default_graph()._is_eager:
            write_variable(opdef, self._handle, self._dtype, tensor._static)
            return self if read_value else None
        op = apply_operation(opdef, self._handle, tensor, dtype=self._dtype, name=name)
        return self._lazy_read(op) if read_value else op

    def _scatter(self, op_type: str, indices: Any, updates: Any, name: str | None) -> Any:
        values = conversion.convert(updates, self._dtype)
        return self._lazy_read(
            apply_operation(lookup(op_type), self._handle, indices, values, name=name)
        )

    # Python -------------------------------------------------------------------------------------
    def __getitem__(self, key: object) -> Tensor:
        out = slice_helper(self.value(), key, self)
        return out

    def __repr__(self) -> str:
        value = STATE.raw(self._key)
        text = "<unavailable>" if value is None else _text(value, repr_of=True)
        return (
            f"<tf.Variable '{self.name}' shape={self.shape} dtype={self._dtype.name}, numpy={text}>"
        )

    __str__ = __repr__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(self.numpy(), dtype)

    def __bool__(self) -> bool:
        return bool(self.value())

    def __int__(self) -> int:
        return int(self.value())

    def __float__(self) -> float:
        return float(self.value())

    def __complex__(self) -> complex:
        return complex(self.numpy())

    def __index__(self) -> int:
        return self.value().__index__()

    def __format__(self, spec: str) -> str:
        return format(self.numpy(), spec) if spec else repr(self)

    def __deepcopy__(self, memo: Any) -> EagerVariable:
        copy = EagerVariable.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy._bind(
            self._handle_name, self._dtype, self._shape, stored(np.array(STATE.raw(self._key)))
        )
        memo[id(self)] = copy
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (
            self.numpy(),
            self._trainable,
            self._handle_name,
            self._dtype.name,
            self._constraint,
        )

    @classmethod
    def _OverloadOperator(cls, operator: str) -> None:
        def run(self: EagerVariable, *args: object, **kwargs: object) -> Any:
            value = self.value()
            return getattr(type(value), operator)(value, *args, **kwargs)

        run.__name__ = operator
        setattr(cls, operator, run)


EagerVariable._OverloadAllOperators()


def stored(value: Array) -> np.ndarray[Any, Any]:
    """A value as the state keeps it: of its own memory, rank 0 as a scalar."""
    if type(value) is not np.ndarray:
        return value
    if value.ndim == 0 and value.dtype.kind != "O":
        return value[()]
    return value.copy() if value.base is not None or not value.flags.c_contiguous else value


def _restored(
    value: TensorLike, trainable: bool, name: str, dtype: str, constraint: Callable[..., Any] | None
) -> EagerVariable:
    variable = EagerVariable.__new__(EagerVariable)
    variable._synchronization, variable._aggregation, variable._trainable = checked_distribution(
        None, None, trainable, name
    )
    variable._constraint = constraint
    variable._initial_value = None
    array = conversion.make_ndarray(value, dtypes.as_dtype(dtype))
    variable._bind(name, dtypes.as_dtype(dtype), as_shape(array.shape), stored(array))
    return variable
