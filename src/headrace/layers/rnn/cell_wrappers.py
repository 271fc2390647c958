"""Cells around cells: dropout, residual connections, devices, and stacks of cells."""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import nest
from headrace.core.annotations import DTypeLike
from headrace.core.scopes import device, name_scope
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Tensor
from headrace.layers import layer_ops as ops
from headrace.layers.base import Layer
from headrace.layers.rnn.cell_base import LSTMStateTuple, RNNCell, assert_like_rnncell
from headrace.layers.rnn.function_config import dump_function, load_function
from headrace.ops.control.tensor_array import TensorArray
from headrace.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.dtypes import DType

__all__ = ["DeviceWrapper", "DropoutWrapper", "MultiRNNCell", "RNNCellWrapper", "ResidualWrapper"]


def _values(batch_size: object) -> list[Any]:
    return [batch_size] if isinstance(batch_size, Tensor) else []


class RNNCellWrapper(RNNCell):
    """Base of cells that call one other cell, in its variable scope."""

    def __init__(self, cell: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        assert_like_rnncell("cell", cell)
        self.cell = cell

    @property
    def wrapped_cell(self) -> Any:
        return self.cell

    @property
    def state_size(self) -> Any:
        return self.cell.state_size

    @property
    def output_size(self) -> Any:
        return self.cell.output_size

    @property
    def trainable_weights(self) -> list[Any]:
        inner = self.cell.trainable_weights if isinstance(self.cell, Layer) else []
        return super().trainable_weights + inner

    @property
    def non_trainable_weights(self) -> list[Any]:
        inner = self.cell.non_trainable_weights if isinstance(self.cell, Layer) else []
        return super().non_trainable_weights + inner

    def zero_state(self, batch_size: Any, dtype: DType) -> Any:
        with name_scope(type(self).__name__ + "ZeroState", values=_values(batch_size)):
            return self.cell.zero_state(batch_size, dtype)

    def _call_wrapped_cell(
        self, inputs: Tensor, state: Any, cell_call_fn: Callable[..., Any], **kwargs: object
    ) -> Any:
        raise NotImplementedError

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        return self._call_wrapped_cell(inputs, state, cell_call_fn=self.cell.__call__, scope=scope)

    def get_config(self) -> dict[str, Any]:
        inner = {"class_name": type(self.cell).__name__, "config": self.cell.get_config()}
        return {"name": self.name, "trainable": self.trainable, "dtype": self.dtype, "cell": inner}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: object = None) -> Any:
        """A wrapper from its configuration, in which ``cell`` has been replaced by a cell."""
        config = dict(config)
        cell = config.pop("cell")
        try:
            assert_like_rnncell("cell", cell)
        except TypeError:
            raise ValueError(
                "RNNCellWrapper cannot reconstruct the wrapped cell. Please overwrite the "
                "cell in the config with a "
                "RNNCell instance."
            ) from None
        return cls(cell, **config)


def _default_state_filter(substate: Tensor | LSTMStateTuple) -> LSTMStateTuple | bool:
    """Which parts of a state are dropped: an LSTM keeps its cell."""
    if isinstance(substate, LSTMStateTuple):
        return LSTMStateTuple(c=False, h=True)
    return not isinstance(substate, TensorArray)


def _traverse(select: Callable[[Any], Any], structure: Tensor) -> Any:
    """The part of a structure that ``select`` opens.

    It answers with a bool or with bools for a level.
    """
    answer = select(structure)
    if not nest.is_nested(structure):
        if not isinstance(answer, bool):
            raise ValueError(f"traverse_fn returned structure: {answer} for leaf: {structure}")
        return answer
    if not nest.is_nested(answer):
        if not isinstance(answer, bool):
            raise TypeError(f"traverse_fn returned a non-bool scalar: {answer}")
        if not answer:
            return False
        parts = [_traverse(select, part) for part in _one_level(structure)]
        return _like(structure, parts)
    nest.assert_shallow_structure(answer, structure)
    parts = []
    for opened, part in zip(_one_level(answer), _one_level(structure)):
        if nest.is_nested(opened):
            raise TypeError(f"Input traverse_fn returned a nested structure: {answer}")
        parts.append(_traverse(select, part) if opened else False)
    return _like(structure, parts)


