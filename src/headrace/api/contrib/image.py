"""``tf.contrib.image``: projective transforms and warps."""

from headrace.api.missing import module_getattr
from headrace.layers.image_warps import (
    dense_image_warp,
    interpolate_spline,
    sparse_image_warp,
)
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
    "angles_to_projective_transforms", "compose_transforms", "dense_image_warp",
    "flat_transforms_to_matrices", "interpolate_spline", "matrices_to_flat_transforms", "rotate",
    "sparse_image_warp", "transform", "translate",
    "translations_to_projective_transforms",
]  # fmt: skip

__getattr__ = module_getattr("contrib.image", __name__)
