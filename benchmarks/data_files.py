"""The files that the input pipelines read, made once a run by the driver for all workers.

files = make_files(Path("/tmp/x"), FULL)
files.images                                  # 256 JPEG files
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale import Scale

__all__ = ["FILES_VARIABLE", "Files", "find_files", "make_files"]

#: Tells a worker the directory.
FILES_VARIABLE = "HEADRACE_BENCHMARK_FILES"
IMAGES = 256
EXAMPLES = 20_000


@dataclass(frozen=True)
class Files:
    """``floats`` and ``bytes`` are TFRecords of Examples with an int64 label and 784 floats, or
    784 bytes.
    """

    directory: Path

    @property
    def images(self) -> list[str]:
        return sorted(map(str, self.directory.glob("*.jpg")))

    @property
    def floats(self) -> str:
        return str(self.directory / "floats.tfrecord")

    @property
    def bytes(self) -> str:
        return str(self.directory / "bytes.tfrecord")


def find_files() -> Files:
    return Files(Path(os.environ[FILES_VARIABLE]))


def make_files(directory: Path, scale: Scale) -> Files:
    """Made with Headrace and Pillow, in Headrace's Python."""
    files = Files(directory)
    _make_images(directory, scale.count(IMAGES))
    _make_records(files, scale.count(EXAMPLES))
    return files


def _make_images(directory: Path, count: int) -> None:
    """Smooth colours with some noise, 256×192: about 20 kB each, as a photograph of that size
    has.
    """
    from PIL import Image

    random = np.random.RandomState(0)
    for i in range(count):
        coarse = Image.fromarray(random.randint(0, 256, (12, 16, 3)).astype(np.uint8))
        smooth = np.asarray(coarse.resize((256, 192), Image.Resampling.BICUBIC)).astype(np.int32)
        noisy = np.clip(smooth + random.randint(-12, 13, smooth.shape), 0, 255)
        Image.fromarray(noisy.astype(np.uint8)).save(directory / f"{i:04}.jpg", quality=90)


def _make_records(files: Files, count: int) -> None:
    import headrace as tf

    random = np.random.RandomState(1)
    labels = random.randint(0, 10, count)
    rows = random.random_sample((count, 784)).astype(np.float32)
    with (
        tf.io.TFRecordWriter(files.floats) as floats,
        tf.io.TFRecordWriter(files.bytes) as in_bytes,
    ):
        for label, x in zip(labels, rows):
            numbers = tf.train.Feature(float_list=tf.train.FloatList(value=x.tolist()))
            floats.write(_example(tf, label, numbers))
            data = (x * 255).astype(np.uint8).tobytes()
            in_bytes.write(
                _example(tf, label, tf.train.Feature(bytes_list=tf.train.BytesList(value=[data])))
            )


def _example(tf: Any, label: Any, x: Any) -> bytes:
    number = tf.train.Feature(int64_list=tf.train.Int64List(value=[int(label)]))
    features = tf.train.Features(feature={"label": number, "x": x})
    data: bytes = tf.train.Example(features=features).SerializeToString()
    return data
