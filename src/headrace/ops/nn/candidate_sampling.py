"""Candidate sampling: classes drawn from a distribution, for the losses of sampled_losses.py.

A sampler draws ``num_sampled`` classes (different ones if ``unique``) and says how often each class
is expected among them. Draws are made of the words of TensorFlow's Philox stream in TensorFlow's
way, so equal seeds give equal classes.

    >>> loss = nce_loss(weights, biases, labels, inputs, num_sampled=64, num_classes=50000)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core import infer, shapes
from headrace.core.build import apply_named
from headrace.core.kernel_context import Runtime
from headrace.core.opdef import NOT_DIFFERENTIABLE, KernelNode, OpDef, define
from headrace.core.tensor import Tensor
from headrace.kernels.numpy import philox
from headrace.ops.random.random_ops import generator, op_seeds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headrace.core.annotations import ArrayNamespace, TensorLike

__all__ = [
    "all_candidate_sampler",
    "compute_accidental_hits",
    "fixed_unigram_candidate_sampler",
    "learned_unigram_candidate_sampler",
    "log_uniform_candidate_sampler",
    "uniform_candidate_sampler",
]

Array = np.ndarray[Any, Any]

# distributions ----------------------------------------------------------------------------------


class _Words:
    """The 32-bit words of a random stream, in order."""

    def __init__(self, start: philox.Philox) -> None:
        self._next = start
        self._left: Array = np.empty(0, np.uint32)

    def take(self, n: int) -> Array:
        if n > len(self._left):
            count = -(-(n - len(self._left)) // 4)
            fresh = philox.groups(self._next, count).reshape(-1)
            self._next = self._next.skip(count)
            self._left = np.concatenate([self._left, fresh])
        found, self._left = self._left[:n], self._left[n:]
        return found

    def rows(self, count: int, width: int, rejected: Callable[..., Any], keep: int) -> Array:
        """``count`` draws of ``width`` words.

        Of a rejected draw only the first ``keep`` words remain.
        """
        words = self.take(count * width)
        while True:
            bad = np.flatnonzero(rejected(words.reshape(count, width)))
            if not bad.size:
                return words.reshape(count, width)
            at = int(bad[0]) * width
            words = np.concatenate(
                [words[: at + keep], words[at + width :], self.take(width - keep)]
            )


def _uniform32(words: Array, n: int) -> Array:
    return words.astype(np.int64) & (n - 1) if n & (n - 1) == 0 else words.astype(np.int64) % n


def _unfair32(n: int) -> int:
    """Words below this are drawn again, so that every remainder is equally likely."""
    return 0 if n & (n - 1) == 0 else 0xFFFFFFFF % n + 1


class _LogUniform:
    """P(k) = log((k + 2) / (k + 1)) / log(n + 1): frequent words first."""

    def __init__(self, n: int) -> None:
        self.n, self.log_range = n, math.log1p(n)

    def draw(self, words: _Words, count: int) -> Array:
        pairs = words.take(2 * count).reshape(count, 2).astype(np.uint64)
        mantissa = (pairs[:, 0] & np.uint64(0xFFFFF)) << np.uint64(32) | pairs[:, 1]
        value = np.exp(mantissa.astype(np.float64) * 2.0**-52 * self.log_range).astype(np.int64) - 1
        return value % self.n

    def probability(self, classes: Array) -> Array:
        k = classes.astype(np.float64)
        return np.log((k + 2) / (k + 1)) / self.log_range


class _Uniform:
    """Every class alike."""

    def __init__(self, n: int) -> None:
        self.n = n

    def draw(self, words: _Words, count: int) -> Array:
        n = np.uint64(self.n)
        unfair = 0 if self.n & (self.n - 1) == 0 else 0xFFFFFFFFFFFFFFFF % self.n + 1
        rows = words.rows(count, 2, lambda r: _join(r) < np.uint64(unfair), 0)
        return (_join(rows) % n).astype(np.int64)

    def probability(self, classes: Array) -> Array:
        return np.full(classes.shape, 1 / self.n)


def _join(pairs: Array) -> Array:
    return pairs[:, 0].astype(np.uint64) | pairs[:, 1].astype(np.uint64) << np.uint64(32)


class _Learned:
    """In proportion to how often a class was seen, plus one."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.weights = np.ones(n, np.int64)

    def draw(self, words: _Words, count: int) -> Array:
        total = int(self.weights.sum())
        rows = words.rows(count, 1, lambda r: r[:, 0] < _unfair32(total), 0)
        return np.searchsorted(np.cumsum(self.weights), _uniform32(rows[:, 0], total), side="right")

    def probability(self, classes: Array) -> Array:
        share: Array = self.weights[classes] / self.weights.sum()
        return share

    def update(self, classes: Array) -> None:
        np.add.at(self.weights, classes.reshape(-1), 1)


