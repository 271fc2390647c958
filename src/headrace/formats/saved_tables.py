"""Lookup tables in a SavedModel of TF 2: the functions by which a loader makes, fills and drops a
table, and those by which a checkpoint of the loaded model reads and writes its entries.

A table is one of this program (``tf.lookup``) or of a model that was loaded and is saved again. The
entries of a table that changes are in the checkpoint, those of a static one come from its
initializer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.specs import TensorSpec
from headrace.formats.saved_model_load import LoadedResource
from headrace.functions.function import Function
from headrace.ops.state.lookup_tables import LookupInterface, export_entries, import_entries

if TYPE_CHECKING:
    from headrace.core.tensor import Tensor
    from headrace.functions.concrete_function import ConcreteFunction

__all__ = ["entries_of", "entry_dtypes", "entry_functions", "is_table", "table_functions"]

_Table = LookupInterface | LoadedResource


def is_table(value: object) -> TypeGuard[_Table]:
    """Whether it is a lookup table itself (some tables only wrap another one)."""
    if isinstance(value, LookupInterface):
        return value._resource_handle is not None
    return isinstance(value, LoadedResource)


def entry_dtypes(table: _Table) -> tuple[dtypes.DType, dtypes.DType] | None:
    """The types of keys and values of a table whose entries are saved; None for static ones."""
    found: tuple[dtypes.DType, dtypes.DType] | None = getattr(table, "entry_dtypes", None)
    return found


def entries_of(table: _Table) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Keys and values as they are now."""
    keys, values = _export(table)
    return keys.numpy(), values.numpy()


def _export(table: _Table) -> list[Tensor]:
    kinds = entry_dtypes(table)
    if kinds is None:
        raise ValueError(f"the entries of {table!r} are not saved")
    return export_entries(table.resource_handle, kinds)


def table_functions(table: LookupInterface) -> list[tuple[str, Function]]:
    """The functions that make, fill and drop a table, by the names that loaders know."""

    def create() -> Tensor:
        return table._create_resource()

    def initialize() -> Tensor:
        table._initialize()
        return convert_to_tensor(1)

    def destroy() -> Tensor:
        return convert_to_tensor(1)  # tables go with the loaded object

    named: dict[str, Callable[[], Tensor]] = {
        "_create_resource": create,
        "_initialize": initialize,
        "_destroy_resource": destroy,
    }
    return [(k, Function(f, input_signature=(), autograph=False)) for k, f in named.items()]


def entry_functions(table: _Table) -> tuple[ConcreteFunction, ConcreteFunction]:
    """The functions that give the entries for a checkpoint, and that take them from one."""
    kinds = entry_dtypes(table)
    assert kinds is not None

    def save(checkpoint_key: Tensor) -> list[dict[str, Tensor]]:
        named = zip(_export(table), ("-keys", "-values"), strict=True)
        whole = convert_to_tensor("")
        return [
            {"tensor": part, "slice_spec": whole, "name": checkpoint_key + suffix}
            for part, suffix in named
        ]

    def restore(restored_tensors_0: Tensor, restored_tensors_1: Tensor) -> Tensor:
        import_entries(table.resource_handle, restored_tensors_0, restored_tensors_1)
        return convert_to_tensor(1)

    key = [TensorSpec([], dtypes.string, "checkpoint_key")]
    parts = [TensorSpec(None, kind, f"restored_tensors_{i}") for i, kind in enumerate(kinds)]
    saver = Function(save, input_signature=key, autograph=False)
    restorer = Function(restore, input_signature=parts, autograph=False)
    return saver.get_concrete_function(), restorer.get_concrete_function()
