"""Damaged model files, for as long as you like: ``python -m tests.formats.fuzz --seconds 600
[--seed 1]``.

Takes the golden files (GraphDefs, SavedModels, bundles), flips bits, cuts, joins and repeats parts,
and loads the result. An error of a known class is right; any other exception, or a load that takes
more than 20 seconds, is printed with the seed that made it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from google.protobuf.message import DecodeError

import headrace.api.v1 as tf
from headrace.wire.tensor_bundle import BundleReader
from tests.golden.graphs import live

GOLDEN = Path(__file__).parent.parent / "golden"
REFUSALS = (ValueError, KeyError, OSError, RuntimeError, TypeError, DecodeError, tf.errors.OpError)


def damaged(data: bytes, random: np.random.RandomState) -> bytes:
    """A few changes of any kind."""
    raw = bytearray(data)
    for _ in range(random.randint(1, 8)):
        at = random.randint(len(raw)) if raw else 0
        kind = random.randint(5)
        if kind == 0 and raw:
            raw[at] ^= 1 << random.randint(8)
        elif kind == 1 and raw:
            raw[at] = random.randint(256)
        elif kind == 2:
            raw = raw[:at]
        elif kind == 3:
            raw[at:at] = raw[at : at + random.randint(1, 200)]
        else:
            raw[at:at] = bytes(random.randint(0, 256, random.randint(1, 12)).tolist())
    return bytes(raw)


def load_graph(data: bytes, folder: Path) -> None:
    message = tf.GraphDef()
    message.ParseFromString(data)
    with tf.Graph().as_default():
        tf.import_graph_def(message, name="")


def load_model(data: bytes, folder: Path) -> None:
    (folder / "saved_model.pb").write_bytes(data)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, ["serve"], str(folder))


def load_bundle(data: bytes, folder: Path) -> None:
    (folder / "b.index").write_bytes(data)
    (folder / "b.data-00000-of-00001").write_bytes(
        (GOLDEN / "bundles" / "tf1.data-00000-of-00001").read_bytes()
    )
    reader = BundleReader(str(folder / "b"))
    for name in reader.names():
        reader.read(name)


def corpus() -> list[tuple[bytes, Callable[[bytes, Path], None]]]:
    graphs = [
        live.load(str(p)).graph
        for v in ("tf1", "tf2")
        for p in sorted((GOLDEN / "graphs" / v).glob("*.case"))
    ]
    models = [
        (GOLDEN / "saved_models" / m / "saved_model.pb").read_bytes()
        for m in ("tf1", "module", "keras", "lstm")
    ]
    bundles = [(GOLDEN / "bundles" / f"{b}.index").read_bytes() for b in ("tf1", "parts")]
    return (
        [(g, load_graph) for g in graphs]
        + [(m, load_model) for m in models]
        + [(b, load_bundle) for b in bundles]
    )


def fuzz(seconds: float, seed: int) -> int:
    """How many loads went wrong."""
    cases = corpus()
    end, count, bad = time.monotonic() + seconds, 0, 0
    with tempfile.TemporaryDirectory() as name:
        while time.monotonic() < end:
            random = np.random.RandomState(seed + count)
            data, load = cases[random.randint(len(cases))]
            start = time.monotonic()
            try:
                load(damaged(data, random), Path(name))
            except REFUSALS:
                pass
            except Exception as error:
                bad += 1
                print(f"seed {seed + count}, {load.__name__}: {type(error).__name__}: {error}")
            if time.monotonic() - start > 20:
                bad += 1
                print(f"seed {seed + count}, {load.__name__}: {time.monotonic() - start:.0f} s")
            count += 1
    print(f"{count} damaged files, {bad} went wrong")
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    return min(fuzz(options.seconds, options.seed), 1)


if __name__ == "__main__":
    sys.exit(main())
