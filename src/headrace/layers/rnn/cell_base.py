"""What a recurrent cell is: ``output, new_state = cell(inputs, state)``, with sizes and a first
state.

State sizes are nested structures of numbers and shapes; a state has the same structure of tensors
(batch, size…).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core import dtypes, nest
from headrace.core.graph import get_default_graph
from headrace.core.scopes import name_scope
from headrace.core.shapes import TensorShape, as_shape, dimension_value
from headrace.core.tensor import Tensor
from headrace.layers import layer_ops as ops
from headrace.layers.base import Layer
from headrace.variables.partitioned_variable import PartitionedVariable
from headrace.variables.variable_lists import trainable_variables
from headrace.variables.variable_scope import get_variable_scope, variable_scope

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.dtypes import DType

__all__ = [
    "BIAS",
    "WEIGHTS",
    "LSTMStateTuple",
    "LSTMUnitState",
    "LayerRNNCell",
    "RNNCell",
    "UnitState",
    "assert_like_rnncell",
    "concat_shapes",
    "input_depth",
    "like_rnncell",
    "width",
    "zero_state_tensors",
]

#: TF's names of the variables of cells.
WEIGHTS, BIAS = "kernel", "bias"


class _StateFields(NamedTuple):
    c: Any
    h: Any


class LSTMStateTuple(_StateFields):
    """An LSTM's state: ``c``, the cell, and ``h``, its output."""

    __slots__ = ()

    @property
    def dtype(self) -> Any:
        if self.c.dtype != self.h.dtype:
            raise TypeError(f"Inconsistent internal state: {self.c.dtype} vs {self.h.dtype}")
        return self.c.dtype


def like_rnncell(cell: object) -> bool:
    """Whether it can be called as a cell and has its sizes."""
    return not _faults(cell)


def _faults(cell: object) -> list[str]:
    checks = [
        (_has(cell, "output_size"), "'output_size' property is missing"),
        (_has(cell, "state_size"), "'state_size' property is missing"),
        (
            _has(cell, "get_initial_state") or _has(cell, "zero_state"),
            "either 'zero_state' or 'get_initial_state' method is required",
        ),
        (callable(cell), "is not callable"),
    ]
    return [fault for good, fault in checks if not good]


def _has(instance: object, name: str) -> bool:
    try:
        getattr(instance, name)
    except AttributeError:
        return False
    return True


def assert_like_rnncell(cell_name: str, cell: object) -> None:
    """TypeError with what is missing unless ``cell`` can be used as a cell."""
    faults = _faults(cell)
    if faults:
        raise TypeError(
            f"The argument {cell_name!r} ({cell}) is not an RNNCell: {', '.join(faults)}."
        )


def concat_shapes(prefix: object, suffix: object, static: bool = False) -> Any:
    """Two shapes in a row: a tensor, or with ``static`` a list of what is known.

    Each is a number, a shape, or a tensor of rank 0 or 1.
    """
    p, p_static = _shape_and_static(prefix, "prefix")
    s, s_static = _shape_and_static(suffix, "suffix")
    if static:
        shape = as_shape(p_static).concatenate(s_static)
        return shape.as_list() if shape.ndims is not None else None
    if p is None or s is None:
        raise ValueError(f"Provided a prefix or suffix of None: {prefix} and {suffix}")
    return ops.concat((p, s), 0)


def _shape_and_static(part: object, name: str) -> tuple[Any, Any]:
    if isinstance(part, Tensor):
        static = ops.static_value(part)
        if part.shape.ndims == 0:
            return ops.expand_dims(part, 0), None if static is None else [int(static)]
        if part.shape.ndims != 1:
            raise ValueError(
                f"{name} tensor must be either a scalar or vector, but saw tensor: {part}"
            )
        return part, None if static is None else static.tolist()
    shape = as_shape(part)
    known = shape.as_list() if shape.ndims is not None else None
    if not shape.is_fully_defined():
        return None, known
    return ops.constant(shape.as_list(), dtype=dtypes.int32), known


def zero_state_tensors(state_size: object, batch_size: TensorLike, dtype: DType) -> Any:
    """Zeros (batch, size…) for every size of the structure."""

    def zeros(size: Any) -> Tensor:
        tensor = ops.zeros(concat_shapes(batch_size, size), dtype=dtype)
        if not get_default_graph()._is_eager:
            tensor.set_shape(concat_shapes(batch_size, size, static=True))
        return tensor

    return nest.map_structure(zeros, state_size)


def check_supported_dtypes(dtype: DTypeLike | None) -> None:
    if dtype is None:
        return
    kind = dtypes.as_dtype(dtype)
    if not (kind.is_floating or kind.is_complex):
        raise ValueError(f"RNN cell only supports floating point inputs, but saw dtype: {kind}")


def check_input_dtypes(inputs: object) -> None:
    for tensor in nest.flatten(inputs):
        check_supported_dtypes(tensor.dtype)


