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


def _cell() -> tuple[list[tf.Tensor], tf.Tensor]:
    x, z = tf.placeholder(tf.float32, (4, 6, 8)), tf.placeholder(tf.float32, (4, 8))
    cell = tf.nn.rnn_cell.BasicLSTMCell(16, name="cell")
    outputs, _ = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32)
    return [x, z], tf.reduce_mean(tf.square(tf.layers.dense(outputs[-1], 8) - z))


def _attention() -> tuple[list[tf.Tensor], tf.Tensor]:
    x, z = tf.placeholder(tf.float32, (2, 6, 8)), tf.placeholder(tf.float32, (2, 6, 8))
    exps = tf.exp(tf.matmul(x, z, transpose_b=True) / 3.0)
    g = tf.matmul(exps / tf.reduce_sum(exps, -1, keepdims=True), z)
    g = 0.5 * g * (1 + tf.tanh(0.7978846 * (g + 0.044715 * tf.pow(g, 3))))
    return [x, z], tf.reduce_mean(tf.square(g * x + z))


def _middle() -> tuple[list[tf.Tensor], tf.Tensor]:
    """A gradient that ends in the middle of what would be rewritten."""
    x = tf.placeholder(tf.float32, (3, 5))
    inner = 0.044715 * tf.pow(x, 3)
    before = x + inner
    g = 0.5 * x * (1 + tf.tanh(0.7978846 * before))
    return [x, before, inner], tf.reduce_sum(tf.square(g))


@pytest.mark.parametrize("program", [_cell, _attention, _middle])
def test_plain_gradients_of_imported_graphs_are_rewritten_as_built_ones(program: Any) -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        sources, loss = program()
        fetches = [loss, *tf.gradients(loss, sources)]
        placeholders = [t for t in sources if t.op.type == "Placeholder"]
        rng = np.random.default_rng(3)
        feeds = {t.name: rng.normal(size=t.shape.as_list()) for t in placeholders}
        session.run(tf.global_variables_initializer())
        weights = {v.op.name: session.run(v) for v in tf.global_variables()}
        names = [t.name for t in fetches]
        expected, built = session.run(names, feeds), session.explain(names, list(feeds))
        definition = graph.as_graph_def()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(definition, name="")
        given = {f"{name}:0": value for name, value in weights.items()}
        found = session.run(names, {**feeds, **given})
        imported = session.explain(names, [*feeds, *given])
    composites = ("LSTM layer", "LSTM cell", "gelu in training", "softmax in training")
    fired = [{r: e.rewrites.get(r, 0) for r in composites} for e in (built, imported)]
    assert fired[0] == fired[1]
    assert any(fired[0].values()) or program is _middle
    for a, b in zip(expected, found):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
