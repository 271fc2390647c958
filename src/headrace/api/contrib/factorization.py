"""``tf.contrib.factorization`` without its estimators."""

from headrace.api.missing import module_getattr
from headrace.layers.factorization.first_centers import KMEANS_PLUS_PLUS_INIT, RANDOM_INIT
from headrace.layers.factorization.kmeans import (
    COSINE_DISTANCE,
    SQUARED_EUCLIDEAN_DISTANCE,
    KMeans,
)

__all__ = [
    "COSINE_DISTANCE", "KMEANS_PLUS_PLUS_INIT", "KMeans", "RANDOM_INIT",
    "SQUARED_EUCLIDEAN_DISTANCE",
]  # fmt: skip

__getattr__ = module_getattr("contrib.factorization", __name__)
