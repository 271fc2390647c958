"""Compiled random numbers are NumPy's to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as tf
from headrace.kernels.hot_work import HotWork
from headrace.kernels.native.llvm_library import status, why_not
from headrace.kernels.numpy import philox

pytestmark = pytest.mark.skipif(bool(why_not()), reason=status())
WORDS = st.integers(0, 2**64 - 1)
SIZES = st.sampled_from([1, 3, 4, 17, 64, 65, 255, 1000, 4097])


def both(make: Any, *arguments: Any) -> tuple[Any, Any]:
    """By NumPy and by compiled code."""
    kept, found = philox.NATIVE, []
    try:
        for limit in (1 << 62, 0):
            philox.NATIVE = HotWork("test", limit, "headrace.kernels.native.philox_kernels")
            found.append(make(*arguments))
    finally:
        philox.NATIVE = kept
    return found[0], found[1]


MAKERS = [
    (philox.uniform, np.float32),
    (philox.uniform, np.float64),
    (philox.uniform, np.float16),
    (philox.normal, np.float32),
    (philox.normal, np.float64),
    (philox.normal, np.float16),
    (philox.truncated_normal, np.float32),
    (philox.words, np.int32),
    (philox.words, np.int64),
]


@pytest.mark.parametrize(("make", "dtype"), MAKERS)
@settings(max_examples=20, deadline=None)
@given(key=WORDS, stream=WORDS, position=WORDS, count=SIZES, runs=st.sampled_from([1, 1, 5]))
def test_same_bits(
    make: Any, dtype: Any, key: int, stream: int, position: int, count: int, runs: int
) -> None:
    start = philox.Philox(key, stream, position)
    a, b = both(make, start, count, np.dtype(dtype), runs, 256 * count)
    assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize(("make", "dtype"), MAKERS)
def test_same_bits_over_threads(make: Any, dtype: Any) -> None:
    start = philox.Philox(7, 11, 2**64 - 1000)
    a, b = both(make, start, 300_007, np.dtype(dtype))
    assert a.tobytes() == b.tobytes()


def test_normals_of_all_words() -> None:
    """Logarithm, sine and cosine have 2**23 arguments: every one gives NumPy's float32."""
    from headrace.kernels.native.element_loops import GRAIN, Access, element_loop
    from headrace.kernels.native.kernel import Kernel
    from headrace.kernels.native.philox_kernels import _box_muller

    word, number = Access("u32"), Access("f32")

    def pairs(f: Any, words: Any) -> Any:
        return _box_muller(f, *(f.convert(w, "u64") for w in words))

    source = element_loop("pairs", [word, word], [number, number], pairs)
    kernel = Kernel(source, "pairs")
    size = 1 << 20
    for start in range(0, 1 << 23, size):
        first = np.arange(start, start + size, dtype=np.uint32)
        second = first[::-1] ^ np.uint32(0xFF800000)  # the upper bits do not count
        sine, cosine = np.empty(size, np.float32), np.empty(size, np.float32)
        kernel.run([first, second, sine, cosine], [], size, GRAIN)
        wanted = np.empty((size, 2), np.float32)
        philox._box_muller(first.astype(np.uint64), second.astype(np.uint64), wanted)
        np.testing.assert_array_equal(sine.view(np.uint32), wanted[:, 0].copy().view(np.uint32))
        np.testing.assert_array_equal(cosine.view(np.uint32), wanted[:, 1].copy().view(np.uint32))


def test_which_call_changes_over_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_NATIVE", "1")
    work = HotWork("test", 1000, "headrace.kernels.native.philox_kernels")
    assert work.kernels(400) is None and "1,000" in work.reason
    assert work.kernels(400) is None
    assert work.kernels(400) is not None and work.reason == "native"
    assert work.kernels(1) is not None


def test_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_NATIVE", "0")
    work = HotWork("test", 0, "headrace.kernels.native.philox_kernels")
    assert work.kernels(1 << 40) is None


def test_a_session_gives_the_same_numbers_before_and_after() -> None:
    def draw() -> Any:
        with tf.Graph().as_default(), tf.Session() as session:
            fetches = [
                tf.random_normal([3, 1000], seed=1),
                tf.truncated_normal([999], seed=2),
                tf.random_uniform([2000], 0, 1000, tf.int32, seed=3),
                tf.random_uniform([1001], dtype=tf.float64, seed=4),
                tf.multinomial(tf.zeros([20, 7]), 50, seed=5),
                tf.random_shuffle(tf.range(500), seed=6),
                tf.random.stateless_normal([501], seed=[7, 8]),
            ]
            return [session.run(fetches) for _ in range(3)]

    before, after = both(draw)
    for a, b in zip(before, after):
        for x, y in zip(a, b):
            np.testing.assert_array_equal(x, y)
