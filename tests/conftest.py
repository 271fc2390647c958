"""Every test starts with all ops defined and an empty default graph."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from headrace.core.graph import reset_default_graph
from headrace.ops import load_all

load_all()

# how long an example takes depends on what else the machine does
settings.register_profile("headrace", deadline=None)
settings.load_profile("headrace")


@pytest.fixture(autouse=True)
def fresh_graph() -> Iterator[None]:
    reset_default_graph()
    yield
