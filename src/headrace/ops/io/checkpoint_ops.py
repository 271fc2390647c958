"""The operations behind savers: writing tensors to a checkpoint, reading them, and putting shards
together.

Both formats are read by RestoreV2: a bundle (``prefix.index``) where there is one, else V1 files
that fit the prefix.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.build import apply, apply_list, apply_operation
from headrace.core.dtypes import DType, as_dtype
from headrace.core.infer import Inference
from headrace.core.opdef import NOT_DIFFERENTIABLE, define
from headrace.core.shapes import Shape
from headrace.core.tensor import Operation, Tensor
from headrace.ops.strings.string_ops import object_array
from headrace.runtime.file_paths import local_path
from headrace.wire.bundle_entries import Slice
from headrace.wire.slice_files import SliceFileReader, slice_files_exist, write_slice_file
from headrace.wire.tensor_bundle import BundleReader, BundleWriter, bundle_exists, merge_bundles
from headrace.wire.transfer_progress import transfer

if TYPE_CHECKING:
    from headrace.core.annotations import Array, ArrayNamespace, TensorLike

__all__ = [
    "CHECKPOINT_OPS",
    "CheckpointFile",
    "merge_v2_checkpoints",
    "open_checkpoint",
    "restore_all",
    "restore_v2",
    "save_slices",
    "save_v2",
    "sharded_filename",
    "sharded_filespec",
]

CheckpointFile = BundleReader | SliceFileReader

#: Endings of the files that a checkpoint consists of, and of the graph beside it.
_PART = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")


def open_checkpoint(prefix: str) -> CheckpointFile:
    """A reader of the checkpoint at ``prefix``; NotFoundError if there is none."""
    whole = _PART.sub("", prefix)
    if whole != prefix and bundle_exists(whole) and not bundle_exists(prefix):
        kind = errors.NotFoundError if prefix.endswith(".index") else errors.DataLossError
        raise kind(
            None,
            None,
            f"'{prefix}' is one of the files of the checkpoint '{whole}': give that name",
        )
    if not bundle_exists(prefix) and (slice_files_exist(prefix) or os.path.isdir(prefix)):
        return SliceFileReader(prefix)
    return BundleReader(prefix)


# kernels ------------------------------------------------------------------------------------------


def _text(array: Any) -> str:
    return local_path(array.item())


def _texts(array: Array) -> list[str]:
    return [local_path(v) for v in array.reshape(-1).tolist()]


def parse_slice_spec(text: str) -> tuple[tuple[int, ...], Slice]:
    """The shape of the whole and the part, from TensorFlow's text ``4 3 0,2:0,3``."""
    words = text.split()
    try:
        shape = tuple(int(w) for w in words[:-1])
        extents = [
            (0, -1) if w == "-" else tuple(int(n) for n in w.split(","))
            for w in words[-1].split(":")
        ]
        if len(extents) != len(shape) or any(len(e) != 2 for e in extents):
            raise ValueError
    except ValueError:
        raise errors.InvalidArgumentError(
            None, None, f"Expected 'shape slice' ('4 3 0,2:0,3') in shape_and_slices, got: {text!r}"
        ) from None
    return shape, Slice(tuple((s, n) for s, n in extents))


def _check_counts(names: list[str], slices: list[str], tensors: Sequence[Any]) -> None:
    if not len(names) == len(slices) == len(tensors):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"Got {len(names)} tensor names, {len(slices)} shapes and slices and "
            f"{len(tensors)} tensors: there must be one of "
            "each for every tensor",
        )


def _make_folder(prefix: str) -> None:
    """As TensorFlow: one new folder is made, not a whole path."""
    folder = os.path.dirname(prefix)
    if folder and not os.path.isdir(folder):
        try:
            os.mkdir(folder)
        except FileExistsError:
            pass  # a file, which cannot hold the checkpoint: writing to it says so
        except OSError as error:
            raise errors.os_error(folder, error) from None


