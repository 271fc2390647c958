"""``tf.lookup.experimental``."""

from headrace.ops.state.lookup_tables import DenseHashTable

__all__ = ["DenseHashTable"]