def _one_level(structure: Any) -> list[Any]:
    if isinstance(structure, dict):
        return [structure[key] for key in sorted(structure)]
    return list(structure)


def _like(structure: Any, parts: list[Any]) -> Any:
    if isinstance(structure, dict):
        return type(structure)(zip(sorted(structure), parts))
    if hasattr(structure, "_fields"):
        return type(structure)(*parts)
    return type(structure)(parts)


def _enumerated_map(shallow: object, function: Callable[..., Any], *structures: object) -> Any:
    count = -1

    def numbered(*values: int | Tensor) -> Any:
        nonlocal count
        count += 1
        return function(count, *values)

    return nest.map_structure_up_to(shallow, numbered, *structures)


class DropoutWrapper(RNNCellWrapper):
    """Dropout on a cell's inputs, outputs and state.

    With ``variational_recurrent`` the same units are dropped at every step; then ``dtype`` must be
    given, and ``input_size`` if inputs are dropped. ``dropout_state_filter_visitor`` tells which
    parts of a state are dropped.
    """

    _input_keep_prob: Any
    _state_keep_prob: Any
    _output_keep_prob: Any

    def __init__(
        self,
        cell: Any,
        input_keep_prob: object = 1.0,
        output_keep_prob: TensorLike = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: object = None,
        dtype: DTypeLike | None = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Any], Any] | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(cell, dtype=dtype, **kwargs)
        visitor = dropout_state_filter_visitor
        if visitor is not None and not callable(visitor):
            raise TypeError("dropout_state_filter_visitor must be callable")
        self._dropout_state_filter = visitor or _default_state_filter
        with name_scope("DropoutWrapperInit"):
            self._input_keep_prob = _probability(input_keep_prob, "input_keep_prob")
            self._state_keep_prob = _probability(state_keep_prob, "state_keep_prob")
            self._output_keep_prob = _probability(output_keep_prob, "output_keep_prob")
        self._variational_recurrent = variational_recurrent
        self._input_size = input_size
        self._seed = seed
        self._recurrent_input_noise = None
        self._recurrent_state_noise = None
        self._recurrent_output_noise = None
        if variational_recurrent:
            self._make_noise(cell, input_size, dtype)

    def _make_noise(self, cell: RNNCell, input_size: Any, dtype: object) -> None:
        if dtype is None:
            raise ValueError("When variational_recurrent=True, dtype must be provided")

        def noise(sizes: object, salt: str) -> Any:
            def one(i: int, size: TensorLike) -> Tensor:
                shape = ops.concat(([1], TensorShape(size).as_list()), 0)
                return ops.random_uniform(shape, seed=self._gen_seed(salt, i), dtype=dtype)

            return _enumerated_map(sizes, one, sizes)

        keep = self._input_keep_prob
        if not isinstance(keep, numbers.Real) or float(keep) < 1.0:
            if input_size is None:
                raise ValueError(
                    "When variational_recurrent=True and input_keep_prob < 1.0 or is "
                    "unknown, input_size must be "
                    "provided"
                )
            self._recurrent_input_noise = noise(input_size, "input")
        self._recurrent_state_noise = noise(cell.state_size, "state")
        self._recurrent_output_noise = noise(cell.output_size, "output")

    def _gen_seed(self, salt_prefix: str, index: int) -> int | None:
        if self._seed is None:
            return None
        text = f"{self._seed}{salt_prefix}_{index}".encode()
        return int(hashlib.md5(text).hexdigest()[:8], 16) & 0x7FFFFFFF

    def _dropped(
        self,
        values: Tensor,
        salt: str,
        noise: TensorLike | None,
        keep_prob: Tensor,
        shallow: bool | LSTMStateTuple | None = None,
    ) -> Any:
        chosen = values if shallow is None else shallow

        def fresh(i: int, drop: bool | Tensor, value: Tensor) -> Tensor:
            if isinstance(drop, bool) and not drop:
                return value
            return ops.dropout_v2(value, rate=1.0 - keep_prob, seed=self._gen_seed(salt, i))

        def kept(i: int, drop: Tensor, value: Tensor, own: TensorLike) -> Tensor:
            if isinstance(drop, bool) and not drop:
                return value
            mask = ops.floor(keep_prob + own)
            result = ops.div(value, keep_prob) * mask
            result.set_shape(value.shape)
            return result

        if self._variational_recurrent:
            return _enumerated_map(chosen, kept, chosen, values, noise)
        return _enumerated_map(chosen, fresh, chosen, values)

    def _call_wrapped_cell(
        self, inputs: Tensor, state: TensorLike, cell_call_fn: Callable[..., Any], **kwargs: object
    ) -> tuple[Tensor, Tensor | LSTMStateTuple]:
        if _drops(self._input_keep_prob):
            inputs = self._dropped(
                inputs, "input", self._recurrent_input_noise, self._input_keep_prob
            )
        output, new_state = cell_call_fn(inputs, state, **kwargs)
        if _drops(self._state_keep_prob):
            shallow = _traverse(self._dropout_state_filter, new_state)
            new_state = self._dropped(
                new_state, "state", self._recurrent_state_noise, self._state_keep_prob, shallow
            )
        if _drops(self._output_keep_prob):
            output = self._dropped(
                output, "output", self._recurrent_output_noise, self._output_keep_prob
            )
        return output, new_state

    def get_config(self) -> dict[str, Any]:
        own = (
            "input_keep_prob",
            "output_keep_prob",
            "state_keep_prob",
            "variational_recurrent",
            "input_size",
            "seed",
        )
        config = {**super().get_config(), **{name: getattr(self, "_" + name) for name in own}}
        if self._dropout_state_filter is not _default_state_filter:
            config |= _stored("dropout_fn", "dropout_fn_module", self._dropout_state_filter)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: object = None) -> Any:
        config = _restored(
            config, "dropout_fn", "dropout_fn_module", "dropout_state_filter_visitor"
        )
        return super().from_config(config, custom_objects)


