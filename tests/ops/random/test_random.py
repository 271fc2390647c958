"""Seeded random ops and initializers: TensorFlow 1.15's numbers, run after run."""

from __future__ import annotations

import json
import os
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import headrace.ops  # noqa: F401 (defines all ops)
from headrace import errors
from headrace.autodiff.gradients import gradients
from headrace.core import dtypes
from headrace.core.build import apply
from headrace.core.graph import Graph
from headrace.core.opdef import lookup
from headrace.core.seeds import get_seed
from headrace.kernels.numpy import philox
from headrace.kernels.numpy import rejection_sampling as rejection
from headrace.ops.array.basic import constant, placeholder
from headrace.ops.random import gamma_poisson as random_rejection
from headrace.ops.random import random_ops as random
from headrace.ops.random import stateless as random_stateless
from headrace.session.session import Session
from headrace.variables import initializers
from tests.golden import store
from tests.golden.random_programs import PROGRAMS
from tests.tolerances import assert_close

_RUNS = dict(np.load(os.path.join(store.HERE, "random_runs.npz")))
_GRAPHS = json.loads(_RUNS["graphs"].tobytes())
_SEEDED = [(k, s) for k, s in store.load_samples("random") if "seed2" in s.attrs]


def _tf() -> SimpleNamespace:
    """The names that the programs use."""
    names: dict[str, Any] = {}
    for module in (random, random_rejection, random_stateless, initializers):
        names.update({n: getattr(module, n) for n in module.__all__})
    names.update(
        float32=dtypes.float32, float64=dtypes.float64, int32=dtypes.int32, int64=dtypes.int64
    )
    names["random"] = SimpleNamespace(
        categorical=random.categorical,
        stateless_uniform=random_stateless.stateless_random_uniform,
        stateless_normal=random_stateless.stateless_random_normal,
        stateless_truncated_normal=random_stateless.stateless_truncated_normal,
        stateless_categorical=random_stateless.stateless_categorical,
    )
    names["initializers"] = SimpleNamespace(
        he_normal=initializers.he_normal,
        he_uniform=initializers.he_uniform,
        lecun_normal=initializers.lecun_normal,
        lecun_uniform=initializers.lecun_uniform,
        identity=initializers.Identity,
    )
    names["contrib"] = SimpleNamespace(
        layers=SimpleNamespace(
            xavier_initializer=initializers.xavier_initializer,
            xavier_initializer_conv2d=initializers.xavier_initializer_conv2d,
            variance_scaling_initializer=initializers.contrib_variance_scaling_initializer,
        )
    )
    return SimpleNamespace(**names)


@pytest.mark.parametrize(("key", "sample"), _SEEDED, ids=[k for k, _ in _SEEDED])
def test_consecutive_runs(key: str, sample: Any) -> None:
    with Graph().as_default() as graph:
        opdef = lookup(sample.op)
        inputs = [constant(sample.inputs[a.name]) for a in opdef.inputs]
        attrs = {k: v for k, v in sample.attrs.items() if k not in opdef.inferred}
        out = apply(opdef, *inputs, **attrs)
    for _ in range(2):  # a new session starts the stream over
        with Session(graph=graph) as session:
            for run in range(2):
                got = np.asarray(session.run(out))
                wanted = _RUNS[f"op:{key}/{run}/0"]
                assert_close(
                    got.astype(np.float32) if out.dtype is dtypes.bfloat16 else got, wanted
                )


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    function, ulps = PROGRAMS[name]
    with Graph().as_default() as graph:
        fetches = function(_tf())
    with Session(graph=graph) as session:
        for run in range(2):
            for j, got in enumerate(session.run(fetches)):
                wanted = _RUNS[f"program:{name}/{run}/{j}"]
                assert got.dtype == wanted.dtype
                if wanted.dtype.kind != "f" or not ulps:
                    np.testing.assert_array_equal(got, wanted)
                else:
                    atol = ulps * np.spacing(np.abs(wanted).max())
                    np.testing.assert_allclose(got, wanted, rtol=0, atol=atol)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_make_the_same_operations(name: str) -> None:
    """Names, types and number of operations decide the seeds of the ops after them."""
    with Graph().as_default() as graph:
        PROGRAMS[name][0](_tf())
    assert [[op.name, op.type] for op in graph.get_operations()] == _GRAPHS[f"program:{name}"]


# seeds ------------------------------------------------------------------------------------------


def test_get_seed() -> None:
    with Graph().as_default() as graph:
        assert get_seed(None) == (None, None)
        assert get_seed(5) == (87654321, 5)
        random.set_random_seed(7)
        assert get_seed(None) == (7, 0)
        constant(1.0)
        assert get_seed(None) == (7, 1)
        assert get_seed(2**31 - 1) == (7, 0)
        assert get_seed(-1) == (7, 2**31 - 2)
        graph.seed = 0
        assert get_seed(0) == (0, 2**31 - 1)


def test_without_seeds_sessions_differ() -> None:
    with Graph().as_default() as graph:
        x = random.random_uniform([8])
    values = []
    for _ in range(2):
        with Session(graph=graph) as session:
            values += [session.run(x), session.run(x)]
    assert len({v.tobytes() for v in values}) == 4


# the generator ----------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [philox.uniform, philox.normal, philox.truncated_normal])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_any_length_is_a_prefix(function: Any, dtype: str) -> None:
    """Small and large requests go different ways to the same numbers."""
    start = philox.Philox(5, 6, 7)
    long = function(start, 70001, np.dtype(dtype))
    for n in (0, 1, 3, 4, 5, 15, 16, 17, 100, 40000):
        np.testing.assert_array_equal(function(start, n, np.dtype(dtype)), long[:n])


