"""What TensorFlow 1.15 gives for the programs of flow_programs.py.

Run with its Python, writes flow_programs.json.
"""

import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import tensorflow as tf  # noqa: E402
from flow_programs import PROGRAMS, results  # noqa: E402
from tensorflow.python.eager.context import eager_mode  # noqa: E402

tf.compat.v1.logging.set_verbosity("FATAL")

if __name__ == "__main__":
    rows = []
    for name, (_, modes) in sorted(PROGRAMS.items()):
        for mode in modes:
            found = json.dumps(results(tf, name, mode, eager_mode))
            rows.append(f'"{name}/{mode}": {found}')
    with open(os.path.join(HERE, "flow_programs.json"), "w") as f:
        f.write("{\n" + ",\n".join(rows) + "\n}\n")
    print(len(rows))
