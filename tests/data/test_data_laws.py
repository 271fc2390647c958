"""Laws of transformations, by random examples.

Blocks give what elements give; batch and unbatch undo each other; …
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.data.runtime.batching import BatchStage, UnbatchStage, WindowStage
from headrace.data.runtime.cache_stage import MemoryCacheStage
from headrace.data.runtime.indexed import IndexPass
from headrace.data.runtime.mapping import MapStage
from headrace.data.runtime.pipeline_rewrites import optimized
from headrace.data.runtime.shuffle import ShuffleAndRepeatStage, ShuffleStage
from headrace.data.runtime.simple_stages import (
    ConcatenateStage,
    OnePass,
    RepeatStage,
    ShardStage,
    SkipStage,
    TakeStage,
    ZipStage,
)
from headrace.data.runtime.sources import RangeStage, SliceStage
from headrace.data.runtime.stages import Context, Element, Pass, Stage

Step = Callable[[Stage], Stage]


class Plain(Stage):
    """Its source's elements without blocks or row numbers: what follows goes element by element."""

    def __init__(self, source: Stage) -> None:
        self.inputs = (source,)

    def start(self, ctx: Context) -> Pass:
        return PlainPass(ctx.start(self.inputs[0]))

    def cardinality(self) -> int:
        return self.inputs[0].cardinality()


class PlainPass(OnePass):
    def __next__(self) -> Element:
        return next(self.source)


def values(stage: Stage, limit: int = 300) -> list[Any]:
    a_pass = Context().start(stage)
    out = [tuple(np.asarray(c).tolist() for c in e) for _, e in zip(range(limit), a_pass)]
    a_pass.close()
    return out


def rows(n: int) -> Stage:
    return SliceStage([np.arange(n), np.arange(2 * n).reshape(n, 2)])


small = st.integers(0, 12)
steps: st.SearchStrategy[Step] = st.one_of(
    st.integers(-1, 15).map(lambda n: lambda s: TakeStage(s, n)),
    st.integers(-1, 15).map(lambda n: lambda s: SkipStage(s, n)),
    st.integers(0, 3).map(lambda n: lambda s: RepeatStage(s, n)),
    st.tuples(st.integers(1, 4), small).map(lambda p: lambda s: ShardStage(s, p[0], p[1] % p[0])),
    st.tuples(st.integers(1, 20), small).map(
        lambda p: lambda s: ShuffleStage(s, p[0], p[1], 1, True)
    ),
    st.tuples(st.integers(1, 20), small).map(
        lambda p: lambda s: ShuffleStage(s, p[0], p[1], 1, False)
    ),
    st.tuples(st.integers(1, 20), small, st.integers(0, 3)).map(
        lambda p: lambda s: ShuffleAndRepeatStage(s, p[0], p[1], 1, p[2])
    ),
)


def built(source: Stage, path: list[Step]) -> Stage:
    for step in path:
        source = step(source)
    return source


@settings(max_examples=400, deadline=None)
@given(small, st.lists(steps, max_size=4), st.integers(1, 6), st.booleans())
def test_blocks_are_elements(n: int, path: list[Step], size: int, drop: bool) -> None:
    fast, slow = built(rows(n), path), built(Plain(rows(n)), path)
    assert values(fast) == values(slow)
    assert values(BatchStage(built(rows(n), path), size, drop)) == values(
        BatchStage(Plain(built(rows(n), path)), size, drop)
    )


@settings(max_examples=300, deadline=None)
@given(st.lists(steps, max_size=4))
def test_rows_stay_rows(path: list[Step]) -> None:
    stage = built(rows(5), path)
    assert isinstance(Context().start(stage), IndexPass) or not values(stage)


@settings(max_examples=100, deadline=None)
@given(small, st.lists(steps, max_size=3), st.integers(1, 5), st.integers(0, 7))
def test_elements_then_a_block(n: int, path: list[Step], size: int, first: int) -> None:
    """A pass may be read in both ways, one after the other."""
    whole = values(built(rows(n), path))
    a_pass = Context().start(built(rows(n), path))
    got = [tuple(np.asarray(c).tolist() for c in e) for _, e in zip(range(first), a_pass)]
    while a_pass.block is not None:
        try:
            block = a_pass.block(size)
        except StopIteration:
            break
        got += [tuple(np.asarray(c[i]).tolist() for c in block) for i in range(len(block[0]))]
    assert a_pass.block is None or got == whole


