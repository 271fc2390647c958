"""Files side by side with TensorFlow: importing a graph, checkpoints, a frozen model.

The first answer of a frozen file is the time of a process: Python starts, imports the library,
reads the file, runs it once and ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np

from benchmarks.graph_cases import OPS, Chain
from benchmarks.rows import Best, Quotient, Row, Target
from benchmarks.scale import Samples, Scale
from benchmarks.session_cases import Case, Measure
from benchmarks.timing import per_call, seconds_after_collecting, seconds_of

__all__ = ["CASES", "ROWS"]

#: Bytes of the variables that are saved and restored, in parts of 20 MB.
_PART, _PARTS = 5_000_000, 25

ROWS = [
    Row(
        "import of a GraphDef of 5,000 nodes",
        "import_graph",
        Best("run"),
        {"must": Target({"tf": 5})},
    ),
    Row("saving 500 MB", "checkpoint", Best("save"), {"must": Target({"tf": 1})}),
    Row("restoring 500 MB", "checkpoint", Best("restore"), {"must": Target({"tf": 1})}),
    Row(
        "first answer of a frozen file, from the start of the process",
        "first_answer",
        Best("run"),
        {"must": Target({"tf": 5})},
    ),
    Row(
        "runs of a frozen graph beside the same graph built", "frozen", Quotient("frozen", "built")
    ),
]


def import_graph(tf: Any, scale: Scale) -> Measure:
    """A chain of additions and products, read into a new graph."""
    chain = Chain(tf)
    chain.extend(scale.count(OPS))
    message = chain.graph.as_graph_def()

    def once() -> None:
        with tf.Graph().as_default():
            tf.import_graph_def(message, name="")

    return lambda: {"run": [seconds_after_collecting(once) for _ in range(3)]}


def checkpoint(tf: Any, scale: Scale) -> Measure:
    """A Saver's files, written and read by the page cache: the disk is the same for both."""
    count = scale.count(_PARTS)

    def measure() -> Samples:
        folder = tempfile.mkdtemp()
        try:
            with tf.Graph().as_default(), tf.Session() as session:
                for i in range(count):
                    tf.get_variable(f"v{i}", [_PART], initializer=tf.zeros_initializer())
                saver = tf.train.Saver()
                session.run(tf.global_variables_initializer())
                path = os.path.join(folder, "model")
                save = seconds_of(lambda: saver.save(session, path, write_meta_graph=False))
                return {
                    "save": [save],
                    "restore": [seconds_of(lambda: saver.restore(session, path))],
                }
        finally:
            shutil.rmtree(folder)

    return measure


def _network(tf: Any) -> tuple[Any, Any]:
    """A small frozen network: its graph and its input."""
    rng = np.random.RandomState(0)
    with tf.Graph().as_default() as graph:
        x = y = tf.placeholder(tf.float32, [None, 64], name="x")
        for i in range(8):
            y = tf.nn.relu(tf.matmul(y, tf.constant(rng.normal(size=(64, 64)) / 8, tf.float32)) + i)
        tf.nn.softmax(y, name="y")
    return graph, x


_FIRST = """
import sys
import numpy as np
if sys.argv[2] == "headrace":
    import headrace as tf
else:
    import tensorflow.compat.v1 as tf
message = tf.GraphDef()
with open(sys.argv[1], "rb") as f:
    message.ParseFromString(f.read())
with tf.Graph().as_default(), tf.Session() as session:
    tf.import_graph_def(message, name="")
    session.run("y:0", {"x:0": np.ones((1, 64), np.float32)})
"""


def first_answer(tf: Any, scale: Scale) -> Measure:
    """Reading and running a frozen file in a new process."""
    graph, _ = _network(tf)
    name = "headrace" if hasattr(tf, "HEADRACE_VERSION") else "tensorflow"

    def measure() -> Samples:
        with tempfile.NamedTemporaryFile(suffix=".pb") as file:
            file.write(graph.as_graph_def().SerializeToString())
            file.flush()
            command = [sys.executable, "-c", _FIRST, file.name, name]
            environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
            # as after `pip install`: modules are compiled once, by a run that is not counted
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            subprocess.run(command, check=True, env=environment)
            return {
                "run": [
                    seconds_of(lambda: subprocess.run(command, check=True, env=environment))
                    for _ in range(2)
                ]
            }

    return measure


def frozen(tf: Any, scale: Scale) -> Measure:
    """The same graph as it was built, and read from its GraphDef."""
    graph, _ = _network(tf)
    message, value = graph.as_graph_def(), np.ones((8, 64), np.float32)
    with tf.Graph().as_default() as read:
        tf.import_graph_def(message, name="")
    sessions = {"built": tf.Session(graph=graph), "frozen": tf.Session(graph=read)}

    def measure() -> Samples:
        return {
            name: per_call(lambda s=session: s.run("y:0", {"x:0": value}), scale.seconds)
            for name, session in sessions.items()
        }

    return measure


CASES: dict[str, Case] = {
    "checkpoint": checkpoint,
    "first_answer": first_answer,
    "frozen": frozen,
    "import_graph": import_graph,
}
