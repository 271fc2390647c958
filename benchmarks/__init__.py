"""What Headrace costs, beside TensorFlow and jax: ``python -m benchmarks`` prints one table.

A *driver* (:mod:`benchmarks.run`) asks *workers* (:mod:`benchmarks.worker`, a process for each library, each with its own
Python) in turn to measure a *case*, several rounds of it, and keeps every sample. A *row* of the table
(:mod:`benchmarks.rows`) is a figure worked out from the samples of a case. A case is written once as a function of the
module ``tf`` and serves Headrace and TensorFlow alike.

    python -m benchmarks --quick --case scalar_add
"""
