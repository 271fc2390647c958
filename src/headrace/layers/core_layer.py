"""What every layer is: weights, losses, updates, a type found from the first input, ``build``
before the first ``call``.

:class:`CoreLayer` is what Keras's and ``tf.layers``' classes have in common. ``base.Layer`` adds
variable scopes, from which ``tf.layers`` takes its names and its sharing of variables.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.core import convert as conversion
from headrace.core import dtypes, nest
from headrace.core.graph import get_default_graph
from headrace.core.scopes import init_scope, name_scope
from headrace.core.shapes import TensorShape
from headrace.core.tensor import Operation, Tensor
from headrace.eager.module import Module
from headrace.layers.identifiers import get_constraint, get_initializer, get_regularizer
from headrace.layers.input_spec import InputSpec, assert_input_compatibility
from headrace.layers.naming import to_snake_case, unique_object_name
from headrace.layers.reachable_tensors import reachable_from
from headrace.ops.array.array_shape import shape as shape_of
from headrace.ops.array.casting import cast
from headrace.variables.initializers import glorot_uniform_initializer, zeros_initializer
from headrace.variables.partitioned_variable import PartitionedVariable
from headrace.variables.variable import Variable, VariableAggregation, VariableSynchronization

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, RegularizerLike, ShapeLike, TensorLike
    from headrace.core.dtypes import DType
    from headrace.variables.initializers import Initializer

__all__ = ["FLOATX", "CoreLayer"]

#: The type of layers that nothing gives another.
FLOATX = "float32"
_OPTIONS = {
    "activity_regularizer",
    "autocast",
    "batch_input_shape",
    "batch_size",
    "input_shape",
    "weights",
}


class _CallContext(threading.local):
    """Which layers are being called in this thread."""

    def __init__(self) -> None:
        self.inputs: list[Any] = []


_calls = _CallContext()


def make_variable(
    name: str, shape: ShapeLike | None = None, dtype: DTypeLike | None = None, **options: object
) -> Any:
    """A new variable with the initializer's value; the getter of layers without scopes."""
    initializer: Any = options.pop("initializer")
    options.pop("partitioner", None)
    use_resource = options.pop("use_resource", None)
    given = initializer
    if callable(initializer):
        made: Any = initializer() if inspect.isclass(initializer) else initializer
        given = functools.partial(made, shape, dtype=dtype)
    make: Any = Variable
    return make(
        initial_value=given,
        name=name,
        dtype=dtype if callable(initializer) else None,
        use_resource=True if use_resource is None else use_resource,
        **options,
    )


