"""What is in a checkpoint: ``tf.train.NewCheckpointReader``, ``list_variables`` and their like.

>>> reader = tf.train.load_checkpoint("/tmp/run")
>>> reader.get_variable_to_shape_map()
{'w': [784, 10]}
>>> reader.get_tensor("w")
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core.annotations import Array
from headrace.core.dtypes import DType, as_dtype
from headrace.core.scopes import device
from headrace.ops.io.checkpoint_ops import open_checkpoint, restore_v2
from headrace.runtime.file_paths import local_path
from headrace.train.checkpoint_files import latest_checkpoint
from headrace.train.saveables import op_list_to_dict, saveable_objects_for_op
from headrace.variables.partitioned_variable import PartitionedVariable
from headrace.variables.scope_state import _get_default_variable_store
from headrace.variables.variable import Variable
from headrace.wire.slice_files import SliceFileReader

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike


__all__ = [
    "CheckpointReader",
    "checkpoint_filename",
    "checkpoints_iterator",
    "init_from_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
    "wait_for_new_checkpoint",
]

_log = logging.getLogger("tensorflow")


class CheckpointReader:
    """Reads a checkpoint of either format; ``filename`` is its prefix."""

    def __init__(self, filename: Any) -> None:
        prefix = local_path(filename)
        folder = os.path.dirname(prefix)
        if folder and not os.path.isdir(folder):
            raise errors.InvalidArgumentError(
                None,
                None,
                "Unsuccessful TensorSliceReader constructor: Failed to get matching files on "
                f"{prefix}: Not found: {folder}; No such file or directory",
            )
        self._file = open_checkpoint(prefix)

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The shapes (lists) of all tensors, by name."""
        return {name: list(self._file.shape(name)) for name in self._file.names()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """The types of all tensors, by name."""
        return {name: as_dtype(self._file.dtype(name)) for name in self._file.names()}

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether there is a tensor of this name."""
        return local_path(tensor_str) in self._file

    def get_tensor(self, tensor_str: str) -> Array:
        """The value of a tensor; NotFoundError if there is none of this name."""
        name = local_path(tensor_str)
        if name not in self._file:
            where = "in checkpoint file" if isinstance(self._file, SliceFileReader) else ""
            found = f"{name} not found {where}" if where else f"Key {name} not found in checkpoint"
            raise errors.NotFoundError(None, None, found)
        array: Array = self._file.read(name)
        return array

    def debug_string(self) -> bytes:
        """A line for every entry: name, type and shape; parts of partitioned tensors have keys."""
        lines = []
        for key, dtype, shape, parts in self._file.entries():
            line = b"%s (DT_%s) [%s]" % (
                key,
                _type_name(dtype),
                b",".join(b"%d" % n for n in shape),
            )
            lines.append(line + (b", %d slices\n" % parts if parts > 1 else b"\n"))
        return b"".join(lines)


def _type_name(dtype: int) -> bytes:
    name = as_dtype(dtype).name
    return _TYPE_NAMES.get(name, name).upper().encode()


#: Where TensorFlow's name of a type is not its name in Python.
_TYPE_NAMES = {"float32": "float", "float64": "double", "float16": "half"}


def checkpoint_filename(ckpt_dir_or_file: str) -> str | None:
    """The prefix of a checkpoint; of a folder the newest one, or None."""
    path = local_path(ckpt_dir_or_file)
    return latest_checkpoint(path) if os.path.isdir(path) else path


def load_checkpoint(ckpt_dir_or_file: str) -> CheckpointReader:
    """A reader of a checkpoint, or of the newest one of a folder."""
    prefix = checkpoint_filename(ckpt_dir_or_file)
    if prefix is None:
        raise ValueError(
            "Couldn't find 'checkpoint' file or checkpoints in given directory "
            f"{local_path(ckpt_dir_or_file)}"
        )
    return CheckpointReader(prefix)


def load_variable(ckpt_dir_or_file: str, name: str) -> Array:
    """The value of a variable in a checkpoint."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: str) -> list[tuple[str, list[int]]]:
    """(name, shape) of everything in a checkpoint, by name."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def wait_for_new_checkpoint(
    checkpoint_dir: str,
    last_checkpoint: str | None = None,
    seconds_to_sleep: float = 1,
    timeout: float | None = None,
) -> str | None:
    """The next checkpoint of a folder after ``last_checkpoint``; None after ``timeout`` seconds."""
    _log.info("Waiting for new checkpoint at %s", checkpoint_dir)
    stop = None if timeout is None else time.time() + timeout
    while True:
        path = latest_checkpoint(checkpoint_dir)
        if path is not None and path != last_checkpoint:
            _log.info("Found new checkpoint at %s", path)
            return path
        if stop is not None and time.time() + seconds_to_sleep > stop:
            return None
        time.sleep(seconds_to_sleep)


def checkpoints_iterator(
    checkpoint_dir: str,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], Any] | None = None,
) -> Iterator[str]:
    """Checkpoints of a folder as they appear.

    Args:
      checkpoint_dir: the folder.
      min_interval_secs: the least time from one to the next.
      timeout: seconds to wait for one; forever without this.
      timeout_fn: called when time is over; the iterator goes on if it returns something false.
    """
    path: str | None = None
    while True:
        found = wait_for_new_checkpoint(checkpoint_dir, path, timeout=timeout)
        if found is None:
            if timeout_fn is None:
                _log.info("Timed-out waiting for a checkpoint.")
                return
            if timeout_fn():
                return
            continue
        start, path = time.time(), found
        yield path
        rest = start + min_interval_secs - time.time()
        if rest > 0:
            time.sleep(rest)


# initial values -----------------------------------------------------------------------------------


def init_from_checkpoint(ckpt_dir_or_file: str, assignment_map: Mapping[str, Any]) -> None:
    """Let variables be initialized from a checkpoint instead of their initializers.

    Nothing is read before an initializer runs.

    Args:
      ckpt_dir_or_file: a checkpoint's prefix, or a folder with checkpoints.
      assignment_map: by name in the checkpoint the variable, its name, or the parts of a
        partitioned one; ``"scope/": "other/"`` is all variables below ``other/``.
    """
    if not hasattr(assignment_map, "items"):  # pairs are taken too
        assignment_map = dict(assignment_map)
    prefix, reader = checkpoint_filename(ckpt_dir_or_file), load_checkpoint(ckpt_dir_or_file)
    shapes = reader.get_variable_to_shape_map()
    store = _get_default_variable_store()._vars
    for name, target in sorted(assignment_map.items()):
        found = _variables_of(target, store)
        if found is None:
            for part, variable in _of_scope(name, target, store, shapes, ckpt_dir_or_file):
                _initialize_from(variable, prefix, part)
            continue
        _check_tensor(found, name, shapes, ckpt_dir_or_file)
        _initialize_from(found, prefix, name)


def _variables_of(target: Any, store: Mapping[str, Any]) -> Any:
    """The variable, or the list of its parts; None for a scope."""
    if isinstance(target, PartitionedVariable):
        return list(target)
    if isinstance(target, Variable) or (
        isinstance(target, list) and all(isinstance(v, Variable) for v in target)
    ):
        return target
    if not isinstance(target, str):
        raise TypeError(
            "assignment_map needs variables, lists of the parts of one, names of variables or "
            f"scopes as values, not {target!r}"
        )
    if target in store:
        return store[target]
    parts: list[Any] = []
    while f"{target}/part_{len(parts)}" in store:
        parts.append(store[f"{target}/part_{len(parts)}"])
    return parts or None


def _check_tensor(
    found: TensorLike, name: str, shapes: Mapping[str, list[int]], where: str
) -> None:
    if name not in shapes:
        raise ValueError(f"Tensor {name} is not found in {where} checkpoint {shapes}")
    if isinstance(found, Variable) and not found.get_shape().is_compatible_with(shapes[name]):
        raise ValueError(
            f"Shape of variable {found.name} ({found.get_shape()}) doesn't match with shape of "
            f"tensor {name} ({shapes[name]}) from checkpoint reader."
        )


def _of_scope(
    name: str, target: str, store: Mapping[str, Any], shapes: Mapping[str, list[int]], where: str
) -> Iterator[tuple[str, Any]]:
    """(name in the checkpoint, variable) of everything below a scope."""
    scope = target.rpartition("/")[0]
    if not name.endswith("/"):
        raise ValueError(
            f"Assignment map with scope only name {scope} should map to scope only {name}. "
            "Should be 'scope/': 'other_scope/'."
        )
    names = {v.partition("/part_")[0] for v in store if not scope or v.startswith(f"{scope}/")}
    for variable in sorted(names):
        full = variable[len(scope) :] if target == "/" else variable[len(scope) + 1 :]
        full = (full if name == "/" else name + full).removesuffix("/")
        if full not in shapes:
            raise ValueError(
                f"Tensor {full} ({variable[len(scope) + 1 :]} in {name}) is not found in {where} "
                "checkpoint"
            )
        yield full, _variables_of(variable, store)


def _initialize_from(found: Any, prefix: str | None, name: str) -> None:
    if isinstance(found, Variable):
        _set_initializer(found, prefix, name, "")
        return
    infos = [part._get_save_slice_info() for part in found]
    for part, info in zip(found, infos):
        if info.full_name != infos[0].full_name:
            raise ValueError(
                f"Slices must all be from the same tensor: {infos[0].full_name} != {info.full_name}"
            )
        _set_initializer(part, prefix, name, info.spec)


def _set_initializer(variable: Variable, prefix: str | None, name: str, slice_spec: str) -> None:
    with device(variable.device), device("/cpu:0"):
        (value,) = restore_v2(
            prefix, [name], [slice_spec], [variable.dtype], name="checkpoint_initializer"
        )
        ((_, op),) = op_list_to_dict([variable]).items()
        (saveable,) = saveable_objects_for_op(op, name)
    made = saveable.restore([value], restored_shapes=None)
    variable._initializer_op = getattr(made, "op", made)
    value.set_shape(variable.shape)
    variable._initial_value = value
