"""``tf.contrib.lookup``: tables under their older names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.api.missing import module_getattr
from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.ops.state import vocabulary_tables
from headrace.ops.state.lookup_tables import ContribHashTable as HashTable
from headrace.ops.state.lookup_tables import DenseHashTable as MutableDenseHashTable
from headrace.ops.state.lookup_tables import (
    InitializableLookupTableBase,
    LookupInterface,
    MutableHashTable,
)
from headrace.ops.state.table_initializers import (
    KeyValueTensorInitializer,
    TableInitializerBase,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileInitializer,
    TextFileStringTableInitializer,
)
from headrace.ops.state.vocabulary_tables import (
    FastHashSpec,
    HasherSpec,
    IdTableWithHashBuckets,
    StrongHashSpec,
    index_table_from_file,
    index_to_string_table_from_file,
)

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.dtypes import DType
    from headrace.ops.state.lookup_tables import StaticHashTable

__all__ = [
    "FastHashSpec", "HashTable", "HasherSpec", "IdTableWithHashBuckets",
    "InitializableLookupTableBase", "KeyValueTensorInitializer", "LookupInterface",
    "MutableDenseHashTable", "MutableHashTable", "StrongHashSpec", "TableInitializerBase",
    "TextFileIdTableInitializer", "TextFileIndex", "TextFileInitializer",
    "TextFileStringTableInitializer", "index_table_from_file", "index_table_from_tensor",
    "index_to_string", "index_to_string_table_from_file", "index_to_string_table_from_tensor",
    "string_to_index", "string_to_index_table_from_file", "string_to_index_table_from_tensor",
]  # fmt: skip


def index_table_from_tensor(
    mapping: object,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    dtype: DType = dtypes.string,
    name: str | None = None,
) -> StaticHashTable | IdTableWithHashBuckets:
    """A table from the words of a vector to their indices.

    A word that is not in ``mapping`` gets ``default_value``, or, with ``num_oov_buckets``, one of
    so many ids after the last index, by the hash that ``hasher_spec`` names. ``dtype`` is the type
    of the keys. The table is filled by ``tf.tables_initializer()``.

        table = tf.contrib.lookup.index_table_from_tensor(["a", "b"])
        table.lookup(tf.constant(["b", "?"]))  # [1, -1]
    """
    if mapping is None:
        raise ValueError("mapping must be specified.")
    return vocabulary_tables.index_table_from_tensor(
        mapping, num_oov_buckets, default_value, hasher_spec, dtype, name
    )


def index_to_string_table_from_tensor(
    mapping: TensorLike, default_value: str | bytes = "UNK", name: str | None = None
) -> StaticHashTable:
    """A table from indices to the words of a vector."""
    if mapping is None:
        raise ValueError("mapping must be specified.")
    return vocabulary_tables.index_to_string_table_from_tensor(mapping, default_value, name)


def string_to_index_table_from_file(
    vocabulary_file: object = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    name: str | None = None,
) -> StaticHashTable | IdTableWithHashBuckets:
    """The older name of :func:`index_table_from_file`.

    The keys are strings, one line of ``vocabulary_file`` each; the arguments are those of the newer
    function, without ``key_dtype``.
    """
    return index_table_from_file(
        vocabulary_file, num_oov_buckets, vocab_size, default_value, hasher_spec, dtypes.string,
        name,
    )  # fmt: skip


def string_to_index_table_from_tensor(
    mapping: object,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    name: str | None = None,
) -> Any:
    """The older name of :func:`index_table_from_tensor`, for strings.

    The arguments are those of the newer function; a ``mapping`` that is not of strings is a
    ValueError.
    """
    with name_scope(name, "string_to_index") as scope:
        mapping = convert_to_tensor(mapping)
    if mapping.dtype.base_dtype != dtypes.string:
        raise ValueError("string_to_index_table_from_tensor requires string.")
    return index_table_from_tensor(mapping, num_oov_buckets, default_value, hasher_spec, name=scope)


def string_to_index(
    tensor: TensorLike, mapping: TensorLike, default_value: int = -1, name: str | None = None
) -> Any:
    """The indices of words in ``mapping``; tables_initializer must have run.

    ``tensor`` may have any shape; a word that is not in ``mapping`` gives ``default_value``. Each
    call makes a table of its own: share an ``index_table_from_tensor`` where several lookups use
    one vocabulary.
    """
    return index_table_from_tensor(mapping, default_value=default_value, name=name).lookup(tensor)


def index_to_string(
    tensor: TensorLike,
    mapping: TensorLike,
    default_value: str | bytes = "UNK",
    name: str | None = None,
) -> Any:
    """The words of ``mapping`` at indices; tables_initializer must have run.

    ``tensor`` has int64 indices of any shape; an index that is not in ``mapping`` gives
    ``default_value``.

        tf.contrib.lookup.index_to_string(tf.constant([1, 5], tf.int64), ["a", "b"])  # ["b", "UNK"]
    """
    return index_to_string_table_from_tensor(mapping, default_value, name).lookup(tensor)


__getattr__ = module_getattr("contrib.lookup", __name__)
