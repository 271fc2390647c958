"""Data that public programs expect to find, made up: MNIST's and CIFAR's file formats, texts."""

from __future__ import annotations

import gzip
import pickle
import random
import re
import shutil
import struct
import tempfile
from pathlib import Path

import numpy as np

__all__ = ["MAKERS", "make_data"]

_TRAIN, _TEST = 6000, 1000  # read_data_sets keeps 5000 images for validation
_WORDS = [
    "the",
    "river",
    "runs",
    "down",
    "a",
    "long",
    "hill",
    "and",
    "every",
    "wheel",
    "turns",
    "slowly",
    "while",
    "old",
    "mills",
    "grind",
    "corn",
]


#: Data of each kind (and file ending) that this process has made: the next one is a copy.
_made: dict[tuple[str, str], Path] = {}


def make_data(kind: str, where: Path) -> None:
    """Write data of `kind` (a key of :data:`MAKERS`, or sizes) to the folder or file `where`, whole
    or not at all.
    """
    where.parent.mkdir(parents=True, exist_ok=True)
    if kind not in MAKERS:
        _sized(kind, where)
        return
    with tempfile.TemporaryDirectory(dir=where.parent) as made:
        target = Path(made, where.name)
        before = _made.get((kind, where.suffix))
        if before is None or not before.exists():
            MAKERS[kind](target)
        elif before.is_dir():
            shutil.copytree(before, target)
        else:
            shutil.copy(before, target)
        target.rename(where)
    if before is None or not before.exists():
        _made[kind, where.suffix] = where


