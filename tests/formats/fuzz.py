"""Damaged model files, for as long as you like: ``python -m tests.formats.fuzz --seconds 600
[--seed 1]``.

Takes the golden files (GraphDefs, MetaGraphs, SavedModels with their variables, checkpoints of both
formats and of objects, ``.npz``, ``.safetensors``, event files), flips bits, cuts, joins and
repeats parts, and loads the result. An error of a known class is right; any other exception, a load
that takes more than 20 seconds of CPU time, or one that needs more than 4 GB of memory
(``MemoryError``) is printed with the seed that made it.
"""

from __future__ import annotations

import argparse
import gzip
import resource
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from google.protobuf import text_format
from google.protobuf.message import DecodeError

import headrace.api.v1 as tf
import headrace.api.v2 as tf2
from headrace.eager.eager_context import eager_mode
from headrace.formats import weight_files
from headrace.formats.graphdef_reader import parse_graph_def
from headrace.train.object_graph import GRAPH_KEY
from headrace.wire.slice_files import SliceFileReader
from headrace.wire.tensor_bundle import BundleReader, BundleWriter
from tests.golden.graphs import live

GOLDEN = Path(__file__).parent.parent / "golden"
REFUSALS = (
    AssertionError,  # of checkpoints of objects, as in TensorFlow
    ValueError,
    KeyError,
    OSError,
    RuntimeError,
    TypeError,
    DecodeError,
    zipfile.BadZipFile,
    tf.errors.OpError,
)
#: Bytes that loading a damaged file may need.
MEMORY = 4 << 30


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


def load_data(data: bytes, folder: Path) -> None:
    """The data file of a bundle."""
    shutil.copy(GOLDEN / "bundles" / "parts.index", folder / "d.index")
    (folder / "d.data-00000-of-00001").write_bytes(data)
    reader = BundleReader(str(folder / "d"))
    for name in reader.names():
        reader.read(name)


def load_v1(data: bytes, folder: Path) -> None:
    (folder / "v1").write_bytes(data)
    reader = SliceFileReader(str(folder / "v1"))
    for name in reader.names():
        reader.read(name)


def load_meta(data: bytes, folder: Path) -> None:
    (folder / "m.meta").write_bytes(data)
    with tf.Graph().as_default():
        tf.train.import_meta_graph(str(folder / "m.meta"))


def load_text(data: bytes, folder: Path) -> None:
    with tf.Graph().as_default():
        tf.import_graph_def(parse_graph_def(data), name="")


def load_variables(data: bytes, folder: Path) -> None:
    """The index of a SavedModel's variables."""
    target = folder / "model"
    if not target.exists():
        shutil.copytree(GOLDEN / "saved_models" / "tf1", target)
    (target / "variables" / "variables.index").write_bytes(data)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, ["serve"], str(target))


def load_objects(data: bytes, folder: Path) -> None:
    """A model of TF 2 as objects; its functions are built."""
    target = folder / "objects"
    if not target.exists():
        shutil.copytree(GOLDEN / "saved_models" / "specs", target)
    (target / "saved_model.pb").write_bytes(data)
    with eager_mode():
        model = tf2.saved_model.load(str(target))
        for value in (*vars(model).values(), *model.signatures.values()):
            for concrete in getattr(value, "concrete_functions", ()):
                str(concrete)


def load_object_graph(data: bytes, folder: Path) -> None:
    """The graph of objects in a checkpoint of objects."""
    blob = np.empty((), object)
    blob[()] = data
    with BundleWriter(str(folder / "o")) as writer:
        writer.add(GRAPH_KEY, blob)
        for path in ("m/v/0", "m/v/1/a", "save_counter", "w"):
            value = np.int64(1) if path == "save_counter" else np.float32(1)
            writer.add(f"{path}/.ATTRIBUTES/VARIABLE_VALUE", value)
    with eager_mode():
        module = tf2.Module()
        module.v = [tf2.Variable(1.0), {"a": tf2.Variable(2.0)}]
        status = tf2.train.Checkpoint(m=module, w=module.v[0]).restore(str(folder / "o"))
        status.assert_consumed()


