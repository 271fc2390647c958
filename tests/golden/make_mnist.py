"""Golden batches of ``input_data.read_data_sets``, made with TensorFlow 1.15 from generated idx
files.

python tests/golden/make_mnist.py        # in an environment with TensorFlow 1.15; writes mnist.json
"""

import gzip
import json
import os
import struct
import sys
import tempfile

import numpy as np

IMAGES = {"train": 60, "t10k": 20}


def write_files(folder, packed=True):
    """Four idx files of random images of 28 by 28 pixels; the same on every machine."""
    rng = np.random.RandomState(7)
    suffix, open_file = (".gz", gzip.open) if packed else ("", open)
    for part, n in IMAGES.items():
        pixels = rng.randint(0, 256, (n, 28, 28)).astype(np.uint8)
        labels = rng.randint(0, 10, n).astype(np.uint8)
        with open_file(os.path.join(folder, part + "-images-idx3-ubyte" + suffix), "wb") as f:
            f.write(struct.pack(">4I", 2051, n, 28, 28) + pixels.tobytes())
        with open_file(os.path.join(folder, part + "-labels-idx1-ubyte" + suffix), "wb") as f:
            f.write(struct.pack(">2I", 2049, n) + labels.tobytes())


def behaviour(read_data_sets, folder):
    """Sums and labels of batches over more than an epoch, with and without shuffling."""
    out = []
    for options in (
        {"seed": 3},
        {"seed": 3, "one_hot": True, "reshape": False},
        {"seed": 0, "dtype": "uint8", "validation_size": 0},
    ):
        size = options.pop("validation_size", 10)
        sets = read_data_sets(folder, validation_size=size, **options)
        rows = [[s.num_examples, list(s.images.shape), list(s.labels.shape)] for s in sets]
        for step in range(6):
            images, labels = sets.train.next_batch(16, shuffle=step != 4)
            rows.append(
                [
                    float(np.sum(images, dtype=np.float64)),
                    str(images.dtype),
                    str(labels.dtype),
                    labels.tolist(),
                    sets.train.epochs_completed,
                ]
            )
        out.append(rows)
    return out


def main():
    from tensorflow.examples.tutorials.mnist import input_data

    with tempfile.TemporaryDirectory() as folder:
        write_files(folder)
        found = behaviour(input_data.read_data_sets, folder)
    with open(os.path.join(os.path.dirname(__file__), "mnist.json"), "w") as f:
        json.dump(found, f)
        f.write("\n")


if __name__ == "__main__":
    sys.exit(main())
