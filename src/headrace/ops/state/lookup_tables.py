"""``tf.lookup`` and ``tf.contrib.lookup``: hash tables, static ones and ones that can be changed.

>>> table = tf.contrib.lookup.HashTable(tf.contrib.lookup.KeyValueTensorInitializer(["a"], [1]), -1)
>>> sess.run(tf.tables_initializer()); sess.run(table.lookup(tf.constant(["a", "b"])))  # [1, -1]
"""

from __future__ import annotations

import itertools
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.core import dtypes
from headrace.core.build import apply_many, apply_op, apply_operation
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.opdef import lookup
from headrace.core.scopes import add_to_collection, init_scope, name_scope
from headrace.core.tensor import Tensor
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.ops.state import table_ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Operation

__all__ = [
    "ContribHashTable",
    "DenseHashTable",
    "HashTable",
    "InitializableLookupTableBase",
    "LookupInterface",
    "MutableHashTable",
    "StaticHashTable",
    "TableSaveable",
    "export_entries",
    "import_entries",
]

_LOADED = table_ops  # defines the ops below


class LookupInterface:
    """A table from keys to values."""

    _resource_handle: Any = None
    _table_name: str | None = None

    def __init__(self, key_dtype: object, value_dtype: object) -> None:
        self._key_dtype = dtypes.as_dtype(key_dtype)
        self._value_dtype = dtypes.as_dtype(value_dtype)

    @property
    def key_dtype(self) -> dtypes.DType:
        return self._key_dtype

    @property
    def value_dtype(self) -> dtypes.DType:
        return self._value_dtype

    @property
    def resource_handle(self) -> Any:
        return self._resource_handle

    @property
    def name(self) -> str | None:
        return self._table_name

    def size(self, name: str | None = None) -> Tensor:
        """The number of entries, int64."""
        with name_scope(name, f"{self.name}_Size", [self.resource_handle]):
            return apply_op("LookupTableSizeV2", self.resource_handle)

    def lookup(self, keys: TensorLike, name: str | None = None) -> Any:
        raise NotImplementedError

    def _create_resource(self) -> Tensor:
        """A handle of the (empty) table, made in the default graph."""
        raise NotImplementedError

    def _initialize(self) -> Operation | None:
        """The operation, in the default graph, that fills the table; None if nothing does."""
        return None

    def _set_handle(self) -> None:
        self._resource_handle = handle = self._create_resource()
        eager = get_default_graph()._is_eager
        self._table_name = None if eager else handle.op.name.split("/")[-1]


def _table_handle(op_type: str, *inputs: Tensor, name: str, **attrs: object) -> Tensor:
    graph = get_default_graph()
    if not attrs.get("shared_name"):  # each object is a table of its own
        if graph._is_eager:
            attrs["shared_name"] = f"table_{next(_numbers)}"
        elif graph._is_function:
            attrs["shared_name"] = f"table_{uuid.uuid4()}"
    return apply_op(op_type, *inputs, name=name, **attrs)


_numbers = itertools.count()


def export_entries(handle: Tensor, kinds: tuple[dtypes.DType, dtypes.DType]) -> list[Tensor]:
    """All keys of a table and their values; ``kinds`` are the types of both."""
    export = lookup("LookupTableExportV2")
    return list(apply_many(export, handle, Tkeys=kinds[0], Tvalues=kinds[1]))


def import_entries(handle: Tensor, keys: TensorLike, values: TensorLike) -> Operation:
    """An operation that replaces the entries of a table by those of an export."""
    return apply_operation(lookup("LookupTableImportV2"), handle, keys, values)


class InitializableLookupTableBase(LookupInterface):
    """A table that an initializer fills once."""

    def __init__(self, default_value: object, initializer: Any) -> None:
        super().__init__(initializer.key_dtype, initializer.value_dtype)
        self._default_value = convert_to_tensor(default_value, dtype=self._value_dtype)
        self._default_value.shape.merge_with([])
        self._initializer = initializer
        with init_scope():
            self._set_handle()
        if get_default_graph()._get_control_flow_context() is not None:
            with init_scope():
                self._init_op = self._initialize()
        else:
            self._init_op = self._initialize()

    def _initialize(self) -> Operation | None:
        made: Operation | None = self._initializer.initialize(self)
        return made

    @property
    def default_value(self) -> Tensor:
        return self._default_value

    @property
    def initializer(self) -> Any:
        """The operation that fills the table."""
        return self._init_op

    def lookup(self, keys: TensorLike, name: str | None = None) -> Tensor:
        """The values of ``keys`` (a tensor or a sparse tensor), the default value where there is
        none.
        """
        if not isinstance(keys, (Tensor, SparseTensor)):
            keys = convert_to_tensor(keys, dtype=self._key_dtype)
        given = keys.values if isinstance(keys, SparseTensor) else keys
        if keys.dtype.base_dtype != self._key_dtype:
            raise TypeError(
                f"Signature mismatch. Keys must be dtype {self._key_dtype}, got {keys.dtype}."
            )
        inputs = self.resource_handle, given, self._default_value
        with name_scope(name, f"{self.name}_Lookup", inputs):
            values = apply_op("LookupTableFindV2", *inputs)
        values.set_shape(given.shape)
        if isinstance(keys, SparseTensor):
            return SparseTensor(keys.indices, values, keys.dense_shape)
        return values


