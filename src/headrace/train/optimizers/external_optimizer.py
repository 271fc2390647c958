"""Optimizers outside of the graph: SciPy's ``minimize`` over the variables of a session.

>>> optimizer = tf.contrib.opt.ScipyOptimizerInterface(loss, options={"maxiter": 100})
>>> optimizer.minimize(sess, feed_dict)
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.autodiff.gradients import gradients
from headrace.core.scopes import get_default_session
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import reshape
from headrace.ops.array.basic import placeholder
from headrace.ops.array.filling import zeros_like
from headrace.ops.array.joining import concat
from headrace.variables.variable_lists import trainable_variables

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.session.session import BaseSession

__all__ = ["ExternalOptimizerInterface", "ScipyOptimizerInterface"]

_Function = Callable[[np.ndarray], list[Any]]


def _shape(tensor: Any) -> tuple[int, ...]:
    return tuple(tensor.shape.as_list())


def _gradients_of(tensor: Tensor, variables: Sequence[Any]) -> list[Any]:
    found = gradients(tensor, variables)
    return [zeros_like(v) if g is None else g for v, g in zip(variables, found, strict=True)]


def _packed(tensors: Sequence[Any]) -> Tensor | None:
    """All elements as one vector."""
    if not tensors:
        return None
    flat = [reshape(t, [-1]) for t in tensors]
    return flat[0] if len(flat) == 1 else concat(flat, 0)


def _packed_bounds(
    variables: Sequence[Any], bounds: Mapping[Any, Any]
) -> list[tuple[float, float]]:
    pairs: list[tuple[float, float]] = []
    for variable in variables:
        low, high = bounds.get(variable, (-np.inf, np.inf))
        shape = _shape(variable)
        lows, highs = np.broadcast_to(low, shape).flat, np.broadcast_to(high, shape).flat
        pairs += zip(lows, highs, strict=True)
    return pairs


class ExternalOptimizerInterface:
    """Minimises a loss by an algorithm outside of the graph; a subclass implements ``_minimize``.

    ``var_list``: variables to change (all trainable ones by default); ``equalities``,
    ``inequalities``: tensors to keep zero and non-negative; ``var_to_bounds``: variable -> (low,
    high), numbers or arrays. Other arguments go to the algorithm.
    """

    def __init__(
        self,
        loss: object,
        var_list: Sequence[Any] | None = None,
        equalities: Sequence[Any] | None = None,
        inequalities: Sequence[Any] | None = None,
        var_to_bounds: Mapping[Any, Any] | None = None,
        **optimizer_kwargs: object,
    ) -> None:
        self._loss = loss
        self._equalities = list(equalities or [])
        self._inequalities = list(inequalities or [])
        self._vars = trainable_variables() if var_list is None else list(var_list)
        self._packed_bounds = None
        if var_to_bounds is not None:
            self._packed_bounds = _packed_bounds(self._vars, var_to_bounds)
        self._update_placeholders = [placeholder(v.dtype.base_dtype) for v in self._vars]
        self._var_updates = [
            v.assign(reshape(p, _shape(v)))
            for v, p in zip(self._vars, self._update_placeholders, strict=True)
        ]
        tensors = [loss, *self._equalities, *self._inequalities]
        grads = [_gradients_of(t, self._vars) for t in tensors]
        self.optimizer_kwargs = optimizer_kwargs
        self._packed_var = _packed(self._vars)
        self._packed_loss_grad, *constraint_grads = [_packed(g) for g in grads]
        split = len(self._equalities)
        self._packed_equality_grads = constraint_grads[:split]
        self._packed_inequality_grads = constraint_grads[split:]
        ends = list(itertools.accumulate((math.prod(_shape(v)) for v in self._vars), initial=0))
        self._packing_slices = [slice(a, b) for a, b in itertools.pairwise(ends)]

    def minimize(
        self,
        session: BaseSession | None = None,
        feed_dict: Mapping[Any, Any] | None = None,
        fetches: Sequence[Any] | None = None,
        step_callback: Callable[..., Any] | None = None,
        loss_callback: Callable[..., Any] | None = None,
        **run_kwargs: object,
    ) -> None:
        """Minimise, then write the result into the variables.

        ``loss_callback`` is called with the values of ``fetches`` at every evaluation of the loss,
        ``step_callback`` with the packed variables after every iteration; ``run_kwargs`` go to the
        ``session.run`` that writes.
        """
        session = session or get_default_session()
        feeds = dict(feed_dict or {})
        more = list(fetches or [])

        def functions(tensors: Sequence[Any]) -> list[_Function]:
            return [self._evaluator([t], session, feeds, more, None) for t in tensors]

        loss = self._evaluator(
            [self._loss, self._packed_loss_grad], session, feeds, more, loss_callback
        )
        found = self._minimize(
            initial_val=session.run(self._packed_var),
            loss_grad_func=loss,
            equality_funcs=functions(self._equalities),
            equality_grad_funcs=functions(self._packed_equality_grads),
            inequality_funcs=functions(self._inequalities),
            inequality_grad_funcs=functions(self._packed_inequality_grads),
            packed_bounds=self._packed_bounds,
            step_callback=step_callback or (lambda xk: None),
            optimizer_kwargs=self.optimizer_kwargs,
        )
        parts = [found[part] for part in self._packing_slices]
        values = dict(zip(self._update_placeholders, parts, strict=True))
        session.run(self._var_updates, feed_dict=values, **run_kwargs)

    def _minimize(
        self,
        initial_val: np.ndarray,
        loss_grad_func: _Function,
        equality_funcs: list[_Function],
        equality_grad_funcs: list[_Function],
        inequality_funcs: list[_Function],
        inequality_grad_funcs: list[_Function],
        packed_bounds: list[tuple[float, float]] | None,
        step_callback: Callable[..., Any],
        optimizer_kwargs: Mapping[str, Any],
    ) -> np.ndarray:
        raise NotImplementedError(
            "To use ExternalOptimizerInterface, subclass from it and implement the "
            "_minimize() method."
        )

    def _evaluator(
        self,
        tensors: list[Any],
        session: BaseSession,
        feeds: dict[Any, Any],
        fetches: list[Any],
        callback: Callable[..., Any] | None,
    ) -> _Function:
        """A function from the packed variables to the values of ``tensors``, which feeds the
        variables.
        """

        def evaluate(x: np.ndarray) -> list[Any]:
            parts = {
                v: x[part].reshape(_shape(v))
                for v, part in zip(self._vars, self._packing_slices, strict=True)
            }
            values: list[Any] = session.run(tensors + fetches, feed_dict={**parts, **feeds})
            if callback is not None:
                callback(*values[len(tensors) :])
            return values[: len(tensors)]

        return evaluate


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """Minimises by ``scipy.optimize.minimize``.

    ``method`` ("L-BFGS-B" by default), ``options``, ``tol`` are passed on.
    """

    _DEFAULT_METHOD = "L-BFGS-B"

    def _minimize(
        self,
        initial_val: np.ndarray,
        loss_grad_func: _Function,
        equality_funcs: list[_Function],
        equality_grad_funcs: list[_Function],
        inequality_funcs: list[_Function],
        inequality_grad_funcs: list[_Function],
        packed_bounds: list[tuple[float, float]] | None,
        step_callback: Callable[..., Any],
        optimizer_kwargs: Mapping[str, Any],
    ) -> np.ndarray:
        import scipy.optimize

        def loss_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
            loss, gradient = loss_grad_func(x)
            return float(np.reshape(loss, ())), gradient.astype(np.float64)

        def first(function: _Function) -> Callable[[np.ndarray], np.ndarray]:
            return lambda x: np.asarray(function(x)[0], np.float64)

        options = dict(optimizer_kwargs)
        given: dict[str, Any] = {"method": options.pop("method", self._DEFAULT_METHOD)}
        pairs = [("eq", *p) for p in zip(equality_funcs, equality_grad_funcs, strict=True)]
        pairs += [("ineq", *p) for p in zip(inequality_funcs, inequality_grad_funcs, strict=True)]
        constraints = [{"type": k, "fun": first(f), "jac": first(g)} for k, f, g in pairs]
        given.update(
            jac=True, callback=step_callback, constraints=constraints, bounds=packed_bounds
        )
        for key in given:
            if key == "bounds" and key in options:
                raise ValueError("Bounds must be set using the var_to_bounds argument")
            if key in options:
                raise ValueError(
                    f"Optimizer keyword arg '{key}' is set automatically and cannot be "
                    "injected manually"
                )
        # SLSQP takes float64 alone
        start = np.asarray(initial_val, np.float64)
        result = scipy.optimize.minimize(loss_and_gradient, start, **given, **options)
        lines = ["Optimization terminated with:", f"  Message: {result.message}"]
        lines.append(f"  Objective function value: {result.fun:f}")
        if hasattr(result, "nit"):
            lines.append(f"  Number of iterations: {result.nit}")
        if hasattr(result, "nfev"):
            lines.append(f"  Number of functions evaluations: {result.nfev}")
        logging.getLogger("tensorflow").info("\n".join(lines))
        found: Array = result["x"]
        return found
