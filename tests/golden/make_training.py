"""Runs the programs of training_programs.py in TensorFlow 1.15: ``python
tests/golden/make_training.py``.

Writes optimizers.json.gz: ``values`` (program -> variable -> [dtype, value], ``schedule/name`` ->
[dtype, rates]) and ``ops`` (program -> [[name, type], ...]). The values of single training ops are
in training.npz, made by make.py like those of all samples.
"""

import gzip
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import tensorflow as tf  # noqa: E402
from tensorflow.python.training import moving_averages  # noqa: E402
from training_programs import PROGRAMS, SCHEDULES, run_program, run_schedule  # noqa: E402

tf.compat.v1.logging.set_verbosity("ERROR")
tf.moving_averages = moving_averages


def _plain(value):
    return [value.dtype.name, value.tolist()]


def main():
    values, ops = {}, {}
    for program in PROGRAMS:
        found, ops[program.name] = run_program(tf, program)
        values[program.name] = {name: _plain(value) for name, value in found.items()}
    for name, make in SCHEDULES:
        rates, ops["schedule/" + name] = run_schedule(tf, make)
        values["schedule/" + name] = _plain(rates)
    path = os.path.join(HERE, "optimizers.json.gz")
    text = json.dumps({"values": values, "ops": ops}, sort_keys=True, separators=(",", ":"))
    with open(path, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as f:
        f.write(text.encode())
    print(
        "%d programs, %d schedules, %.1f KB"
        % (len(PROGRAMS), len(SCHEDULES), os.path.getsize(path) / 1024.0)
    )


if __name__ == "__main__":
    main()
