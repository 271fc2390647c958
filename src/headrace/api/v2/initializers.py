"""``tf.initializers`` (``tf.keras.initializers``)."""

import typing as _typing

from headrace.api.v1.initializers import he_normal, he_uniform, lecun_normal, lecun_uniform
from headrace.api.v2.adapted import RandomNormal, RandomUniform, TruncatedNormal
from headrace.api.v2.name_lookup import module_getattr
from headrace.variables.initializers import (
    Constant,
    GlorotNormal,
    GlorotUniform,
    Identity,
    Initializer,
    Ones,
    Orthogonal,
    VarianceScaling,
    Zeros,
)

constant, glorot_normal, glorot_uniform, identity = Constant, GlorotNormal, GlorotUniform, Identity
ones, orthogonal, variance_scaling, zeros = Ones, Orthogonal, VarianceScaling, Zeros
random_normal, random_uniform, truncated_normal = RandomNormal, RandomUniform, TruncatedNormal

__all__ = [
    "Constant", "GlorotNormal", "GlorotUniform", "Identity", "Initializer", "Ones", "Orthogonal",
    "RandomNormal", "RandomUniform", "TruncatedNormal", "VarianceScaling", "Zeros", "constant",
    "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "identity", "lecun_normal",
    "lecun_uniform", "ones", "orthogonal", "random_normal", "random_uniform", "truncated_normal",
    "variance_scaling", "zeros",
]  # fmt: skip

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("initializers", __name__)
