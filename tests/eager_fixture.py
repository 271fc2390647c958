"""TF 2's behaviour for the tests of one module; the rest of the suite is TF 1's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace.api.v1.context import disable_v2_behavior, enable_v2_behavior
from headrace.eager.eager_context import EAGER


@pytest.fixture(autouse=True)
def v2_behavior() -> Iterator[None]:
    enable_v2_behavior()
    EAGER.seed = None
    yield
    disable_v2_behavior()
