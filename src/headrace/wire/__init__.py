"""Bytes of TensorFlow's files: checksums, streams, TFRecord, serialized Examples. No graph.

What the bytes mean as graphs and models is in ``formats``. A format that datasets read has its
bytes here, its stage and op in ``data/ops/dataset_ops.py``, its class in ``data/api/readers.py``.
"""
