"""Batch normalisation over channels-last arrays, layer normalisation over rows, and their
gradients.

    >>> y, mean, variance = norms.batch_norm(x, scale, offset, 1e-3)         # of the batch
    >>> y = norms.batch_norm_inference(x, scale, offset, mean, variance, 1e-3)
    >>> dx, dscale, doffset = norms.batch_norm_grad(dy, x, scale, mean, variance, 1e-3, True)

The variance is the biased one. Primitives belong to sizes and to epsilon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.onednn.onednn_library import (
    BACKWARD,
    DIFF_DST,
    DIFF_SRC,
    DST,
    MEAN,
    SCALE,
    SHIFT,
    SRC,
    TRAINING,
    VARIANCE,
    Api,
)
from headrace.kernels.onednn.primitive import Cache, Call, contiguous_float32
from headrace.runtime import buffers

if TYPE_CHECKING:
    from headrace.core.annotations import Array

__all__ = ["Norms"]

MAX_KEPT = 64
DIFF_SCALE, DIFF_SHIFT = 255, 256
GIVEN_STATISTICS, USE_SCALE, USE_SHIFT = 1, 2, 4
AFFINE = USE_SCALE | USE_SHIFT

#: images, pixels, channels, epsilon, and whether the statistics are given.
_BatchKey = tuple[int, int, int, float, bool]
#: rows, columns, epsilon.
_Key = tuple[int, int, float]


class Norms:
    """All functions answer None where the arrays are not contiguous float32 of matching sizes."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.batch: Cache[_BatchKey, Call] = Cache(MAX_KEPT)
        self.batch_back: Cache[_BatchKey, Call] = Cache(MAX_KEPT)
        self.layer: Cache[_Key, Call] = Cache(MAX_KEPT)
        self.layer_back: Cache[_Key, Call] = Cache(MAX_KEPT)

    # batch normalisation --------------------------------------------------------------------

    def batch_norm(
        self, x: Array, scale: Array, offset: Array, epsilon: float
    ) -> tuple[Array, Array, Array] | None:
        """y, and the mean and variance of each channel over the batch."""
        channels = x.shape[-1]
        if not _fit(x, channels, scale, offset):
            return None
        y, mean, variance = _empty(x.shape), _empty(channels), _empty(channels)
        key = _batch_key(x, epsilon, False)
        self.batch.get(key, self._make_batch)(x, y, scale, offset, mean, variance)
        return y, mean, variance

    def batch_norm_inference(
        self, x: Array, scale: Array, offset: Array, mean: Array, variance: Array, epsilon: float
    ) -> Array | None:
        """y, with a given mean and variance."""
        channels = x.shape[-1]
        if not _fit(x, channels, scale, offset, mean, variance):
            return None
        y = _empty(x.shape)
        key = _batch_key(x, epsilon, True)
        self.batch.get(key, self._make_batch)(x, y, scale, offset, mean, variance)
        return y

    def batch_norm_grad(
        self,
        dy: Array,
        x: Array,
        scale: Array,
        mean: Array,
        variance: Array,
        epsilon: float,
        training: bool,
    ) -> tuple[Any, Any, Any] | None:
        """The gradients of x, scale and offset; not ``training``: mean and variance are
        constants.
        """
        channels = x.shape[-1]
        if dy.shape != x.shape or not _fit(x, channels, scale, mean, variance):
            return None
        if not contiguous_float32(dy):
            return None
        dx, dscale, doffset = _empty(x.shape), _empty(channels), _empty(channels)
        key = _batch_key(x, epsilon, not training)
        call = self.batch_back.get(key, self._make_batch_back)
        call(x, dy, dx, scale, mean, variance, dscale, doffset)
        return dx, dscale, doffset

    def _describe_batch(self, key: _BatchKey) -> tuple[Any, Any, Any, int]:
        images, pixels, channels, epsilon, given = key
        api = self.api
        strides = (pixels * channels, 1, channels, channels)
        desc = api.tensor((images, channels, pixels, 1), strides)
        flags = AFFINE | GIVEN_STATISTICS if given else AFFINE
        # a forward primitive for training is what the backward one is made after
        description = api.description(
            "batch_normalization_forward", TRAINING, desc, desc, epsilon, flags, api.attributes()
        )
        return desc, api.vector(channels), description, flags

    def _make_batch(self, key: _BatchKey) -> Call:
        desc, vector, description, _ = self._describe_batch(key)
        channel_wise = [(a, vector) for a in (SCALE, SHIFT, MEAN, VARIANCE)]
        return Call(self.api, description, [(SRC, desc), (DST, desc), *channel_wise])

    def _make_batch_back(self, key: _BatchKey) -> Call:
        desc, vector, forward, flags = self._describe_batch(key)
        api = self.api
        description = api.description(
            "batch_normalization_backward",
            BACKWARD,
            desc,
            desc,
            desc,
            key[3],
            flags,
            forward,
            api.attributes(),
        )
        places = [(SRC, desc), (DIFF_DST, desc), (DIFF_SRC, desc)]
        places += [(a, vector) for a in (SCALE, MEAN, VARIANCE, DIFF_SCALE, DIFF_SHIFT)]
        return Call(api, description, places, forward)

    # layer normalisation --------------------------------------------------------------------

    def layer_norm(
        self, x: Array, scale: Array, offset: Array, epsilon: float
    ) -> tuple[Any, Any, Any] | None:
        """y, and the mean and variance of each row (all but the last axis)."""
        columns = x.shape[-1]
        if not _fit(x, columns, scale, offset):
            return None
        y, mean, variance = _empty(x.shape), _empty(x.shape[:-1]), _empty(x.shape[:-1])
        key = (x.size // columns, columns, epsilon)
        self.layer.get(key, self._make_layer)(x, y, scale, offset, mean, variance)
        return y, mean, variance

    def layer_norm_grad(
        self, dy: Array, x: Array, scale: Array, mean: Array, variance: Array, epsilon: float
    ) -> tuple[Any, Any, Any] | None:
        """The gradients of x, scale and offset."""
        columns = x.shape[-1]
        if dy.shape != x.shape or not _fit(x, columns, scale):
            return None
        if not contiguous_float32(dy, mean, variance):
            return None
        dx, dscale, doffset = _empty(x.shape), _empty(columns), _empty(columns)
        key = (x.size // columns, columns, epsilon)
        call = self.layer_back.get(key, self._make_layer_back)
        call(x, dy, dx, mean, variance, scale, scale, dscale, doffset)
        return dx, dscale, doffset

    def _describe_layer(self, key: _Key) -> tuple[Any, Any, Any, Any]:
        rows, columns, epsilon = key
        api = self.api
        desc, statistics = api.tensor((rows, columns)), api.vector(rows)
        description = api.description(
            "layer_normalization_forward",
            TRAINING,
            desc,
            desc,
            statistics,
            epsilon,
            AFFINE,
            api.attributes(),
        )
        return desc, statistics, api.vector(columns), description

    def _make_layer(self, key: _Key) -> Call:
        desc, statistics, vector, description = self._describe_layer(key)
        places = [(SRC, desc), (DST, desc), (SCALE, vector), (SHIFT, vector)]
        return Call(self.api, description, [*places, (MEAN, statistics), (VARIANCE, statistics)])

    def _make_layer_back(self, key: _Key) -> Call:
        desc, statistics, vector, forward = self._describe_layer(key)
        api = self.api
        description = api.description(
            "layer_normalization_backward",
            BACKWARD,
            desc,
            desc,
            desc,
            statistics,
            key[2],
            AFFINE,
            forward,
            api.attributes(),
        )
        places = [(SRC, desc), (DIFF_DST, desc), (DIFF_SRC, desc)]
        places += [(MEAN, statistics), (VARIANCE, statistics)]
        # the shift is asked for, and not read
        places += [(a, vector) for a in (SCALE, SHIFT, DIFF_SCALE, DIFF_SHIFT)]
        return Call(api, description, places, forward)


def _empty(shape: int | tuple[int, ...]) -> Array:
    return buffers.empty(shape, np.float32)


def _batch_key(x: Array, epsilon: float, given: bool) -> _BatchKey:
    channels = x.shape[-1]
    return x.shape[0], x.size // (x.shape[0] * channels), channels, epsilon, given


def _fit(x: Array, columns: int, *vectors: Array) -> bool:
    """x is not empty and has ``columns`` in its last axis, as the vectors have elements."""
    return (
        x.size > 0
        and all(v.shape == (columns,) for v in vectors)
        and contiguous_float32(x, *vectors)
    )