class CoreLayer(Module):
    """Base of all layers: subclasses define ``build(input_shape)`` and ``call(inputs)``."""

    _TF_MODULE_IGNORED_PROPERTIES = frozenset(
        ["_name", "_scope_name", "_updates", "_losses", "_callable_losses", "_input_spec"]
    )

    def __init__(
        self,
        trainable: bool = True,
        name: Any = None,
        dtype: DType | str | None = None,
        dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        for key in kwargs:
            if key not in _OPTIONS:
                raise TypeError("Keyword argument not understood:", key)
        self._trainable = trainable
        self.stateful = False
        self.built = False
        self._input_spec: Any = None
        self.supports_masking = False
        self._init_set_name(name)
        self._activity_regularizer = kwargs.pop("activity_regularizer", None)
        self._trainable_weights: list[Any] = []
        self._non_trainable_weights: list[Any] = []
        self._updates: list[Any] = []
        self._update_inputs: dict[int, Any] = {}
        self._losses: list[Any] = []
        self._callable_losses: list[Callable[[], Any]] = []
        self._conditional_losses: set[int] = set()
        self._layers: list[Any] = []
        self._dtype = None if dtype is None else dtypes.as_dtype(dtype).name
        self._dynamic = dynamic
        self._initial_weights = kwargs.get("weights")
        if "batch_input_shape" in kwargs:
            self._batch_input_shape = tuple(kwargs["batch_input_shape"])
        elif "input_shape" in kwargs:
            self._batch_input_shape = (kwargs.get("batch_size"), *kwargs["input_shape"])

    # what subclasses define ---------------------------------------------------------------------
    def build(self, input_shape: Any) -> None:
        """Make the weights; called once, before the first ``call``."""
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The layer's outputs."""
        return inputs

    def compute_output_shape(self, input_shape: ShapeLike) -> Any:
        raise NotImplementedError

    # names and types ----------------------------------------------------------------------------
    def _init_set_name(self, name: str | None) -> None:
        self._name = name or unique_object_name(to_snake_case(type(self).__name__), zero_based=True)

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> str | None:
        """The name of the weights' type.

        None before the first call of a layer that was given none.
        """
        return self._dtype

    @property
    def _compute_dtype(self) -> str | None:
        return self._dtype

    @property
    def dynamic(self) -> bool:
        return self._dynamic

    @property
    def trainable(self) -> bool:
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = value
        for layer in getattr(self, "_layers", ()):
            layer.trainable = value

    @property
    def activity_regularizer(self) -> Any:
        return self._activity_regularizer

    @activity_regularizer.setter
    def activity_regularizer(self, regularizer: RegularizerLike | None) -> None:
        self._activity_regularizer = regularizer

    @property
    def input_spec(self) -> Any:
        return self._input_spec

    @input_spec.setter
    def input_spec(self, value: object) -> None:
        for spec in nest.flatten(value):
            if spec is not None and not isinstance(spec, InputSpec):
                raise TypeError(f"Layer input_spec must be an instance of InputSpec. Got: {spec}")
        self._input_spec = value

    # weights ------------------------------------------------------------------------------------
    def add_weight(
        self,
        name: Any = None,
        shape: TensorLike | None = None,
        dtype: DTypeLike | None = None,
        initializer: object = None,
        regularizer: object = None,
        trainable: bool | None = None,
        constraint: object = None,
        partitioner: object = None,
        use_resource: bool | None = None,
        synchronization: object = VariableSynchronization.AUTO,
        aggregation: object = VariableAggregation.NONE,
        **kwargs: Any,
    ) -> Any:
        """A new variable of the layer; ``regularizer`` adds a loss."""
        for key in kwargs:
            if key not in ("getter", "collections", "experimental_autocast"):
                raise TypeError("Unknown keyword argument:", key)
        kind = dtypes.as_dtype(dtype or self.dtype or FLOATX)
        if self._dtype is None:
            self._dtype = kind.base_dtype.name
        trainable = checked_trainable(trainable, synchronization)
        getter = kwargs.get("getter", make_variable)
        variable = getter(
            name=name,
            shape=() if shape is None else shape,
            dtype=kind,
            initializer=self._initializer_for(get_initializer(initializer), kind, name),
            constraint=get_constraint(constraint),
            trainable=trainable,
            partitioner=partitioner,
            use_resource=use_resource,
            collections=kwargs.get("collections"),
            synchronization=synchronization,
            aggregation=aggregation,
        )
        regularizer = get_regularizer(regularizer)
        if regularizer is not None:
            self._handle_weight_regularization(
                variable.name.partition(":")[0], variable, regularizer
            )
        (self._trainable_weights if trainable else self._non_trainable_weights).append(variable)
        return variable

    def add_variable(self, *args: Any, **kwargs: Any) -> Any:
        """The old name of :meth:`add_weight`."""
        return self.add_weight(*args, **kwargs)

    def _initializer_for(
        self,
        initializer: Callable[..., Any] | type[Any] | Initializer | None,
        dtype: dtypes.DType,
        name: str | None,
    ) -> Callable[..., Any] | type[Any] | Initializer:
        if initializer is not None:
            return initializer
        if dtype.is_floating:
            return glorot_uniform_initializer()
        if dtype.is_integer or dtype.is_bool:
            return zeros_initializer()
        raise ValueError(
            f"An initializer for variable {name} of type {dtype.base_dtype} is required "
            f"for layer {self.name}"
        )

    def _nested(self, attribute: str) -> list[Any]:
        return [item for layer in self._layers for item in getattr(layer, attribute)]

    @property
    def trainable_weights(self) -> list[Any]:
        if not self.trainable:
            return []
        return self._trainable_weights + self._nested("trainable_weights")

    @property
    def non_trainable_weights(self) -> list[Any]:
        if self.trainable:
            return self._non_trainable_weights + self._nested("non_trainable_weights")
        return self._trainable_weights + self._non_trainable_weights + self._nested("weights")

    @property
    def weights(self) -> list[Any]:
        return self.trainable_weights + self.non_trainable_weights

    @property
    def variables(self) -> Any:
        return self.weights

    @property
    def trainable_variables(self) -> Any:
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> Any:
        return self.non_trainable_weights

    def count_params(self) -> int:
        """How many numbers the weights have."""
        if not self.built:
            raise ValueError(
                f"You tried to call `count_params` on {self.name}, but the layer isn't "
                "built. You can build it "
                f"manually via: `{self.name}.build(batch_input_shape)`."
            )
        return int(sum(np.prod(w.shape.as_list()) for w in self.weights))

    def get_weights(self) -> list[Any]:
        """The weights' values in the default session."""
        from headrace.core.scopes import get_default_session

        if get_default_graph()._is_eager:
            return [w.numpy() for w in self.weights]
        return get_default_session().run(self.weights) if self.weights else []

    def set_weights(self, weights: Any) -> None:
        """Load values (in the order of ``weights``) in the default session."""
        params = self.weights
        if len(params) != len(weights):
            raise ValueError(
                f'You called `set_weights(weights)` on layer "{self.name}" with a  weight '
                "list of length "
                f"{len(weights)}, but the layer was expecting {len(params)} weights. "
                "Provided weights: "
                f"{str(weights)[:50]}..."
            )
        for param, value in zip(params, weights):
            if not param.shape.is_compatible_with(np.shape(value)):
                raise ValueError(
                    f"Layer weight shape {param.shape} not compatible with provided "
                    f"weight shape {np.shape(value)}"
                )
        for param, value in zip(params, weights):
            if get_default_graph()._is_eager:
                param.assign(value)
            else:
                param.load(np.asarray(value))

    # losses and updates -------------------------------------------------------------------------
    def add_loss(self, losses: object, inputs: TensorLike | None = None) -> None:
        """Add losses: tensors, or functions without arguments that make them."""
        for loss in nest.flatten(losses):
            if callable(loss):
                self._callable_losses.append(
                    functools.partial(self._loss_tensor, loss, inputs is not None)
                )
            elif loss is not None:
                self._losses.append(self._loss_tensor(loss, inputs is not None))

    def _loss_tensor(self, loss: Callable[..., Any] | Tensor, conditional: bool) -> Any:
        loss = loss() if callable(loss) else loss
        if loss is None:
            return None
        if not conversion.is_tensor(loss):
            loss = conversion.convert(loss, dtypes.as_dtype(FLOATX))
        if conditional:
            self._conditional_losses.add(id(loss))
        return loss

    @property
    def losses(self) -> list[Any]:
        made = [loss() for loss in self._callable_losses]
        return [*self._losses, *(x for x in made if x is not None), *self._nested("losses")]

    def add_update(self, updates: object, inputs: bool | None = None) -> None:
        """Add operations that a training step has to run (moving averages)."""
        relevant = _calls.inputs[-1] if _calls.inputs else []
        for update in updates if isinstance(updates, (list, tuple)) else [updates]:
            done = update() if callable(update) else update
            if get_default_graph()._is_eager:
                continue
            op = done if isinstance(done, Operation) else getattr(done, "op", None)
            op = conversion.convert(done) if op is None else op
            self._updates.append(op)
            self._update_inputs[id(op)] = relevant

    @property
    def updates(self) -> list[Any]:
        if not self.trainable and not self.stateful:
            return []
        return self._updates + self._nested("updates")

    def _is_unconditional(self, update: object) -> bool:
        inputs = self._update_inputs.get(id(update), [])
        return update not in reachable_from(inputs, [update])

    def get_updates_for(self, inputs: TensorLike) -> list[Any]:
        """The updates that depend on ``inputs``; with None those that depend on no input."""
        if inputs is None:
            return [u for u in self.updates if self._is_unconditional(u)]
        updates = [u for u in self.updates if not self._is_unconditional(u)]
        reached = reachable_from(nest.flatten(inputs), updates)
        return [u for u in updates if u in reached]

    def get_losses_for(self, inputs: TensorLike) -> list[Any]:
        """The losses that depend on ``inputs``; with None those that depend on no input."""
        losses = self.losses
        if inputs is None:
            return [x for x in losses if id(x) not in self._conditional_losses]
        losses = [x for x in losses if id(x) in self._conditional_losses]
        reached = reachable_from(nest.flatten(inputs), losses)
        return [x for x in losses if x in reached]

    def _handle_weight_regularization(
        self, name: str, variable: PartitionedVariable | Variable, regularizer: Any
    ) -> None:
        def loss_for(part: Variable) -> Any:
            with name_scope(name + "/Regularizer"):
                return regularizer(part)

        parts = list(variable) if isinstance(variable, PartitionedVariable) else [variable]
        for part in parts:
            self.add_loss(functools.partial(loss_for, part))

    def _handle_activity_regularization(
        self, inputs: TensorLike, outputs: Tensor | Sequence[Any]
    ) -> None:
        if not self._activity_regularizer:
            return
        with name_scope("ActivityRegularizer"):
            for output in nest.flatten(outputs):
                loss = self._activity_regularizer(output)
                size = shape_of(output)
                batch = cast(size[0], loss.dtype)
                self.add_loss(loss / batch, inputs=inputs)

    # calling ------------------------------------------------------------------------------------
    def _name_scope(self) -> str:
        return self.name

    @functools.cached_property
    def _call_fn_args(self) -> list[str]:
        return _argument_names(self.call)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, (np.ndarray, float, int)) for x in nest.flatten(inputs)):
            inputs = nest.map_structure(_as_tensor, inputs)
        with _inside_call(inputs):
            assert_input_compatibility(self.input_spec, inputs, self.name)
            with _graph_for(inputs), name_scope(self._name_scope()):
                self._maybe_build(inputs)
                outputs = self.call(inputs, *args, **kwargs)
                if outputs is None:
                    raise ValueError(
                        "A layer's `call` method should return a Tensor or a list of "
                        "Tensors, not None (layer: "
                        f"{self.name})."
                    )
                self._handle_activity_regularization(inputs, outputs)
        return outputs

    def apply(self, inputs: TensorLike, *args: object, **kwargs: object) -> Any:
        """The same as calling the layer."""
        return self(inputs, *args, **kwargs)

    def _maybe_build(self, inputs: TensorLike) -> None:
        if not self.built:
            flat = nest.flatten(inputs)
            if flat and self._dtype is None and hasattr(flat[0], "dtype"):
                self._dtype = flat[0].dtype.base_dtype.name
            shapes = None
            if all(hasattr(x, "shape") for x in flat):
                shapes = nest.map_structure(lambda x: x.shape, inputs)
            if type(self).build is not CoreLayer.build:
                if get_default_graph()._is_function:
                    with init_scope():
                        self.build(shapes)
                else:
                    self.build(shapes)
            self.built = True
        if self._initial_weights is not None:
            self.set_weights(self._initial_weights)
            self._initial_weights = None

    # configuration ------------------------------------------------------------------------------
    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        names = _argument_names(self.__init__)  # type: ignore[misc]
        config: dict[str, Any] = {"name": self.name, "trainable": self.trainable}
        if hasattr(self, "_batch_input_shape"):
            config["batch_input_shape"] = self._batch_input_shape
        config["dtype"] = self.dtype
        extra = [n for n in names if n not in config and n != "dynamic"]
        if extra and type(self).get_config is CoreLayer.get_config:
            raise NotImplementedError(
                "Layers with arguments in `__init__` must override `get_config`."
            )
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> CoreLayer:
        return cls(**config)