def _save_v2_kernel(
    xp: ArrayNamespace,
    prefix: Array,
    names: Array,
    slices: Array,
    *tensors: Array,
    dtypes: Sequence[DType],
) -> tuple[()]:
    path, listed, specs = _text(prefix), _texts(names), _texts(slices)
    _check_counts(listed, specs, tensors)
    _make_folder(path)
    order = sorted(range(len(listed)), key=lambda i: listed[i].encode())
    arrays = [np.asarray(t) for t in tensors]
    try:
        with (
            transfer(f"saving {os.path.basename(path)}", sum(a.nbytes for a in arrays)) as advance,
            BundleWriter(path, advance) as writer,
        ):
            for i in order:
                array = arrays[i]
                if specs[i]:
                    shape, part = parse_slice_spec(specs[i])
                    writer.add_slice(listed[i], shape, part, array)
                else:
                    writer.add(listed[i], array, as_dtype(dtypes[i])._base._enum)
    except OSError as error:
        raise errors.os_error(error.filename or path, error) from None
    return ()


def _save_v1_kernel(
    xp: ArrayNamespace, filename: Array, names: Array, slices: Array, *tensors: Any
) -> tuple[()]:
    path, listed, specs = _text(filename), _texts(names), _texts(slices)
    _check_counts(listed, specs, tensors)
    items = []
    for name, spec, value in zip(listed, specs, tensors):
        shape, part = parse_slice_spec(spec) if spec else (np.shape(value), None)
        items.append((name, shape, part, value))
    try:
        write_slice_file(path, items)
    except OSError as error:
        raise errors.os_error(error.filename or path, error) from None
    return ()


def _save_plain_kernel(
    xp: ArrayNamespace, filename: Array, names: Array, *tensors: object
) -> tuple[()]:
    return _save_v1_kernel(xp, filename, names, object_array([b""] * names.size, (-1,)), *tensors)


def _restore_kernel(
    xp: ArrayNamespace, prefix: Array, names: Array, slices: Array, *, dtypes: Sequence[DType]
) -> Array | tuple[Array, ...]:
    found = restore_all(prefix, names, slices, dtypes, [None] * len(dtypes))
    return found[0] if len(found) == 1 else found


def restore_all(
    prefix: Array,
    names: Array,
    slices: Array,
    dtypes: Sequence[DType],
    present: Sequence[Array | None],
) -> tuple[Any, ...]:
    """The tensors of RestoreV2.

    Where ``present`` has an array that a tensor fits into, it may be left in its file, checked.
    """
    listed, specs = _texts(names), _texts(slices)
    _check_counts(listed, specs, dtypes)
    reader = open_checkpoint(_text(prefix))
    for name in listed:
        if name not in reader:
            raise errors.NotFoundError(None, None, f"Key {name} not found in checkpoint")
    with _shown(reader, listed, specs):
        return tuple(
            [_restored(reader, n, s, d, p) for n, s, d, p in zip(listed, specs, dtypes, present)]
        )


@contextmanager
def _shown(reader: CheckpointFile, names: Sequence[str], specs: Sequence[str]) -> Iterator[None]:
    """Reports how far reading is to those who asked; V1 files have no such thing."""
    if isinstance(reader, SliceFileReader):
        yield
        return
    title = f"restoring {os.path.basename(reader.prefix)}"
    parts = [parse_slice_spec(s)[1] if s else None for s in specs]
    total = sum(reader.stored_bytes(n, p) for n, p in zip(names, parts))
    with transfer(title, total) as reader.advance:
        yield


def _restored(
    reader: CheckpointFile, name: str, spec: str, dtype: object, present: Array | None = None
) -> Any:
    want = as_dtype(dtype)._base
    have = as_dtype(reader.dtype(name))._base
    if have is not want:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"tensor_name = {name}; expected dtype {_c_name(want)} does not equal "
            f"original dtype {_c_name(have)}",
        )
    part = _checked_part(reader, name, spec) if spec else None
    if present is not None and isinstance(reader, BundleReader):
        size = reader.stored_bytes(name, part)
        fits = (present.dtype, present.nbytes) == (want.np_dtype, size)
        stored = reader.locate(name, part) if fits else None
        if stored is not None:
            return stored
    if part is not None:
        return reader.read_part(name, part)
    value = reader.read(name)
    return value.view(want.np_dtype) if want._kind == "q" else value


