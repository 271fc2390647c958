"""``Session(weights=…)``: the error stays within the bound of the way that this CPU takes, and the
way is told.

Each instruction set has a process of its own: the settings of ``tools/check`` run this module with
each of them, and ``test_every_instruction_set`` does so for one program wherever the suite runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.kernels import accel
from headrace.kernels.onednn.weight_types import MAX_INNER, choose_way
from headrace.runtime import cpu_features as cpu
from headrace.session import events
from tests.instruction_sets import SETTINGS

UNIT = 2.0**-24  # float32's; a sum of n terms is off by at most n units of the sum of their sizes


def session_result(a: Any, w: Any, kind: str, bias: Any = None) -> tuple[Any, Any]:
    """A product with constant weights through the public API, and how it was computed."""
    with tf.Graph().as_default(), tf.Session(weights=kind) as session:
        x = tf.placeholder(tf.float32, [None, a.shape[1]])
        y = tf.matmul(x, tf.constant(w))
        y = y if bias is None else y + bias
        got = [session.run(y, {x: a}) for _ in range(3)]  # the last ones are settled runs
        np.testing.assert_array_equal(got[0], got[1])
        np.testing.assert_array_equal(got[1], got[2])
        return got[0], session.explain(y, [x]).weights


def error_bound(a: Any, w: Any, kind: str) -> Any:
    """The bound of docs/inference.md for every element of the result, in float64."""
    a, w = np.abs(a.astype(np.float64)), np.abs(w.astype(np.float64))
    size, rounding = a @ w, (len(w) + 2) * UNIT
    if kind == "float32":
        return size * rounding
    if kind == "bfloat16":
        return size * (2.0**-7 + 2.0**-16 + rounding)
    levels = {"int8": 127, "int7": 63}[kind]
    left, right = a.max() / 127, w.max(0) / levels
    steps = left * w.sum(0) / 2 + a.sum(1)[:, None] * right / 2 + len(w) * left * right / 4
    return steps + (size + steps) * rounding


def arrays(rows: int, inner: int, columns: int, spread: str) -> tuple[Any, Any]:
    """``extreme``: everything near the largest value, where sums of 16 bits would saturate."""
    rng = np.random.default_rng(rows * inner + columns)
    a, w = rng.uniform(-1, 1, (rows, inner)), rng.uniform(-1, 1, (inner, columns))
    if spread == "extreme":
        a, w = np.sign(a) * (1 - np.abs(a) / 50), np.sign(w) * (1 - np.abs(w) / 50)
    elif spread == "same sign":
        a, w = 1 - np.abs(a) / 50, 1 - np.abs(w) / 50
    else:
        w = w * np.linspace(0.01, 5, columns)  # columns of very different sizes
    return a.astype(np.float32), w.astype(np.float32)


@pytest.mark.parametrize("kind", ["int8", "bfloat16"])
@pytest.mark.parametrize("spread", ["uniform", "extreme", "same sign"])
@pytest.mark.parametrize(
    "shape",
    [(1, 512, 256), (3, 300, 257), (4, 300, 257), (5, 768, 96), (40, 300, 256), (128, 784, 512)],
    ids=str,
)
def test_error_is_within_the_bound(shape: tuple[int, int, int], spread: str, kind: str) -> None:
    a, w = arrays(*shape, spread)
    got, way = session_result(a, w, kind)
    exact = a.astype(np.float64) @ w
    used = way.kind
    assert (np.abs(got - exact) <= error_bound(a, w, used)).all(), way
    # not float32 under another name: what is said is done
    beyond = np.abs(got - exact) > error_bound(a, w, "float32")
    few = not way.way.startswith("bfloat16 up to") or shape[0] <= 4
    same = spread == "same sign"  # roundings of either direction may cancel out
    assert beyond.any() == (used != "float32" and few) or (same and used != "float32"), way


@pytest.mark.parametrize("kind", ["int8", "bfloat16"])
def test_bias_and_written_weights(kind: str) -> None:
    a, w = arrays(8, 300, 256, "uniform")
    bias = np.linspace(-1, 1, 256, dtype=np.float32)
    with tf.Graph().as_default(), tf.Session(weights=kind) as session:
        x, v = tf.placeholder(tf.float32, [None, 300]), tf.Variable(w)
        y = tf.nn.relu(tf.matmul(x, v) + bias)
        session.run(tf.global_variables_initializer())
        way = session.explain(y, [x]).weights
        for factor in (1, 2):
            exact = np.maximum(a.astype(np.float64) @ (factor * w) + bias, 0)
            bound = error_bound(a, factor * w, way.kind) + np.abs(exact) * 300 * UNIT
            for _ in range(3):
                assert (np.abs(session.run(y, {x: a}) - exact) <= bound).all()
            session.run(tf.assign(v, 2 * v))


def test_the_way_is_told() -> None:
    heard: list[dict[str, Any]] = []
    stop = events.listen(lambda name, data: heard.append(data) if name == "fallback" else None)
    try:
        for kind in ("int8", "bfloat16"):
            a, w = arrays(2, 300, 256, "uniform")
            _, way = session_result(a, w, kind)
            assert way.asked == kind and way.reason and way.error_bound
            told = [h for h in heard if h["asked"] == f"weights in {kind}"]
            assert bool(told) == way.falls_back
            assert all(h["done"] == way.way and h["why"] == way.reason for h in told)
    finally:
        stop()
    with tf.Graph().as_default(), tf.Session(weights="int8") as session:
        x = tf.placeholder(tf.float32, [None, 300])
        text = str(
            session.explain(tf.matmul(x, tf.constant(arrays(1, 300, 256, "uniform")[1])), [x])
        )
    assert "weights    int8 was asked for: " in text and "error of a result: up to" in text


def test_sums_that_do_not_fit_into_32_bits_are_in_float32() -> None:
    if accel.library() is None:
        pytest.skip(accel.status())
    if choose_way("int8", accel.library().isa).kind == "float32":  # type: ignore[union-attr]
        pytest.skip("int8 is computed in float32 here")
    inner = MAX_INNER + 1
    a, w = np.ones((1, inner), np.float32), np.ones((inner, 2), np.float32)
    with tf.Graph().as_default(), tf.Session(weights="int8") as session:
        x = tf.placeholder(tf.float32, [None, inner])
        y = tf.matmul(x, tf.constant(w))
        np.testing.assert_allclose(session.run(y, {x: a}), inner, rtol=1e-4)
        misses = session.explain(y, [x]).near_misses
    assert any(rule == "weights in int8" and "32 bits" in why for rule, _, why in misses)


# choosing ---------------------------------------------------------------------------------------

WAYS = {
    cpu.AVX2: ("float32", "float32"),
    cpu.AVX2_VNNI: ("int8", "float32"),
    cpu.AVX512: ("int7", "bfloat16"),
    cpu.AVX512_VNNI: ("int8", "bfloat16"),
    cpu.AVX512_BF16: ("int8", "bfloat16"),
    cpu.AVX512_FP16: ("int8", "bfloat16"),
}


@pytest.mark.parametrize("isa", WAYS, ids=cpu.isa_name)
def test_ways_of_each_instruction_set(isa: int) -> None:
    assert (choose_way("int8", isa).kind, choose_way("bfloat16", isa).kind) == WAYS[isa]
    assert choose_way("float32", isa).kind == "float32"
    assert cpu.isa_name(isa) in choose_way("int8", isa).reason


def test_amx_that_is_announced_but_not_described_is_not_used() -> None:
    """A virtual machine like that.

    Without the limit oneDNN's first tile instruction ends the process.
    """
    text = "model name\t: X\nflags\t\t: avx2 avx512f amx_tile amx_int8\ncpuid level\t: {}\n"
    half, whole = (cpu.parse_cpuinfo(text.format(level)) for level in (0x1C, 0x20))
    assert not half.amx and "0x1c" in half.hidden and whole.amx and not whole.hidden
    assert cpu.isa_limit(half, "") == cpu.AVX512_FP16 == cpu.isa_limit(half, "ALL")
    assert cpu.isa_limit(half, "AVX512_CORE_AMX") == cpu.AVX512_FP16
    assert cpu.isa_limit(half, "AVX2") is None and cpu.isa_limit(whole, "") is None
    nothing = cpu.parse_cpuinfo("Processor : some ARM\nFeatures : asimd sve\n")
    assert nothing.flags == {"asimd", "sve"} and nothing.max_leaf == -1


_PROGRAM = """
import sys; sys.path.insert(0, "tests/..")
import numpy as np
from tests.kernels.test_narrow_weights import arrays, error_bound, session_result
for kind in ("int8", "bfloat16"):
    for rows in (1, 16):
        a, w = arrays(rows, 512, 256, "extreme")
        got, way = session_result(a, w, kind)
        assert (abs(got - a.astype("d") @ w) <= error_bound(a, w, way.kind)).all(), way
    print(kind, way.kind)
"""


@pytest.mark.once
@pytest.mark.parametrize("setting", SETTINGS)
def test_every_instruction_set(setting: str) -> None:
    """The issue's product, in a process with that instruction set.

    Within the bound, by the way that belongs to it.
    """
    if missing := SETTINGS[setting].missing():
        pytest.skip(missing)
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PROGRAM],
        cwd=root,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            **SETTINGS[setting].environment(),
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
    )
    assert done.returncode == 0, done.stderr
    ways = dict(line.split() for line in done.stdout.splitlines())
    if setting in ("avx2", "none"):
        assert ways == {"int8": "float32", "bfloat16": "float32"}
    if setting == "avx512" and accel.library() is not None:
        assert ways == {"int8": "int7", "bfloat16": "bfloat16"}
