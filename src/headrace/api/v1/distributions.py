"""``tf.distributions``."""

import typing as _typing

from headrace.api.missing import module_getattr
from headrace.distributions.beta_family import Beta, Dirichlet
from headrace.distributions.discrete import Bernoulli, Categorical
from headrace.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
    ReparameterizationType,
)
from headrace.distributions.divergences import RegisterKL, kl_divergence
from headrace.distributions.gamma_family import Exponential, Gamma
from headrace.distributions.location_scale import Laplace, Normal, StudentT, Uniform
from headrace.distributions.multinomials import DirichletMultinomial, Multinomial

__all__ = [
    "Bernoulli", "Beta", "Categorical", "Dirichlet", "DirichletMultinomial", "Distribution",
    "Exponential", "FULLY_REPARAMETERIZED", "Gamma", "Laplace", "Multinomial",
    "NOT_REPARAMETERIZED", "Normal", "RegisterKL", "ReparameterizationType", "StudentT", "Uniform",
    "kl_divergence",
]  # fmt: skip

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr("distributions", __name__)
