"""``tensorflow.examples.tutorials.mnist.input_data``: MNIST from its four files, in shuffled
batches.

>>> mnist = input_data.read_data_sets("MNIST_data", one_hot=True)
>>> images, labels = mnist.train.next_batch(100)

Batches come in TensorFlow 1.15's order: the permutations are drawn from NumPy's global generator,
which the seed sets. Headrace does not download: where a file is missing, the error says which one,
and where to put it.
"""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from headrace import errors
from headrace.core import dtypes
from headrace.core.seeds import get_seed
from headrace.data.classic.csv_tables import Datasets

if TYPE_CHECKING:
    from headrace.core.annotations import Array
    from headrace.core.dtypes import DType

__all__ = [
    "DEFAULT_SOURCE_URL",
    "DataSet",
    "dense_to_one_hot",
    "extract_images",
    "extract_labels",
    "load_mnist",
    "read_data_sets",
]

#: Where TensorFlow downloads the files from; it is named in the error for a missing file.
DEFAULT_SOURCE_URL = "https://storage.googleapis.com/cvdf-datasets/mnist/"
FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
_IMAGES_MAGIC, _LABELS_MAGIC = 2051, 2049
#: What a gzip file begins with; idx files begin with two zero bytes.
_GZIP_MAGIC = b"\x1f\x8b"


def extract_images(f: BinaryIO) -> np.ndarray:
    """The images of an idx file, compressed or not: uint8, [index, row, column, 1]."""
    count, data = _read_idx(f, _IMAGES_MAGIC, "image")
    rows, columns = (int(n) for n in np.frombuffer(data[:8], ">u4"))
    pixels = np.frombuffer(data, np.uint8, count * rows * columns, 8)
    return pixels.reshape(count, rows, columns, 1)


def extract_labels(f: BinaryIO, one_hot: bool = False, num_classes: int = 10) -> np.ndarray:
    """The labels of an idx file.

    Uint8 of shape [index], or one-hot rows (float64, as TensorFlow's).
    """
    count, data = _read_idx(f, _LABELS_MAGIC, "label")
    labels = np.frombuffer(data, np.uint8, count)
    return dense_to_one_hot(labels, num_classes) if one_hot else labels


def dense_to_one_hot(labels_dense: np.ndarray, num_classes: int) -> np.ndarray:
    """Class numbers as rows of zeros with a one."""
    rows = np.zeros((labels_dense.shape[0], num_classes))
    rows[np.arange(labels_dense.shape[0]), labels_dense.ravel()] = 1
    return rows


def _read_idx(f: BinaryIO, magic: int, kind: str) -> tuple[int, bytes]:
    """The number of items, and what follows the header's first two words."""
    name = getattr(f, "name", "?")
    sys.stdout.write(f"Extracting {name}\n")
    data = f.read()
    if data[:2] == _GZIP_MAGIC:
        data = gzip.decompress(data)
    found, count = (int(n) for n in np.frombuffer(data[:8], ">u4"))
    if found != magic:
        raise ValueError(f"Invalid magic number {found} in MNIST {kind} file: {name}")
    return count, data[8:]