def checked_trainable(trainable: bool | None, synchronization: object) -> bool:
    """Whether a new weight is trained; ON_READ variables never are."""
    if synchronization == VariableSynchronization.ON_READ:
        if trainable:
            raise ValueError(
                "Synchronization value can be set to VariableSynchronization.ON_READ only "
                "for non-trainable variables. "
                "You have specified trainable=True and "
                "synchronization=VariableSynchronization.ON_READ."
            )
        return False
    return True if trainable is None else trainable


def _argument_names(function: Callable[..., Any]) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind in kinds]


def _as_tensor(x: object) -> Any:
    return conversion.convert_to_tensor(x) if isinstance(x, (np.ndarray, float, int)) else x


@contextmanager
def _inside_call(inputs: TensorLike) -> Iterator[None]:
    _calls.inputs.append(inputs)
    try:
        yield
    finally:
        _calls.inputs.pop()


@contextmanager
def _graph_for(inputs: TensorLike) -> Iterator[None]:
    """The graph of the inputs, if they have one that is not being built."""
    graph = get_default_graph()
    first = next((x for x in nest.flatten(inputs) if isinstance(x, Tensor)), None)
    if first is None or graph._is_eager or graph._is_function or first.graph is graph:
        yield
        return
    with first.graph.as_default():
        yield


def as_tensor_shape(shape: ShapeLike) -> TensorShape:
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)
