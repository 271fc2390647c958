"""``tf.contrib.image``: projective transforms."""

from headrace.api.missing import module_getattr
from headrace.ops.image.projective import (
    angles_to_projective_transforms,
    compose_transforms,
    flat_transforms_to_matrices,
    matrices_to_flat_transforms,
    rotate,
    transform,
    translate,
    translations_to_projective_transforms,
)

__all__ = [
    "angles_to_projective_transforms", "compose_transforms", "flat_transforms_to_matrices",
    "matrices_to_flat_transforms", "rotate", "transform", "translate",
    "translations_to_projective_transforms",
]  # fmt: skip

__getattr__ = module_getattr("contrib.image", __name__)
