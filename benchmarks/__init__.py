"""What Headrace costs, beside its peers: ``python -m benchmarks`` prints a table for each group of
cases.

A *driver* (:mod:`benchmarks.driver`) asks *workers* (:mod:`benchmarks.worker`, a process for each
library, each with its own Python) in turn to measure a *case*, several rounds of it, and keeps
every sample. A *group* (:mod:`benchmarks.groups`) is a table: *rows* (:mod:`benchmarks.rows`), each
a figure worked out from the samples of a case, and the libraries beside each other. A case is
written once as a function of the module ``tf`` and serves Headrace and TensorFlow alike; whole
models are in :mod:`benchmarks.models`. From the samples come tables (:mod:`benchmarks.table`),
plots (:mod:`benchmarks.plots`) and the page in the docs (:mod:`benchmarks.page`).

    python -m benchmarks --quick --case scalar_add
"""
