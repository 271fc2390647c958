"""Training graphs that TensorFlow 1.15 wrote are rewritten as those that are built here: their
backward passes are found again (autodiff/imported_passes.py).
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from tests.golden.training_graphs.programs import BATCH, CLASSES, PROGRAMS

GOLDEN = Path(__file__).parent.parent / "golden" / "training_graphs"
COMPOSITES = ("LSTM cell", "LSTM layer", "softmax in training")


def _session(name: str, path: Path | None) -> tf.Session:
    graph = tf.Graph()
    with graph.as_default():
        if path is None:
            PROGRAMS[name](tf)
        else:
            tf.train.import_meta_graph(str(path))
        session = tf.Session()
        session.run(tf.global_variables_initializer())
        rng = np.random.default_rng(0)
        for v in sorted(tf.trainable_variables(), key=lambda v: str(v.name)):
            v.load(rng.normal(0, 0.1, v.shape.as_list()).astype(np.float32), session)
    return session


def _feeds(session: tf.Session) -> dict[str, Any]:
    shape = session.graph.get_tensor_by_name("x:0").shape.as_list()
    rng = np.random.default_rng(1)
    labels = rng.integers(0, CLASSES, BATCH).astype(np.int32)
    return {"x:0": rng.normal(size=shape).astype(np.float32), "t:0": labels}


@pytest.mark.parametrize("name", PROGRAMS)
def test_imported_training_steps_are_rewritten_as_built_ones(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.meta"
    path.write_bytes(gzip.decompress((GOLDEN / f"{name}.meta.gz").read_bytes()))
    built, imported = _session(name, None), _session(name, path)
    found = [s.explain(["train", "loss:0"], ["x:0", "t:0"]) for s in (built, imported)]
    assert len(found[0].steps) == len(found[1].steps)
    fired = [{r: e.rewrites.get(r, 0) for r in COMPOSITES} for e in found]
    assert fired[0] == fired[1]
    if name == "lstm":
        assert fired[1]["LSTM cell"] or fired[1]["LSTM layer"]
    losses = []
    for session in (built, imported):
        feeds = _feeds(session)
        losses.append([session.run(["train", "loss:0"], feeds)[1] for _ in range(4)])
    np.testing.assert_allclose(losses[0], losses[1], rtol=2e-6)
    assert losses[0][-1] < losses[0][0]