def input_depth(inputs_shape: TensorShape) -> int:
    """The last size of an input's shape; ValueError if it is not known."""
    shape = tuple(TensorShape(inputs_shape).as_list())
    if shape[-1] is None:
        raise ValueError(f"Expected inputs.shape[-1] to be known, saw shape: {shape}")
    return int(shape[-1])


def width(inputs: Tensor) -> int:
    """The number of columns of a matrix; ValueError if it is not known."""
    size = dimension_value(inputs.shape.with_rank(2)[1])
    if size is None:
        raise ValueError("Could not infer input size from inputs.get_shape()[-1]")
    return size


class RNNCell(Layer):
    """Base class of cells.

    Subclasses define ``state_size``, ``output_size`` and ``call(inputs, state)``.
    """

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(trainable=trainable, name=name, dtype=dtype, **kwargs)
        self._is_tf_rnn_cell = True

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step: ``(output, new_state)``. Variables that ``call`` gets belong to the cell."""
        if scope is not None:
            with variable_scope(scope, custom_getter=self._rnn_get_variable) as entered:
                return super().__call__(inputs, state, scope=entered)
        kept: variable_scope | None = self.__dict__.get("rnncell_scope")
        if kept is None:
            kept = variable_scope(get_variable_scope(), custom_getter=self._rnn_get_variable)
            self.rnncell_scope = kept
        with kept:
            return super().__call__(inputs, state)

    def _rnn_get_variable(self, getter: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        variable = getter(*args, **kwargs)
        if get_default_graph()._is_eager:
            trained = variable.trainable
        else:
            first = next(iter(variable)) if isinstance(variable, PartitionedVariable) else variable
            trained = any(v is first for v in trainable_variables())
        weights = self._trainable_weights if trained else self._non_trainable_weights
        if all(variable is not v for v in weights):
            weights.append(variable)
        return variable

    @property
    def state_size(self) -> Any:
        """Size or sizes of the state."""
        raise NotImplementedError("Abstract method")

    @property
    def output_size(self) -> Any:
        """Size or sizes of the output."""
        raise NotImplementedError("Abstract method")

    def build(self, input_shape: Any) -> None:
        """Nothing: a plain cell makes its variables in ``call``."""

    def get_initial_state(
        self,
        inputs: TensorLike | None = None,
        batch_size: int | Tensor | None = None,
        dtype: DType | None = None,
    ) -> Any:
        """The first state for these inputs, or for a batch size and a type."""
        if inputs is not None:
            tensor = ops.convert_to_tensor(inputs, name="inputs")
            _refuse_other_batch(tensor, batch_size, dtype)
            dtype = tensor.dtype
            batch_size = dimension_value(tensor.shape[0]) or ops.shape(tensor)[0]
        if batch_size is None or dtype is None:
            raise ValueError(
                "batch_size and dtype cannot be None while constructing initial state: "
                f"batch_size={batch_size}, dtype={dtype}"
            )
        return self.zero_state(batch_size, dtype)

    def zero_state(self, batch_size: int | Tensor, dtype: DType) -> Any:
        """A state of zeros."""
        values = [batch_size] if isinstance(batch_size, Tensor) else []
        with name_scope(type(self).__name__ + "ZeroState", values=values):
            return zero_state_tensors(self.state_size, batch_size, dtype)


def _refuse_other_batch(
    inputs: Tensor, batch_size: int | Tensor | None, dtype: DType | None
) -> None:
    """A batch size and a type that are given beside inputs are those of the inputs."""
    rows = dimension_value(inputs.shape[0])
    asked = ops.static_value(batch_size) if isinstance(batch_size, Tensor) else batch_size
    if batch_size is not None and rows != asked:
        raise ValueError(
            "batch size from input tensor is different from the input param. "
            f"Input tensor batch: {rows}, batch_size: {batch_size}"
        )
    if dtype is not None and inputs.dtype != dtype:
        raise ValueError(
            "dtype from input tensor is different from the input param. "
            f"Input tensor dtype: {inputs.dtype}, dtype: {dtype}"
        )


class UnitState:
    """Beside a cell class: state and output have ``num_units`` numbers a row."""

    _num_units: int

    @property
    def state_size(self) -> int:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units


class LSTMUnitState(UnitState):
    """Beside a cell class: cell and output have ``num_units`` numbers a row each."""

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units)


class LayerRNNCell(RNNCell):
    """A cell that makes its variables in ``build``, as layers do.

    Base class of one's own cells: ``build(inputs_shape)`` calls ``self.add_variable``, and
    ``call(inputs, state)`` returns the output and the new state. ``state_size`` and ``output_size``
    are properties.
    """

    def __call__(
        self, inputs: Any, state: Any, scope: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        return Layer.__call__(self, inputs, state, *args, scope=scope, **kwargs)
