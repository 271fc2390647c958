"""``tf.lookup.experimental``."""

from headrace.ops.state.lookup_tables import DenseHashTable, MutableHashTable

__all__ = ["DenseHashTable", "MutableHashTable"]
