"""``tf.layers.Layer``: a layer whose variables live in a variable scope.

The scope is opened at the first call (``dense``, ``dense_1``, …, or the name that was given).
Layers with the same scope and ``reuse`` share variables. Updates go to ``UPDATE_OPS`` and weight
penalties to ``REGULARIZATION_LOSSES``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headrace.core import convert as conversion
from headrace.core import dtypes, nest
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import init_scope, name_scope
from headrace.layers.core_layer import CoreLayer, checked_trainable
from headrace.layers.input_spec import InputSpec
from headrace.layers.naming import to_snake_case, unique_object_name
from headrace.variables.partitioned_variable import PartitionedVariable
from headrace.variables.variable import VariableAggregation, VariableSynchronization
from headrace.variables.variable_lists import global_variables, trainable_variables
from headrace.variables.variable_scope import (
    VariableScope,
    get_variable,
    variable_scope,
)

if TYPE_CHECKING:
    from headrace.core.annotations import (
        ConstraintLike,
        DTypeLike,
        Partitioner,
        RegularizerLike,
        TensorLike,
    )
    from headrace.core.tensor import Tensor
    from headrace.variables.variable import Variable

__all__ = [
    "InputSpec",
    "Layer",
    "apply_layer",
    "call_layer",
    "constructor_arguments",
    "keras_style_scope",
    "set_keras_style",
]


class _Style:
    """Whether new layers are named as Keras names them."""

    keras = False


@contextmanager
def keras_style_scope() -> Iterator[None]:
    """Layers made inside take no part in variable scopes."""
    before, _Style.keras = _Style.keras, True
    try:
        yield
    finally:
        _Style.keras = before


def set_keras_style() -> None:
    """From now on, layers take no part in variable scopes."""
    _Style.keras = True


def apply_layer(layer: CoreLayer, inputs: TensorLike, **kwargs: object) -> Tensor:
    """The output of a layer that has a single one."""
    outputs: Tensor = layer.apply(inputs, **kwargs)
    return outputs


def call_layer(kind: Callable[..., CoreLayer], given: dict[str, Any], *of_call: str) -> Tensor:
    """The functional form of a layer, ``tf.layers.conv2d``, from the ``locals()`` of its function.

    ``inputs`` and the arguments named by ``of_call`` go to the layer that the other arguments make;
    the layer has the variable scope ``name``, and with ``reuse`` the variables that are there.
    """
    options = {k: v for k, v in given.items() if k not in ("inputs", "reuse", *of_call)}
    layer = kind(**options, _reuse=given["reuse"], _scope=given["name"])
    return apply_layer(layer, given["inputs"], **{name: given[name] for name in of_call})


def constructor_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor for that of its base class, from its ``locals()``."""
    own = {k: v for k, v in given.items() if k not in ("self", "__class__", "kwargs")}
    return {**own, **given["kwargs"]}


