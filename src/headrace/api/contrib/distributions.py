"""``tf.contrib.distributions``."""

from headrace.api.missing import late, module_getattr
from headrace.api.v1.distributions import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    DirichletMultinomial,
    Distribution,
    Exponential,
    Gamma,
    Laplace,
    Multinomial,
    Normal,
    RegisterKL,
    ReparameterizationType,
    StudentT,
    Uniform,
    kl_divergence,
)

__all__ = [
    "Bernoulli", "Beta", "Categorical", "Dirichlet", "DirichletMultinomial", "Distribution",
    "Exponential", "FULLY_REPARAMETERIZED", "Gamma", "Laplace", "Multinomial",
    "NOT_REPARAMETERIZED", "Normal", "RegisterKL", "ReparameterizationType", "StudentT", "Uniform",
    "kl_divergence",
]  # fmt: skip

_PACKAGE = "headrace.distributions"
_NAMES = late(
    {
        f"{_PACKAGE}.bijectors": "softplus_inverse",
        f"{_PACKAGE}.transformed_families": ("Deterministic Independent TransformedDistribution"),
        f"{_PACKAGE}.bijected_families": (
            "Kumaraswamy SinhArcsinh VectorExponentialDiag VectorLaplaceDiag VectorSinhArcsinhDiag"
        ),
        f"{_PACKAGE}.low_rank_normal": "MultivariateNormalDiagPlusLowRank",
        f"{_PACKAGE}.count_families": "NegativeBinomial QuantizedDistribution",
        f"{_PACKAGE}.sample_statistics": (
            "SeedStream assign_log_moving_mean_exp assign_moving_mean_variance auto_correlation "
            "moving_mean_variance normal_conjugates_known_scale_posterior "
            "normal_conjugates_known_scale_predictive percentile tridiag"
        ),
        f"{_PACKAGE}.wishart": "WishartCholesky WishartFull",
        f"{_PACKAGE}.wrapper_families": (
            "Autoregressive ConditionalDistribution "
            "ConditionalTransformedDistribution VectorDeterministic"
        ),
        f"{_PACKAGE}.batch_reshape": "BatchReshape",
        f"{_PACKAGE}.mixtures": "Mixture MixtureSameFamily",
        f"{_PACKAGE}.relaxed": (
            "ExpRelaxedOneHotCategorical RelaxedBernoulli RelaxedOneHotCategorical"
        ),
        f"{_PACKAGE}.beta_family": "BetaWithSoftplusConcentration",
        f"{_PACKAGE}.discrete": "Binomial Geometric OneHotCategorical",
        f"{_PACKAGE}.gamma_family": (
            "Chi2 Chi2WithAbsDf ExponentialWithSoftplusRate "
            "GammaWithSoftplusConcentrationRate InverseGamma "
            "InverseGammaWithSoftplusConcentrationRate Poisson"
        ),
        f"{_PACKAGE}.half_normal": "HalfNormal",
        f"{_PACKAGE}.location_scale": (
            "Cauchy LaplaceWithSoftplusScale Logistic NormalWithSoftplusScale "
            "StudentTWithAbsDfSoftplusScale"
        ),
        f"{_PACKAGE}.triangular": (
            "fill_triangular fill_triangular_inverse matrix_diag_transform "
            "reduce_weighted_logsumexp"
        ),
        f"{_PACKAGE}.multivariate_normal": (
            "MultivariateNormalDiag MultivariateNormalDiagWithSoftplusScale "
            "MultivariateNormalFullCovariance MultivariateNormalTriL"
        ),
    }
)

__getattr__ = module_getattr(
    "contrib.distributions",
    __name__,
    modules={"bijectors": "headrace.api.contrib.bijectors"},
    names=_NAMES,
)


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, "bijectors"})
