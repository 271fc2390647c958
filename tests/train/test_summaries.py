"""Summaries: messages, names, collections and event files as TF 1.15's; files read by
TensorBoard.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headrace as tf
from tests.golden import summary_programs

GOLDEN = json.loads(
    (Path(__file__).parent.parent / "golden" / "summaries.json").read_text(encoding="utf-8")
)


def test_as_tensorflow(tmp_path: Path) -> None:
    found = json.loads(json.dumps(summary_programs.run(tf, str(tmp_path))))
    for key, value in found.items():
        assert value == GOLDEN[key], key
    assert summary_programs.events(tf, str(tmp_path)) == GOLDEN["events"]


def test_images_and_sound_as_tensorflow() -> None:
    found = json.loads(json.dumps({**summary_programs.media(tf), **summary_programs.old_audio(tf)}))
    for key, value in found.items():
        assert value == GOLDEN[key], key


def test_tensorboard_reads_the_files(tmp_path: Path) -> None:
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        x = tf.placeholder(tf.float32, [])
        tf.summary.scalar("loss", x * 2)
        tf.summary.histogram("spread", tf.stack([x, x]))
        tf.summary.text("note", tf.constant("hello"))
        merged = tf.summary.merge_all()
        with tf.summary.FileWriter(str(tmp_path), graph) as writer:
            for step in range(3):
                writer.add_summary(sess.run(merged, {x: step}), step)
    whole = {"histograms": 0, "scalars": 0, "tensors": 0}
    read = accumulators.EventAccumulator(str(tmp_path), size_guidance=whole).Reload()
    assert [(e.step, e.value) for e in read.Scalars("loss")] == [(0, 0.0), (1, 2.0), (2, 4.0)]
    assert [e.histogram_value.num for e in read.Histograms("spread")] == [2.0] * 3
    assert "note" in read.Tags()["tensors"]
    assert any(n.op == "ScalarSummary" for n in read.Graph().node)


def test_old_names_and_the_cache(tmp_path: Path) -> None:
    assert tf.train.SummaryWriter is tf.summary.FileWriter
    first = tf.summary.FileWriterCache.get(str(tmp_path))
    assert tf.summary.FileWriterCache.get(str(tmp_path)) is first
    tf.summary.FileWriterCache.clear()
    with pytest.raises(ValueError, match="closed"):
        first.add_summary(tf.Summary(), 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [("scalar_summary", "tf.summary.scalar"), ("merge_all_summaries", "tf.summary.merge_all")],
)
def test_names_from_before_1_0_say_what_took_their_place(old: str, new: str) -> None:
    with pytest.raises(AttributeError, match=f"removed before .* Use {new}"):
        getattr(tf, old)