def _stored(key: str, module_key: str, function: Callable[..., Any]) -> dict[str, Any]:
    """A function in a configuration, under TensorFlow's keys."""
    return {
        key: dump_function(function),
        f"{key}_type": "lambda",
        module_key: function.__module__,
    }


def _restored(config: dict[str, Any], key: str, module_key: str, parameter: str) -> dict[str, Any]:
    """The configuration with the function itself as the constructor's argument."""
    config = dict(config)
    if key in config:
        function = load_function(config.pop(key))
        config.pop(f"{key}_type", None)
        config.pop(module_key, None)
        config[parameter] = function
    return config


def _probability(given: Any, name: str) -> Any:
    tensor = ops.convert_to_tensor(given)
    known = ops.static_value(tensor)
    if known is None:
        return tensor
    if known < 0 or known > 1:
        raise ValueError(f"Parameter {name} must be between 0 and 1: {int(known)}")
    return float(known)


def _drops(probability: float | Tensor) -> bool:
    return not isinstance(probability, float) or probability < 1


class ResidualWrapper(RNNCellWrapper):
    """A cell whose outputs get its inputs added (or ``residual_fn(inputs, outputs)``).

    Without ``residual_fn`` the outputs must have the shapes of the inputs. The state is the cell's.

        cell = tf.nn.rnn_cell.ResidualWrapper(tf.nn.rnn_cell.GRUCell(3))
    """

    def __init__(
        self, cell: Any, residual_fn: Callable[[Any, Any], Any] | None = None, **kwargs: object
    ) -> None:
        super().__init__(cell, **kwargs)
        self._residual_fn = residual_fn

    def _call_wrapped_cell(
        self,
        inputs: TensorLike,
        state: TensorLike,
        cell_call_fn: Callable[..., Any],
        **kwargs: object,
    ) -> tuple[Tensor, Tensor]:
        outputs, new_state = cell_call_fn(inputs, state, **kwargs)
        return (self._residual_fn or _added)(inputs, outputs), new_state

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        if self._residual_fn is not None:  # TensorFlow's spelling of the third key
            config |= _stored("residual_fn", "residule_fn_module", self._residual_fn)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: object = None) -> Any:
        config = _restored(config, "residual_fn", "residule_fn_module", "residual_fn")
        return super().from_config(config, custom_objects)


