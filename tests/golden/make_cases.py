"""Run the cases of the modules below on TensorFlow 1.15 and keep what they give.

    TF 1.15's Python: python make_cases.py [module ...]

A case is a function ``case(tf)`` in a fresh graph with seed 1; what it returns is kept as JSON:
arrays as nested lists, bytes as text. Writes <module>.json next to this file. Works on Python 3.7.
"""

import importlib
import json
import os
import sys
import traceback
import warnings

warnings.filterwarnings("ignore")
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]

MODULES = [
    "walk_values_cases",
    "walk_refused_cases",
    "walk_accepted_cases",
    "diagonal_cases",
    "update_limit_cases",
    "jpeg_cut_cases",
    "ragged_function_cases",
    "barrier_cases",
    "ragged_dataset_cases",
    "contrib_cases",
    "contrib_image_cases",
    "contrib_opt_cases",
    "distribution_cases",
    "metric_cases",
    "opt_cases",
    "lookup_cases",
    "dataset_cases",
    "refusal_cases",
    "platform_cases",
    "train_cases",
    "file_cases",
    "coordination_cases",
    "column_cases",
    "state_cases",
    "rnn_cell_cases",
    "small_cases",
    "profile_cases",
    "step_adam_cases",
    "factorization_cases",
    "forest_cases",
    "graph_editor_cases",
    "linear_operator_cases",
    "ragged_cases",
    "namespace_cases",
    "more_distribution_cases",
    "distribution_shape_cases",
    "fidelity_cases",
    "eager_contrib_cases",
    "sparse_serial_cases",
    "mixture_cases",
    "saver_cases",
    "object_checkpoint_cases",
    "warm_start_cases",
    "matrix_optimizer_cases",
    "import_argument_cases",
]


def plain(value):
    """JSON data: arrays as nested lists (complex numbers as pairs), bytes as text, named tuples as
    lists.
    """
    import numpy as np

    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in sorted(value.items())}
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (np.ndarray, np.generic)):
        if np.iscomplexobj(value):
            return plain(np.stack([value.real, value.imag], -1))
        return plain(value.tolist())
    return value


def outcome(tf, case):
    """What a case gives on ``tf``."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        return plain(case(tf))


def cases(module):
    found = vars(module)
    return {
        n: f
        for n, f in found.items()
        if callable(f) and getattr(f, "__module__", "") == module.__name__ and not n.startswith("_")
    }


def main(modules):
    import tensorflow as tf

    tf.logging.set_verbosity("ERROR")
    failed = []
    for name in modules or MODULES:
        results = {}
        for case_name, case in cases(importlib.import_module(name)).items():
            print(case_name, flush=True)
            try:
                results[case_name] = outcome(tf, case)
            except Exception:
                traceback.print_exc()
                failed.append(case_name)
        with open(os.path.join(HERE, name + ".json"), "w") as f:
            json.dump(results, f, sort_keys=True, indent=None, separators=(",", ":"))
            f.write("\n")
    if failed:
        sys.exit("failed on TensorFlow: " + ", ".join(failed))


if __name__ == "__main__":
    main(sys.argv[1:])