def _digits(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images of ten fixed patterns with noise: a program can learn them."""
    patterns = np.random.RandomState(0).rand(10, 28, 28) > 0.7
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 10, count).astype(np.uint8)
    noise = rng.rand(count, 28, 28)
    images = np.where(patterns[labels], 120 + 120 * noise, 40 * (noise > 0.9) * noise)
    return images.astype(np.uint8), labels


def _mnist(where: Path, train: int = _TRAIN, test: int = _TEST) -> None:
    """MNIST's four files, in idx format, compressed."""
    where.mkdir(parents=True, exist_ok=True)
    for name, count, seed in (("train", train, 1), ("t10k", test, 2)):
        images, labels = _digits(count, seed)
        head = struct.pack(">IIII", 2051, count, 28, 28)
        for part, data in (
            ("images-idx3", head + images.tobytes()),
            ("labels-idx1", struct.pack(">II", 2049, count) + labels.tobytes()),
        ):
            with gzip.GzipFile(
                where / f"{name}-{part}-ubyte.gz", "wb", compresslevel=1, mtime=0
            ) as f:
                f.write(data)


def _mnist_full(where: Path) -> None:
    """As many images as MNIST has, for programs that know the number."""
    _mnist(where, 60000, 10000)


def _mnist_plain(where: Path) -> None:
    """MNIST's files uncompressed, as many images as MNIST has."""
    _mnist_full(where)
    for file in where.glob("*-ubyte.gz"):
        file.with_suffix("").write_bytes(gzip.decompress(file.read_bytes()))


def _old_pickle(value: object) -> bytes:
    """Bytes that NumPy 1 reads too: NumPy 2 names the module of its arrays otherwise."""
    return pickle.dumps(value, protocol=2).replace(b"cnumpy._core.", b"cnumpy.core.")


def _cifar_python(where: Path) -> None:
    """CIFAR-10's python version: six pickled batches of 1,000 images, and the names."""
    where.mkdir(parents=True, exist_ok=True)
    rng = np.random.RandomState(3)
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        data = rng.randint(0, 256, (1000, 3072), dtype=np.uint8)
        batch = {"data": data, "labels": rng.randint(0, 10, 1000).tolist()}
        (where / name).write_bytes(_old_pickle(batch))
    meta = {"label_names": [f"kind{i}" for i in range(10)]}
    (where / "batches.meta").write_bytes(_old_pickle(meta))


def _text(where: Path) -> None:
    """A small English-looking text."""
    rng = random.Random(4)
    where.parent.mkdir(parents=True, exist_ok=True)
    lines = (" ".join(rng.choice(_WORDS) for _ in range(9)) + "." for _ in range(1200))
    where.write_text("\n".join(lines) + "\n")


def _image(where: Path) -> None:
    """A photograph-like JPEG or PNG of 128 by 128."""
    from PIL import Image

    where.parent.mkdir(parents=True, exist_ok=True)
    y, x = np.mgrid[0:128, 0:128]
    waves = [127 + 120 * np.sin(x / a + y / b) for a, b in ((9, 17), (23, 5), (31, 11))]
    Image.fromarray(np.stack(waves, -1).astype(np.uint8)).save(where)


def _rows(where: Path, count: int, template: str) -> None:
    """Lines of a template. {int:A:B} is a number from A to B, {i} the line, {float}, {word} and
    {words:N} what they say; \\n in the template ends a line.
    """
    rng = random.Random(7)

    def value(i: int, field: str) -> str:
        name, *bounds = field.split(":")
        if name == "int":
            return str(rng.randint(int(bounds[0]), int(bounds[1])))
        if name == "words":
            return " ".join(rng.choice(_WORDS) for _ in range(int(bounds[0])))
        return {"i": str(i), "float": f"{rng.random():.4f}", "word": rng.choice(_WORDS)}[name]

    parts = re.split(r"\{([a-z][\w:]*)\}", template.replace("\\n", "\n").replace("\\t", "\t"))
    lines = (
        "".join(value(i, part) if n % 2 else part for n, part in enumerate(parts))
        for i in range(count)
    )
    where.write_text("\n".join(lines) + "\n")


def _array(where: Path, *shape: int) -> None:
    """An array of numbers from 0 to 1: .npy, or .csv with commas."""
    array = np.random.RandomState(8).rand(*shape).astype(np.float32)
    if where.suffix == ".npy":
        np.save(where, array)
    else:
        np.savetxt(where, array, fmt="%.5f", delimiter=",")


def _sound(where: Path, size: int) -> None:
    """A WAV file of `size` bytes: a tone, sixteen bits, 16 kHz."""
    count = (size - 44) // 2
    tone = (8000 * np.sin(np.arange(count) * 0.1)).astype("<i2").tobytes()
    head = struct.pack("<IHHIIHH", 16, 1, 1, 16000, 32000, 2, 16)
    data = b"WAVEfmt " + head + b"data" + struct.pack("<I", len(tone)) + tone
    where.write_bytes(b"RIFF" + struct.pack("<I", len(data)) + data)


def _pictures(where: Path, count: int, height: int, width: int, ending: str = "png") -> None:
    """A folder of pictures of a size; `{}` in the folder's name is its number, of five."""
    from PIL import Image

    folders = [Path(str(where).replace("{}", str(n))) for n in range(5)]
    for number, folder in enumerate(folders if "{}" in str(where) else [where]):
        folder.mkdir(parents=True, exist_ok=True)
        rng = np.random.RandomState(number)
        for i in range(count):
            picture = rng.randint(0, 256, (height, width, 3), dtype=np.uint8)
            Image.fromarray(picture).save(folder / f"{i:04d}.{ending}")


def _images(where: Path) -> None:
    """A folder of twelve photograph-like JPEGs of 128 by 128."""
    from PIL import Image

    where.mkdir(parents=True, exist_ok=True)
    y, x = np.mgrid[0:128, 0:128]
    for number in range(12):
        scales = ((9, 17), (23, 5), (31, 11))
        waves = [127 + 120 * np.sin(x / (a + number) + y / b) for a, b in scales]
        Image.fromarray(np.stack(waves, -1).astype(np.uint8)).save(where / f"{number:04d}.jpg")


def _mnist_pickle(where: Path) -> None:
    """Digits as three pickled pairs (training, validation, test) of floats, compressed."""
    sets = []
    for count, seed in ((5000, 1), (1000, 2), (1000, 3)):
        images, labels = _digits(count, seed)
        flat = images.reshape(count, 784).astype(np.float32) / np.float32(255)
        sets.append((flat, labels.astype(np.int64)))
    with gzip.GzipFile(where, "wb", compresslevel=1, mtime=0) as f:
        f.write(_old_pickle(tuple(sets)))


def _numbers(where: Path) -> None:
    """A table of 506 rows of 14 numbers, the last one depending on the others."""
    rng = np.random.RandomState(5)
    inputs = rng.rand(506, 13)
    np.savetxt(where, np.column_stack([inputs, inputs @ rng.rand(13)]), fmt="%.5f")


def _numbers_csv(where: Path) -> None:
    """A table of 2,000 rows of 10 numbers with a header, separated by commas."""
    rows = np.random.RandomState(6).rand(2000, 10)
    names = ",".join(f"F{i}" for i in range(10))
    np.savetxt(where, rows, fmt="%.5f", delimiter=",", header=names, comments="")


#: What a list entry's `data` may ask for with numbers: "array 10 3", "rows 20 {i},{word}".
_SIZED = {"array": _array, "sound": _sound}


def _sized(kind: str, where: Path) -> None:
    name, _, rest = kind.partition(" ")
    if name == "rows":
        count, _, template = rest.partition(" ")
        _rows(where, int(count), template)
    elif name == "pictures":
        count, height, width, *ending = rest.split()
        _pictures(where, int(count), int(height), int(width), *ending)
    else:
        _SIZED[name](where, *map(int, rest.split()))


#: What a list entry's `data` may ask for.
MAKERS = {
    "mnist": _mnist,
    "mnist_full": _mnist_full,
    "mnist_plain": _mnist_plain,
    "cifar_python": _cifar_python,
    "text": _text,
    "image": _image,
    "images": _images,
    "mnist_pickle": _mnist_pickle,
    "numbers": _numbers,
    "numbers_csv": _numbers_csv,
}