def _added(inputs: TensorLike, outputs: Tensor) -> Any:
    nest.assert_same_structure(inputs, outputs)
    nest.map_structure(lambda i, o: i.shape.assert_is_compatible_with(o.shape), inputs, outputs)
    return nest.map_structure(lambda i, o: i + o, inputs, outputs)


class DeviceWrapper(RNNCellWrapper):
    """A cell whose operations are on a device.

    ``device`` is a name or a function as in ``tf.device``. Headrace computes on the CPU; the device
    is recorded in the graph for others who read it.
    """

    def __init__(self, cell: Any, device: Any, **kwargs: object) -> None:
        super().__init__(cell, **kwargs)
        self._device = device

    def zero_state(self, batch_size: Any, dtype: DType) -> Any:
        scope = name_scope(type(self).__name__ + "ZeroState", values=_values(batch_size))
        with scope, device(self._device):
            return self.cell.zero_state(batch_size, dtype)

    def _call_wrapped_cell(
        self,
        inputs: TensorLike,
        state: TensorLike,
        cell_call_fn: Callable[..., Any],
        **kwargs: object,
    ) -> Any:
        with device(self._device):
            return cell_call_fn(inputs, state, **kwargs)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "device": self._device}


class MultiRNNCell(RNNCell):
    """Cells in a row: each takes the one before's output. The state is the tuple of their
    states.
    """

    def __init__(self, cells: Any, state_is_tuple: bool = True) -> None:
        super().__init__()
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        if not nest.is_nested(cells):
            raise TypeError(f"cells must be a list or tuple, but saw: {cells}.")
        self._cells = cells
        self._state_is_tuple = state_is_tuple
        if not state_is_tuple and any(nest.is_nested(c.state_size) for c in cells):
            raise ValueError(
                "Some cells return tuples of states, but the flag state_is_tuple is not "
                "set.  State sizes are: "
                f"{[c.state_size for c in cells]}"
            )

    @property
    def state_size(self) -> Any:
        sizes = (cell.state_size for cell in self._cells)
        return tuple(sizes) if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        return self._cells[-1].output_size

    def zero_state(self, batch_size: Any, dtype: DType) -> Any:
        with name_scope(type(self).__name__ + "ZeroState", values=_values(batch_size)):
            if self._state_is_tuple:
                return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)
            return super().zero_state(batch_size, dtype)

    def _of_cells(self, attribute: str) -> list[Any]:
        return [w for c in self._cells if isinstance(c, Layer) for w in getattr(c, attribute)]

    @property
    def trainable_weights(self) -> list[Any]:
        return self._of_cells("trainable_weights") if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        weights = self._of_cells("non_trainable_weights")
        return weights if self.trainable else self._of_cells("trainable_weights") + weights

    def call(self, inputs: Tensor, state: Any) -> Any:
        position, new_states = 0, []
        for i, cell in enumerate(self._cells):
            with variable_scope(f"cell_{i}"):
                if self._state_is_tuple:
                    if not nest.is_nested(state):
                        raise ValueError(
                            "Expected state to be a tuple of length "
                            f"{len(self.state_size)}, but received: {state}"
                        )
                    own = state[i]
                else:
                    own = ops.slice(state, [0, position], [-1, cell.state_size])
                    position += cell.state_size
                inputs, new = cell(inputs, own)
                new_states.append(new)
        return inputs, tuple(new_states) if self._state_is_tuple else ops.concat(new_states, 1)
