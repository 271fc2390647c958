"""Activations, initializers, regularizers and constraints given by name: ``activation="relu"``.

Layers accept None, a callable, a name, or a dictionary ``{"class_name": ..., "config": {...}}``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.layers import constraints as _constraints
from headrace.layers import regularizers as _regularizers
from headrace.ops.math import unary as math_unary
from headrace.ops.nn import activations as nn_activations
from headrace.variables import initializers as _init

if TYPE_CHECKING:
    from headrace.core.annotations import Activation, TensorLike
    from headrace.core.indexed_slices import IndexedSlices
    from headrace.core.tensor import Tensor

__all__ = [
    "get_activation",
    "get_constraint",
    "get_initializer",
    "get_regularizer",
    "serialize_activation",
    "serialize_object",
]


def linear(x: TensorLike) -> Any:
    return x


def _hard_sigmoid(x: Tensor) -> IndexedSlices | Tensor:
    from headrace.ops.math.binary import add, mul
    from headrace.ops.math.clip import clip_by_value

    return clip_by_value(add(mul(x, 0.2), 0.5), 0.0, 1.0)


#: Activations by the names that Keras gives them.
ACTIVATIONS: dict[str, Callable[..., Any]] = {
    "elu": nn_activations.elu,
    "exponential": math_unary.exp,
    "hard_sigmoid": _hard_sigmoid,
    "linear": linear,
    "relu": nn_activations.relu,
    "selu": nn_activations.selu,
    "sigmoid": math_unary.sigmoid,
    "softmax": nn_activations.softmax,
    "softplus": nn_activations.softplus,
    "softsign": nn_activations.softsign,
    "tanh": math_unary.tanh,
}

INITIALIZERS: dict[str, Callable[..., Any]] = {
    "Constant": _init.Constant,
    "GlorotNormal": _init.GlorotNormal,
    "GlorotUniform": _init.GlorotUniform,
    "Identity": _init.Identity,
    "Ones": _init.Ones,
    "Orthogonal": _init.Orthogonal,
    "RandomNormal": functools.partial(_init.RandomNormal, stddev=0.05),
    "RandomUniform": functools.partial(_init.RandomUniform, minval=-0.05, maxval=0.05),
    "TruncatedNormal": functools.partial(_init.TruncatedNormal, stddev=0.05),
    "VarianceScaling": _init.VarianceScaling,
    "Zeros": _init.Zeros,
    "constant": _init.Constant,
    "glorot_normal": _init.GlorotNormal,
    "glorot_uniform": _init.GlorotUniform,
    "he_normal": _init.he_normal,
    "he_uniform": _init.he_uniform,
    "identity": _init.Identity,
    "lecun_normal": _init.lecun_normal,
    "lecun_uniform": _init.lecun_uniform,
    "normal": functools.partial(_init.RandomNormal, stddev=0.05),
    "one": _init.Ones,
    "ones": _init.Ones,
    "orthogonal": _init.Orthogonal,
    "random_normal": functools.partial(_init.RandomNormal, stddev=0.05),
    "random_uniform": functools.partial(_init.RandomUniform, minval=-0.05, maxval=0.05),
    "truncated_normal": functools.partial(_init.TruncatedNormal, stddev=0.05),
    "uniform": functools.partial(_init.RandomUniform, minval=-0.05, maxval=0.05),
    "zero": _init.Zeros,
    "zeros": _init.Zeros,
}


def get_activation(identifier: object) -> Activation:
    """The function for an activation.

    None stands for the identity and stays None in ``tf.layers``.
    """
    if identifier is None:
        return linear
    if callable(identifier):
        return identifier
    if isinstance(identifier, str):
        if identifier not in ACTIVATIONS:
            raise ValueError(f"Unknown activation function:{identifier}")
        return ACTIVATIONS[identifier]
    raise TypeError(f"Could not interpret activation function identifier: {identifier!r}")


def get_initializer(identifier: object) -> Any:
    return _found(identifier, INITIALIZERS, "initializer")


def get_regularizer(identifier: object) -> Any:
    return _found(identifier, _regularizers.BY_NAME, "regularizer")


def get_constraint(identifier: object) -> Any:
    return _found(identifier, _constraints.BY_NAME, "constraint")


def _found(identifier: object, table: dict[str, Callable[..., Any]], kind: str) -> Any:
    if identifier is None or callable(identifier):
        return identifier
    if isinstance(identifier, str):
        if identifier not in table:
            raise ValueError(f"Unknown {kind}: {identifier}. Known: {', '.join(sorted(table))}.")
        return table[identifier]()
    if isinstance(identifier, dict):
        name = identifier["class_name"]
        if name not in table:
            raise ValueError(f"Unknown {kind}: {name}")
        return table[name](**identifier.get("config", {}))
    raise ValueError(f"Could not interpret {kind} identifier: {identifier!r}")


def serialize_activation(activation: object) -> Any:
    """The name of an activation function."""
    return getattr(activation, "__name__", activation)


def serialize_object(instance: object) -> Any:
    """An object as a dictionary that ``get_…`` reads; functions by their names."""
    if instance is None:
        return None
    if hasattr(instance, "get_config"):
        return {"class_name": type(instance).__name__, "config": instance.get_config()}
    name = getattr(instance, "__name__", None)
    if name is None:
        raise ValueError(f"Cannot serialize {instance!r}")
    return name
