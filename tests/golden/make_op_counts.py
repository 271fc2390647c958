"""Count the operations that TF 1.15 makes for calls: rewrites op_counts.json next to this file.

Rows are [call, operations with known shapes, with unknown ones]. To add a call, add a row with any
numbers, run this with TF 1.15's Python. tests/autodiff/test_op_counts.py compares with what
Headrace counts (core/seeds.py says why).
"""

import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import tensorflow as tf  # noqa: E402
from op_count_inputs import inputs  # noqa: E402

tf.compat.v1.logging.set_verbosity("FATAL")


def count(call, known):
    with tf.Graph().as_default() as graph:
        names = inputs(tf, known)
        before = len(graph.get_operations())
        exec(call, names)
        return len(graph.get_operations()) - before


if __name__ == "__main__":
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "op_counts.json")
    with open(path) as f:
        rows = json.load(f)
    lines = [json.dumps([call, count(call, True), count(call, False)]) for call, _, _ in rows]
    with open(path, "w") as f:
        f.write("[\n" + ",\n".join(lines) + "\n]\n")
    print(path, len(lines))
