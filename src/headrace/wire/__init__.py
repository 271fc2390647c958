"""Bytes of TensorFlow's files: checksums, streams, TFRecord, serialized Examples. No graph."""
