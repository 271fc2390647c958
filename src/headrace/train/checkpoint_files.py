"""Which checkpoints there are: the ``checkpoint`` file of a folder, and the files of one
checkpoint.

>>> tf.train.latest_checkpoint("/tmp/run")
'/tmp/run/model-1000'
"""

from __future__ import annotations

import glob
import logging
import os
import tempfile
from collections.abc import Iterable
from typing import Any

from headrace.errors import NotFoundError
from headrace.runtime.file_paths import local_path
from headrace.wire.checkpoint_messages import checkpoint_state_class
from headrace.wire.tensor_bundle import (
    bundle_exists,
    finish_staged,
    index_path,
    sync_bundle,
    sync_files,
)

__all__ = [
    "checkpoint_exists",
    "generate_checkpoint_state_proto",
    "get_checkpoint_mtimes",
    "get_checkpoint_state",
    "latest_checkpoint",
    "meta_graph_filename",
    "remove_checkpoint",
    "sync_checkpoint",
    "update_checkpoint_state",
]

_log = logging.getLogger("tensorflow")
_V1, _V2 = 1, 2


def _state_path(folder: str, latest_filename: str | None) -> str:
    return os.path.join(local_path(folder), latest_filename or "checkpoint")


def generate_checkpoint_state_proto(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: list[str] | None = None,
    all_model_checkpoint_timestamps: Any = None,
    last_preserved_timestamp: float | None = None,
) -> Any:
    """A CheckpointState; paths are relative to ``save_dir`` where they and it are relative.

    What the file "checkpoint" of a folder holds: ``model_checkpoint_path``, the newest, and
    ``all_model_checkpoint_paths``, oldest first, to which the newest is added. The timestamps,
    seconds since 1970, are one for each path and the last one kept for good.
    """
    newest = local_path(model_checkpoint_path)
    paths = [] if all_model_checkpoint_paths is None else all_model_checkpoint_paths
    if not paths or paths[-1] != newest:
        _log.info("%s is not in all_model_checkpoint_paths. Manually adding it.", newest)
        paths.append(newest)
    stamps = all_model_checkpoint_timestamps
    if stamps and len(stamps) != len(paths):
        raise ValueError(
            "Checkpoint timestamps, if provided, must match checkpoint paths (got paths "
            f"{paths} and timestamps {stamps})"
        )
    folder = local_path(save_dir)
    if not os.path.isabs(folder):
        newest = newest if os.path.isabs(newest) else os.path.relpath(newest, folder)
        paths[:] = [p if os.path.isabs(p) else os.path.relpath(p, folder) for p in paths]
    return checkpoint_state_class()(
        model_checkpoint_path=newest,
        all_model_checkpoint_paths=paths,
        all_model_checkpoint_timestamps=stamps,
        last_preserved_timestamp=last_preserved_timestamp,
    )