@given(small, st.integers(1, 5))
def test_unbatch_undoes_batch(n: int, size: int) -> None:
    assert values(UnbatchStage(BatchStage(rows(n), size, False))) == values(rows(n))
    assert values(UnbatchStage(BatchStage(Plain(rows(n)), size, False))) == values(rows(n))
    dropped = values(UnbatchStage(BatchStage(rows(n), size, True)))
    assert dropped == values(rows(n))[: n // size * size]


@given(small, st.integers(1, 5), st.integers(1, 4))
def test_batches_of_other_batches(n: int, a: int, b: int) -> None:
    again = BatchStage(UnbatchStage(BatchStage(rows(n), a, False)), b, False)
    assert values(again) == values(BatchStage(rows(n), b, False))


@given(small, st.integers(1, 5))
def test_shards_are_a_partition(n: int, shards: int) -> None:
    for source in (rows(n), Plain(rows(n))):
        parts = [values(ShardStage(source, shards, i)) for i in range(shards)]
        assert sorted(e for p in parts for e in p) == sorted(values(rows(n)))
        assert all(len(p) in (n // shards, n // shards + 1) for p in parts)


@given(small, small)
def test_take_and_skip_are_the_whole(n: int, k: int) -> None:
    for source in (rows(n), Plain(rows(n))):
        assert values(TakeStage(source, k)) + values(SkipStage(source, k)) == values(source)
        both = ConcatenateStage([TakeStage(source, k), SkipStage(source, k)])
        assert values(both) == values(source)


@given(small, small)
def test_zip_is_pythons(n: int, m: int) -> None:
    wanted = [(*a, *b) for a, b in zip(values(rows(n)), values(RangeStage(0, m, 1)))]
    for a, b in ((rows(n), RangeStage(0, m, 1)), (Plain(rows(n)), RangeStage(0, m, 1))):
        assert values(ZipStage([a, b])) == wanted
        assert values(BatchStage(ZipStage([a, b]), 4, False)) == values(
            BatchStage(Plain(ZipStage([a, b])), 4, False)
        )


@given(small, st.integers(1, 30), st.integers(0, 5))
def test_shuffle_is_a_permutation(n: int, size: int, seed: int) -> None:
    assert sorted(values(ShuffleStage(rows(n), size, seed, 1, True))) == values(rows(n))


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 5))
def test_an_element_is_not_early_by_more_than_the_buffer(n: int, size: int, seed: int) -> None:
    order = [e[0] for e in values(ShuffleStage(RangeStage(0, n, 1), size, seed, 1, True))]
    assert all(value - place < size for place, value in enumerate(order))


@given(small, st.integers(1, 30), st.integers(0, 5), st.integers(0, 4))
def test_rounds_of_shuffle_and_repeat_do_not_mix(n: int, size: int, seed: int, count: int) -> None:
    found = values(ShuffleAndRepeatStage(rows(n), size, seed, 1, count), 1000)
    assert len(found) == n * count
    for i in range(count):
        assert sorted(found[i * n : (i + 1) * n]) == values(rows(n))


@settings(max_examples=100, deadline=None)
@given(small, st.lists(steps, max_size=3), st.integers(1, 4), st.booleans())
def test_cardinality_is_the_number_of_elements(
    n: int, path: list[Step], size: int, drop: bool
) -> None:
    for stage in (built(rows(n), path), BatchStage(built(rows(n), path), size, drop)):
        known = stage.cardinality()
        assert known == len(values(stage, 5000))


@given(small, st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_windows(n: int, size: int, shift: int, stride: int, drop: bool) -> None:
    stage = WindowStage(RangeStage(0, n, 1), size, shift, stride, drop)
    found = [[v[0] for v in values(e[0])] for e in Context().start(stage)]
    wanted = [list(range(start, n, stride))[:size] for start in range(0, n, shift)]
    if drop:
        wanted = [w for w in wanted if len(w) == size]
        # a window counts as complete only with all of its span
        wanted = [w for w in wanted if w[0] + (size - 1) * stride < n]
    assert found == wanted
    assert stage.cardinality() == len(found)


@given(small, st.integers(1, 4))
def test_cached_passes_are_alike(n: int, size: int) -> None:
    stage = MemoryCacheStage(MapStage(rows(n), lambda a, b: (a + 1, b), True))
    first = values(stage)
    assert values(stage) == first
    assert values(BatchStage(stage, size, False)) == values(BatchStage(Plain(stage), size, False))


@given(small, st.integers(1, 12), st.integers(0, 9), st.integers(0, 3))
def test_fusion_only_joins_shuffle_and_repeat(n: int, size: int, seed: int, count: int) -> None:
    stage = RepeatStage(ShuffleStage(rows(n), size, seed, 1, True), count)
    fused = optimized(BatchStage(stage, 3, False), ["shuffle_and_repeat_fusion"])
    assert isinstance(fused.inputs[0], ShuffleAndRepeatStage)
    assert values(fused) == values(
        BatchStage(ShuffleAndRepeatStage(rows(n), size, seed, 1, count), 3, False)
    )
    fixed = RepeatStage(ShuffleStage(rows(n), size, seed, 1, False), count)
    assert optimized(fixed, ["shuffle_and_repeat_fusion"]) is fixed
