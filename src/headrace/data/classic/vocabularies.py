"""``contrib.learn.preprocessing``: words and categories to numbers.

A vocabulary gives every category the next number; 0 stands for what it does not know. A
processor splits documents into words and looks them up.

    processor = VocabularyProcessor(max_document_length=10)
    ids = np.array(list(processor.fit_transform(["a text", "another text"])))   # [2, 10]
"""

from __future__ import annotations

import collections
import io
import itertools
import math
import pickle
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from headrace.core.tensor import Tensor

__all__ = [
    "ByteProcessor",
    "CategoricalProcessor",
    "CategoricalVocabulary",
    "TOKENIZER_RE",
    "VocabularyProcessor",
    "tokenizer",
]

#: What a word is: a run of capitals, a capitalised part of a CamelCase word, or letters, digits,
#: apostrophes and hyphens.
TOKENIZER_RE = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)

Tokenizer = Callable[[Iterable[str]], Iterable[Sequence[str]]]


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """The words of each document."""
    for value in iterator:
        yield TOKENIZER_RE.findall(value)


class CategoricalVocabulary:
    """Categories (words, integers) and their numbers, with how often each occurred."""

    def __init__(self, unknown_token: str = "<UNK>", support_reverse: bool = True) -> None:
        self._unknown_token = unknown_token
        self._mapping: dict[Hashable, int] = {unknown_token: 0}
        self._support_reverse = support_reverse
        if support_reverse:
            self._reverse_mapping: list[Hashable] = [unknown_token]
        self._freq: dict[Hashable, int] = collections.defaultdict(int)
        self._freeze = False

    def __len__(self) -> int:
        """How many categories, the unknown one included."""
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """From now on a new category is unknown (``freeze=False``: it gets a number again)."""
        self._freeze = freeze

    def get(self, category: Hashable) -> int:
        """The number of a category; a new category gets the next one unless frozen."""
        number = self._mapping.get(category)
        if number is None:
            number = 0 if self._freeze else self._append(category)
        return number

    def _append(self, category: Hashable) -> int:
        """Give a category the next number."""
        number = self._mapping[category] = len(self._mapping)
        if self._support_reverse:
            self._reverse_mapping.append(category)
        return number

    def add(self, category: Hashable, count: int = 1) -> None:
        """Count ``count`` occurrences of a category."""
        if self.get(category) > 0:
            self._freq[category] += count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Keep categories that occurred more often than ``min_frequency`` and, if given, less
        often than ``max_frequency``; number them anew, the most frequent first.
        """
        by_name = sorted(self._freq.items(), key=lambda pair: (isinstance(pair[0], str), pair[0]))
        ordered = sorted(by_name, key=lambda pair: pair[1], reverse=True)
        kept = [
            category
            for category, count in ordered
            if count > min_frequency and not 0 < max_frequency <= count
        ]
        names: list[Hashable] = [self._unknown_token, *kept]
        self._mapping = {category: i for i, category in enumerate(names)}
        if self._support_reverse:
            self._reverse_mapping = names
        self._freq = dict(ordered[: len(kept)])

    def reverse(self, class_id: int) -> Hashable:
        """The category that has a number."""
        if not self._support_reverse:
            raise ValueError(
                "This vocabulary wasn't initialized with support_reverse to support reverse() "
                "function."
            )
        return self._reverse_mapping[class_id]


class ByteProcessor:
    """Documents to rows of bytes, cut or padded with zeros to ``max_document_length``."""

    def __init__(self, max_document_length: int) -> None:
        self.max_document_length = max_document_length

    def fit(self, x: Iterable[str | bytes]) -> None:
        """Nothing is learned."""

    def fit_transform(self, x: Iterable[str | bytes]) -> Iterator[np.ndarray]:
        return self.transform(x)

    def reverse(self, x: Iterable[np.ndarray]) -> Iterator[str]:
        """The documents of rows of bytes; "" where the bytes are not UTF-8."""
        for data in x:
            document = np.trim_zeros(data.astype(np.int8), trim="b").tobytes()
            try:
                yield document.decode("utf-8")
            except UnicodeDecodeError:
                yield ""

    def transform(self, x: Iterable[str | bytes]) -> Iterator[np.ndarray]:
        """A row of bytes (uint8) for each document."""
        for document in x:
            data = document.encode("utf-8") if isinstance(document, str) else document
            row = np.frombuffer(memoryview(data)[: self.max_document_length], np.uint8)
            yield np.pad(row, (0, self.max_document_length - len(row)), "constant")


class VocabularyProcessor:
    """Documents to rows of word numbers, cut or padded with zeros to ``max_document_length``.

    ``vocabulary_`` is the vocabulary; words that occur ``min_frequency`` times or less are left
    out when it is learned. ``tokenizer_fn`` takes documents and gives lists of words.
    """

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Tokenizer | None = None,
    ) -> None:
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = vocabulary if vocabulary else CategoricalVocabulary()
        self._tokenizer: Tokenizer = tokenizer_fn if tokenizer_fn else tokenizer

    def fit(self, raw_documents: Iterable[str], unused_y: object = None) -> VocabularyProcessor:
        """Learn the words of the documents, then freeze the vocabulary."""
        for word in itertools.chain.from_iterable(self._tokenizer(raw_documents)):
            self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(
        self, raw_documents: Iterable[str], unused_y: object = None
    ) -> Iterator[np.ndarray]:
        """:meth:`fit`, then :meth:`transform`, of the same documents."""
        self.fit(raw_documents)
        return self.transform(raw_documents)

    def transform(self, raw_documents: Iterable[str]) -> Iterator[np.ndarray]:
        """A row of word numbers (int64) for each document."""
        for tokens in self._tokenizer(raw_documents):
            first = itertools.islice(tokens, self.max_document_length)
            numbers = [self.vocabulary_.get(token) for token in first]
            row = np.zeros(self.max_document_length, np.int64)
            row[: len(numbers)] = numbers
            yield row

    def reverse(self, documents: Iterable[Iterable[int]]) -> Iterator[str]:
        """The words of rows of numbers, separated by blanks."""
        for row in documents:
            yield " ".join(str(self.vocabulary_.reverse(i)) for i in row)

    def save(self, filename: str) -> None:
        """Pickle this processor into a file."""
        with open(filename, "wb") as file:
            file.write(pickle.dumps(self))

    @classmethod
    def restore(cls, filename: str) -> VocabularyProcessor:
        """A processor that Headrace or TF 1.15 saved.

        The file is a pickle: restore only files that you trust.
        """
        with open(filename, "rb") as file:
            found = _Unpickler(io.BytesIO(file.read())).load()
        if not isinstance(found, VocabularyProcessor):
            raise ValueError(f"{filename} holds a {type(found).__name__}, no VocabularyProcessor")
        return found


class _Unpickler(pickle.Unpickler):
    """Finds the classes of TensorFlow's ``contrib.learn.preprocessing`` here."""

    def find_class(self, module: str, name: str) -> Any:
        if re.match(r"tensorflow(_core)?\.contrib\.learn\.python\.learn\.preprocessing\.", module):
            return globals()[name]
        return super().find_class(module, name)


