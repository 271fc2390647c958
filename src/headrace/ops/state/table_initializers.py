"""What a static lookup table is filled with.

Tensors of keys and values, or the lines of a text file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply_operation
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.opdef import lookup
from headrace.core.scopes import add_to_collection, init_scope, name_scope
from headrace.core.tensor import Tensor

if TYPE_CHECKING:
    from headrace.core.annotations import DTypeLike
    from headrace.ops.state.lookup_tables import ContribHashTable, HashTable, StaticHashTable


__all__ = [
    "KeyValueTensorInitializer",
    "TableInitializerBase",
    "TextFileIdTableInitializer",
    "TextFileIndex",
    "TextFileInitializer",
    "TextFileStringTableInitializer",
]


class TableInitializerBase:
    """Fills a table: ``initialize`` gives the operation that does."""

    def __init__(self, key_dtype: object, value_dtype: object) -> None:
        self._key_dtype = dtypes.as_dtype(key_dtype)
        self._value_dtype = dtypes.as_dtype(value_dtype)

    @property
    def key_dtype(self) -> dtypes.DType:
        return self._key_dtype

    @property
    def value_dtype(self) -> dtypes.DType:
        return self._value_dtype

    def initialize(self, table: object) -> Any:
        raise NotImplementedError

    @property
    def _shared_name(self) -> str:
        return ""

    def _check_types(self, table: ContribHashTable | HashTable | StaticHashTable) -> None:
        pairs = (
            ("key", self._key_dtype, table.key_dtype),
            ("value", self._value_dtype, table.value_dtype),
        )
        for what, mine, wanted in pairs:
            if mine.base_dtype != wanted:
                raise TypeError(f"Invalid {what} dtype, expected {wanted} but got {mine}.")


def _outside_control_flow(value: object, dtype: object, name: str) -> Tensor:
    with init_scope():
        return convert_to_tensor(value, dtype=dtype, name=name)


class KeyValueTensorInitializer(TableInitializerBase):
    """Entries from two tensors of the same shape.

    ``key_dtype`` and ``value_dtype`` are the types the table must have, by default those of the
    tensors. A key that comes twice with different values is an error when the table is filled.

        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), default_value=0
        )
        table.lookup(tf.constant(["b", "c"]))  # [2, 0]
    """

    def __init__(
        self,
        keys: object,
        values: object,
        key_dtype: DTypeLike | None = None,
        value_dtype: object = None,
        name: str | None = None,
    ) -> None:
        if get_default_graph()._get_control_flow_context() is not None:
            self._keys = _outside_control_flow(keys, key_dtype, "keys")
            self._values = _outside_control_flow(values, value_dtype, "values")
        else:
            self._keys = convert_to_tensor(keys, dtype=key_dtype, name="keys")
            self._values = convert_to_tensor(values, dtype=value_dtype, name="values")
        self._name = "key_value_init" if name is None else name
        super().__init__(self._keys.dtype, self._values.dtype)

    def initialize(self, table: Any) -> Any:
        self._check_types(table)
        with name_scope(self._name, values=(table.resource_handle, self._keys, self._values)):
            op = apply_operation(
                lookup("LookupTableImportV2"), table.resource_handle, self._keys, self._values
            )
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, op)
        return op


class TextFileIndex:
    """What of a line is meant: the whole of it, its number, or (from 0 on) a column."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TextFileInitializer(TableInitializerBase):
    """Entries from the lines of a text file; see :class:`TextFileIndex` for the indices.

    ``key_index`` and ``value_index`` are columns of a line cut at ``delimiter``, or the whole line
    (string) or its number (int64). ``vocab_size`` is how many lines are read; fewer are an error.
    The file is an asset of a SavedModel.
    """

    def __init__(
        self,
        filename: object,
        key_dtype: object,
        key_index: int,
        value_dtype: object,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
    ) -> None:
        if not isinstance(filename, Tensor) and not filename:
            raise ValueError(f"Filename required for {name}.")
        key_dtype, value_dtype = dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype)
        self._check_index("key", key_index, key_dtype)
        self._check_index("value", value_index, value_dtype)
        if vocab_size is not None and vocab_size <= 0:
            raise ValueError(f"Invalid vocab_size {vocab_size}.")
        self._filename_arg = filename
        self._key_index, self._value_index = key_index, value_index
        self._vocab_size, self._delimiter, self._name = vocab_size, delimiter, name
        self._filename = _outside_control_flow(filename, dtypes.string, "asset_path")
        super().__init__(key_dtype, value_dtype)

    @staticmethod
    def _check_index(what: str, index: int, dtype: dtypes.DType) -> None:
        plural = f"{what.capitalize()}s"
        if index < TextFileIndex.WHOLE_LINE:
            raise ValueError(f"Invalid {what} index {index}.")
        if index == TextFileIndex.LINE_NUMBER and dtype != dtypes.int64:
            raise ValueError(
                f"Signature mismatch. {plural} must be dtype {dtypes.int64}, got {dtype}."
            )
        if index != TextFileIndex.WHOLE_LINE or dtype == dtypes.string:
            return
        if what == "value":
            raise ValueError(
                f"Signature mismatch. {plural} must be dtype {dtypes.string}, got {dtype}."
            )
        if not dtype.is_integer:
            raise ValueError(
                f"Signature mismatch. {plural} must be integer or string, got {dtype}."
            )

    def initialize(self, table: Any) -> Any:
        self._check_types(table)
        with name_scope(self._name, "text_file_init", (table.resource_handle,)):
            op = apply_operation(
                lookup("InitializeTableFromTextFileV2"),
                table.resource_handle,
                self._filename,
                key_index=self._key_index,
                value_index=self._value_index,
                vocab_size=-1 if self._vocab_size is None else self._vocab_size,
                delimiter=self._delimiter,
            )
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, op)
        if not get_default_graph()._is_eager and self._filename._op.type == "Const":
            add_to_collection(GraphKeys.ASSET_FILEPATHS, self._filename)
        return op

    @property
    def _shared_name(self) -> str:
        size = f"_{self._vocab_size}" if self._vocab_size else ""
        return f"hash_table_{self._filename_arg}{size}_{self._key_index}_{self._value_index}"


