"""``tf.contrib.distributions.bijectors``."""

from headrace.api.missing import late, module_getattr
from headrace.distributions.affine_bijector import Affine
from headrace.distributions.bijectors import (
    AffineScalar,
    Bijector,
    Chain,
    Exp,
    Identity,
    Invert,
    Permute,
    Sigmoid,
    Softplus,
    Tanh,
)

__all__ = [
    "Affine", "AffineScalar", "Bijector", "Chain", "Exp", "Identity", "Invert", "Permute",
    "Sigmoid", "Softplus", "Tanh",
]  # fmt: skip

_PACKAGE = "headrace.distributions."
_NAMES = late(
    {
        f"{_PACKAGE}scalar_bijectors": (
            "AbsoluteValue Gumbel Kumaraswamy PowerTransform SinhArcsinh Softsign Square"
        ),
        f"{_PACKAGE}vector_bijectors": (
            "AffineLinearOperator CholeskyOuterProduct FillTriangular Inline MatrixInverseTriL "
            "Ordered "
            "ScaleTriL TransformDiagonal"
        ),
        f"{_PACKAGE}shape_bijectors": "Reshape SoftmaxCentered",
        f"{_PACKAGE}flow_bijectors": (
            "BatchNormalization ConditionalBijector MaskedAutoregressiveFlow RealNVP "
            "masked_autoregressive_default_template masked_dense real_nvp_default_template"
        ),
    }
)

__getattr__ = module_getattr("contrib.distributions.bijectors", __name__, names=_NAMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