def _checked_part(reader: CheckpointFile, name: str, spec: str) -> Slice:
    shape, part = parse_slice_spec(spec)
    if shape != reader.shape(name):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"tensor_name = {name}; shape in shape_and_slice spec {_dims(shape)} does not "
            "match the shape stored in "
            f"checkpoint: {_dims(reader.shape(name))}",
        )
    return part


def _c_name(dtype: DType) -> str:
    """TensorFlow's name of a type in messages of its kernels."""
    return {"float32": "float", "float64": "double", "float16": "half"}.get(dtype.name, dtype.name)


def _dims(shape: Sequence[int]) -> str:
    return f"[{','.join(map(str, shape))}]"


def _restore_one_kernel(xp: ArrayNamespace, pattern: Array, name: str, *, dt: Array) -> Any:
    return _restored(open_checkpoint(_text(pattern)), _text(name), "", dt)


def _restore_slice_kernel(
    xp: ArrayNamespace, pattern: object, name: str | None, spec: object, *, dt: object
) -> Any:
    return _restored(open_checkpoint(_text(pattern)), _text(name), _text(spec), dt)


def _merge_kernel(
    xp: ArrayNamespace, prefixes: Array, destination: Array, *, delete_old_dirs: bool
) -> tuple[()]:
    try:
        merge_bundles(_texts(prefixes), _text(destination), delete_old_dirs)
    except OSError as error:
        raise errors.os_error(error.filename or _text(destination), error) from None
    return ()


def _string(value: str) -> Array:
    out = np.empty((), object)
    out[()] = os.fsencode(value)
    return out


def _sharded_name_kernel(xp: ArrayNamespace, basename: Array, shard: Array, count: Array) -> Array:
    return _string(f"{_text(basename)}-{int(shard):05d}-of-{int(count):05d}")


def _filespec_kernel(xp: ArrayNamespace, basename: Array, count: Array) -> Array:
    return _string(f"{_text(basename)}-?????-of-{int(count):05d}")


# shapes -------------------------------------------------------------------------------------------


def _nothing(c: Inference) -> list[Shape]:
    c.require_rank(0, 0)
    return []


def _merge_shape(c: Inference) -> list[Shape]:
    c.require_rank(0, 1)
    c.require_rank(1, 0)
    return []


def _restore_shape(c: Inference) -> list[Shape]:
    """Parts have the shapes that their descriptions tell; whole tensors may have any."""
    c.require_rank(0, 0)
    count = len(c.attr("dtypes"))
    for i in (1, 2):
        if c.require_rank(i, 1)[0] not in (None, count):
            raise ValueError(f"Dimension must be {count} but is {c.require_rank(i, 1)[0]}")
    specs = c.value(2)
    return [None] * count if specs is None else [_part_shape(s) for s in _texts(specs)]


def _part_shape(spec: str) -> Shape:
    """The shape that a description tells; an empty one means the whole tensor."""
    if not spec:
        return None
    whole, part = parse_slice_spec(spec)
    return tuple(size if n < 0 else n for size, (_, n) in zip(whole, part.extents))


def _any_shape(c: Inference) -> list[Shape]:
    return [None]


def _slice_shape(c: Inference) -> list[Shape]:
    for i in range(3):
        c.require_rank(i, 0)
    spec = c.value(2)
    return [None if spec is None else _part_shape(_text(spec))]


def _scalar(c: Inference) -> list[Shape]:
    for i in range(c.n_inputs):
        c.require_rank(i, 0)
    return [()]


