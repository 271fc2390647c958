"""Makes random_runs.npz with TensorFlow 1.15: ``python tests/golden/make_random.py``.

Two consecutive runs of every seeded random op of the sample table, of the programs in
random_programs.py, and the names and types of the operations that those programs make.
"""

import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from tests.golden import random_programs, store  # noqa: E402

_CONFIG = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1)


def sample_runs(sample):
    with tf.Graph().as_default(), tf.compat.v1.Session(config=_CONFIG) as session:
        attrs = {k: v for k, v in sample.attrs.items()}
        out = getattr(tf.raw_ops, sample.op)(**dict(sample.inputs, **attrs))
        return [[session.run(out)] for _ in range(2)], []


def program_runs(function):
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(config=_CONFIG) as session:
        fetches = function(tf)
        ops = [[op.name, op.type] for op in graph.get_operations()]
        return [session.run(fetches) for _ in range(2)], ops


def main():
    arrays, graphs = {}, {}
    work = [
        ("op:" + k, sample_runs, s) for k, s in store.load_samples("random") if "seed2" in s.attrs
    ]
    work += [("program:" + k, program_runs, p[0]) for k, p in random_programs.PROGRAMS.items()]
    for name, run, what in work:
        runs, ops = run(what)
        if ops:
            graphs[name] = ops
        for i, values in enumerate(runs):
            for j, value in enumerate(values):
                if value.dtype.name == "bfloat16":
                    value = value.astype(np.float32)
                arrays["%s/%d/%d" % (name, i, j)] = value
    arrays["graphs"] = np.frombuffer(json.dumps(graphs, sort_keys=True).encode(), np.uint8)
    np.savez_compressed(os.path.join(store.HERE, "random_runs.npz"), **arrays)


if __name__ == "__main__":
    main()
