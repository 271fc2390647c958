"""What TensorFlow 1.15 gives for handle_programs.py.

Run with its Python, writes handle_programs.json.
"""

import json
import os
import shutil
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import tensorflow as tf  # noqa: E402
from handle_programs import PROGRAMS, result  # noqa: E402

tf.compat.v1.logging.set_verbosity("FATAL")

if __name__ == "__main__":
    rows = []
    for name in sorted(PROGRAMS):
        folder = tempfile.mkdtemp()
        rows.append(f'"{name}": {json.dumps(result(tf, name, folder))}')
        shutil.rmtree(folder)
    with open(os.path.join(HERE, "handle_programs.json"), "w") as f:
        f.write("{\n" + ",\n".join(rows) + "\n}\n")
    print(len(rows))
