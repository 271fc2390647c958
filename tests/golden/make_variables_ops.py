"""Dump the operations that TensorFlow 1.15 makes for small programs with variables.

Run with TF 1.15's Python; writes variables_ops.json next to this file: program name -> [[op name,
op type], ...]. The programs are in variables_programs.py, which tests/variables/test_variables.py
runs on Headrace.
"""

import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import tensorflow as tf  # noqa: E402
from variables_programs import PROGRAMS  # noqa: E402

tf.compat.v1.logging.set_verbosity("ERROR")


def dump(program):
    with tf.Graph().as_default() as graph:
        tf.compat.v1.set_random_seed(1)
        program(tf)
        return [[op.name, op.type] for op in graph.get_operations()]


if __name__ == "__main__":
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "variables_ops.json")
    result = {program.__name__: dump(program) for program in PROGRAMS}
    with open(path, "w") as f:
        f.write("{\n")
        lines = ["%s: %s" % (json.dumps(k), json.dumps(v)) for k, v in sorted(result.items())]
        f.write(",\n".join(lines))
        f.write("\n}\n")
    print(path, {k: len(v) for k, v in sorted(result.items())})
