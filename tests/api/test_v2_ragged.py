"""Ragged tensors, sets, queues, diagonals of TF 2 against TF 2.21 (golden/make_v2_ragged.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headrace as tf1
import headrace.compat.v2 as tf
from tests.api.test_library_cases import close
from tests.eager_fixture import v2_behavior
from tests.golden import make_v2_ragged as golden

__all__ = ["v2_behavior"]

_GOLDEN = json.loads((Path(golden.HERE) / "v2_ragged.json").read_text())


@pytest.mark.parametrize("name", list(_GOLDEN))
def test_values(name: str) -> None:
    found = golden.plain(dict(golden.cases(tf))[name]())
    close(json.loads(json.dumps(found)), _GOLDEN[name], name)


def test_in_a_graph_there_is_nothing_to_show_or_to_iterate() -> None:
    with tf1.Graph().as_default():
        x = tf1.ragged.constant([[1, 2], [3]])
        assert "values=" in repr(x)
        with pytest.raises(ValueError, match="only supported in eager mode"):
            x.numpy()
        with pytest.raises(TypeError, match=r"tf\.map_fn"):
            iter(x)
