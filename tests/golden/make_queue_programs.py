"""What TensorFlow 1.15 gives for queue_programs.py.

python tests/golden/make_queue_programs.py        # with TensorFlow 1.15; writes queue_programs.json
"""

import json
import os
import sys
import tempfile


def main():
    import tensorflow as tf

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    from queue_programs import PROGRAMS

    found = {}
    for program in PROGRAMS:
        with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
            found[program.__name__] = program(tf, folder)
    with open(os.path.join(here, "queue_programs.json"), "w") as f:
        json.dump(found, f, indent=0)
        f.write("\n")


if __name__ == "__main__":
    sys.exit(main())
