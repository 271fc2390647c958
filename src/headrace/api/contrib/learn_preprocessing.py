"""``tf.contrib.learn.preprocessing``: documents and categories to numbers."""

from headrace.api.missing import module_getattr
from headrace.data.classic.vocabularies import (
    ByteProcessor,
    CategoricalProcessor,
    CategoricalVocabulary,
    VocabularyProcessor,
)

__all__ = [
    "ByteProcessor", "CategoricalProcessor", "CategoricalVocabulary", "VocabularyProcessor",
]  # fmt: skip

__getattr__ = module_getattr("contrib.learn.preprocessing", __name__)