def test_position_crosses_32_bits() -> None:
    start = philox.Philox(5, 6, 2**32 - 3)
    words = philox.groups(start, 10)
    for i in range(10):
        np.testing.assert_array_equal(words[i], philox.groups(start.skip(i), 1)[0])


def test_moments() -> None:
    start = philox.Philox(1, 2, 3)
    kind = np.dtype(np.float64)
    assert abs(philox.normal(start, 10**5, kind).std() - 1) < 0.02
    assert abs(philox.truncated_normal(start, 10**5, kind).std() - 0.8796) < 0.02
    assert np.abs(philox.truncated_normal(start, 10**5, kind)).max() < 2


def test_reservations_are_disjoint() -> None:
    generator = philox.Guarded(1, 2)
    found: list[int] = []

    def work() -> None:
        mine = [generator.reserve(10).position for _ in range(500)]
        found.extend(mine)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(found) == list(range(0, 20000, 10))


# errors -----------------------------------------------------------------------------------------


def _run(out: Any, feeds: Any = None) -> Any:
    with Session(graph=out.graph) as session:
        return session.run(out, feeds)


def test_errors_while_building() -> None:
    with Graph().as_default():
        with pytest.raises(ValueError, match="Must specify maxval for integer dtype"):
            random.random_uniform([2], dtype=dtypes.int32)
        with pytest.raises(ValueError, match="Invalid dtype"):
            random.random_uniform([2], dtype=dtypes.string)
        with pytest.raises(ValueError, match="Shape must be rank 1 but is rank 0"):
            random.random_uniform(3)
        with pytest.raises(ValueError, match="must be non-negative but is -1"):
            random.multinomial([[1.0]], -1)
        with pytest.raises(ValueError, match="Dimension must be 2 but is 3"):
            random_stateless.stateless_random_uniform([2], [1, 2, 3])
        with pytest.raises(ValueError, match="Expected floating point type"):
            initializers.RandomNormal(dtype=dtypes.int32)
        with pytest.raises(ValueError, match="at least two-dimensional"):
            initializers.Orthogonal()([3])


def test_errors_while_running() -> None:
    with Graph().as_default():
        size = placeholder(dtypes.int32, None)
        x = random.random_uniform(size, 0, 1.0)
        bad_range = random.random_uniform([1], 3, 3, dtype=dtypes.int32)
        bad_bounds = random_rejection.parameterized_truncated_normal([2], minvals=1.0, maxvals=-1.0)
        big = random.random_crop(np.zeros((2, 2)), [3, 1])
    with pytest.raises(errors.InvalidArgumentError, match="Dimension -1 must be >= 0"):
        _run(x, {size: [-1]})
    with pytest.raises(errors.InvalidArgumentError, match="shape must be a vector"):
        _run(x, {size: 3})
    with pytest.raises(errors.InvalidArgumentError, match="Need minval < maxval, got 3 >= 3"):
        _run(bad_range)
    with pytest.raises(errors.InvalidArgumentError, match="Invalid parameters"):
        _run(bad_bounds)
    with pytest.raises(errors.InvalidArgumentError, match=r"Need value\.shape >= size"):
        _run(big)


# initializers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "init",
    [
        initializers.Zeros(),
        initializers.Ones(dtypes.int32),
        initializers.Constant(3),
        initializers.RandomUniform(-1, 1, 5),
        initializers.RandomNormal(1.0, 2.0, 3, dtypes.float64),
        initializers.TruncatedNormal(),
        initializers.UniformUnitScaling(2.0),
        initializers.VarianceScaling(),
        initializers.GlorotUniform(3),
        initializers.GlorotNormal(),
        initializers.Orthogonal(2.0),
        initializers.Identity(3.0),
        initializers.ConvolutionDeltaOrthogonal(),
    ],
    ids=lambda i: type(i).__name__,
)
def test_configs(init: Any) -> None:
    again = type(init).from_config(init.get_config())
    assert again.get_config() == init.get_config()


def test_delta_orthogonal() -> None:
    with Graph().as_default():
        kernel = initializers.ConvolutionDeltaOrthogonal(2.0)([3, 3, 2, 4])
    value = _run(kernel)
    np.testing.assert_allclose(value[1, 1] @ value[1, 1].T, 4 * np.eye(2), atol=1e-5)
    assert np.count_nonzero(value) == 8


def test_gamma_gradient() -> None:
    """A sample moved with alpha at a fixed value of the distribution function."""
    from scipy.special import gammainc, gammaincinv

    alpha = np.array([0.3, 1.0, 2.5, 30.0])
    sample = gammaincinv(alpha, [0.2, 0.5, 0.7, 0.9])
    level = gammainc(alpha, sample)
    wanted = (gammaincinv(alpha + 1e-5, level) - gammaincinv(alpha - 1e-5, level)) / 2e-5
    with Graph().as_default():
        found = apply(lookup("RandomGammaGrad"), alpha, sample)
    np.testing.assert_allclose(_run(found), wanted, rtol=1e-6)


def test_gradient_through_gamma_samples() -> None:
    """d sample / d alpha, summed over the samples of each alpha; beta scales."""
    with Graph().as_default() as graph:
        alpha, beta = constant([0.5, 1.0, 4.0]), constant(2.0)
        x = random_rejection.random_gamma([5, 2], alpha, beta, seed=1)
        d_alpha, d_beta = gradients(x, [alpha, beta])
    with Session(graph=graph) as session:
        values, by_alpha, by_beta = session.run([x, d_alpha, d_beta])
    each = rejection.gamma_grad(np.array([0.5, 1.0, 4.0]), values.astype(np.float64) * 2) / 2
    np.testing.assert_allclose(by_alpha, each.sum(axis=(0, 1)), rtol=1e-4)
    np.testing.assert_allclose(by_beta, -values.sum() / 2, rtol=1e-4)
