"""Every test starts with all ops defined and an empty default graph."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.core.graph import reset_default_graph
from headrace.ops import load_all

load_all()


@pytest.fixture(autouse=True)
def fresh_graph() -> Iterator[None]:
    reset_default_graph()
    yield
