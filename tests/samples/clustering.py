"""The ops under contrib.factorization's models."""

import numpy as np

from .base import Sample, f32

_POINTS, _CENTERS = f32(7, 3), f32(4, 3, salt=1)


def _nearest(k, id=None):
    inputs = dict(points=_POINTS, centers=_CENTERS, k=np.int64(k))
    return Sample("NearestNeighbors", inputs, id=id)


def _plus_plus(count, seed, retries, id=None):
    inputs = dict(
        points=f32(30, 2),
        num_to_sample=np.int64(count),
        seed=np.int64(seed),
        num_retries_per_sample=np.int64(retries),
    )
    return Sample("KmeansPlusPlusInitialization", inputs, id=id)


def _chain(seed, id=None):
    inputs = dict(distances=f32(40, low=0), seed=np.int64(seed))
    return Sample("KMC2ChainInitialization", inputs, id=id)


SAMPLES = [
    _nearest(1),
    _nearest(3, "NearestNeighbors-several"),
    _nearest(9, "NearestNeighbors-all"),
    _nearest(0, "NearestNeighbors-none"),
    _plus_plus(4, 0, 2),
    _plus_plus(6, 12345678901, 0, "KmeansPlusPlusInitialization-once"),
    _plus_plus(9, 3, -1, "KmeansPlusPlusInitialization-by-number"),
    _chain(0),
    _chain(77, "KMC2ChainInitialization-seed"),
]
