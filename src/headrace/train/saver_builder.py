"""The operations of a saver.

Names and order are TensorFlow's, so that graphs with savers are the same graphs.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core.device_names import _canonical_device, _merge_devices
from headrace.core.graph import get_default_graph
from headrace.core.scopes import control_dependencies, device, name_scope
from headrace.core.tensor import Tensor
from headrace.ops.array.basic import constant, identity, placeholder_with_default
from headrace.ops.control.dependencies import group, with_dependencies
from headrace.ops.io.checkpoint_ops import (
    merge_v2_checkpoints,
    restore_v2,
    save_slices,
    save_v2,
    sharded_filename,
    sharded_filespec,
)
from headrace.ops.strings.string_ops import string_join
from headrace.train import saveables as _saveables
from headrace.train.saveables import SaveableObject as Saveable
from headrace.train.saveables import dynamic_shape, validate_and_slice_inputs
from headrace.variables.partitioned_variable import PartitionedVariable

if TYPE_CHECKING:
    from headrace.core.tensor import Operation

__all__ = ["BaseSaverBuilder", "BulkSaverBuilder"]

_V1, _V2 = 1, 2
_Shards = list[tuple[str, list[Saveable]]]


def _messages() -> Any:
    from tensorboard.compat.proto import saver_pb2

    return saver_pb2


def _on_cpu(device_name: str | None) -> str:
    return _merge_devices(device_name or "", "/device:CPU:0")


class BaseSaverBuilder:
    """Adds the operations of a saver, one RestoreV2 for each saveable.

    Subclasses may make other operations.
    """

    SaveSpec = _saveables.SaveSpec
    SaveableObject = _saveables.SaveableObject
    VariableSaveable = _saveables.ReferenceVariableSaveable
    ResourceVariableSaveable = _saveables.ResourceVariableSaveable

    def __init__(self, write_version: int = _V2) -> None:
        self._write_version = write_version

    def save_op(self, filename_tensor: Tensor, saveables: Sequence[Saveable]) -> Operation:
        """The operation that writes the saveables to a file."""
        specs = [spec for saveable in saveables for spec in saveable.specs]
        names, slices = [s.name for s in specs], [s.slice_spec for s in specs]
        tensors = [s.tensor for s in specs]
        if self._write_version == _V1:
            return save_slices(filename_tensor, names, tensors, slices)
        if self._write_version == _V2:
            return save_v2(filename_tensor, names, slices, tensors)
        raise RuntimeError(f"Unexpected write_version: {self._write_version}")

    def bulk_restore(
        self,
        filename_tensor: Tensor,
        saveables: Sequence[Saveable],
        preferred_shard: int,
        restore_sequentially: bool,
    ) -> list[Tensor]:
        """The tensors of all saveables, as read."""
        found: list[Tensor] = []
        for saveable in saveables:
            with device(_on_cpu(saveable.device) if saveable.device else None):
                found.extend(self.restore_op(filename_tensor, saveable, preferred_shard))
        return found

    def restore_op(
        self, filename_tensor: Tensor, saveable: Saveable, preferred_shard: int
    ) -> list[Tensor]:
        """The tensors of one saveable."""
        return [
            restore_v2(filename_tensor, [s.name], [s.slice_spec], [s.dtype])[0]
            for s in saveable.specs
        ]

    def sharded_filename(self, filename_tensor: Tensor, shard: int, num_shards: Tensor) -> Tensor:
        return sharded_filename(filename_tensor, shard, num_shards)

    # saving ---------------------------------------------------------------------------------------
    def _AddSaveOps(self, filename_tensor: Tensor, saveables: Sequence[Saveable]) -> Tensor:
        save = self.save_op(filename_tensor, saveables)
        return with_dependencies([save], filename_tensor)

    def _AddShardedSaveOps(self, filename_tensor: Tensor, per_device: _Shards) -> Tensor:
        if self._write_version == _V2:
            return self._AddShardedSaveOpsForV2(filename_tensor, per_device)
        count = constant(len(per_device), name="num_shards")
        saves = []
        for shard, (place, saveables) in enumerate(per_device):
            with device(place):
                name = self.sharded_filename(filename_tensor, shard, count)
                saves.append(self._AddSaveOps(name, saveables))
        with control_dependencies([s.op for s in saves]):
            return sharded_filespec(filename_tensor, count)

    def _AddShardedSaveOpsForV2(self, checkpoint_prefix: Tensor, per_device: _Shards) -> Tensor:
        """Shards are written into a folder of their own, then made one checkpoint."""
        folder = string_join([checkpoint_prefix, f"_temp_{uuid.uuid4().hex}/part"])
        count = constant(len(per_device), name="num_shards")
        saves, prefixes = [], []
        for shard, (place, saveables) in enumerate(per_device):
            with device(_on_cpu(place)):
                prefixes.append(self.sharded_filename(folder, shard, count))
                saves.append(self._AddSaveOps(prefixes[-1], saveables))
        with control_dependencies([s.op for s in saves]), device(_on_cpu(per_device[-1][0])):
            merge = merge_v2_checkpoints(prefixes, checkpoint_prefix, delete_old_dirs=True)
            with control_dependencies([merge]):
                return identity(checkpoint_prefix)

    # restoring ------------------------------------------------------------------------------------
    def _AddRestoreOps(
        self,
        filename_tensor: Tensor,
        saveables: Sequence[Saveable],
        restore_sequentially: bool,
        reshape: bool,
        preferred_shard: int = -1,
        name: str = "restore_all",
    ) -> Operation:
        tensors = self.bulk_restore(
            filename_tensor, saveables, preferred_shard, restore_sequentially
        )
        writes, at = [], 0
        for saveable in saveables:
            shapes = [dynamic_shape(s.tensor) for s in saveable.specs] if reshape else None
            writes.append(saveable.restore(tensors[at : at + len(saveable.specs)], shapes))
            at += len(saveable.specs)
        return group(*writes, name=name)

    def _AddShardedRestoreOps(
        self,
        filename_tensor: Tensor,
        per_device: _Shards,
        restore_sequentially: bool,
        reshape: bool,
    ) -> Operation:
        restores = []
        for shard, (place, saveables) in enumerate(per_device):
            with device(place):
                restores.append(
                    self._AddRestoreOps(
                        filename_tensor,
                        saveables,
                        restore_sequentially,
                        reshape,
                        shard,
                        "restore_shard",
                    )
                )
        return group(*restores, name="restore_all")

    def _GroupByDevices(self, saveables: Sequence[Saveable]) -> _Shards:
        found: dict[str, list[Saveable]] = {}
        for saveable in saveables:
            places = {_canonical_device(s.tensor.device or "") for s in saveable.specs}
            if len(places) != 1:
                raise ValueError(
                    f"All tensors of a saveable object must be on the same device: {saveable.name}"
                )
            found.setdefault(places.pop(), []).append(saveable)
        return sorted(found.items(), key=lambda item: item[0])

    # all ------------------------------------------------------------------------------------------
    def build(
        self,
        names_to_saveables: Any,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        filename: str | None = "model",
    ) -> Any:
        """Add the operations to the default graph; returns the SaverDef that names them."""
        saveables = validate_and_slice_inputs(names_to_saveables)
        with name_scope(name, "save", [s.op for s in saveables]):
            path = placeholder_with_default(filename or "model", shape=(), name="filename")
            path = placeholder_with_default(path, shape=(), name="Const")
            if sharded:
                per_device = self._GroupByDevices(saveables)
                save = self._AddShardedSaveOps(path, per_device)
                restore = self._AddShardedRestoreOps(
                    path, per_device, restore_sequentially, reshape
                )
            else:
                save = self._AddSaveOps(path, saveables)
                restore = self._AddRestoreOps(path, saveables, restore_sequentially, reshape)
        _read_partitioned_variables()
        return _messages().SaverDef(
            filename_tensor_name=path.name,
            save_tensor_name=save.name,
            restore_op_name=restore.name,
            max_to_keep=max_to_keep or 0,
            sharded=sharded,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            version=self._write_version,
        )


def _read_partitioned_variables() -> None:
    """A partitioned variable in a collection is exported by its whole, which must be in the
    graph.
    """
    graph = get_default_graph()
    for key in graph.get_all_collection_keys():
        for element in graph.get_collection(key):
            if isinstance(element, PartitionedVariable):
                try:
                    graph.get_operation_by_name(element.name)
                except KeyError:
                    element.as_tensor()


class BulkSaverBuilder(BaseSaverBuilder):
    """Reads all tensors with one operation."""

    def bulk_restore(
        self,
        filename_tensor: Tensor,
        saveables: Sequence[Saveable],
        preferred_shard: int,
        restore_sequentially: bool,
    ) -> list[Tensor]:
        specs = [spec for saveable in saveables for spec in saveable.specs]
        with device("/device:CPU:0"):
            return restore_v2(
                filename_tensor,
                [s.name for s in specs],
                [s.slice_spec for s in specs],
                [s.dtype for s in specs],
            )
