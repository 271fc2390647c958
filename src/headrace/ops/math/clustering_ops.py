"""The ops under k-means: nearest centres, and two ways to choose the first ones.

Random choices are drawn from a Philox stream that the ``seed`` input alone starts, word by word as
TensorFlow does, so the same points and seed give the same centres.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from headrace import errors
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.kernels.numpy import philox

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace

__all__ = ["KMC2_CHAIN_INITIALIZATION", "KMEANS_PLUS_PLUS", "NEAREST_NEIGHBORS", "RandomWords"]


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


class RandomWords:
    """32-bit words of the stream of ``seed``, and numbers made of them, one at a time."""

    _NUMBERS_DRAWN = 256

    def __init__(self, seed: int) -> None:
        self._next = philox.Philox(seed & (2**64 - 1), 0, 0)
        self._words: list[int] = []

    def word(self) -> int:
        if not self._words:
            fresh = philox.groups(self._next, self._NUMBERS_DRAWN).reshape(-1)
            self._next = self._next.skip(self._NUMBERS_DRAWN)
            self._words = fresh[::-1].tolist()
        return self._words.pop()

    def below(self, n: int) -> int:
        """An integer in [0, n), each equally likely: of 64 bits, unfair remainders drawn again."""
        least = 0 if n & (n - 1) == 0 else (2**64 - 1) % n + 1
        while True:
            low = self.word()
            drawn = low | self.word() << 32
            if drawn >= least:
                return drawn % n

    def below32(self, n: int) -> int:
        """The same of 32 bits."""
        least = 0 if n & (n - 1) == 0 else 0xFFFFFFFF % n + 1
        while True:
            drawn = self.word()
            if drawn >= least:
                return drawn % n

    def fraction(self) -> np.float32:
        """A float in [0, 1)."""
        return np.float32((self.word() & 0x7FFFFF) * 2.0**-23)


# nearest centres --------------------------------------------------------------------------------


def _half_norms(rows: Array) -> Array:
    norms: Array = np.float32(0.5) * np.einsum("ij,ij->i", rows, rows)
    return norms


def _nearest(xp: ArrayNamespace, points: Array, centers: Array, k: Array) -> tuple[Array, Array]:
    if k.ndim or k < 0:
        raise _invalid("k must be a scalar, and not negative.")
    if points.ndim != 2 or centers.ndim != 2:
        raise _invalid("Points and centers must be matrices.")
    if points.shape[1] != centers.shape[1]:
        raise _invalid("Points and centers must have the same number of columns.")
    count = min(int(k), len(centers))
    scores = points @ centers.T - _half_norms(centers)
    if count == 1:
        indices = scores.argmax(1)[:, None]
    else:
        indices = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    best = np.take_along_axis(scores, indices, 1)
    distances = np.maximum(2 * (_half_norms(points)[:, None] - best), np.float32(0))
    return indices.astype(np.int64), distances


def _nearest_shape(c: Inference) -> list[Shape]:
    points = c.shape(0)
    return [(None if points is None else points[0], None)] * 2


NEAREST_NEIGHBORS = define(
    "NearestNeighbors",
    "points: float32, centers: float32, k: int64 -> nearest_center_indices: int64, "
    "nearest_center_distances: float32",
    shape=_nearest_shape,
    kernel=_nearest,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)


# first centres ----------------------------------------------------------------------------------


class _PlusPlus:
    """k-means++: a point is drawn in proportion to its distance from what was chosen before.

    With retries several points are drawn for each place, and the one that leaves the least sum of
    distances is taken.
    """

    def __init__(self, points: Array, seed: int) -> None:
        self._points, self._words = points, RandomWords(seed)
        self._half = _half_norms(points)
        self._distances = np.full(len(points), np.inf, np.float32)
        self.chosen: list[int] = []

    def _draw(self) -> int:
        if not self.chosen:
            return self._words.below(len(self._points))
        sums = np.cumsum(self._distances, dtype=np.float32)
        while True:
            at = self._words.fraction() * sums[-1]
            index = int(np.searchsorted(sums, at, side="right"))
            if index not in self.chosen:
                return index

    def _distances_with(self, index: int) -> Array:
        inner = self._points @ self._points[index]
        fresh = np.maximum(2 * (self._half + self._half[index] - inner), np.float32(0))
        fewer: Array = np.minimum(self._distances, fresh)
        return fewer

    def choose(self, draws: int) -> None:
        best_sum, best_index, best = math.inf, 0, self._distances
        for _ in range(draws):
            index = self._draw()
            distances = self._distances_with(index)
            total = float(distances.sum())
            if total < best_sum:
                best_sum, best_index, best = total, index, distances
        self.chosen.append(best_index)
        self._distances = best


def _plus_plus(
    xp: ArrayNamespace, points: Array, num_to_sample: Array, seed: Array, retries: Array
) -> Array:
    count, more = int(num_to_sample), int(retries)
    if points.ndim != 2:
        raise _invalid("Input points should be a matrix.")
    if count <= 0:
        raise _invalid("num_to_sample must be positive.")
    if count > len(points):
        raise _invalid(f"Expected num_to_sample <= {len(points)}, but got num_to_sample = {count}.")
    if more < 0:
        more = 2 + int(math.log(count))
    state = _PlusPlus(points, int(seed))
    for _ in range(count):
        state.choose(1 + more)
    return points[state.chosen]


def _plus_plus_shape(c: Inference) -> list[Shape]:
    points = c.shape(0)
    return [(None, None if points is None else points[1])]


KMEANS_PLUS_PLUS = define(
    "KmeansPlusPlusInitialization",
    "points: float32, num_to_sample: int64, seed: int64, num_retries_per_sample: int64 -> "
    "samples: float32",
    shape=_plus_plus_shape,
    kernel=_plus_plus,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    data_dependent_shape=True,
)


def _chain(xp: ArrayNamespace, distances: Array, seed: Array) -> np.int64:
    """A Markov chain over the candidates: the next is taken with the ratio of its distance."""
    if distances.ndim != 1 or not distances.size:
        raise _invalid("Distances should be a vector with at least one candidate.")
    words = RandomWords(int(seed))
    chosen = 0
    for i in range(1, len(distances)):
        if distances[i] > words.fraction() * distances[chosen]:
            chosen = i
    return np.int64(chosen)


KMC2_CHAIN_INITIALIZATION = define(
    "KMC2ChainInitialization",
    "distances: float32, seed: int64 -> index: int64",
    shape=lambda c: [()],
    kernel=_chain,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
