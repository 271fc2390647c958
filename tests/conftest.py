"""Every test starts with all ops defined and an empty default graph."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from headrace.core.graph import reset_default_graph
from headrace.core.opdef import ALL_OPS
from headrace.kernels.numpy.openblas import blas_holders, release_blas
from headrace.ops import load_all

load_all()
# every program is checked after each pass (program/verify.py), in child processes too
os.environ.setdefault("HEADRACE_DEBUG", "verify")

# how long an example takes depends on what else the machine does
settings.register_profile("headrace", deadline=None)
settings.load_profile("headrace")


@pytest.fixture(autouse=True)
def fresh_graph() -> Iterator[None]:
    reset_default_graph()
    yield
    if blas_holders[
        0
    ]:  # a kernel that was called without a run: no small numbers, one thread of BLAS
        release_blas()


@pytest.fixture
def any_float_type() -> Iterator[None]:
    """Lifts TensorFlow's limits on types.

    Finite differences are taken in float64, which some ops are not registered for.
    """
    kept = {}
    for name, opdef in ALL_OPS.items():
        kept[name] = opdef.attrs, opdef.without_kernel
        free = {n: a._replace(allowed=None) for n, a in opdef.attrs.items()}
        opdef.__dict__.update(attrs=free, without_kernel=())
    yield
    for name, (attrs, without_kernel) in kept.items():
        ALL_OPS[name].__dict__.update(attrs=attrs, without_kernel=without_kernel)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Modules that import ``headrace.compat.v2`` switch to TF 2's behaviour.

    Tests begin with TF 1's.
    """
    from headrace.api.v1.context import disable_v2_behavior

    disable_v2_behavior()
