"""What datasets do is what TensorFlow 2's do.

Elements and errors in their order, specs, cardinalities.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.api import v2 as tf
from headrace.eager.eager_context import eager_mode
from tests.data.data_behaviour import CASES, observations

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "data_behaviour.json").read_text())


def close(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    return a == b or (isinstance(a, float) and a == pytest.approx(b, rel=1e-6))


@pytest.fixture(autouse=True)
def no_seed_left() -> Iterator[None]:
    yield
    with eager_mode():
        tf.random.set_seed(None)


@pytest.mark.parametrize("name", CASES)
def test_as_in_tensorflow(name: str) -> None:
    with eager_mode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = json.loads(json.dumps(observations(tf, name)))
    wanted = GOLDEN[name]
    assert len(found) == len(wanted)
    for i, (ours, theirs) in enumerate(zip(found, wanted)):
        assert close(ours, theirs), f"observation {i}: {ours} but TensorFlow has {theirs}"
