"""Fuzz every reader of bytes: ``python tools/fuzz_readers.py --seconds 60 --seed 1``.

Each input goes through each reader of its kind, in a graph and eagerly. A reader returns or raises
one of ``tf.errors``; anything else is a finding: another exception, output on stderr, more than the
seconds or the bytes that one input may take. Inputs run in a process of their own with these
limits; a finding prints the command that repeats it. The exit status is 1 if there was any.

    python tools/fuzz_readers.py --kind png --number 17 --seed 1  # one input again, with traceback
"""

from __future__ import annotations

import argparse
import functools
import math
import os
import random
import resource
import selectors
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT / "src"), str(_ROOT / "tools")]

import fuzz_inputs  # noqa: E402

#: Of processor time for one reader, in one mode: a busy machine is no fault of a reader's.
SECONDS_PER_INPUT = 20
#: Seconds on the clock for one of the processor: a reader that waits forever uses none.
PATIENCE = 15
BYTES_PER_INPUT = 1_500_000_000
#: Inputs of one kind before the next kind has its turn.
ROUND = 25

Reader = Callable[[Any, Any, bytes], Any]


# readers ----------------------------------------------------------------------------------------


def _from_string(make: Callable[[Any, Any], Any]) -> Reader:
    """A reader that is an op of a string: ``make(tf, string)``."""

    def read(tf: Any, sess: Any, data: bytes) -> None:
        result = make(tf, tf.constant(data))
        if sess is not None:
            sess.run(result)

    return read


def _from_file(make: Callable[[Any, str], Any]) -> Reader:
    """A reader that is a dataset of a file: ``make(tf, path)``."""

    def read(tf: Any, sess: Any, data: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "file")
            Path(path).write_bytes(data)
            _go_through(tf, sess, make(tf, path).batch(1000))

    return read


def _go_through(tf: Any, sess: Any, dataset: Any) -> None:
    if sess is None:
        for _ in dataset:
            pass
        return
    iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
    following = iterator.get_next()
    sess.run(iterator.initializer)
    while True:
        try:
            sess.run(following)
        except tf.errors.OutOfRangeError as error:
            if "End of sequence" in str(error):
                return
            raise


