"""``tf.lookup``: tables."""

from headrace.api.v2.name_lookup import module_getattr
from headrace.ops.state.lookup_tables import StaticHashTable
from headrace.ops.state.table_initializers import (
    KeyValueTensorInitializer,
    TextFileIndex,
    TextFileInitializer,
)
from headrace.ops.state.vocabulary_tables import StaticVocabularyTable

__all__ = [
    "KeyValueTensorInitializer", "StaticHashTable", "StaticVocabularyTable", "TextFileIndex",
    "TextFileInitializer",
]  # fmt: skip

__getattr__ = module_getattr(
    "lookup", __name__, modules={"experimental": "headrace.api.v2.lookup.experimental"}
)