def update_checkpoint_state(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: list[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: object = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """Write the ``checkpoint`` file of the folder ``save_dir``.

    ``model_checkpoint_path`` is the newest checkpoint, ``all_model_checkpoint_paths`` are all that
    are kept, from old to new, with the times ``all_model_checkpoint_timestamps``.
    ``latest_filename`` replaces the name "checkpoint".
    """
    write_checkpoint_state(
        save_dir,
        model_checkpoint_path,
        all_model_checkpoint_paths,
        latest_filename,
        False,
        all_model_checkpoint_timestamps,
        last_preserved_timestamp,
    )


def write_checkpoint_state(
    save_dir: str,
    model_checkpoint_path: Any,
    all_model_checkpoint_paths: list[str] | None = None,
    latest_filename: str | None = None,
    save_relative_paths: bool = False,
    all_model_checkpoint_timestamps: object = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """:func:`update_checkpoint_state` with the choice of relative paths."""
    from google.protobuf import text_format

    folder, newest = local_path(save_dir), local_path(model_checkpoint_path)
    paths = all_model_checkpoint_paths
    if save_relative_paths:
        newest = _relative(newest, folder)
        paths = [_relative(p, folder) for p in paths or ()]
    state = generate_checkpoint_state_proto(
        folder, newest, paths, all_model_checkpoint_timestamps, last_preserved_timestamp
    )
    target = _state_path(folder, latest_filename)
    if target == state.model_checkpoint_path:
        raise RuntimeError(
            f"Save path '{local_path(model_checkpoint_path)}' conflicts with path used "
            "for checkpoint state.  Please use a "
            "different save path."
        )
    _write_atomically(target, text_format.MessageToString(state))


def _relative(path: str, folder: str) -> str:
    return os.path.relpath(path, folder) if os.path.isabs(path) else path


def _write_atomically(path: str, text: str) -> None:
    """Readers see the old file or the new one."""
    handle, temporary = tempfile.mkstemp(
        prefix=f"{os.path.basename(path)}.tmp", dir=os.path.dirname(path) or "."
    )
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def get_checkpoint_state(checkpoint_dir: str, latest_filename: str | None = None) -> Any:
    """The CheckpointState of the folder ``checkpoint_dir``, its paths complete; None without one.

    ``latest_filename`` is the name of the file that is read ("checkpoint").
    ``model_checkpoint_path`` is the newest checkpoint, ``all_model_checkpoint_paths`` are all that
    are kept.
    """
    from google.protobuf import text_format

    if checkpoint_dir is None:
        return None
    folder = local_path(checkpoint_dir)
    path = _state_path(folder, latest_filename)
    try:
        with open(path, encoding="utf-8") as file:
            state = text_format.Parse(file.read(), checkpoint_state_class()())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError, text_format.ParseError) as error:
        _log.warning("%s: %s", type(error).__name__, error)
        _log.warning("%s: Checkpoint ignored", path)
        return None
    if not state.model_checkpoint_path:
        raise ValueError(f"Invalid checkpoint state loaded from {folder}")
    if not os.path.isabs(state.model_checkpoint_path):
        state.model_checkpoint_path = os.path.join(folder, state.model_checkpoint_path)
    for i, p in enumerate(state.all_model_checkpoint_paths):
        if not os.path.isabs(p):
            state.all_model_checkpoint_paths[i] = os.path.join(folder, p)
    return state


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """The path of the newest checkpoint in the folder ``checkpoint_dir``, for ``Saver.restore``;
    None without one.

    ``latest_filename`` is the name of the file that lists them ("checkpoint").
    """
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    path: str = state.model_checkpoint_path
    if checkpoint_exists(path):
        return path
    _log.error("Couldn't match files for checkpoint %s", path)
    return None


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Whether there is a checkpoint with this prefix, of either format."""
    prefix = local_path(checkpoint_prefix)
    return bundle_exists(prefix) or bool(_matching(index_path(prefix)) or _matching(prefix))


def _matching(pattern: str) -> list[str]:
    """Files that match; NotFoundError if their folder is not there, as in TensorFlow."""
    folder = os.path.dirname(pattern)
    if folder and not glob.has_magic(folder) and not os.path.isdir(folder):
        raise NotFoundError(None, None, f"{folder}; No such file or directory")
    return [] if pattern.endswith("/") else sorted(glob.glob(pattern))


def get_checkpoint_mtimes(checkpoint_prefixes: Iterable[Any]) -> list[float]:
    """When the checkpoints were written (seconds since 1970).

    Those that are not there are left out.
    """
    times = []
    for item in checkpoint_prefixes:
        prefix = local_path(item)
        finish_staged(prefix)
        for pattern in (index_path(prefix), prefix):
            found = _matching(pattern)
            if found:
                times.append(os.stat(found[0]).st_mtime_ns / 1e9)
                break
    return times


def meta_graph_filename(checkpoint_filename: str, meta_graph_suffix: str = "meta") -> str:
    """Where the MetaGraph of a checkpoint is: shards have one together."""
    base = local_path(checkpoint_filename)
    head, _, tail = base.rpartition("-?????-of-")
    if head and len(tail) == 5 and tail.isdigit():
        base = head
    return f"{base}.{meta_graph_suffix}"


def sync_checkpoint(checkpoint_prefix: str) -> None:
    """Return when a checkpoint is on the disk.

    For one that stays while an older one is deleted: after a power failure there is one of them.
    """
    prefix = os.fsdecode(checkpoint_prefix)
    if bundle_exists(prefix):
        sync_bundle(prefix)
    else:
        sync_files(glob.glob(prefix))


def remove_checkpoint(
    checkpoint_prefix: str, checkpoint_format_version: int = _V2, meta_graph_suffix: str = "meta"
) -> None:
    """Delete the files of the checkpoint ``checkpoint_prefix``, and its ``.meta`` file.

    ``checkpoint_format_version`` is that of ``tf.train.SaverDef`` (V1 or V2).
    """
    prefix = local_path(checkpoint_prefix)
    patterns = [meta_graph_filename(prefix, meta_graph_suffix)]
    if checkpoint_format_version == _V2:
        patterns += [f"{prefix}.index", f"{prefix}.data-?????-of-?????"]
    else:
        patterns.append(prefix)
    for pattern in patterns:
        for path in glob.glob(pattern):
            os.unlink(path)