class CategoricalProcessor:
    """Rows of categories to rows of numbers, with one vocabulary per column.

    ``share``: one vocabulary for all columns. NaN counts as unknown.
    """

    def __init__(
        self,
        min_frequency: int = 0,
        share: bool = False,
        vocabularies: list[CategoricalVocabulary] | None = None,
    ) -> None:
        self.min_frequency = min_frequency
        self.share = share
        self.vocabularies_ = vocabularies

    def freeze(self, freeze: bool = True) -> None:
        """Freeze or unfreeze all vocabularies."""
        for vocabulary in self._vocabularies():
            vocabulary.freeze(freeze)

    def fit(self, x: Iterable[Any], unused_y: object = None) -> CategoricalProcessor:
        """Learn the categories of each column."""
        for row in _rows(x):
            if self.vocabularies_ is None:
                first = CategoricalVocabulary()
                self.vocabularies_ = [first if self.share else CategoricalVocabulary() for _ in row]
            for vocabulary, value in zip(self.vocabularies_, row, strict=False):
                if not _is_nan(value):
                    vocabulary.add(value)
        if self.min_frequency > 0:
            for vocabulary in self._vocabularies():
                vocabulary.trim(self.min_frequency)
        self.freeze()
        return self

    def fit_transform(self, x: Iterable[Any], unused_y: object = None) -> Iterator[np.ndarray]:
        """:meth:`fit`, then :meth:`transform`."""
        self.fit(x)
        return self.transform(x)

    def transform(self, x: Iterable[Any]) -> Iterator[np.ndarray]:
        """A row of numbers (int64) for each row."""
        self.freeze()
        for row in _rows(x):
            numbers = [
                0 if _is_nan(value) else vocabulary.get(value)
                for vocabulary, value in zip(self._vocabularies(), row, strict=False)
            ]
            yield np.array(numbers, dtype=np.int64)

    def _vocabularies(self) -> list[CategoricalVocabulary]:
        if self.vocabularies_ is None:
            raise ValueError("No vocabularies yet: call fit() first or give vocabularies=.")
        return self.vocabularies_


def _rows(x: Any) -> Iterable[Any]:
    """Rows of a matrix, a data frame or an iterable of lists."""
    rows: Iterable[Any] = x.values if hasattr(x, "iloc") else x
    return rows


def _is_nan(value: Tensor) -> bool:
    return isinstance(value, float) and math.isnan(value)