class _Fixed:
    """In proportion to given weights, by the alias method.

    A float chooses between a class and its alias.
    """

    def __init__(self, weights: list[float], shards: int, shard: int) -> None:
        self.weights = np.array(weights, np.float32)
        self.n, self.shards, self.shard = len(weights), shards, shard
        self.total = float(self.weights.astype(np.float64).sum())
        self.keep, self.alias = _alias_table(self.weights, self.total)

    def draw(self, words: _Words, count: int) -> Array:
        rows = words.rows(count, 2, lambda r: r[:, 1] < _unfair32(self.n), 1)
        fraction = (rows[:, 0] & np.uint32(0x7FFFFF)).astype(np.float32) * np.float32(2.0**-23)
        column = _uniform32(rows[:, 1], self.n)
        found = np.where(fraction < self.keep[column], column, self.alias[column])
        return found * self.shards + self.shard

    def probability(self, classes: Array) -> Array:
        return self.weights[classes].astype(np.float64) / self.total


def _alias_table(weights: Array, total: float) -> tuple[Array, Array]:
    """Each column has one class and the alias that fills it up; TensorFlow's order of pairing."""
    n = len(weights)
    share = [float(w) * n / total for w in weights]
    alias = np.arange(n)
    low = [i for i, p in enumerate(share) if p < 1.0]
    high = [i for i, p in enumerate(share) if p >= 1.0]
    while low and high:
        small, large = low.pop(), high.pop()
        alias[small] = large
        share[large] -= 1.0 - share[small]
        (low if share[large] < 1.0 else high).append(large)
    for i in low + high:  # what rounding left over
        share[i] = 1.0
    return np.array(share, np.float32), alias


# kernels ----------------------------------------------------------------------------------------


def _sample(
    sampler: Any, size: int, true_classes: Array, rt: Runtime, node: KernelNode
) -> tuple[Array, Array, Array]:
    count, unique = node.attrs["num_sampled"], node.attrs["unique"]
    _check_true_classes(true_classes, node.attrs["num_true"])
    if unique and count > size:
        raise errors.InvalidArgumentError(
            None, None, f"Sampler's range is too small: {size} classes, {count} drawn"
        )
    words = _Words(generator(rt, node).reserve(512 * count))
    if unique:
        sampled, tries = _distinct(sampler, words, count)
    else:
        sampled, tries = sampler.draw(words, count), count
    return (
        sampled,
        _expected(sampler, true_classes, tries, count),
        _expected(sampler, sampled, tries, count),
    )


def _distinct(sampler: Any, words: _Words, count: int) -> tuple[Array, int]:
    """Draws until there are ``count`` different classes; returns them and the number of draws."""
    found: dict[int, None] = {}
    tries = 0
    possible = int((sampler.weights > 0).sum()) if isinstance(sampler, _Fixed) else sampler.n
    if possible < count:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"num_sampled = {count} different classes are to be drawn, but only {possible} have a "
            "probability above 0",
        )
    while True:
        # (some more than are wanted: another call costs more, and what is left over is not used)
        for value in sampler.draw(words, count + count // 2).tolist():
            tries += 1
            found[value] = None
            if len(found) == count:
                return np.fromiter(found, np.int64, count), tries


def _expected(sampler: Any, classes: Array, tries: int, count: int) -> Array:
    """How often a class is expected.

    P per draw, or 1 - (1 - p)**tries where repetitions were drawn again.
    """
    p = sampler.probability(classes)
    expected: Array = p * tries if tries == count else -np.expm1(tries * np.log1p(-p))
    return expected.astype(np.float32)


def _check_true_classes(true_classes: Array, num_true: int) -> None:
    if true_classes.ndim != 2 or true_classes.shape[1] != num_true:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"true_classes must have num_true columns: {true_classes.shape} vs {num_true}",
        )


def _log_uniform_kernel(
    xp: ArrayNamespace, true_classes: Any, *, range_max: int, rt: Runtime, node: KernelNode
) -> tuple[Any, ...]:
    return _sample(_LogUniform(range_max), range_max, true_classes, rt, node)


