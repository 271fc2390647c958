"""Run the programs with layers and recurrent networks on TensorFlow 1.15 and keep what they build
and give.

    TF 1.15's Python: python make_layers.py [module ...]

Writes <module>.json.gz (operations, variables, collections) and <module>.npz (values) next to this
file, for layer_programs, rnn_programs, … (all of MODULES by default).
"""

import gzip
import importlib
import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

MODULES = [
    "layer_programs",
    "rnn_programs",
    "seq2seq_programs",
    "contrib_programs",
    "slim_programs",
]


def main(modules):
    import numpy as np
    import tensorflow as tf
    from observe import observe

    tf.logging.set_verbosity("ERROR")
    for module in modules or MODULES:
        structures, arrays = {}, {}
        for program in importlib.import_module(module).PROGRAMS:
            name = program.__name__
            print(name, flush=True)
            structures[name], values = observe(tf, program)
            arrays.update({name + "|" + k: v for k, v in values.items()})
        with gzip.GzipFile(os.path.join(HERE, module + ".json.gz"), "wb", mtime=0) as f:
            f.write(json.dumps(structures, sort_keys=True).encode())
        np.savez_compressed(os.path.join(HERE, module + ".npz"), **arrays)


if __name__ == "__main__":
    main(sys.argv[1:])
