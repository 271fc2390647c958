"""The op that fills a k-means model's centres from its inputs.

Each call adds what one batch can give, until there are as many centres as wanted; only then the
model counts as initialized. A call after that checks that it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply, apply_many
from headrace.core.scopes import control_dependencies
from headrace.layers import layer_ops as ops
from headrace.ops.math.clustering_ops import (
    KMC2_CHAIN_INITIALIZATION,
    KMEANS_PLUS_PLUS,
    NEAREST_NEIGHBORS,
)
from headrace.ops.state.ref_state import assign

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike


__all__ = ["CENTERS_OF_NAME", "KMC2_INIT", "KMEANS_PLUS_PLUS_INIT", "RANDOM_INIT", "FirstCenters"]

RANDOM_INIT = "random"
KMEANS_PLUS_PLUS_INIT = "kmeans_plus_plus"
KMC2_INIT = "kmc2"
CENTERS_OF_NAME = (RANDOM_INIT, KMEANS_PLUS_PLUS_INIT, KMC2_INIT)


class FirstCenters:
    """Makes the op; arguments as in KMeans, ``wanted`` being the number of centres."""

    def __init__(
        self,
        inputs: list[Any],
        wanted: Any,
        how: Any,
        cosine: bool,
        seed: int,
        retries: int,
        chain_length: int,
        centers: Any,
        updated: Any,
        initialized: Any,
    ) -> None:
        self._inputs, self._wanted, self._how, self._cosine = inputs, wanted, how, cosine
        self._seed, self._retries, self._chain_length = seed, retries, chain_length
        self._centers, self._updated, self._initialized = centers, updated, initialized
        self._selected = ops.shape(centers)[0]
        self._remaining = wanted - self._selected
        self._rows = ops.add_n([ops.shape(t)[0] for t in inputs])

    def op(self) -> Any:
        return ops.cond(
            ops.equal(self._remaining, 0),
            lambda: ops.assert_equal(self._initialized, True),
            self._initialize,
        )

    def _initialize(self) -> Any:
        with control_dependencies([ops.assert_positive(self._remaining)]):
            if isinstance(self._how, str) and self._how == KMC2_INIT:
                still_missing = self._add_by_chains()
            else:
                still_missing = self._add()
            return ops.cond(
                ops.equal(still_missing, 0),
                lambda: assign(self._initialized, True),
                ops.no_op,
            )

    def _normalized(self, rows: TensorLike) -> Any:
        return ops.l2_normalize(rows, axis=1) if self._cosine else rows

    def _store(self, centers: TensorLike) -> Any:
        """Write both copies; how many centres are still missing then."""
        written = assign(self._centers, centers, validate_shape=False)
        if self._updated is not self._centers:
            written = assign(self._updated, written, validate_shape=False)
        return self._wanted - ops.shape(written)[0]

    def _add(self) -> Any:
        chosen = self._normalized(self._choose())
        every = ops.cond(
            ops.equal(self._selected, 0),
            lambda: chosen,
            lambda: ops.concat([self._centers, chosen], 0),
        )
        return self._store(every)

    def _choose(self) -> Any:
        if isinstance(self._how, str) and self._how == RANDOM_INIT:
            few = self._rows <= self._remaining
            return ops.cond(few, lambda: ops.concat(self._inputs, 0), self._random)
        if isinstance(self._how, str):
            with control_dependencies([ops.assert_greater_equal(self._rows, self._remaining)]):
                return self._plus_plus()
        if callable(self._how):
            return self._how(self._inputs, self._remaining)
        with control_dependencies([ops.assert_equal(self._remaining, ops.shape(self._how)[0])]):
            return self._how

    def _random(self) -> Any:
        indices = ops.random_uniform(
            ops.reshape(self._remaining, [-1]),
            minval=0,
            maxval=ops.cast(self._rows, dtypes.int64),
            seed=self._seed,
            dtype=dtypes.int64,
        )
        return ops.embedding_lookup(self._inputs, indices, partition_strategy="div")

    def _plus_plus(self) -> Any:
        rows = self._normalized(self._inputs[0])
        count = ops.cast(self._remaining, dtypes.int64)
        return apply(KMEANS_PLUS_PLUS, rows, count, self._seed, self._retries)

    # k-MC2 --------------------------------------------------------------------------------------

    def _add_by_chains(self) -> Any:
        """One centre from each stretch of ``chain_length`` rows: a chain over its rows."""
        rows = self._inputs[0]
        stretches = ops.cast(ops.shape(rows)[0] / self._chain_length, dtype=dtypes.int32)
        count = ops.maximum(ops.minimum(self._remaining, stretches), 1)

        def add(i: Any, _: Any) -> tuple[Any, Any]:
            centers = ops.cond(
                ops.equal(self._selected, 0),
                lambda: self._normalized(ops.reshape(rows[0], [1, -1])),
                self._from_chain(rows, i),
            )
            return i + 1, self._store(centers)

        _, missing = ops.while_loop(lambda i, _: ops.less(i, count), add, [0, 0])
        return missing

    def _from_chain(self, rows: Any, i: Any) -> Callable[[], Any]:
        def centers() -> Any:
            start = i * self._chain_length
            stretch = rows[start : start + self._chain_length]
            distances = _nearest_distances(stretch, self._centers)
            at = apply(KMC2_CHAIN_INITIALIZATION, ops.squeeze(distances), self._seed)
            chosen = self._normalized(ops.reshape(stretch[at], [1, -1]))
            return ops.concat([self._centers, chosen], 0)

        return centers


def _nearest_distances(rows: TensorLike, centers: TensorLike) -> Any:
    return apply_many(NEAREST_NEIGHBORS, rows, centers, 1)[1]
