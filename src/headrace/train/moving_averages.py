"""Exponential moving averages of variables and tensors.

ema = ExponentialMovingAverage(0.999)
with tf.control_dependencies([train_op]):
    train_op = ema.apply(tf.trainable_variables())
tf.train.Saver(ema.variables_to_restore())  # evaluate with the averages
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import (
    add_to_collection,
    colocate_with,
    get_collection,
    init_scope,
    name_scope,
)
from headrace.core.tensor import Tensor
from headrace.ops.array import casting
from headrace.ops.control.dependencies import group
from headrace.ops.state.ref_state import assign, assign_sub
from headrace.train.optimizers import slots
from headrace.train.tensor_helpers import cast, op_of
from headrace.variables.initializers import zeros_initializer
from headrace.variables.variable_scope import get_variable, get_variable_scope, variable_scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import TensorLike
    from headrace.variables.variable import Variable

__all__ = ["ExponentialMovingAverage", "assign_moving_average", "weighted_moving_average"]

_AVERAGED = (dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64)


def assign_moving_average(
    variable: Tensor | Variable,
    value: Tensor | Variable,
    decay: Any,
    zero_debias: bool = True,
    name: str | None = None,
) -> Any:
    """``variable -= (1 - decay) * (variable - value)``.

    ``zero_debias`` is for a variable that starts at zero: it then holds the average divided by ``1
    - decay ** updates``, and the plain average and the count are kept in variables beside it
    (``biased``, ``local_step``).
    """
    with name_scope(name, "AssignMovingAvg", [variable, value, decay]) as scope:
        rate = cast(convert_to_tensor(1.0 - decay, name="decay"), variable.dtype.base_dtype)
        if zero_debias:
            return _zero_debias(variable, value, rate)
        with colocate_with(op_of(variable)):
            return assign_sub(variable, (variable - value) * rate, name=scope)


def _zero_debias(unbiased: Tensor | Variable, value: Any, rate: Any) -> Any:
    with variable_scope(unbiased.name[: -len(":0")], values=[unbiased, value, rate]):
        with init_scope():
            zeros = zeros_initializer()
        with colocate_with(op_of(unbiased)):
            biased = get_variable(
                _unused("biased"),
                initializer=zeros,
                shape=unbiased.get_shape(),
                dtype=unbiased.dtype,
                trainable=False,
            )
            local_step = get_variable(
                _unused("local_step"),
                initializer=zeros,
                shape=[],
                dtype=unbiased.dtype,
                trainable=False,
            )
    with colocate_with(op_of(unbiased)):
        new_biased = assign_sub(biased, (biased - value) * rate)
        count = local_step.assign_add(1)
        factor = 1 - apply_op("Pow", 1.0 - rate, count)
        return assign(
            unbiased, new_biased / factor, name=get_default_graph().get_name_scope() + "/"
        )


def _unused(name: str) -> str:
    """The first of name, name_1, … that no variable in the current scope has (unless variables are
    reused).
    """
    scope = get_variable_scope()
    if scope.reuse:
        return name
    taken = {op_of(v).name for v in scope.global_variables()}
    number, free = 0, name
    while f"{scope.name}/{free}" in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def weighted_moving_average(
    value: Tensor,
    decay: float,
    weight: Tensor,
    truediv: bool = True,
    collections: Sequence[str] | None = None,
    name: str | None = None,
) -> Tensor:
    """``moving_average(value * weight) / moving_average(weight)``.

    Both are kept in variables of their own.
    """
    if collections is None:
        collections = [GraphKeys.GLOBAL_VARIABLES]

    def zeros(name: str, like: Any) -> Any:
        return get_variable(
            name,
            shape=like.get_shape(),
            dtype=like.dtype,
            initializer=zeros_initializer(),
            trainable=False,
            collections=collections,
        )

    with variable_scope(name, "WeightedMovingAvg", [value, weight, decay]) as scope:
        product, weights = zeros("value_x_weight", value), zeros("weight", weight)
        numerator = assign_moving_average(product, value * weight, decay, zero_debias=False)
        denominator = assign_moving_average(weights, weight, decay, zero_debias=False)
        divide = "RealDiv" if truediv or numerator.dtype.base_dtype.is_floating else "FloorDiv"
        return apply_op(divide, numerator, denominator, name=scope.name)


class ExponentialMovingAverage:
    """Keeps a shadow variable for each variable or tensor and the op that moves it.

    The decay is ``min(decay, (1 + num_updates) / (10 + num_updates))`` if ``num_updates`` is given:
    young averages move faster. Shadows of variables start at the variables' initial values, those
    of tensors at zero.
    """

    def __init__(
        self,
        decay: object,
        num_updates: TensorLike | None = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages: dict[int, Any] = {}
        self._kept: list[Any] = []  # keeps the keys' objects alive: keys are their identities

    @property
    def name(self) -> str:
        return self._name

    def apply(self, var_list: Iterable[Any] | None = None) -> Any:
        """The op that moves all averages towards the current values (default.

        Of the trainable variables).
        """
        averaged = (
            get_collection(GraphKeys.TRAINABLE_VARIABLES) if var_list is None else list(var_list)
        )
        debiased = set()
        for var in averaged:
            if var.dtype.base_dtype not in _AVERAGED:
                raise TypeError(f"The variables must be half, float, or double: {var.name}")
            if id(var) not in self._averages:
                with init_scope():
                    self._averages[id(var)] = self._shadow(var)
                self._kept.append(var)
                if self._zero_debias and isinstance(var, Tensor):
                    debiased.add(id(var))
        with name_scope(self._name) as scope:
            decay = self._current_decay()
            updates = [
                assign_moving_average(
                    self._averages[id(v)], v, decay, zero_debias=id(v) in debiased
                )
                for v in averaged
            ]
            return group(*updates, name=scope)

    def _shadow(self, var: Tensor) -> Any:
        if not isinstance(var, Tensor):
            add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, var)
            return slots.create_slot(var, var.initialized_value(), self._name)
        is_variable = op_of(var).type in ("Variable", "VariableV2", "VarHandleOp")
        return slots.create_zeros_slot(var, self._name, colocate_with_primary=is_variable)

    def _current_decay(self) -> Tensor:
        decay = convert_to_tensor(self._decay, name="decay")
        if self._num_updates is None:
            return decay
        updates = casting.cast(self._num_updates, dtypes.float32, name="num_updates")
        return apply_op("Minimum", decay, (1.0 + updates) / (10.0 + updates))

    def average(self, var: TensorLike) -> Variable | None:
        """The variable that holds the average, or None."""
        return self._averages.get(id(var))

    def average_name(self, var: TensorLike) -> str:
        """The name of the variable that holds the average, or would."""
        if id(var) in self._averages:
            return str(op_of(self._averages[id(var)]).name)
        return get_default_graph().unique_name(
            f"{op_of(var).name}/{self._name}", mark_as_used=False
        )

    def variables_to_restore(
        self, moving_avg_variables: Iterable[Any] | None = None
    ) -> dict[str, Any]:
        """Names in a checkpoint for variables.

        The average's name where there is one, else the variable's own.
        """
        if moving_avg_variables is None:
            moving_avg_variables = get_collection(GraphKeys.TRAINABLE_VARIABLES)
            moving_avg_variables += get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES)
        averaged = list(dict.fromkeys(moving_avg_variables))
        names = {self.average_name(v): v for v in averaged}
        taken = {v.name for v in averaged}
        for v in dict.fromkeys(get_collection(GraphKeys.GLOBAL_VARIABLES)):
            if v.name not in taken and op_of(v).name not in names:
                names[op_of(v).name] = v
        return names