# A file may change between two runs: nothing here is folded or shared.
SAVE_V2 = define(
    "SaveV2",
    "prefix: string, tensor_names: string, shape_and_slices: string, tensors: *dtypes -> "
    "; dtypes: list(type)",
    shape=_nothing,
    kernel=_save_v2_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    stateful=True,
    writes_files=True,
)
RESTORE_V2 = define(
    "RestoreV2",
    "prefix: string, tensor_names: string, shape_and_slices: string -> tensors: *dtypes; "
    "dtypes: list(type)",
    shape=_restore_shape,
    kernel=_restore_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    stateful=True,
    restores=True,
)
MERGE_V2_CHECKPOINTS = define(
    "MergeV2Checkpoints",
    "checkpoint_prefixes: string, destination_prefix: string -> ; delete_old_dirs: bool=True",
    shape=_merge_shape,
    kernel=_merge_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    stateful=True,
    writes_files=True,
)
SAVE = define(
    "Save",
    "filename: string, tensor_names: string, data: *T -> ; T: list(type)",
    shape=_nothing,
    kernel=_save_plain_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    stateful=True,
    writes_files=True,
)
SAVE_SLICES = define(
    "SaveSlices",
    "filename: string, tensor_names: string, shapes_and_slices: string, data: *T -> ; T: "
    "list(type)",
    shape=_nothing,
    kernel=_save_v1_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    stateful=True,
    writes_files=True,
)
RESTORE = define(
    "Restore",
    "file_pattern: string, tensor_name: string -> tensor: dt; dt: type, preferred_shard: int=-1",
    shape=_any_shape,
    kernel=_restore_one_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    stateful=True,
)
RESTORE_SLICE = define(
    "RestoreSlice",
    "file_pattern: string, tensor_name: string, shape_and_slice: string -> tensor: dt; "
    "dt: type, preferred_shard: int=-1",
    shape=_slice_shape,
    kernel=_restore_slice_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
    stateful=True,
)
SHARDED_FILENAME = define(
    "ShardedFilename",
    "basename: string, shard: int32, num_shards: int32 -> filename: string",
    shape=_scalar,
    kernel=_sharded_name_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)
SHARDED_FILESPEC = define(
    "ShardedFilespec",
    "basename: string, num_shards: int32 -> filename: string",
    shape=_scalar,
    kernel=_filespec_kernel,
    grad=NOT_DIFFERENTIABLE,
    host_only=True,
)


#: What the operations of a saver are made of.
CHECKPOINT_OPS = frozenset(
    op.name for op in (SAVE_V2, RESTORE_V2, SAVE, SAVE_SLICES, RESTORE, RESTORE_SLICE)
)


# functions ----------------------------------------------------------------------------------------


def save_v2(
    prefix: TensorLike,
    tensor_names: TensorLike,
    shape_and_slices: TensorLike,
    tensors: object,
    name: str | None = None,
) -> Operation:
    """Writes tensors to a V2 checkpoint.

    ``shape_and_slices`` has "" or the place of a part ("4 3 0,2:0,3") for each.
    """
    return apply_operation(SAVE_V2, prefix, tensor_names, shape_and_slices, tensors, name=name)


def save_slices(
    filename: TensorLike,
    tensor_names: TensorLike,
    tensors: object,
    tensor_slices: TensorLike,
    name: str = "save",
) -> Operation:
    """Writes tensors to a V1 file."""
    return apply_operation(SAVE_SLICES, filename, tensor_names, tensor_slices, tensors, name=name)


def restore_v2(
    prefix: object,
    tensor_names: TensorLike,
    shape_and_slices: TensorLike,
    dtypes: Sequence[Any],
    name: str | None = None,
) -> list[Tensor]:
    """Reads tensors of a checkpoint, V2 or V1."""
    found = apply_list(
        RESTORE_V2,
        prefix,
        tensor_names,
        shape_and_slices,
        dtypes=tuple(as_dtype(d)._base for d in dtypes),
        name=name,
    )
    return list(found) if isinstance(found, (list, tuple)) else [found]


def merge_v2_checkpoints(
    checkpoint_prefixes: TensorLike,
    destination_prefix: TensorLike,
    delete_old_dirs: bool = True,
    name: str | None = None,
) -> Operation:
    """Makes one checkpoint of shards that SaveV2 wrote."""
    return apply_operation(
        MERGE_V2_CHECKPOINTS,
        checkpoint_prefixes,
        destination_prefix,
        delete_old_dirs=delete_old_dirs,
        name=name,
    )


def sharded_filename(
    basename: TensorLike, shard: TensorLike, num_shards: TensorLike, name: str | None = None
) -> Tensor:
    """``basename-00000-of-00002``."""
    return apply(SHARDED_FILENAME, basename, shard, num_shards, name=name)


def sharded_filespec(
    basename: TensorLike, num_shards: TensorLike, name: str | None = None
) -> Tensor:
    """The pattern that fits all shards."""
    return apply(SHARDED_FILESPEC, basename, num_shards, name=name)
