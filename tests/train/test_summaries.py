"""Summaries: messages, names, collections and event files as TF 1.15's; files read by
TensorBoard.
"""

from __future__ import annotations

import functools
import gzip
import itertools
import json
import operator
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
import headrace.api.v2 as tf2
from headrace.eager.eager_context import eager_mode
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


def test_summary_ops_of_contrib_as_tensorflow(tmp_path: Path) -> None:
    found = json.loads(json.dumps(summary_programs.contrib(tf, str(tmp_path))))
    for key, value in found.items():
        assert value == GOLDEN[key], key


def test_writers_as_tensorflow_2(tmp_path: Path) -> None:
    golden = json.loads(
        (Path(__file__).parent.parent / "golden" / "summaries_v2.json").read_text(encoding="utf-8")
    )
    with eager_mode():
        found = json.loads(json.dumps(summary_programs.writers(tf2, str(tmp_path))))
    for key, value in found.items():
        assert value == golden[key], key


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


@pytest.fixture
def tensorboard(tmp_path: Path) -> Callable[..., list[bytes]]:
    """Asks a TensorBoard server of ``tmp_path`` over HTTP, once the folder is loaded."""
    program = pytest.importorskip("tensorboard.program")
    urls: list[str] = []

    def ask(*requests: str) -> list[bytes]:
        if not urls:
            board = program.TensorBoard()
            flags = ["--logdir", str(tmp_path), "--load_fast=false", "--port=0"]
            board.configure(argv=["", *flags])
            urls.append(board.launch())
            for _ in range(1200):
                with urllib.request.urlopen(f"{urls[0]}data/plugin/scalars/tags") as answer:
                    if json.load(answer):
                        break
                time.sleep(0.1)
        answers = []
        for request in requests:
            with urllib.request.urlopen(f"{urls[0]}data/{request}") as answer:
                data = answer.read()
            answers.append(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        return answers

    return ask


def test_tensorboard_shows_the_files(
    tmp_path: Path, tensorboard: Callable[..., list[bytes]]
) -> None:
    """Through TensorBoard's HTTP API, as its page asks."""
    rng = np.random.RandomState(0)
    pixels = rng.randint(0, 256, (1, 8, 9, 3)).astype(np.uint8)
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        tf.summary.scalar("loss", 0.25)
        tf.summary.histogram("spread", [1.0, 2.0])
        tf.summary.image("picture", tf.constant(pixels), max_outputs=1)
        tf.summary.audio("sound", rng.rand(1, 50).astype(np.float32), 8000, max_outputs=1)
        tf.summary.text("note", tf.constant("hello"))
        with tf.summary.FileWriter(str(tmp_path), graph) as writer:
            writer.add_summary(sess.run(tf.summary.merge_all()), 3)
            writer.add_run_metadata(tf.RunMetadata(), "step3", 3)
    scalars, histograms, images, sounds, texts, graphs = tensorboard(
        "plugin/scalars/scalars?run=.&tag=loss",
        "plugin/histograms/histograms?run=.&tag=spread",
        "plugin/images/images?run=.&tag=picture/image&sample=0",
        "plugin/audio/audio?run=.&tag=sound/audio&sample=0",
        "plugin/text/text?run=.&tag=note",
        "plugin/graphs/graph?run=.",
    )
    assert json.loads(scalars)[0][1:] == [3, 0.25]
    assert json.loads(histograms)[0][1] == 3
    assert json.loads(texts)[0]["text"].strip() == "<p>hello</p>"
    assert b"ImageSummary" in graphs
    (file,) = tensorboard(f"plugin/images/individualImage?{json.loads(images)[0]['query']}")
    (shown,) = _values(lambda: tf.image.decode_png(file))
    assert (shown == pixels[0]).all()
    (wav,) = tensorboard(f"plugin/audio/individualAudio?{json.loads(sounds)[0]['query']}")
    audio, rate = _values(lambda: tf.audio.decode_wav(wav))
    assert audio.shape == (50, 1) and rate == 8000


def test_tensorboard_shows_summaries_of_tf_2(
    tmp_path: Path, tensorboard: Callable[..., list[bytes]]
) -> None:
    """What TF 2's writers write, eagerly and from a function, and run metadata."""
    pixels = np.random.RandomState(0).randint(0, 256, (2, 8, 9, 3)).astype(np.uint8)
    with eager_mode():
        writer = tf2.summary.create_file_writer(str(tmp_path))

        @tf2.function
        def step(x: Any) -> None:
            tf2.summary.scalar("loss", x * 2.0)
            tf2.summary.histogram("spread", tf2.stack([x, x + 1.0]), buckets=3)

        with writer.as_default(step=5):
            step(tf2.constant(0.25))
            tf2.summary.image("picture", pixels, max_outputs=2)
            tf2.summary.audio("sound", np.zeros((1, 50, 1), np.float32), 8000)
            tf2.summary.text("note", "**hello**")
            tf2.summary.graph(step.get_concrete_function(tf2.TensorSpec([])).graph)
        writer.close()
    with tf.Graph().as_default(), tf.Session() as sess:
        metadata = tf.RunMetadata()
        traced = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run(tf.constant(1.0) + 1.0, options=traced, run_metadata=metadata)
        with tf.summary.FileWriter(str(tmp_path), filename_suffix=".v1") as old:
            old.add_run_metadata(metadata, "step5", 5)
    scalars, histograms, images, sounds, texts, graphs, stats = tensorboard(
        "plugin/scalars/scalars?run=.&tag=loss",
        "plugin/histograms/histograms?run=.&tag=spread",
        "plugin/images/images?run=.&tag=picture&sample=1",
        "plugin/audio/audio?run=.&tag=sound&sample=0",
        "plugin/text/text?run=.&tag=note",
        "plugin/graphs/graph?run=.&conceptual=false",
        "plugin/graphs/run_metadata?run=.&tag=step5",
    )
    assert json.loads(scalars)[0][1:] == [5, 0.5]
    assert json.loads(histograms)[0][1] == 5 and len(json.loads(histograms)[0][2]) == 3
    assert "<strong>hello</strong>" in json.loads(texts)[0]["text"]
    assert b"node" in graphs and b"dev_stats" in stats
    (file,) = tensorboard(f"plugin/images/individualImage?{json.loads(images)[0]['query']}")
    (shown,) = _values(lambda: tf.image.decode_png(file))
    assert (shown == pixels[1]).all()
    (wav,) = tensorboard(f"plugin/audio/individualAudio?{json.loads(sounds)[0]['query']}")
    assert _values(lambda: tf.audio.decode_wav(wav))[1] == 8000


def _values(build: Callable[[], Any]) -> list[Any]:
    with tf.Graph().as_default(), tf.Session() as sess:
        made = build()
        return sess.run(list(made) if isinstance(made, (list, tuple)) else [made])


def test_old_names_and_the_cache(tmp_path: Path) -> None:
    assert tf.train.SummaryWriter is tf.summary.FileWriter
    first = tf.summary.FileWriterCache.get(str(tmp_path))
    assert tf.summary.FileWriterCache.get(str(tmp_path)) is first
    tf.summary.FileWriterCache.clear()
    with pytest.warns(UserWarning, match="closed FileWriter"):
        first.add_summary(tf.Summary(), 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [("scalar_summary", "tf.summary.scalar"), ("merge_all_summaries", "tf.summary.merge_all")],
)
def test_names_from_before_1_0_say_what_took_their_place(old: str, new: str) -> None:
    with pytest.raises(AttributeError, match=f"removed before .* Use {new}"):
        getattr(tf, old)


@pytest.mark.parametrize("size", [0, 7, 999, 1000, 5000])
def test_histogram_buckets_hold_what_lies_between_their_limits(size):
    """Small and large histograms are counted in two ways; both are a plain count."""
    rng = np.random.RandomState(size)
    values = (rng.randn(size) * 10.0 ** rng.randint(-14, 22, size)).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as sess:
        summary = tf.Summary.FromString(sess.run(tf.summary.histogram("h", values)))
    histo = summary.value[0].histo
    values = values.astype(np.float64)
    edges = [-np.inf, *histo.bucket_limit]
    assert list(histo.bucket) == [
        np.sum((values >= low) & (values < high)) for low, high in itertools.pairwise(edges)
    ]
    assert histo.num == size
    assert histo.sum == functools.reduce(operator.add, values.tolist(), 0.0)
