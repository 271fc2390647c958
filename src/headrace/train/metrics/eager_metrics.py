"""``tf.contrib.eager.metrics``: metrics as objects, in eager programs and in graphs.

>>> accuracy = tfe.metrics.Accuracy()
>>> accuracy(labels, predictions)
>>> accuracy.result()
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import control_dependencies
from headrace.layers import layer_ops as ops
from headrace.ops.control.assertions import assert_equal
from headrace.ops.control.dependencies import group
from headrace.train.tracked_objects import Tracking
from headrace.variables.initializers import zeros_initializer
from headrace.variables.variable_scope import get_variable, variable_scope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.core.annotations import DTypeLike, ShapeLike, TensorLike

__all__ = [
    "Accuracy",
    "BinaryAccuracy",
    "CategoricalAccuracy",
    "Mean",
    "Metric",
    "SparseAccuracy",
]


class Metric(Tracking):
    """The base: subclasses define ``build``, ``call`` and ``result``.

    A call updates the variables; in a graph its result runs the updates. Variables are local ones
    unless ``use_global_variables``.
    """

    def __init__(self, name: str | None = None, use_global_variables: bool = False) -> None:
        self._built = False
        self._vars: list[Any] = []
        self._initial: list[Any] = []
        self._use_global_variables = use_global_variables
        name = name or type(self).__name__
        plain = re.sub("[^A-Za-z0-9]", "_", name)
        with variable_scope(plain, use_resource=True, reuse=False) as scope:
            place = scope.name.rfind(plain)
            self._name = name + scope.name[place + len(plain) :]
            self._scope = scope

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Take values into account."""
        if not self._built:
            with variable_scope(self._scope):
                self.build(*args, **kwargs)
            self._built = True
        if get_default_graph()._is_eager:
            return self.call(*args, **kwargs)
        graph = get_default_graph()
        before = len(graph.get_operations())
        found = self.call(*args, **kwargs)
        updates = [op for op in graph.get_operations()[before:] if op.type == "AssignAddVariableOp"]
        with control_dependencies(updates):
            if isinstance(found, tuple):
                return tuple(ops.identity(x) for x in found)
            return ops.identity(found)

    @property
    def name(self) -> str:
        return self._name

    @property
    def variables(self) -> Any:
        """What was added by ``add_variable``."""
        return self._vars

    def init_variables(self) -> Any:
        """Start over: now in an eager program, else an operation that does."""
        if get_default_graph()._is_eager:
            for variable, value in zip(self._vars, self._initial, strict=True):
                variable.assign(value)
            return None
        return group(*(v.initializer for v in self._vars))

    def build(self, *args: Any, **kwargs: Any) -> None:
        """Make the variables; called once, with what the first call is given."""
        raise NotImplementedError("Metrics must define a build() member function")

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Update the variables."""
        raise NotImplementedError("Metrics must define a call() member function")

    def result(self) -> Any:
        """The value of the metric."""
        raise NotImplementedError("Metrics must define a result() member function")

    def value(self) -> Any:
        """``result`` for a summary: the function in an eager program, else the tensor."""
        return self.result if get_default_graph()._is_eager else self.result()

    def aggregate(self, metrics: Iterable[Metric]) -> None:
        """Add the variables of others of the same class."""
        others = list(metrics)
        for other in others:
            if type(self) is not type(other):
                raise TypeError(
                    f"All metrics must be the same type, '{type(self)}' != '{type(other)}'."
                )
        for i, variable in enumerate(self._vars):
            if any(o._vars[i].name != variable.name for o in others):
                raise ValueError("All metrics must have variables in the same order.")
            variable.assign_add(ops.add_n([ops.identity(o._vars[i]) for o in others]))

    def add_variable(
        self,
        name: str,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        initializer: object = None,
    ) -> Any:
        """A variable that ``call`` updates; in ``build`` only."""
        if self._built:
            raise RuntimeError("Can't call add_variable() except in build().")
        eager = get_default_graph()._is_eager
        collections = None
        if not eager:
            first = "GLOBAL_VARIABLES" if self._use_global_variables else "LOCAL_VARIABLES"
            collections = [getattr(GraphKeys, first), GraphKeys.METRIC_VARIABLES]
        made = get_variable(
            name,
            shape=shape,
            dtype=dtype,
            initializer=initializer,
            trainable=False,
            collections=collections,
            use_resource=True,
        )
        self._vars.append(made)
        setattr(self, f"_variable_{name}", made)
        if eager:
            self._initial.append(ops.identity(made))
        return made


class _Averaging(Metric):
    """Adds numbers up, and their weights."""

    def __init__(
        self,
        name: str | None = None,
        dtype: DTypeLike = dtypes.float64,
        use_global_variables: bool = False,
    ) -> None:
        super().__init__(name=name, use_global_variables=use_global_variables)
        self.dtype = dtypes.as_dtype(dtype)

    def build(self, *args: Any, **kwargs: Any) -> None:
        self.numer, self.denom = (
            self.add_variable(n, shape=(), dtype=self.dtype, initializer=zeros_initializer())
            for n in ("numer", "denom")
        )

    def _add(self, values: TensorLike, weights: TensorLike | None) -> Any:
        if weights is None:
            self.denom.assign_add(ops.cast(ops.size(values), self.dtype))
            total: Any = ops.reduce_sum(values)
            self.numer.assign_add(ops.cast(total, self.dtype))
            return total
        factors: Any = ops.cast(weights, self.dtype)
        self.denom.assign_add(ops.reduce_sum(factors))
        weighted = ops.cast(values, self.dtype) * factors
        self.numer.assign_add(ops.reduce_sum(weighted))
        return weighted, factors

    def result(self, write_summary: bool = True) -> Any:
        """The mean; also written as a summary of the default writer."""
        from headrace.train.summaries.contrib_summaries import scalar

        mean = self.numer / self.denom
        if write_summary:
            scalar(self.name, mean)
        return mean


class Mean(_Averaging):
    """The mean of all values (with weights) so far."""

    def call(self, values: TensorLike, weights: TensorLike | None = None) -> Any:
        return self._add(values, weights)


class _OfMatches(_Averaging):
    """The share of right predictions."""

    def __init__(self, name: str | None = None, dtype: DTypeLike = dtypes.float64) -> None:
        super().__init__(name=name, dtype=dtype)

    def _same_shapes(self, labels: object, predictions: object) -> None:
        assert_equal(
            ops.shape(labels),
            ops.shape(predictions),
            message="Shapes of labels and predictions are unequal",
        )

    def _count(self, matches: Any, labels: Any, predictions: Any, weights: Any) -> Any:
        self._add(ops.cast(matches, self.dtype), weights)
        return (labels, predictions) if weights is None else (labels, predictions, weights)


class Accuracy(_OfMatches):
    """How often predictions equal labels."""

    def call(self, labels: Any, predictions: Any, weights: Any = None) -> Any:
        self._same_shapes(labels, predictions)
        return self._count(ops.equal(labels, predictions), labels, predictions, weights)


class CategoricalAccuracy(_OfMatches):
    """How often the greatest prediction is at the one of a one-hot label."""

    def call(self, labels: Any, predictions: Any, weights: Any = None) -> Any:
        self._same_shapes(labels, predictions)
        wanted, found = ops.argmax(labels, -1), ops.argmax(predictions, -1)
        return self._count(ops.equal(wanted, found), wanted, found, weights)


class BinaryAccuracy(_OfMatches):
    """How often ``predictions > threshold`` equals the label."""

    def __init__(
        self, threshold: float, name: str | None = None, dtype: DTypeLike = dtypes.float64
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self.threshold = threshold

    def call(self, labels: Any, predictions: Any, weights: Any = None) -> Any:
        self._same_shapes(labels, predictions)
        given: Any = convert_to_tensor(predictions)
        found, wanted = given > self.threshold, ops.cast(labels, dtypes.bool)
        return self._count(ops.equal(wanted, found), wanted, found, weights)


class SparseAccuracy(_OfMatches):
    """How often the greatest prediction is at the class that the label numbers."""

    def call(self, labels: Any, predictions: Any, weights: Any = None) -> Any:
        assert_equal(
            ops.shape(labels),
            ops.shape(predictions)[0],
            message="First axis of labels and predictions is unequal",
        )
        found, wanted = ops.argmax(predictions, -1), ops.cast(labels, dtypes.int64)
        return self._count(ops.equal(wanted, found), wanted, found, weights)
