"""``tf.random``: random numbers."""

# ruff: noqa: I001 (one line per module keeps these tables readable)
# fmt: off

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.core.seeds import get_seed, set_random_seed, set_random_seed as set_seed
from headrace.ops.nn.candidate_sampling import (
    all_candidate_sampler, fixed_unigram_candidate_sampler, learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler, uniform_candidate_sampler,
)
from headrace.ops.random.random_ops import (
    categorical, multinomial, random_normal as normal, random_shuffle as shuffle,
    random_uniform as uniform, truncated_normal,
)
from headrace.ops.random.gamma_poisson import random_gamma as gamma, random_poisson as poisson
from headrace.ops.random.stateless import (
    stateless_categorical, stateless_multinomial, stateless_random_normal as stateless_normal,
    stateless_random_uniform as stateless_uniform, stateless_truncated_normal,
)

__all__ = [
    "all_candidate_sampler", "categorical", "fixed_unigram_candidate_sampler", "gamma",
    "get_seed", "learned_unigram_candidate_sampler", "log_uniform_candidate_sampler",
    "multinomial", "normal", "poisson", "set_random_seed", "set_seed", "shuffle",
    "stateless_categorical", "stateless_multinomial", "stateless_normal",
    "stateless_truncated_normal", "stateless_uniform", "truncated_normal", "uniform",
    "uniform_candidate_sampler",
]

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("random", __name__)
