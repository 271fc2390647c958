"""``AttentionWrapper``: a cell that looks at a memory at each step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core import dtypes, nest
from headrace.core.annotations import DTypeLike
from headrace.core.scopes import control_dependencies, name_scope
from headrace.core.shapes import TensorShape, dimension_value
from headrace.core.tensor import Tensor
from headrace.layers import layer_ops as ops
from headrace.layers.dense import Dense
from headrace.layers.rnn.cell_base import RNNCell, assert_like_rnncell, zero_state_tensors
from headrace.layers.seq2seq.attention_mechanisms import AttentionMechanism
from headrace.ops.control.assertions import assert_equal
from headrace.ops.control.tensor_array import TensorArray

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["AttentionWrapper", "AttentionWrapperState"]


class _Fields(NamedTuple):
    cell_state: Any
    attention: Any
    time: Any
    alignments: Any
    alignment_history: Any
    attention_state: Any


class AttentionWrapperState(_Fields):
    """The state of an AttentionWrapper: the cell's state, attention, alignments and time.

    ``cell_state``, ``attention`` [batch, size], ``time`` (a scalar), ``alignments`` [batch,
    memory], ``alignment_history`` (a TensorArray, or ``()``) and ``attention_state``. With several
    mechanisms the last three are tuples. To begin with another cell state than zero:
    ``wrapper.zero_state(batch, tf.float32).clone(cell_state=encoder_state)``.
    """

    __slots__ = ()

    def clone(self, **kwargs: object) -> AttentionWrapperState:
        """A copy with some parts replaced; replaced tensors must have the old ones' shapes.

        Example: ``decoder_cell.zero_state(n, tf.float32).clone(cell_state=encoder_state)``.
        """

        def checked(old: Tensor, new: Tensor) -> Tensor:
            if isinstance(old, Tensor) and isinstance(new, Tensor):
                return _with_same_shape(old, new)
            return new

        copy: AttentionWrapperState = nest.map_structure(checked, self, self._replace(**kwargs))
        return copy


def _with_same_shape(old: Tensor, new: Tensor) -> Tensor:
    if old.shape.is_fully_defined() and new.shape.is_fully_defined():
        new.shape.assert_is_compatible_with(old.shape)
        return new
    old.shape.assert_is_compatible_with(new.shape)
    with control_dependencies([assert_equal(ops.shape(new), ops.shape(old))]):
        result = ops.identity(new)
    if old.shape.is_fully_defined():
        result.set_shape(old.shape)
    return result


def _compute_attention(
    mechanism: Any,
    cell_output: TensorLike,
    attention_state: TensorLike,
    attention_layer: Dense | None,
) -> tuple[Any, Any, Any]:
    alignments, next_state = mechanism(cell_output, state=attention_state)
    context = ops.matmul(ops.expand_dims(alignments, 1), mechanism.values)
    context = ops.squeeze(context, [1])
    if attention_layer is not None:
        context = attention_layer(ops.concat([cell_output, context], 1))
    return context, alignments, next_state


class AttentionWrapper(RNNCell):
    """A cell whose input has the last attention joined to it and whose output is (or leads to) the
    next attention.

    ``attention_mechanism`` may be a list; then ``attention_layer_size`` has one number for each.
    """

    def __init__(
        self,
        cell: Any,
        attention_mechanism: Any,
        attention_layer_size: object = None,
        alignment_history: bool = False,
        cell_input_fn: Callable[[Any, Any], Any] | None = None,
        output_attention: bool = True,
        initial_cell_state: object = None,
        name: Any = None,
        attention_layer: object = None,
        attention_fn: Callable[..., Any] | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        assert_like_rnncell("cell", cell)
        self._is_multi = isinstance(attention_mechanism, (list, tuple))
        mechanisms = tuple(attention_mechanism) if self._is_multi else (attention_mechanism,)
        for mechanism in mechanisms:
            if not isinstance(mechanism, AttentionMechanism):
                raise TypeError(_wrong_mechanism(self._is_multi, mechanism))
        if cell_input_fn is not None and not callable(cell_input_fn):
            raise TypeError(
                f"cell_input_fn must be callable, saw type: {type(cell_input_fn).__name__}"
            )
        self._cell = cell
        self._attention_mechanisms = mechanisms
        self._set_layers(attention_layer_size, attention_layer)
        self._attention_fn = attention_fn or _compute_attention
        self._cell_input_fn = cell_input_fn or (lambda x, a: ops.concat([x, a], -1))
        self._output_attention = output_attention
        self._alignment_history = alignment_history
        with name_scope(name, "AttentionWrapperInit"):
            self._initial_cell_state = None
            if initial_cell_state is not None:
                self._initial_cell_state = self._checked_cell_state(initial_cell_state)

    def _set_layers(self, sizes: object, layers: object) -> None:
        mechanisms = self._attention_mechanisms
        if sizes is not None and layers is not None:
            raise ValueError("Only one of attention_layer_size and attention_layer should be set")
        self._attention_layers: tuple[Any, ...] | None = None
        widths: list[Any] = [dimension_value(m.values.shape[-1]) for m in mechanisms]
        if sizes is not None:
            sizes = tuple(sizes) if isinstance(sizes, (list, tuple)) else (sizes,)
            if len(sizes) != len(mechanisms):
                raise ValueError(
                    "If provided, attention_layer_size must contain exactly one integer "
                    "per attention_mechanism, saw: "
                    f"{len(sizes)} vs {len(mechanisms)}"
                )
            self._attention_layers = tuple(
                Dense(size, name="attention_layer", use_bias=False, dtype=m.dtype)
                for size, m in zip(sizes, mechanisms)
            )
            widths = list(sizes)
        elif layers is not None:
            layers = tuple(layers) if isinstance(layers, (list, tuple)) else (layers,)
            if len(layers) != len(mechanisms):
                raise ValueError(
                    "If provided, attention_layer must contain exactly one layer per "
                    "attention_mechanism, saw: "
                    f"{len(layers)} vs {len(mechanisms)}"
                )
            self._attention_layers = layers
            widths = [
                dimension_value(layer.compute_output_shape([None, self._cell.output_size + w])[-1])
                for layer, w in zip(layers, widths)
            ]
        self._attention_layer_size = sum(widths)

    def _checked_cell_state(self, state: object) -> Any:
        last = nest.flatten(state)[-1]
        batch = dimension_value(last.shape[0]) or ops.shape(last)[0]
        message = (
            f"When constructing AttentionWrapper {self._base_name}: Non-matching batch "
            "sizes between the memory "
            "(encoder output) and initial_cell_state.  Are you using the "
            "BeamSearchDecoder?  You may need to tile "
            "your initial state via the tf.contrib.seq2seq.tile_batch function with "
            "argument multiple=beam_width."
        )
        with control_dependencies(self._batch_size_checks(batch, message)):
            return nest.map_structure(
                lambda s: ops.identity(s, name="check_initial_cell_state"), state
            )

    def _batch_size_checks(self, batch_size: TensorLike, message: str) -> list[Any]:
        return [
            assert_equal(batch_size, m.batch_size, message=message)
            for m in self._attention_mechanisms
        ]

    def _item_or_tuple(self, items: Iterable[Any]) -> int | Tensor | TensorArray | tuple[Any, ...]:
        found = tuple(items)
        return found if self._is_multi else found[0]

    @property
    def output_size(self) -> Any:
        return self._attention_layer_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> Any:
        mechanisms = self._attention_mechanisms
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            time=TensorShape([]),
            attention=self._attention_layer_size,
            alignments=self._item_or_tuple(m.alignments_size for m in mechanisms),
            attention_state=self._item_or_tuple(m.state_size for m in mechanisms),
            alignment_history=self._item_or_tuple(
                m.alignments_size if self._alignment_history else () for m in mechanisms
            ),
        )

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The first state; with a BeamSearchDecoder the batch size is that of the tiled memory."""
        values = [batch_size] if isinstance(batch_size, Tensor) else []
        with name_scope(type(self).__name__ + "ZeroState", values=values):
            cell_state = self._initial_cell_state
            if cell_state is None:
                cell_state = self._cell.get_initial_state(batch_size=batch_size, dtype=dtype)
            message = (
                f"When calling zero_state of AttentionWrapper {self._base_name}: "
                "Non-matching batch sizes between the "
                "memory (encoder output) and the requested batch size.  Are you using the "
                "BeamSearchDecoder?  If so, "
                "make sure your encoder output has been tiled to beam_width via "
                "tf.contrib.seq2seq.tile_batch, and "
                "the batch_size= argument passed to zero_state is batch_size * beam_width."
            )
            with control_dependencies(self._batch_size_checks(batch_size, message)):
                cell_state = nest.map_structure(
                    lambda s: ops.identity(s, name="checked_cell_state"), cell_state
                )
            mechanisms = self._attention_mechanisms
            alignments = [m.initial_alignments(batch_size, dtype) for m in mechanisms]
            return AttentionWrapperState(
                cell_state=cell_state,
                time=ops.zeros([], dtype=dtypes.int32),
                attention=zero_state_tensors(self._attention_layer_size, batch_size, dtype),
                alignments=self._item_or_tuple(alignments),
                attention_state=self._item_or_tuple(
                    m.initial_state(batch_size, dtype) for m in mechanisms
                ),
                alignment_history=self._item_or_tuple(
                    TensorArray(dtype, size=0, dynamic_size=True, element_shape=a.shape)
                    if self._alignment_history
                    else ()
                    for a in alignments
                ),
            )

    def call(self, inputs: TensorLike, state: Any) -> Any:
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(
                "Expected state to be instance of AttentionWrapperState. Received type "
                f"{type(state)} instead."
            )
        cell_inputs = self._cell_input_fn(inputs, state.attention)
        cell_output, next_cell_state = self._cell(cell_inputs, state.cell_state)
        batch = dimension_value(cell_output.shape[0]) or ops.shape(cell_output)[0]
        message = (
            f"When applying AttentionWrapper {self.name}: Non-matching batch sizes "
            "between the memory (encoder output) "
            "and the query (decoder output).  Are you using the BeamSearchDecoder?  You "
            "may need to tile your memory "
            "input via the tf.contrib.seq2seq.tile_batch function with argument "
            "multiple=beam_width."
        )
        with control_dependencies(self._batch_size_checks(batch, message)):
            cell_output = ops.identity(cell_output, name="checked_cell_output")
        before = state.attention_state if self._is_multi else [state.attention_state]
        history = state.alignment_history if self._is_multi else [state.alignment_history]
        attentions, alignments, states, histories = [], [], [], []
        for i, mechanism in enumerate(self._attention_mechanisms):
            layer = self._attention_layers[i] if self._attention_layers else None
            attention, weights, next_state = self._attention_fn(
                mechanism, cell_output, before[i], layer
            )
            written = history[i].write(state.time, weights) if self._alignment_history else ()
            states.append(next_state)
            alignments.append(weights)
            attentions.append(attention)
            histories.append(written)
        attention = ops.concat(attentions, 1)
        after = AttentionWrapperState(
            time=state.time + 1,
            cell_state=next_cell_state,
            attention=attention,
            attention_state=self._item_or_tuple(states),
            alignments=self._item_or_tuple(alignments),
            alignment_history=self._item_or_tuple(histories),
        )
        return (attention if self._output_attention else cell_output), after


def _wrong_mechanism(many: bool, given: object) -> str:
    what = type(given).__name__
    if many:
        return (
            "attention_mechanism must contain only instances of AttentionMechanism, saw type: "
            + what
        )
    return (
        "attention_mechanism must be an AttentionMechanism or list of multiple "
        "AttentionMechanism instances, saw type: " + what
    )