def _uniform_kernel(
    xp: ArrayNamespace, true_classes: Any, *, range_max: int, rt: Runtime, node: KernelNode
) -> tuple[Any, ...]:
    return _sample(_Uniform(range_max), range_max, true_classes, rt, node)


def _learned_kernel(
    xp: ArrayNamespace, true_classes: Any, *, range_max: int, rt: Runtime, node: KernelNode
) -> tuple[Any, ...]:
    sampler = rt.session_resource(("sampler", node.key), lambda: _Learned(range_max))
    found = _sample(sampler, range_max, true_classes, rt, node)
    sampler.update(true_classes)
    return found


def _fixed_kernel(
    xp: ArrayNamespace, true_classes: Any, *, rt: Runtime, node: KernelNode
) -> tuple[Any, ...]:
    sampler = rt.session_resource(("sampler", node.key), lambda: _fixed_sampler(node.attrs))
    return _sample(sampler, sampler.n, true_classes, rt, node)


def _fixed_sampler(attrs: dict[str, Any]) -> _Fixed:
    counts = attrs["unigrams"] or _counts_in(attrs["vocab_file"])
    shards, shard, power = attrs["num_shards"], attrs["shard"], attrs["distortion"]
    weights = [0.0] * attrs["num_reserved_ids"] + [math.pow(c, power) for c in counts]
    if len(weights) != attrs["range_max"]:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"range_max is {attrs['range_max']}, but weights are given for {len(weights)} ids",
        )
    return _Fixed(weights[shard::shards], shards, shard)


def _counts_in(path: str) -> list[float]:
    """The last column of a comma-separated file."""
    with open(path) as f:
        return [float(line.rsplit(",", 1)[-1]) for line in f if line.strip()]


def _all_kernel(
    xp: ArrayNamespace, true_classes: Any, *, num_sampled: int, num_true: int
) -> tuple[Any, ...]:
    _check_true_classes(true_classes, num_true)
    ones = np.ones(num_sampled, np.float32)
    return np.arange(num_sampled, dtype=np.int64), np.ones(true_classes.shape, np.float32), ones


def _hits_kernel(
    xp: ArrayNamespace, true_classes: Any, sampled: Any, *, num_true: int
) -> tuple[Any, ...]:
    """Where a true class was sampled: rows, positions in the sample, and the most negative
    weight.
    """
    _check_true_classes(true_classes, num_true)
    where = {value: i for i, value in enumerate(sampled.tolist())}
    hits = [
        (row, where[c])
        for row, classes in enumerate(true_classes.tolist())
        for c in classes
        if c in where
    ]
    rows, places = np.array(hits, np.int64).reshape(-1, 2).T
    return (
        rows.astype(np.int32),
        places.copy(),
        np.full(len(hits), np.finfo(np.float32).min, np.float32),
    )


def _sampler_shape(c: infer.Inference) -> list[shapes.Shape]:
    true_classes = c.require_rank(0, 2)
    assert true_classes is not None
    count = c.attr("num_sampled")
    return [(count,), (true_classes[0], c.attr("num_true")), (count,)]


_OUT = (
    "true_classes: int64 -> sampled_candidates: int64, true_expected_count: float32, "
    "sampled_expected_count: float32"
)
_COMMON = "; num_true: int, num_sampled: int, unique: bool, "
_SEEDS = "seed: int=0, seed2: int=0"
_RANGE = _OUT + _COMMON + "range_max: int, " + _SEEDS
_TRAITS: dict[str, Any] = {
    "shape": _sampler_shape,
    "grad": NOT_DIFFERENTIABLE,
    "stateful": True,
    "random": True,
    "host_only": True,
}


def _hits_shape(c: infer.Inference) -> list[shapes.Shape]:
    shapes.merge(c.require_rank(0, 2), (None, c.attr("num_true")))
    c.require_rank(1, 1)
    return [(None,)] * 3


LOG_UNIFORM = define("LogUniformCandidateSampler", _RANGE, kernel=_log_uniform_kernel, **_TRAITS)
UNIFORM = define("UniformCandidateSampler", _RANGE, kernel=_uniform_kernel, **_TRAITS)
LEARNED = define("LearnedUnigramCandidateSampler", _RANGE, kernel=_learned_kernel, **_TRAITS)
THREAD_UNSAFE = define(
    "ThreadUnsafeUnigramCandidateSampler", _RANGE, kernel=_learned_kernel, **_TRAITS
)
FIXED = define(
    "FixedUnigramCandidateSampler",
    _OUT
    + _COMMON
    + "range_max: int, vocab_file: str='', distortion: float=1.0, num_reserved_ids: int=0, "
    "num_shards: int=1, shard: int=0, unigrams: list(float)=(), " + _SEEDS,
    kernel=_fixed_kernel,
    **_TRAITS,
)
ALL = define("AllCandidateSampler", _OUT + _COMMON + _SEEDS, kernel=_all_kernel, **_TRAITS)
ACCIDENTAL_HITS = define(
    "ComputeAccidentalHits",
    "true_classes: int64, sampled_candidates: int64 -> indices: int32, ids: int64, "
    "weights: float32; num_true: int, " + _SEEDS,
    shape=_hits_shape,
    kernel=_hits_kernel,
    grad=NOT_DIFFERENTIABLE,
    data_dependent_shape=True,
    host_only=True,
)