class TextFileStringTableInitializer(TextFileInitializer):
    """From ids (line numbers) to strings (lines).

    ``key_column_index`` and ``value_column_index`` are columns of a line cut at ``delimiter``, or
    one of ``TextFileIndex``. ``vocab_size`` is how many lines are read; fewer are an error.
    """

    def __init__(
        self,
        filename: object,
        key_column_index: int = TextFileIndex.LINE_NUMBER,
        value_column_index: int = TextFileIndex.WHOLE_LINE,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = "text_file_string_table_init",
    ) -> None:
        super().__init__(
            filename,
            dtypes.int64,
            key_column_index,
            dtypes.string,
            value_column_index,
            vocab_size,
            delimiter,
            name,
        )


class TextFileIdTableInitializer(TextFileInitializer):
    """From strings or integers (lines) to ids (line numbers).

    ``key_column_index`` and ``value_column_index`` are columns of a line cut at ``delimiter``, or
    one of ``TextFileIndex``. ``vocab_size`` is how many lines are read; fewer are an error.
    ``key_dtype`` is string or int64.
    """

    def __init__(
        self,
        filename: object,
        key_column_index: int = TextFileIndex.WHOLE_LINE,
        value_column_index: int = TextFileIndex.LINE_NUMBER,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = "text_file_id_table_init",
        key_dtype: DTypeLike = dtypes.string,
    ) -> None:
        super().__init__(
            filename,
            key_dtype,
            key_column_index,
            dtypes.int64,
            value_column_index,
            vocab_size,
            delimiter,
            name,
        )