class Layer(CoreLayer):
    """Base class of ``tf.layers``; subclasses define ``build`` (with ``add_weight``) and
    ``call``.
    """

    def __init__(
        self, trainable: bool = True, name: Any = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        scope = kwargs.pop("_scope", None)
        reuse = kwargs.pop("_reuse", None)
        self._use_resource_variables = False
        self._reuse = reuse
        super().__init__(trainable=trainable, name=name, dtype=dtype, **kwargs)
        self._keras_style = _Style.keras
        if self._keras_style:
            for argument, value in (("scope", scope), ("reuse", reuse)):
                if value is not None:
                    raise ValueError(
                        f"{argument} argument not allowed when keras style layers are "
                        f"enabled, but saw: {value}"
                    )
        self._scope: VariableScope | None = None
        if scope:
            with variable_scope(scope) as captured:
                self._scope = captured
        self._current_scope: VariableScope | None = None

    def _init_set_name(self, name: str | None) -> None:
        if name and not isinstance(name, VariableScope):
            self._name = self._base_name = name
            return
        self._name, self._base_name = self._make_unique_name()
        if isinstance(name, VariableScope):
            self._base_name = name.name

    def _make_unique_name(
        self,
        name_uid_map: object = None,
        avoid_names: object = None,
        namespace: str = "",
        zero_based: bool = False,
    ) -> tuple[str, str]:
        base = to_snake_case(type(self).__name__)
        return unique_object_name(base, name_uid_map, avoid_names, namespace, zero_based), base

    @property
    def graph(self) -> None:
        """None: layers no longer keep their graph."""
        if get_default_graph()._is_eager:
            raise RuntimeError("Layer.graph not supported when executing eagerly.")

    @property
    def scope_name(self) -> str:
        if not self._scope:
            raise ValueError(
                f'No name available for layer scope because the layer "{self._name}" has '
                "not been used yet. The scope "
                "name  is determined the first time the layer instance is called. You "
                "must therefore call the layer "
                "before querying `scope_name`."
            )
        return self._scope.name

    def _name_scope(self) -> str:
        if self._keras_style:
            return super()._name_scope()
        assert self._current_scope is not None
        return self._current_scope.original_name_scope

    def _set_scope(self, scope: VariableScope | str | None = None) -> None:
        if self._scope is not None:
            return
        if self._reuse:
            context = variable_scope(self._base_name if scope is None else scope)
        else:
            context = variable_scope(scope, default_name=self._base_name)
        with context as captured:
            self._scope = captured

    # losses and weights -------------------------------------------------------------------------
    def add_loss(self, losses: object, inputs: TensorLike | None = None) -> None:
        before, callable_before = len(self._losses), len(self._callable_losses)
        super().add_loss(losses, inputs)
        if get_default_graph()._is_eager:
            return
        new = self._losses[before:]
        made = [loss() for loss in self._callable_losses[callable_before:]]
        _add_to_collection(
            [*new, *(x for x in made if x is not None)], GraphKeys.REGULARIZATION_LOSSES
        )

    def add_weight(  # type: ignore[override]
        self,
        name: str,
        shape: TensorLike,
        dtype: DTypeLike | None = None,
        initializer: object = None,
        regularizer: RegularizerLike | None = None,
        trainable: bool | None = None,
        constraint: ConstraintLike | None = None,
        use_resource: bool | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        partitioner: Partitioner | None = None,
        **kwargs: object,
    ) -> Any:
        """The variable ``name`` in the layer's scope: new, or shared if the scope reuses variables.

        A regularizer's loss is added once, when the variable is new.
        """
        _check_weight_options(kwargs)
        if self._keras_style:
            return super().add_weight(
                name,
                shape,
                dtype,
                initializer,
                regularizer,
                trainable and self.trainable,
                constraint,
                partitioner,
                use_resource,
            )
        trainable = checked_trainable(trainable, synchronization)
        known = _known_variables() if regularizer else set()
        self._set_scope(None)
        assert self._scope is not None
        count = len(self._trainable_weights)
        reuse = self.built or self._reuse
        with variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as scope:
            self._current_scope = scope
            with name_scope(self._name_scope()):
                variable = super().add_weight(
                    name,
                    shape,
                    dtype=dtypes.as_dtype(dtype or self.dtype or dtypes.float32),
                    initializer=scope.initializer if initializer is None else initializer,
                    trainable=trainable and self.trainable,
                    constraint=constraint,
                    partitioner=partitioner,
                    use_resource=use_resource or self._use_resource_variables or scope.use_resource,
                    synchronization=synchronization,
                    aggregation=aggregation,
                    getter=get_variable,
                )
                if regularizer and _is_new(variable, known):
                    self._handle_weight_regularization(name, variable, regularizer)
                if trainable and self.trainable and not _is_trained(variable):
                    self._move_to_non_trainable(count)
        return variable

    def _move_to_non_trainable(self, start: int) -> None:
        """A custom getter or an earlier layer made the weights from ``start`` on untrainable."""
        self._non_trainable_weights += self._trainable_weights[start:]
        del self._trainable_weights[start:]

    # calling ------------------------------------------------------------------------------------
    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        scope = kwargs.pop("scope", None)
        if self._keras_style:
            if scope is not None:
                raise ValueError(
                    "scope argument not allowed when keras style layers are enabled, but "
                    f"saw: {scope}"
                )
            return super().__call__(inputs, *args, **kwargs)
        self._set_scope(scope)
        with self._call_scope() as current:
            self._current_scope = current
            if "scope" in self._call_fn_args:
                kwargs["scope"] = current
            outputs = super().__call__(inputs, *args, **kwargs)
        if not get_default_graph()._is_eager:
            _add_to_collection(self.updates, GraphKeys.UPDATE_OPS)
        return outputs

    def _call_scope(self) -> variable_scope:
        if not self.built:
            return variable_scope(self._scope, reuse=self._reuse, auxiliary_name_scope=False)
        kept: variable_scope | None = self.__dict__.get("_always_reuse_variable_scope")
        if kept is None:
            kept = variable_scope(self._scope, reuse=True, auxiliary_name_scope=False)
            self._always_reuse_variable_scope = kept
        return kept

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        result = type(self).__new__(type(self))
        memo[id(self)] = result
        for key, value in self.__dict__.items():
            if key in ("_scope", "_always_reuse_variable_scope"):
                result.__dict__[key] = copy.copy(value)
            elif conversion.is_tensor(value) or _is_tensor_list(value):
                result.__dict__[key] = value
            else:
                result.__dict__[key] = copy.deepcopy(value, memo)
        return result


def _check_weight_options(options: Iterable[str]) -> None:
    for key in options:
        if key != "experimental_autocast":
            raise TypeError("Unknown keyword argument:", key)


def _is_tensor_list(value: object) -> bool:
    return bool(
        isinstance(value, (list, tuple)) and value and all(conversion.is_tensor(v) for v in value)
    )


def _known_variables() -> set[int]:
    graph = get_default_graph()
    if graph._is_eager:
        return set()
    if graph._is_function:
        with init_scope():
            return {id(v) for v in global_variables()}
    return {id(v) for v in global_variables()}


def _is_new(variable: PartitionedVariable | Variable, known: set[int]) -> bool:
    parts = variable if isinstance(variable, PartitionedVariable) else [variable]
    return not any(id(part) in known for part in parts)


def _is_trained(variable: PartitionedVariable | Variable) -> bool:
    graph = get_default_graph()
    if graph._is_function:
        with init_scope():
            return get_default_graph()._is_eager or _is_trained(variable)
    return graph._is_eager or any(v is variable for v in trainable_variables())


def _add_to_collection(elements: list[Any], key: str) -> None:
    collection = get_default_graph().get_collection_ref(key)
    known = {id(x) for x in collection}
    collection += [x for x in nest.flatten(elements) if id(x) not in known]
