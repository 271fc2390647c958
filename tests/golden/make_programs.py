"""Run the whole programs on TF 1.15: writes programs.json next to this file.

Per program: what it returned (numbers as they are printed), its variables, its collections of
variables, and how many operations its graph has. The programs are in programs_*.py;
tests/programs/test_programs.py runs them on Headrace.
"""

import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import numpy as np  # noqa: E402
import programs_methods  # noqa: E402
import programs_networks  # noqa: E402
import programs_sequences  # noqa: E402
import tensorflow as tf  # noqa: E402

tf.compat.v1.logging.set_verbosity("ERROR")


def numbers(value):
    return [float("%.7g" % v) for v in np.asarray(value, np.float64).ravel()]


def dump(program):
    with tf.Graph().as_default() as graph:
        values = [numbers(v) for v in program(tf)]
        variables = [[v.name, v.shape.as_list(), v.dtype.name] for v in tf.global_variables()]
        collections = {
            key: [v.name for v in graph.get_collection(key)]
            for key in graph.get_all_collection_keys()
            if isinstance(key, str) and not key.endswith("_context")
        }
        ops = len(graph.get_operations())
    return {"values": values, "variables": variables, "collections": collections, "ops": ops}


if __name__ == "__main__":
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs.json")
    programs = programs_networks.PROGRAMS + programs_sequences.PROGRAMS + programs_methods.PROGRAMS
    lines = [
        "%s: %s" % (json.dumps(p.__name__), json.dumps(dump(p), sort_keys=True)) for p in programs
    ]
    with open(path, "w") as f:
        f.write("{\n" + ",\n".join(lines) + "\n}\n")
    print(path, len(lines))