def _read_cache(tf: Any, sess: Any, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kept.cache").write_bytes(data)
        source = tf.data.Dataset.from_tensors((tf.constant([1.0, 2.0]), tf.constant([b"ab", b""])))
        _go_through(tf, sess, source.cache(os.path.join(folder, "kept")))


def _read_saved(tf: Any, sess: Any, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "elements").mkdir()
        (Path(folder) / "elements" / "shard-0").write_bytes(data)
        spec = (tf.TensorSpec([None], tf.float32), tf.TensorSpec(None, tf.string))
        _go_through(tf, sess, tf.data.Dataset.load(folder, spec))


def _read_spec(tf: Any, sess: Any, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "elements").mkdir()
        (Path(folder) / "elements" / "spec.json").write_bytes(data)
        tf.data.Dataset.load(folder)


def _match(tf: Any, sess: Any, data: bytes) -> None:
    text = tf.constant([b"a" * 3000 + b"!", b"hello w1", b""])
    results = [
        tf.strings.regex_replace(text, tf.constant(data), tf.constant(b"<\\0>")),
        tf.strings.regex_full_match(text, tf.constant(data)),
    ]
    if sess is not None:
        sess.run(results)


def _parse(tf: Any, sess: Any, data: bytes) -> None:
    features = {
        "a": tf.io.VarLenFeature(tf.string),
        "b": tf.io.FixedLenFeature([3], tf.float32),
        "c": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
    }
    single = {"a": features["a"], "b": features["b"]}
    lists = {"a": tf.io.VarLenFeature(tf.string)}
    for make in (
        lambda: tf.io.parse_example([data, data], features),
        lambda: tf.io.parse_single_example(data, single),
        lambda: tf.io.parse_single_sequence_example(data, single, lists),
    ):
        made = make()
        if sess is not None:
            sess.run(made)


_IMAGES: list[Reader] = [
    _from_string(lambda tf, s: tf.io.decode_jpeg(s)),
    _from_string(
        lambda tf, s: tf.io.decode_jpeg(s, channels=1, ratio=2, try_recover_truncated=True)
    ),
    _from_string(lambda tf, s: tf.io.decode_and_crop_jpeg(s, [1, 2, 3, 4])),
    _from_string(lambda tf, s: tf.io.extract_jpeg_shape(s)),
    _from_string(lambda tf, s: tf.io.decode_png(s, channels=3)),
    _from_string(lambda tf, s: tf.io.decode_png(s, dtype=tf.uint16)),
    _from_string(lambda tf, s: tf.io.decode_gif(s)),
    _from_string(lambda tf, s: tf.io.decode_bmp(s)),
    _from_string(lambda tf, s: tf.io.decode_image(s)),
]
_STRINGS: list[Reader] = [
    _from_string(lambda tf, s: tf.strings.to_number(s)),
    _from_string(lambda tf, s: tf.strings.to_number(s, tf.int32)),
    _from_string(lambda tf, s: tf.io.decode_base64(s)),
    _from_string(lambda tf, s: tf.io.decode_raw(s, tf.int16)),
    _from_string(lambda tf, s: tf.strings.substr(s, 1, 2, unit="UTF8_CHAR")),
    _from_string(lambda tf, s: tf.strings.length(s, unit="UTF8_CHAR")),
    _from_string(lambda tf, s: tf.strings.lower(s, encoding="utf-8")),
    _from_string(lambda tf, s: tf.raw_ops.StringSplitV2(input=tf.expand_dims(s, 0), sep="")),
    _from_string(
        lambda tf, s: tf.raw_ops.DecodePaddedRaw(input_bytes=s, fixed_length=8, out_type=tf.int32)
    ),
    _from_file(lambda tf, p: tf.data.TextLineDataset(p)),
    _from_file(lambda tf, p: tf.data.FixedLengthRecordDataset(p, 4, 1, 1)),
]


def _records(compression: str) -> Reader:
    return _from_file(lambda tf, p: tf.data.TFRecordDataset(p, compression))


def _csv(compression: str) -> Reader:
    return _from_file(lambda tf, p: tf.data.experimental.CsvDataset(p, [0, 0.0, ""], compression))


def _inflate(kind: str) -> Reader:
    return _from_string(lambda tf, s: tf.io.decode_compressed(s, kind))


READERS: dict[str, list[Reader]] = {
    "jpeg": _IMAGES,
    "png": _IMAGES,
    "gif": _IMAGES,
    "bmp": _IMAGES,
    "tensor": [
        _from_string(lambda tf, s: tf.io.parse_tensor(s, tf.float32)),
        _from_string(lambda tf, s: tf.io.parse_tensor(s, tf.string)),
    ],
    "example": [_parse],
    "records": [_records("")],
    "records.gz": [_records("GZIP")],
    "records.zlib": [_records("ZLIB")],
    "elements": [_read_cache, _read_saved],
    "csv": [
        _csv(""),
        _from_string(lambda tf, s: tf.io.decode_csv([s], [[0], [0.0], [""]])),
        _from_string(lambda tf, s: tf.io.decode_csv([s], [[""]], field_delim=";")),
    ],
    "csv.gz": [_csv("GZIP")],
    "text": _STRINGS,
    "text.gz": [_inflate("GZIP"), _from_file(lambda tf, p: tf.data.TextLineDataset(p, "GZIP"))],
    "text.zlib": [
        _inflate("ZLIB"),
        _from_file(
            lambda tf, p: tf.data.FixedLengthRecordDataset(p, 4, 1, 1, compression_type="ZLIB")
        ),
    ],
    "pattern": [_match],
    "spec": [_read_spec],
}


# one input --------------------------------------------------------------------------------------


@functools.cache
def bombs(kind: str) -> list[bytes]:
    return fuzz_inputs.BOMBS.get(kind, list)()


def input_of(kind: str, seed: int, number: int) -> bytes:
    """Numbers below 0 are the bombs of a kind."""
    if number < 0:
        return bombs(kind)[-number - 1]
    return fuzz_inputs.mutated(random.Random(f"{kind}:{seed}:{number}"), kind)


def run_one(kind: str, data: bytes, step: Callable[[], None] = lambda: None) -> str | None:
    """What went wrong, None if nothing did. ``step`` is called before each reader."""
    import headrace as tf1
    import headrace.compat.v2 as tf2

    for reader in READERS[kind]:
        for mode in ("graph", "eager"):
            step()
            try:
                if mode == "graph":
                    with tf1.Graph().as_default(), tf1.Session() as sess:
                        reader(tf1, sess, data)
                else:
                    with _eager():
                        reader(tf2, None, data)
            except tf1.errors.OpError as error:
                if "Out of memory" in str(error):
                    return f"{mode}: {error}"
            except Exception:
                return f"{mode}: {traceback.format_exc()}"
    return None


class _eager:
    def __enter__(self) -> None:
        from headrace.api.v1.context import enable_v2_behavior

        enable_v2_behavior()

    def __exit__(self, *_: object) -> None:
        from headrace.api.v1.context import disable_v2_behavior

        disable_v2_behavior()


# the process that runs them ---------------------------------------------------------------------


def work(kinds: list[str], seed: int, start: int) -> None:
    """Reads nothing, prints a line before and after every input, until it is ended."""
    for kind in kinds:  # everything is loaded, and its memory is counted, before the limit is set
        run_one(kind, fuzz_inputs.SEEDS[kind]()[0])
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES_PER_INPUT,) * 2)
    for kind, number in numbers(kinds, start):
        print(f"begin {kind} {number}", flush=True)
        data = input_of(kind, seed, number)
        problem = run_one(kind, data, lambda: print("step", flush=True))
        print("end" if problem is None else "fault " + problem.replace("\n", "\\n"), flush=True)


