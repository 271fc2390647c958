"""Kullback-Leibler divergences: a table by the types of two distributions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from headrace.core.scopes import control_dependencies, name_scope
from headrace.ops.array.basic import identity
from headrace.ops.control.assertions import Assert
from headrace.ops.math.comparison import is_nan, logical_not
from headrace.ops.math.reductions import reduce_any

__all__ = ["RegisterKL", "cross_entropy", "kl_divergence"]

Divergence = Callable[..., Any]
_DIVERGENCES: dict[tuple[type, type], Divergence] = {}


class RegisterKL:
    """``@RegisterKL(A, B)`` over ``f(a, b, name=None)``: the divergence of A from B.

    Subclasses inherit it; of several, the one nearest to both types is used.
    """

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: Divergence) -> Divergence:
        if not callable(kl_fn):
            raise TypeError(f"kl_fn must be callable, received: {kl_fn}")
        if self._key in _DIVERGENCES:
            a, b = self._key
            raise ValueError(
                f"KL({a.__name__} || {b.__name__}) has already been registered to: "
                f"{_DIVERGENCES[self._key]}"
            )
        _DIVERGENCES[self._key] = kl_fn
        return kl_fn


def _registered(type_a: type, type_b: type) -> Divergence | None:
    found = [
        (i + j, _DIVERGENCES[a, b])
        for i, a in enumerate(inspect.getmro(type_a))
        for j, b in enumerate(inspect.getmro(type_b))
        if (a, b) in _DIVERGENCES
    ]
    return min(found, key=lambda pair: pair[0])[1] if found else None


def kl_divergence(
    distribution_a: Any,
    distribution_b: Any,
    allow_nan_stats: bool = True,
    name: str | None = None,
) -> Any:
    """KL(a || b), of the batch shape; NotImplementedError where none is registered.

    ``allow_nan_stats=False`` checks the result for NaN when it runs. Formulas for further pairs of
    classes are added with ``tf.distributions.RegisterKL``.

        normal = tf.distributions.Normal
        tf.distributions.kl_divergence(normal(0.0, 1.0), normal(1.0, 1.0))  # 0.5
    """
    divergence = _registered(type(distribution_a), type(distribution_b))
    if divergence is None:
        raise NotImplementedError(
            "No KL(distribution_a || distribution_b) registered for distribution_a type "
            f"{type(distribution_a).__name__} and distribution_b type "
            f"{type(distribution_b).__name__}"
        )
    with name_scope("KullbackLeibler"):
        found = divergence(distribution_a, distribution_b, name=name)
        if allow_nan_stats:
            return found
        found = identity(found, name="kl")
        text = (
            f"KL calculation between {distribution_a.name} and {distribution_b.name} returned NaN "
            "values (and was called with allow_nan_stats=False). Values:"
        )
        with control_dependencies([Assert(logical_not(reduce_any(is_nan(found))), [text, found])]):
            return identity(found, name="checked_kl")


def cross_entropy(
    ref: Any, other: object, allow_nan_stats: bool = True, name: str | None = None
) -> Any:
    """The entropy of ``ref`` and its divergence from ``other``."""
    with name_scope(name, "cross_entropy"):
        return ref.entropy() + kl_divergence(ref, other, allow_nan_stats=allow_nan_stats)
