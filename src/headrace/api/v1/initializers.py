"""``tf.initializers``: initializers of variables."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.variables.initializers import (
    Constant as constant, GlorotNormal as glorot_normal, GlorotUniform as glorot_uniform,
    he_normal, he_uniform, Identity as identity, lecun_normal, lecun_uniform, Ones as ones,
    Orthogonal as orthogonal, RandomNormal as random_normal, RandomUniform as random_uniform,
    TruncatedNormal as truncated_normal, UniformUnitScaling as uniform_unit_scaling,
    VarianceScaling as variance_scaling, Zeros as zeros,
)
from headrace.variables.variable_lists import (
    global_variables_initializer as global_variables,
    local_variables_initializer as local_variables, tables_initializer,
    variables_initializer as variables,
)

__all__ = [
    "constant", "global_variables", "glorot_normal", "glorot_uniform", "he_normal",
    "he_uniform", "identity", "lecun_normal", "lecun_uniform", "local_variables", "ones",
    "orthogonal", "random_normal", "random_uniform", "tables_initializer", "truncated_normal",
    "uniform_unit_scaling", "variables", "variance_scaling", "zeros",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("initializers", __name__)
