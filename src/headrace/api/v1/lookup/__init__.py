"""``tf.lookup``: tables."""

import typing as _typing

from headrace.api.missing import module_getattr
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

# static names: begin (tools/static_names.py)
if _typing.TYPE_CHECKING:
    from headrace.api.v1.lookup import experimental as experimental
# static names: end

if not _typing.TYPE_CHECKING:
    __getattr__ = module_getattr(
        "lookup", __name__, modules={"experimental": "headrace.api.v1.lookup.experimental"}
    )