# what users call --------------------------------------------------------------------------------

Sampled = tuple[Tensor, Tensor, Tensor]


def _sampler(
    opdef: OpDef, true_classes: TensorLike, seed: object, name: str | None, **attrs: object
) -> Sampled:
    sampled: Sampled = apply_named(opdef, true_classes, name=name, **attrs, **op_seeds(seed))
    return sampled


def uniform_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """Classes drawn uniformly from [0, range_max).

    Returns (classes [num_sampled], expected counts of the true classes [batch, num_true], expected
    counts of the sampled ones [num_sampled]). ``true_classes`` is int64 [batch, num_true]; with
    ``unique`` no class is drawn twice; classes lie below ``range_max``.
    """
    return _sampler(
        UNIFORM,
        true_classes,
        seed,
        name,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
    )


def log_uniform_candidate_sampler(
    true_classes: Tensor,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: object = None,
    name: str | None = None,
) -> Sampled:
    """Classes drawn with P(k) = log((k + 2) / (k + 1)) / log(range_max + 1): for classes sorted by
    falling frequency.

    Returns (classes [num_sampled], expected counts of the true classes [batch, num_true], expected
    counts of the sampled ones [num_sampled]). ``true_classes`` is int64 [batch, num_true]; with
    ``unique`` no class is drawn twice; classes lie below ``range_max``.
    """
    return _sampler(
        LOG_UNIFORM,
        true_classes,
        seed,
        name,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
    )


def learned_unigram_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """Classes drawn as often as they were seen among the true classes so far.

    Returns (classes [num_sampled], expected counts of the true classes [batch, num_true], expected
    counts of the sampled ones [num_sampled]). ``true_classes`` is int64 [batch, num_true]; with
    ``unique`` no class is drawn twice; classes lie below ``range_max``.
    """
    return _sampler(
        LEARNED,
        true_classes,
        seed,
        name,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
    )


def fixed_unigram_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """Classes drawn in proportion to given counts, each raised to the power ``distortion``.

    The counts are the list ``unigrams`` or the last column of the CSV file ``vocab_file``;
    ``num_reserved_ids`` classes before them are never drawn. Of ``num_shards`` samplers, number
    ``shard`` draws every ``num_shards``-th class only. Returns (classes [num_sampled], expected
    counts of the true classes [batch, num_true], expected counts of the sampled ones
    [num_sampled]). ``true_classes`` is int64 [batch, num_true]; with ``unique`` no class is drawn
    twice; classes lie below ``range_max``.
    """
    return _sampler(
        FIXED,
        true_classes,
        seed,
        name,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
        vocab_file=vocab_file,
        distortion=distortion,
        num_reserved_ids=num_reserved_ids,
        num_shards=num_shards,
        shard=shard,
        unigrams=unigrams,
    )


def all_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """Every class of [0, num_sampled) once: a sampler for tests.

    Returns (classes [num_sampled], expected counts of the true classes [batch, num_true], expected
    counts of the sampled ones [num_sampled]). ``true_classes`` is int64 [batch, num_true]; with
    ``unique`` no class is drawn twice.
    """
    return _sampler(
        ALL, true_classes, seed, name, num_true=num_true, num_sampled=num_sampled, unique=unique
    )


def compute_accidental_hits(
    true_classes: Tensor,
    sampled_candidates: Tensor,
    num_true: int,
    seed: TensorLike | None = None,
    name: str | None = None,
) -> Sampled:
    """Where sampled classes are true classes of an example.

    Returns (row of the example, position among the sampled ones, weight), the weight a large
    negative number to add to the logit.
    """
    hits: Sampled = apply_named(
        ACCIDENTAL_HITS,
        true_classes,
        sampled_candidates,
        num_true=num_true,
        name=name,
        **op_seeds(seed),
    )
    return hits