def numbers(kinds: list[str], start: int) -> Iterator[tuple[str, int]]:
    """Bombs first (with a start of 0), then inputs of all kinds in turn.

    ``start`` counts all of them.
    """
    order = [(k, -i - 1) for k in kinds for i in range(len(bombs(k)))]
    yield from order[start:]
    at = max(0, start - len(order))
    while True:
        turn, place = divmod(at, ROUND)
        yield kinds[turn % len(kinds)], turn // len(kinds) * ROUND + place
        at += 1


class Findings:
    def __init__(self, seed: int, inputs: float) -> None:
        self.seed = seed
        self.inputs = inputs
        self.runs: Counter[str] = Counter()
        self.found: list[str] = []

    def add(self, kind: str, number: int, problem: str) -> None:
        command = f"python tools/fuzz_readers.py --kind {kind} --number {number} --seed {self.seed}"
        self.found.append(f"{command}\n    " + problem.strip().replace("\n", "\n    "))
        print(self.found[-1], flush=True)


def drive(
    kinds: list[str], seed: int, seconds: float, seconds_per_input: float, inputs: float
) -> Findings:
    """Runs workers, one after the other, until the time is over or there were so many inputs."""
    findings = Findings(seed, inputs)
    end, done = time.monotonic() + seconds, 0
    while time.monotonic() < end and done < inputs:
        done += _drive_worker(kinds, seed, done, end, seconds_per_input, findings)
    return findings


def _drive_worker(
    kinds: list[str],
    seed: int,
    start: int,
    end: float,
    seconds_per_input: float,
    findings: Findings,
) -> int:
    """Inputs that one worker was given before it ended or was ended."""
    command = [
        sys.executable,
        __file__,
        "--work",
        str(start),
        "--seed",
        str(seed),
        "--kinds",
        ",".join(kinds),
    ]
    given, current = 0, None
    with tempfile.TemporaryFile() as noise:
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=noise, cwd=_ROOT)
        lines = _lines(worker, end, seconds_per_input)
        try:
            for line in lines:
                word, _, rest = line.partition(" ")
                if word == "begin":
                    kind, number = rest.split()
                    current, given = (kind, int(number)), given + 1
                    findings.runs[kind] += 1
                elif word == "fault" and current:
                    findings.add(*current, rest.replace("\\n", "\n"))
                    current = None
                elif word == "end":
                    current = None
                    if findings.runs.total() >= findings.inputs:
                        break
            if time.monotonic() < end and findings.runs.total() < findings.inputs:
                noise.seek(0)
                text = noise.read().decode(errors="replace")[-2000:]
                reason = (
                    f"it ended ({worker.wait()})"
                    if worker.poll() is not None
                    else "it took too long"
                )
                if current is None:
                    raise RuntimeError(f"the worker did not start: {text}")
                findings.add(*current, f"{reason}\n{text}")
            else:
                noise.seek(0)
                text = noise.read().decode(errors="replace")
                if text:
                    findings.found.append(f"printed on stderr: {text[-2000:]}")
                    print(findings.found[-1], flush=True)
        finally:
            worker.kill()
            worker.wait()
    return given


def _lines(worker: Any, end: float, seconds_per_input: float) -> Iterator[str]:
    """What a worker prints, until it ends, is late, or the time is over."""
    chosen = selectors.DefaultSelector()
    chosen.register(worker.stdout, selectors.EVENT_READ)
    rest, first = b"", True
    while True:
        limit = 120 if first else seconds_per_input
        latest = time.monotonic() + PATIENCE * limit
        used = _processor_seconds(worker.pid)
        while not chosen.select(min(max(end - time.monotonic(), 0), limit)):
            spent = _processor_seconds(worker.pid) - used
            if time.monotonic() >= min(end, latest) or spent >= limit:
                return
        piece = os.read(worker.stdout.fileno(), 1 << 16)
        if not piece:
            return
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            first = False
            yield line.decode()


def _processor_seconds(process: int) -> float:
    """What a process has used of its processors so far; the clock where that is not known."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--inputs", type=float, default=math.inf, help="at most so many inputs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(READERS), help="kinds of input, with commas")
    parser.add_argument(
        "--limit", type=float, default=SECONDS_PER_INPUT, help="processor seconds for one input"
    )
    parser.add_argument("--kind")
    parser.add_argument("--number", type=int)
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    if options.work is not None:
        work(kinds, options.seed, options.work)
    if options.kind:
        problem = run_one(options.kind, input_of(options.kind, options.seed, options.number))
        print(problem or "no fault")
        return int(problem is not None)
    findings = drive(kinds, options.seed, options.seconds, options.limit, options.inputs)
    print(
        f"{sum(findings.runs.values())} inputs, {len(findings.found)} findings: "
        f"{dict(findings.runs)}"
    )
    return int(bool(findings.found))


if __name__ == "__main__":
    sys.exit(main())