class DataSet:
    """Images and labels in memory, given out in batches.

    ``dtype`` uint8 leaves pixels in [0, 255]; float32 scales them to [0, 1]. ``reshape`` makes rows
    of the images. ``one_hot`` is used with ``fake_data`` only.
    """

    def __init__(
        self,
        images: Any,
        labels: Any,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = dtypes.float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        graph_seed, op_seed = get_seed(seed)
        np.random.seed(graph_seed if seed is None else op_seed)
        dtype = dtypes.as_dtype(dtype).base_dtype
        if dtype not in (dtypes.uint8, dtypes.float32):
            raise TypeError(f"Invalid image dtype {dtype!r}, expected uint8 or float32")
        if fake_data:
            self._num_examples = 10000
            self.one_hot = one_hot
        else:
            assert images.shape[0] == labels.shape[0], (
                f"images.shape: {images.shape} labels.shape: {labels.shape}"
            )
            self._num_examples = images.shape[0]
            images = _prepared(images, dtype, reshape)
        self._images = images
        self._labels = labels
        self._epochs_completed = 0
        self._index_in_epoch = 0

    @property
    def images(self) -> Any:
        return self._images

    @property
    def labels(self) -> Any:
        return self._labels

    @property
    def num_examples(self) -> int:
        return self._num_examples

    @property
    def epochs_completed(self) -> int:
        return self._epochs_completed

    def next_batch(
        self, batch_size: int, fake_data: bool = False, shuffle: bool = True
    ) -> tuple[Any, Any]:
        """The next images and labels; the batch that ends an epoch begins the next one."""
        if fake_data:
            label = [1] + [0] * 9 if self.one_hot else 0
            return [[1] * 784 for _ in range(batch_size)], [label for _ in range(batch_size)]
        start = self._index_in_epoch
        if self._epochs_completed == 0 and start == 0 and shuffle:
            self._shuffle()
        if start + batch_size <= self._num_examples:
            self._index_in_epoch = end = start + batch_size
            return self._images[start:end], self._labels[start:end]
        self._epochs_completed += 1
        images, labels = self._images[start:], self._labels[start:]
        if shuffle:
            self._shuffle()
        self._index_in_epoch = end = batch_size - (self._num_examples - start)
        return (
            np.concatenate((images, self._images[:end]), axis=0),
            np.concatenate((labels, self._labels[:end]), axis=0),
        )

    def _shuffle(self) -> None:
        order = np.arange(self._num_examples)
        np.random.shuffle(order)
        self._images = self._images[order]
        self._labels = self._labels[order]


def _prepared(images: np.ndarray, dtype: dtypes.DType, reshape: bool) -> np.ndarray:
    if reshape:
        assert images.shape[3] == 1
        images = images.reshape(images.shape[0], images.shape[1] * images.shape[2])
    if dtype == dtypes.float32:
        images = np.multiply(images.astype(np.float32), np.float32(1.0 / 255.0))
    return images


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: DType = dtypes.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str = DEFAULT_SOURCE_URL,
) -> Datasets:
    """Training, validation and test data from the four files in ``train_dir``.

    The files may be as they are published (``.gz``) or unpacked. NotFoundError names the missing
    ones; ``source_url`` is only named there as the place to get them from.
    """
    if fake_data:
        sets = [
            DataSet([], [], fake_data=True, one_hot=one_hot, dtype=dtype, seed=seed)
            for _ in range(3)
        ]
        return Datasets(*sets)
    paths = _local_files(train_dir, source_url or DEFAULT_SOURCE_URL)
    train_images = _opened(paths[0], extract_images)
    train_labels = _opened(paths[1], extract_labels, one_hot=one_hot)
    test_images = _opened(paths[2], extract_images)
    test_labels = _opened(paths[3], extract_labels, one_hot=one_hot)
    if not 0 <= validation_size <= len(train_images):
        raise ValueError(
            f"Validation size should be between 0 and {len(train_images)}. Received: "
            f"{validation_size}."
        )
    n = validation_size
    parts = (
        (train_images[n:], train_labels[n:]),
        (train_images[:n], train_labels[:n]),
        (test_images, test_labels),
    )
    return Datasets(*(DataSet(x, y, dtype=dtype, reshape=reshape, seed=seed) for x, y in parts))


def load_mnist(train_dir: str = "MNIST-data") -> Datasets:
    """``read_data_sets`` with its defaults: train, validation and test sets of MNIST."""
    return read_data_sets(train_dir)


def _opened(path: str, extract: Callable[..., Array], **options: object) -> Array:
    with open(path, "rb") as f:
        return extract(f, **options)


def _local_files(train_dir: str, source_url: str) -> list[str]:
    found: list[str] = []
    missing: list[str] = []
    for name in FILES:
        places = [os.path.join(train_dir, n) for n in (name, name[: -len(".gz")])]
        here = next((p for p in places if os.path.exists(p)), None)
        if here is None:
            missing.append(name)
        else:
            found.append(here)
    if missing:
        raise errors.NotFoundError(
            None,
            None,
            f"MNIST: {', '.join(missing)} not found in {os.path.abspath(train_dir)}. "
            "Headrace does not download: get the "
            f"files from {source_url} and put them there (packed or unpacked), or pass "
            "fake_data=True.",
        )
    return found
