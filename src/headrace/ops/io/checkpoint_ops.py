"""Checkpoints as operations: SaveV2, RestoreV2 and their like, over tensor bundles (wire/tensor_bundle.py).

A saver's part of a graph is these operations; graphs that TensorFlow wrote have them, and run them here.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

import numpy as np

from headrace import errors
from headrace.core import dtypes
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shape_fns import no_outputs, scalar
from headrace.core.shapes import Shape
from headrace.wire.tensor_bundle import BundleReader, BundleWriter, Slice, data_path, index_path

__all__ = ["MERGE_V2_CHECKPOINTS", "RESTORE_V2", "SAVE_V2", "SHARDED_FILENAME", "parse_slice"]


def _texts(array: Any) -> list[str]:
    return [v.decode() for v in np.asarray(array).reshape(-1).tolist()]


def parse_slice(text: str) -> tuple[tuple[int, ...], Slice]:
    """``"10 3 0,4:-"``: the full shape, and the part of it (``start,length`` of each dimension, ``-`` for all)."""
    *dims, parts = text.split(" ")
    try:
        shape = tuple(int(d) for d in dims)
        extents = tuple((0, n) if p == "-" else (int(p.split(",")[0]), int(p.split(",")[1])) for n, p in zip(shape, parts.split(":")))  # fmt: skip
    except (ValueError, IndexError):
        raise errors.InvalidArgumentError(
            None, None, f"invalid shape_and_slice: '{text}'"
        ) from None
    if len(extents) != len(shape):
        raise errors.InvalidArgumentError(None, None, f"invalid shape_and_slice: '{text}'")
    return shape, Slice(extents)


def _save_kernel(xp: Any, prefix: Any, names: Any, slices: Any, *tensors: Any, dtypes: Any) -> None:
    try:
        with BundleWriter(os.fspath(prefix.item().decode())) as writer:
            for name, text, tensor, kind in zip(_texts(names), _texts(slices), tensors, dtypes):
                if text:
                    shape, part = parse_slice(text)
                    writer.add_slice(name, shape, part, tensor)
                else:
                    writer.add(name, tensor, kind.as_datatype_enum)
    except OSError as error:
        raise errors.os_error(prefix.item(), error) from None


def _restore_kernel(xp: Any, prefix: Any, names: Any, slices: Any, *, dtypes: Any) -> Any:
    reader = BundleReader(prefix.item().decode())
    out = []
    for name, text, kind in zip(_texts(names), _texts(slices), dtypes):
        have = reader.dtype(name)
        if have != kind.as_datatype_enum:
            raise errors.InvalidArgumentError(
                None, None,
                f"tensor_name = {name}; expected dtype {kind.name} does not equal original dtype {_name_of(have)}",
            )  # fmt: skip
        value = reader.read(name)
        if text:
            shape, part = parse_slice(text)
            if value.shape != shape:
                raise errors.InvalidArgumentError(
                    None, None,
                    f"tensor_name = {name}; shape in shape_and_slice spec {list(shape)} does not match the shape stored in "
                    f"checkpoint: {list(value.shape)}",
                )  # fmt: skip
            value = value[tuple(slice(s, s + n) for s, n in part.extents)]
        out.append(value.view(kind.np_dtype) if kind._kind == "q" else value)
    return tuple(out) if len(out) > 1 else out[0]


def _name_of(number: int) -> str:
    try:
        return dtypes.as_dtype(number).name
    except TypeError:
        return str(number)


def _restore_shapes(c: Inference) -> list[Shape]:
    """What a part of a partitioned variable says of its shape."""
    slices = c.value(2)
    n = len(c.attr("dtypes"))
    if slices is None or slices.size != n:
        return [None] * n
    return [tuple(k for _, k in parse_slice(t)[1].extents) if t else None for t in _texts(slices)]


def _sharded_name(xp: Any, basename: Any, shard: Any, num_shards: Any) -> Any:
    out = np.empty((), object)
    out[()] = b"%s-%05d-of-%05d" % (basename.item(), int(shard), int(num_shards))
    return out


def _sharded_spec(xp: Any, basename: Any, num_shards: Any) -> Any:
    out = np.empty((), object)
    out[()] = b"%s-?????-of-%05d" % (basename.item(), int(num_shards))
    return out


def _merge_kernel(xp: Any, prefixes: Any, destination: Any, *, delete_old_dirs: bool) -> None:
    """Shards that were written apart become one bundle."""
    target = destination.item().decode()
    sources = list(dict.fromkeys(_texts(prefixes)))
    try:
        with BundleWriter(target) as writer:
            for source in sources:
                writer.add_all(BundleReader(source))
        if delete_old_dirs:
            _remove_shards(sources)
    except OSError as error:
        raise errors.os_error(destination.item(), error) from None


def _remove_shards(sources: list[str]) -> None:
    for source in sources:
        for path in (index_path(source), data_path(source)):
            if os.path.exists(path):
                os.unlink(path)
    for folder in dict.fromkeys(os.path.dirname(s) for s in sources):
        with contextlib.suppress(OSError):  # something else may be in it
            os.rmdir(folder)


_IO: dict[str, Any] = {"grad": NOT_DIFFERENTIABLE, "stateful": True, "host_only": True}

SAVE_V2 = define(
    "SaveV2",
    "prefix: string, tensor_names: string, shape_and_slices: string, tensors: *dtypes ->; dtypes: list(type)",
    shape=no_outputs, kernel=_save_kernel, **_IO,
)  # fmt: skip
RESTORE_V2 = define(
    "RestoreV2",
    "prefix: string, tensor_names: string, shape_and_slices: string -> tensors: *dtypes; dtypes: list(type)",
    shape=_restore_shapes, kernel=_restore_kernel, **_IO,
)  # fmt: skip
MERGE_V2_CHECKPOINTS = define(
    "MergeV2Checkpoints",
    "checkpoint_prefixes: string, destination_prefix: string ->; delete_old_dirs: bool=True",
    shape=no_outputs, kernel=_merge_kernel, **_IO,
)  # fmt: skip
SHARDED_FILENAME = define(
    "ShardedFilename", "basename: string, shard: int32, num_shards: int32 -> filename: string",
    shape=scalar, kernel=_sharded_name, grad=NOT_DIFFERENTIABLE, host_only=True,
)  # fmt: skip
SHARDED_FILESPEC = define(
    "ShardedFilespec", "basename: string, num_shards: int32 -> filename: string",
    shape=scalar, kernel=_sharded_spec, grad=NOT_DIFFERENTIABLE, host_only=True,
)  # fmt: skip
