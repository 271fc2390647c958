"""``tf.random``: random numbers, with TF 2's signatures."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace.api.v2.name_lookup import module_getattr
from headrace.api.v2.adapted import poisson
from headrace.core.seeds import set_random_seed as set_seed
from headrace.eager.random_generator import Generator, get_global_generator, set_global_generator
from headrace.ops.nn.candidate_sampling import (
    all_candidate_sampler, fixed_unigram_candidate_sampler, learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler, uniform_candidate_sampler,
)
from headrace.ops.random.random_ops import (
    categorical, random_normal as normal, random_shuffle as shuffle, random_uniform as uniform,
    truncated_normal,
)
from headrace.ops.random.gamma_poisson import random_gamma as gamma
from headrace.ops.random.stateless import (
    stateless_categorical, stateless_random_normal as stateless_normal,
    stateless_random_uniform as stateless_uniform, stateless_truncated_normal,
)

__all__ = [
    "all_candidate_sampler", "categorical", "fixed_unigram_candidate_sampler", "gamma",
    "Generator", "get_global_generator", "learned_unigram_candidate_sampler",
    "log_uniform_candidate_sampler", "normal", "poisson", "set_global_generator", "set_seed",
    "shuffle", "stateless_categorical", "stateless_normal", "stateless_truncated_normal",
    "stateless_uniform", "truncated_normal", "uniform", "uniform_candidate_sampler",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("random", __name__)
