"""Tables of vocabularies: ids of words with hash buckets for the others, and words of ids."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.infer import static_value
from headrace.core.scopes import name_scope
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import size as size_of
from headrace.ops.array.basic import no_op
from headrace.ops.array.casting import cast
from headrace.ops.array.ranges import range as range_of
from headrace.ops.array.selecting import where_v2
from headrace.ops.math.binary import add
from headrace.ops.math.comparison import not_equal
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.ops.state.lookup_tables import HashTable, LookupInterface, StaticHashTable
from headrace.ops.state.table_initializers import (
    KeyValueTensorInitializer,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileStringTableInitializer,
)
from headrace.ops.strings.string_encoding import (
    string_to_hash_bucket,
    string_to_hash_bucket_fast,
    string_to_hash_bucket_strong,
)
from headrace.ops.strings.string_numbers import as_string

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike, TensorLike
    from headrace.core.dtypes import DType

__all__ = [
    "FastHashSpec",
    "HasherSpec",
    "IdTableWithHashBuckets",
    "StaticVocabularyTable",
    "StrongHashSpec",
    "index_table_from_file",
    "index_table_from_tensor",
    "index_to_string_table_from_file",
    "index_to_string_table_from_tensor",
]


class _Hasher(NamedTuple):
    hasher: str
    key: Any


class HasherSpec(_Hasher):
    """How words outside of a vocabulary are hashed.

    "fasthash", "stronghash" (with a key of two integers), "legacy".
    """

    __slots__ = ()


FastHashSpec = HasherSpec("fasthash", None)


class StrongHashSpec(HasherSpec):
    """A keyed hash: nobody who does not know the key can make words collide."""

    __slots__ = ()

    def __new__(cls, key: str) -> StrongHashSpec:
        if len(key) != 2:
            raise ValueError(f"key must have size 2, got {len(key)}.")
        if not all(isinstance(part, int) for part in key):
            raise TypeError(f"Invalid key {key}. Must be unsigned integer values.")
        return super().__new__(cls, "stronghash", key)


def _hash_function(spec: HasherSpec) -> Callable[..., Tensor]:
    if spec.hasher == "fasthash":
        return string_to_hash_bucket_fast
    if spec.hasher == "legacy":
        return string_to_hash_bucket
    if spec.hasher == "stronghash":
        return functools.partial(string_to_hash_bucket_strong, key=spec.key)
    raise ValueError(f"Unknown hasher {spec.hasher}")


def _check_key_types(table_key: DType, table_value: DType, key_dtype: DType) -> None:
    supported = (dtypes.int64, dtypes.string)
    if table_key not in supported:
        raise TypeError(f"Invalid key dtype, expected one of {supported}, but got {table_key}.")
    if table_key.is_integer != key_dtype.is_integer:
        kind = "integer" if key_dtype.is_integer else "non-integer"
        raise TypeError(f"Invalid key dtype, expected {kind} but got {table_key}.")
    if table_value != dtypes.int64:
        raise TypeError(f"Invalid value dtype, expected {dtypes.int64} but got {table_value}.")


class IdTableWithHashBuckets(LookupInterface):
    """Ids from a table, and for other keys one of ``num_oov_buckets`` ids after them.

    ``table`` may be None: then all keys are hashed. ``hasher_spec`` is ``FastHashSpec`` or a
    ``StrongHashSpec`` with a key of two integers; ``key_dtype`` is string or an integer type.
    """

    def __init__(
        self,
        table: Any,
        num_oov_buckets: int,
        hasher_spec: HasherSpec = FastHashSpec,
        name: str | None = None,
        key_dtype: Any = None,
    ) -> None:
        name = name.rstrip("/") if name else name
        if table:
            key_dtype = dtypes.as_dtype(table.key_dtype if key_dtype is None else key_dtype)
            _check_key_types(table.key_dtype, table.value_dtype, key_dtype)
            name = name or table.name
        else:
            if num_oov_buckets <= 0:
                raise ValueError("oov_buckets must be > 0 if no table is supplied.")
            key_dtype = dtypes.as_dtype(dtypes.string if key_dtype is None else key_dtype)
            name = name or "hash_bucket"
        if not key_dtype.is_integer and key_dtype != dtypes.string:
            raise TypeError(f"Invalid key_dtype, expected integer or string, got {key_dtype}.")
        if not isinstance(hasher_spec, HasherSpec):
            raise TypeError(f"hasher_spec must be of type HasherSpec, got {hasher_spec}")
        super().__init__(key_dtype, dtypes.int64)
        self._table = table or None
        self._num_oov_buckets, self._hasher_spec = num_oov_buckets, hasher_spec
        self._table_name = name.split("/")[-1] if name else None

    @property
    def initializer(self) -> Any:
        """The operation that fills the table."""
        if self._table is not None:
            return self._table.initializer
        with name_scope(None, "init"):
            return no_op()

    @property
    def init(self) -> Any:
        """The older name of ``initializer``."""
        return self.initializer

    @property
    def resource_handle(self) -> Any:
        return None if self._table is None else self._table.resource_handle

    def size(self, name: str | None = None) -> Tensor:
        """The number of ids, buckets included."""
        with name_scope(name, f"{self.name}_Size"):
            known = (
                convert_to_tensor(0, dtypes.int64) if self._table is None else self._table.size()
            )
            return known + self._num_oov_buckets

    def lookup(self, keys: TensorLike, name: str | None = None) -> Any:
        """The ids of ``keys``, a tensor or a sparse tensor."""
        if not isinstance(keys, (Tensor, SparseTensor)):
            keys = convert_to_tensor(keys, dtype=self._key_dtype)
        if keys.dtype.base_dtype != self._key_dtype:
            raise TypeError(
                f"Signature mismatch. Keys must be dtype {self._key_dtype}, got {keys.dtype}."
            )
        values = keys.values if isinstance(keys, SparseTensor) else keys
        if self._table is not None and self._table.key_dtype.base_dtype == dtypes.int64:
            values = cast(values, dtypes.int64)
        if self._num_oov_buckets == 0:
            ids = self._table.lookup(values, name=name)  # type: ignore[union-attr]
        else:
            with name_scope(name, f"{self.name}_Lookup"):
                ids = self._ids(values)
        if isinstance(keys, SparseTensor):
            return SparseTensor(keys.indices, ids, keys.dense_shape)
        return ids

    def _ids(self, values: Any) -> Tensor:
        text = values if values.dtype.base_dtype == dtypes.string else as_string(values)
        hashed = _hash_function(self._hasher_spec)
        buckets = hashed(text, num_buckets=self._num_oov_buckets, name="hash_bucket")
        if self._table is None:
            return buckets
        ids = self._table.lookup(values)
        buckets = add(buckets, self._table.size())
        return where_v2(not_equal(ids, self._table.default_value), ids, buckets)


class StaticVocabularyTable(IdTableWithHashBuckets):
    """``tf.lookup.StaticVocabularyTable``: ids from an initializer, and buckets for other keys.

    ``initializer`` maps to ids 0, 1, …; other keys get one of the ``num_oov_buckets`` ids after the
    last, by a hash. ``lookup_key_dtype`` is the type of the keys that are looked up.

        entries = tf.lookup.KeyValueTensorInitializer(["a"], tf.constant([0], tf.int64))
        table = tf.lookup.StaticVocabularyTable(entries, num_oov_buckets=1)
        table.lookup(tf.constant(["a", "b"]))  # [0, 1]
    """

    def __init__(
        self,
        initializer: Any,
        num_oov_buckets: int,
        lookup_key_dtype: object = None,
        name: str | None = None,
    ) -> None:
        if num_oov_buckets <= 0:
            raise ValueError("oov_buckets must be > 0.")
        table = None
        if initializer:
            wanted = dtypes.as_dtype(
                initializer.key_dtype if lookup_key_dtype is None else lookup_key_dtype
            )
            _check_key_types(initializer.key_dtype, initializer.value_dtype, wanted)
            table = HashTable(initializer, default_value=-1)
        else:
            wanted = dtypes.string
        super().__init__(table, num_oov_buckets, FastHashSpec, name, wanted)


def _check_file(vocabulary_file: object, vocab_size: int | None) -> None:
    if vocabulary_file is None or (isinstance(vocabulary_file, str) and not vocabulary_file):
        raise ValueError("vocabulary_file must be specified and must not be empty.")
    if vocab_size is not None and vocab_size < 1:
        known = vocabulary_file
        if isinstance(vocabulary_file, Tensor):
            known = static_value(vocabulary_file) or "?"
        raise ValueError(
            f"vocab_size must be greater than 0, got {vocab_size}. vocabulary_file: {known}"
        )


def _check_index(num_oov_buckets: int, key_dtype: DType) -> None:
    if num_oov_buckets < 0:
        raise ValueError(f"num_oov_buckets must be greater or equal than 0, got {num_oov_buckets}.")
    if not key_dtype.is_integer and key_dtype.base_dtype != dtypes.string:
        raise TypeError("Only integer and string keys are supported.")


def index_table_from_file(
    vocabulary_file: object = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    key_dtype: DTypeLike = dtypes.string,
    name: str | None = None,
    key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> StaticHashTable | IdTableWithHashBuckets:
    """A table from the words of a file, one a line, to line numbers.

    A word that is not in the file gets ``default_value`` or, with ``num_oov_buckets``, an id after
    the last by its hash.
    """
    key_dtype = dtypes.as_dtype(key_dtype)
    _check_file(vocabulary_file, None)
    _check_index(num_oov_buckets, key_dtype)
    _check_file(vocabulary_file, vocab_size)
    with name_scope(name, "string_to_index"):
        with name_scope(None, "hash_table"):
            init = TextFileIdTableInitializer(
                vocabulary_file,
                key_column_index,
                value_column_index,
                vocab_size,
                delimiter,
                "table_init",
                dtypes.int64 if key_dtype.is_integer else key_dtype,
            )
            table = StaticHashTable(init, default_value)
        if not num_oov_buckets:
            return table
        return IdTableWithHashBuckets(table, num_oov_buckets, hasher_spec, key_dtype=key_dtype)


def index_table_from_tensor(
    vocabulary_list: object,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    dtype: DTypeLike = dtypes.string,
    name: str | None = None,
) -> StaticHashTable | IdTableWithHashBuckets:
    """As :func:`index_table_from_file`, from a vector of words."""
    if vocabulary_list is None:
        raise ValueError("vocabulary_list must be specified.")
    dtype = dtypes.as_dtype(dtype)
    _check_index(num_oov_buckets, dtype)
    with name_scope(name, "string_to_index"):
        keys = convert_to_tensor(vocabulary_list)
        if keys.dtype.is_integer != dtype.is_integer:
            kind = "integer" if dtype.is_integer else "non-integer"
            raise ValueError(f"Expected {kind}, got {keys.dtype}.")
        if not dtype.is_integer and keys.dtype.base_dtype != dtype:
            raise ValueError(f"Expected {dtype}, got {keys.dtype}.")
        values = cast(range_of(size_of(keys)), dtypes.int64)
        with name_scope(None, "hash_table"):
            words = cast(keys, dtypes.int64) if keys.dtype.is_integer else keys
            init = KeyValueTensorInitializer(
                words, values, words.dtype.base_dtype, dtypes.int64, name="table_init"
            )
            table = StaticHashTable(init, default_value)
        if not num_oov_buckets:
            return table
        return IdTableWithHashBuckets(table, num_oov_buckets, hasher_spec, key_dtype=dtype)


def index_to_string_table_from_file(
    vocabulary_file: str,
    vocab_size: int | None = None,
    default_value: str | bytes = "UNK",
    name: str | None = None,
    key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE,
    delimiter: str = "\t",
) -> StaticHashTable:
    """A table from line numbers to the lines of a file.

    A number without a line gives ``default_value``. ``key_column_index`` and ``value_column_index``
    choose columns of lines cut at ``delimiter`` instead; ``vocab_size`` is how many lines are read.
    The table is filled by ``tf.tables_initializer()``.
    """
    _check_file(vocabulary_file, None)
    if vocab_size is not None and vocab_size < 1:
        raise ValueError(f"vocab_size must be greater than 0, got {vocab_size}.")
    with name_scope(name, "index_to_string"):
        init = TextFileStringTableInitializer(
            vocabulary_file,
            key_column_index,
            value_column_index,
            vocab_size,
            delimiter,
            "table_init",
        )
        return StaticHashTable(init, default_value)


def index_to_string_table_from_tensor(
    vocabulary_list: TensorLike, default_value: str | bytes = "UNK", name: str | None = None
) -> StaticHashTable:
    """A table from indices to the words of a vector."""
    if vocabulary_list is None:
        raise ValueError("vocabulary_list must be specified.")
    with name_scope(name, "index_to_string"):
        words = convert_to_tensor(vocabulary_list, dtypes.string)
        keys = cast(range_of(size_of(words)), dtypes.int64)
        init = KeyValueTensorInitializer(keys, words, dtypes.int64, dtypes.string, "table_init")
        return StaticHashTable(init, default_value)