def load_npz(data: bytes, folder: Path) -> None:
    (folder / "w.npz").write_bytes(data)
    weight_files.load_weights(folder / "w.npz")


def load_safetensors(data: bytes, folder: Path) -> None:
    (folder / "w.safetensors").write_bytes(data)
    weight_files.load_weights(folder / "w.safetensors")


def load_events(data: bytes, folder: Path) -> None:
    (folder / "events").write_bytes(data)
    for _ in tf.train.summary_iterator(str(folder / "events")):
        pass


def _more() -> list[tuple[bytes, Callable[[bytes, Path], None]]]:
    """Files that are made here, or lie elsewhere."""
    checkpoints = GOLDEN / "checkpoints"
    case = next(iter(sorted((GOLDEN / "graphs" / "tf1").glob("*.case"))))
    message = parse_graph_def(live.load(str(case)).graph)
    text = text_format.MessageToString(message).encode()
    with tempfile.TemporaryDirectory() as name:
        arrays = {"a/b": np.arange(6.0), "c": np.ones((2, 3), np.int64), "d": np.float32(1)}
        for ending in ("npz", "safetensors"):
            weight_files.save_weights(Path(name) / f"w.{ending}", arrays)
        with tf.Graph().as_default() as graph:
            tf.constant([1.0, 2.0])
            tf.summary.FileWriter(name, graph).close()
        (events,) = Path(name).glob("events.*")
        made = [
            ((Path(name) / "w.npz").read_bytes(), load_npz),
            ((Path(name) / "w.safetensors").read_bytes(), load_safetensors),
            (events.read_bytes(), load_events),
        ]
    with tempfile.TemporaryDirectory() as name, eager_mode():
        module = tf2.Module()
        module.v = [tf2.Variable(1.0), {"a": tf2.Variable(2.0)}]
        path = tf2.train.Checkpoint(m=module, w=module.v[0]).save(f"{name}/o")
        made.append((BundleReader(path).read(GRAPH_KEY).item(), load_object_graph))
    made += [
        ((GOLDEN / "saved_models" / m / "saved_model.pb").read_bytes(), load_objects)
        for m in ("specs", "module", "tables", "gradients")
    ]
    return [
        *made,
        ((GOLDEN / "bundles" / "parts.data-00000-of-00001").read_bytes(), load_data),
        ((checkpoints / "v1").read_bytes(), load_v1),
        (gzip.decompress((checkpoints / "model.meta.gz").read_bytes()), load_meta),
        (text, load_text),
        (
            (GOLDEN / "saved_models" / "tf1" / "variables" / "variables.index").read_bytes(),
            load_variables,
        ),
    ] * 8


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
        + _more()
    )


def fuzz(seconds: float, seed: int) -> int:
    """How many loads went wrong."""
    cases = corpus()
    end, count, bad = time.monotonic() + seconds, 0, 0
    with tempfile.TemporaryDirectory() as name:
        while time.monotonic() < end:
            random = np.random.RandomState(seed + count)
            data, load = cases[random.randint(len(cases))]
            start = time.process_time()
            try:
                load(damaged(data, random), Path(name))
            except REFUSALS:
                pass
            except Exception as error:
                bad += 1
                print(f"seed {seed + count}, {load.__name__}: {type(error).__name__}: {error}")
            spent = time.process_time() - start
            if spent > 20:
                bad += 1
                print(f"seed {seed + count}, {load.__name__}: {spent:.0f} s")
            count += 1
    print(f"{count} damaged files, {bad} went wrong")
    return bad


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + MEMORY,) * 2)
    return min(fuzz(options.seconds, options.seed), 1)


if __name__ == "__main__":
    sys.exit(main())