class StaticHashTable(InitializableLookupTableBase):
    """``tf.lookup.StaticHashTable``: a table that is filled once."""

    def __init__(self, initializer: Any, default_value: object, name: str | None = None) -> None:
        self._shared_name = initializer._shared_name or f"hash_table_{uuid.uuid4()}"
        self._name = name or "hash_table"
        super().__init__(default_value, initializer)
        self._value_shape = self._default_value.shape

    def _create_resource(self) -> Tensor:
        return _table_handle(
            "HashTableV2",
            shared_name=self._shared_name,
            key_dtype=self._key_dtype,
            value_dtype=self._value_dtype,
            name=self._name,
        )

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys, and their values in the same order."""
        with name_scope(name, f"{self.name}_Export", [self.resource_handle]):
            keys, values = apply_many(
                lookup("LookupTableExportV2"),
                self.resource_handle,
                Tkeys=self._key_dtype,
                Tvalues=self._value_dtype,
            )
        values.set_shape(keys.shape.concatenate(self._value_shape))
        return keys, values


class HashTable(StaticHashTable):
    """``tensorflow.python.ops.lookup_ops.HashTable``."""

    @property
    def init(self) -> Any:
        """The older name of ``initializer``."""
        return self._init_op


class ContribHashTable(HashTable):
    """``tf.contrib.lookup.HashTable``.

    As StaticHashTable, with a ``shared_name`` (none by default: the node's name).
    """

    def __init__(
        self,
        initializer: object,
        default_value: object,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        self._given_name = shared_name
        super().__init__(initializer, default_value, name)

    def _create_resource(self) -> Tensor:
        self._shared_name = self._given_name or ""
        return super()._create_resource()


class TableSaveable:
    """What a Saver writes of a table, ``<name>-keys`` and ``<name>-values``, and how it reads it
    back.
    """

    class Spec(NamedTuple):
        """One tensor of a checkpoint."""

        tensor: Tensor
        slice_spec: str
        name: str

        @property
        def dtype(self) -> dtypes.DType:
            return self.tensor.dtype

        @property
        def device(self) -> str:
            return self.tensor.device

    def __init__(self, table: _ChangingTable, name: str) -> None:
        parts = zip(table.export(), ("keys", "values"), strict=True)
        self.op, self.name = table, name
        self.specs = [self.Spec(tensor, "", f"{name}-{part}") for tensor, part in parts]
        self.device = ""

    @property
    def optional_restore(self) -> bool:
        return False

    def restore(
        self,
        restored_tensors: Sequence[Tensor],
        restored_shapes: TensorLike,
        name: str | None = None,
    ) -> Operation:
        """An operation that replaces the entries.

        The shapes are those of the tensors: they are not needed.
        """
        with name_scope(name, f"{self.name}_table_restore"):
            return self.op.import_entries(*restored_tensors)


class _ChangingTable(LookupInterface):
    _default_value: Tensor
    _name: str
    _key_rank = 0  # of one key

    def _add_saveable(self) -> None:
        """A default Saver takes the table in too."""
        if not get_default_graph()._is_eager:
            saveable = TableSaveable(self, self._name)
            add_to_collection(GraphKeys.SAVEABLE_OBJECTS, saveable)

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        return {"table": lambda name=self._name: TableSaveable(self, name)}

    @property
    def entry_dtypes(self) -> tuple[dtypes.DType, dtypes.DType]:
        """The types of keys and of values."""
        return self._key_dtype, self._value_dtype

    def import_entries(self, keys: Tensor, values: Tensor) -> Operation:
        """An operation that replaces the entries by those of an export."""
        return import_entries(self.resource_handle, keys, values)

    def lookup(self, keys: TensorLike, name: str | None = None) -> Tensor:
        """The values of ``keys``, the default value where there is none."""
        inputs = [self.resource_handle, keys]
        with name_scope(name, f"{self.name}_lookup_table_find", inputs):
            keys = convert_to_tensor(keys, dtype=self._key_dtype, name="keys")
            found = apply_op("LookupTableFindV2", self.resource_handle, keys, self._default_value)
            if keys.shape.ndims is not None:
                lead = keys.shape[: max(keys.shape.ndims - self._key_rank, 0)]
                found.set_shape(lead.concatenate(self._default_value.shape))
            return found

    def insert(self, keys: TensorLike, values: TensorLike, name: str | None = None) -> Operation:
        """An operation that adds entries, or replaces them."""
        inputs = [self.resource_handle, keys, values]
        with name_scope(name, f"{self.name}_lookup_table_insert", inputs):
            keys = convert_to_tensor(keys, dtype=self._key_dtype, name="keys")
            values = convert_to_tensor(values, dtype=self._value_dtype, name="values")
            return apply_operation(
                lookup("LookupTableInsertV2"), self.resource_handle, keys, values
            )

    def remove(self, keys: Any, name: str | None = None) -> Operation:
        """An operation that removes entries; keys that are not there are ignored."""
        if keys.dtype != self._key_dtype:
            raise TypeError(
                f"Signature mismatch. Keys must be dtype {self._key_dtype}, got {keys.dtype}."
            )
        inputs = (self.resource_handle, keys, self._default_value)
        with name_scope(name, f"{self.name}_lookup_table_remove", inputs):
            return apply_operation(lookup("LookupTableRemoveV2"), self.resource_handle, keys)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys, and their values in the same order."""
        with name_scope(name, f"{self.name}_lookup_table_export_values", [self.resource_handle]):
            keys, values = apply_many(
                lookup("LookupTableExportV2"),
                self.resource_handle,
                Tkeys=self._key_dtype,
                Tvalues=self._value_dtype,
            )
            return keys, values


class MutableHashTable(_ChangingTable):
    """A table that takes new entries at any time; values have the shape of ``default_value``.

    ``key_dtype`` and ``value_dtype`` are the types, ``default_value`` is what a missing key gives.
    ``checkpoint`` has a Saver write the entries. ``insert``, ``lookup``, ``remove``, ``size`` and
    ``export`` are operations.

        table = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1)
        insert = table.insert(tf.constant(["a"]), tf.constant([7], tf.int64))
        with tf.control_dependencies([insert]):
            found = table.lookup(tf.constant(["a", "b"]))
        found  # [7, -1]
    """

    def __init__(
        self,
        key_dtype: object,
        value_dtype: object,
        default_value: object,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
    ) -> None:
        super().__init__(key_dtype, value_dtype)
        self._default_value = convert_to_tensor(default_value, dtype=self._value_dtype)
        self._checkpoint, self._name = checkpoint, name
        self._set_handle()
        if checkpoint:
            self._add_saveable()

    def _create_resource(self) -> Tensor:
        attrs: dict[str, Any] = {
            "use_node_name_sharing": self._checkpoint,
            "key_dtype": self._key_dtype,
            "value_dtype": self._value_dtype,
        }
        op_type = "MutableHashTableV2"
        if self._default_value.shape.ndims != 0:
            op_type = "MutableHashTableOfTensorsV2"
            attrs["value_shape"] = self._default_value.shape
        return _table_handle(op_type, name=self._name, **attrs)


class DenseHashTable(_ChangingTable):
    """A table that takes new entries.

    ``empty_key`` and ``deleted_key`` are reserved, keys may be vectors like them.
    """

    def __init__(
        self,
        key_dtype: object,
        value_dtype: object,
        default_value: object,
        empty_key: object,
        deleted_key: object,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
    ) -> None:
        super().__init__(key_dtype, value_dtype)
        self._default_value = convert_to_tensor(
            default_value, dtype=self._value_dtype, name="default_value"
        )
        self._checkpoint, self._name = checkpoint, name
        self._empty = convert_to_tensor(empty_key, dtype=self._key_dtype, name="empty_key")
        self._deleted = convert_to_tensor(deleted_key, dtype=self._key_dtype, name="deleted_key")
        self._key_rank = self._empty.shape.ndims or 0
        self._buckets = (
            {} if initial_num_buckets is None else {"initial_num_buckets": initial_num_buckets}
        )
        self._set_handle()
        if checkpoint:
            self._add_saveable()

    def _create_resource(self) -> Tensor:
        return _table_handle(
            "MutableDenseHashTableV2",
            self._empty,
            self._deleted,
            use_node_name_sharing=self._checkpoint,
            value_dtype=self._value_dtype,
            value_shape=self._default_value.shape,
            name=self._name,
            **self._buckets,
        )

    def insert_or_assign(
        self, keys: TensorLike, values: TensorLike, name: str | None = None
    ) -> Operation:
        """As :meth:`insert`."""
        return self.insert(keys, values, name)

    def erase(self, keys: TensorLike, name: str | None = None) -> Operation:
        """As :meth:`remove`."""
        return self.remove(keys, name)
