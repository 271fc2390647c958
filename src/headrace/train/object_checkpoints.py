"""``tf.train.Checkpoint`` and ``CheckpointManager``: checkpoints of objects.

    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    manager = tf.train.CheckpointManager(checkpoint, "/tmp/run", max_to_keep=3)
    checkpoint.restore(manager.latest_checkpoint)
    manager.save()

The files are TensorFlow's: values by the path to their variable, and the object graph.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.dtypes import int64
from headrace.core.scopes import get_default_session, init_scope
from headrace.eager.eager_context import executing_eagerly
from headrace.runtime.file_paths import local_path
from headrace.train.checkpoint_files import (
    checkpoint_exists,
    get_checkpoint_state,
    latest_checkpoint,
    remove_checkpoint,
    sync_checkpoint,
    write_checkpoint_state,
)
from headrace.train.object_graph import GRAPH_KEY, ObjectNode, may_be_tracked, object_graph
from headrace.train.object_restore import (
    CheckpointLoadStatus,
    InitializationOnlyStatus,
    NameBasedSaverStatus,
    Restoration,
    saved_graph,
)
from headrace.train.tracked_objects import Tracking
from headrace.variables.variable import create_variable
from headrace.wire.tensor_bundle import BundleWriter

if TYPE_CHECKING:
    from headrace.session.session import BaseSession

__all__ = ["Checkpoint", "CheckpointManager", "object_graph_key_mapping"]


def object_graph_key_mapping(checkpoint_path: Any) -> dict[str, str]:
    """Keys of a checkpoint of objects by the names that variables had.

    NotFoundError for a checkpoint by names.
    """
    graph = saved_graph(local_path(checkpoint_path))
    if graph is None:
        raise errors.NotFoundError(None, None, f"Key {GRAPH_KEY} not found in checkpoint")
    return {a.full_name: a.checkpoint_key for node in graph.nodes for a in node.attributes}


class Checkpoint(Tracking):
    """Saves and restores the variables of objects.

    Args:
      root: an object whose own attributes are saved (TF 2).
      **kwargs: objects by name: variables, modules, layers, optimizers, lists or dicts of these.
    """

    _TF_MODULE_IGNORED_PROPERTIES = frozenset(
        (*Tracking._TF_MODULE_IGNORED_PROPERTIES, "_restorations", "_root")
    )

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        self._root = root
        for name, value in sorted(kwargs.items()):
            if not may_be_tracked(value):
                raise ValueError(
                    "`Checkpoint` was expecting a trackable object (an object derived from "
                    f"`Trackable`), got {value}. If you believe this object should be trackable "
                    "(i.e. it is part of the TensorFlow Python API and manages state), please "
                    "open an issue."
                )
            setattr(self, name, value)
            if root is not None:
                setattr(root, name, value)

    @property
    def _object(self) -> Any:
        """What is saved: this, or the root with the counter."""
        if self._root is None:
            return self
        if "save_counter" in self.__dict__:
            self._root.__dict__.setdefault("save_counter", self.__dict__["save_counter"])
        return self._root

    def __getattr__(self, name: str) -> Any:
        if name == "save_counter":
            return self._counter(None)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _counter(self, session: BaseSession | None) -> Any:
        """The number of saves, a variable that is made when it is first needed."""
        if "save_counter" not in self.__dict__:
            with init_scope():
                made = create_variable(
                    0, trainable=False, name="save_counter", dtype=int64, use_resource=True
                )
            session = get_default_session() if session is None else session
            if not executing_eagerly() and session is not None:
                session.run(made.initializer)
            self.save_counter = made
        return self.__dict__["save_counter"]

    def write(self, file_prefix: Any, session: Any = None, options: Any = None) -> str:
        """Write a checkpoint under exactly this name; no number, no ``checkpoint`` file."""
        del options  # about devices of other machines
        prefix: str = os.fspath(file_prefix)
        folder = os.path.dirname(prefix)
        if folder:
            os.makedirs(folder, exist_ok=True)
        graph = object_graph(self._object)
        nodes = list(graph.variables())
        values = _values([n.value for n in nodes], session)
        blob = np.empty((), object)
        blob[()] = graph.message().SerializeToString(deterministic=True)
        items: list[tuple[str, Any, int | None]] = [(GRAPH_KEY, blob, None)]
        items += [(n.key, v, n.value.dtype._base._enum) for n, v in zip(nodes, values, strict=True)]
        for node, pair in _exported(list(graph.tables()), session):
            for part, value, dtype in zip(
                ("keys", "values"), pair, node.value.entry_dtypes, strict=True
            ):
                items.append((f"{node.key}-{part}", value, dtype._enum))
        for node in graph.states():
            state = np.empty((), object)
            text = node.value.serialize()
            state[()] = text.encode() if isinstance(text, str) else text
            items.append((node.key, state, None))
        try:
            with BundleWriter(prefix) as writer:
                for key, value, dtype in sorted(items, key=lambda item: item[0].encode()):
                    writer.add(key, value, dtype)
        except OSError as error:
            raise errors.os_error(error.filename or prefix, error) from None
        return prefix

    def save(
        self, file_prefix: Any, session: BaseSession | None = None, options: Any = None
    ) -> str:
        """Write ``file_prefix-N``, N the number of the save, and the ``checkpoint`` file."""
        number = self._count(session)
        path = self.write(f"{os.fspath(file_prefix)}-{number}", session, options)
        write_checkpoint_state(
            os.path.dirname(os.fspath(file_prefix)), path, [path], save_relative_paths=True
        )
        return path

    def _count(self, session: BaseSession | None) -> int:
        counter = self._counter(session)
        if executing_eagerly():
            return int(counter.assign_add(1))
        session = get_default_session() if session is None else session
        if session is None:
            raise RuntimeError(
                "Checkpoint.save in a graph needs a session: pass session= or use `with session:`"
            )
        if "_count_op" not in self.__dict__:
            self.__dict__["_count_op"] = counter.assign_add(1, read_value=False)
        session.run(self.__dict__["_count_op"])
        return int(session.run(counter))

    def restore(self, save_path: Any, options: Any = None) -> Any:
        """Restore objects, also those that are set as attributes later.

        Returns:
          The status: ``assert_consumed()``, ``expect_partial()`` and so on. In a graph
          ``run_restore_ops()`` or ``initialize_or_restore()`` does the work.
        """
        status = self.read(save_path, options)
        if save_path is not None:
            self._counter(None)  # restored too
            if isinstance(status, CheckpointLoadStatus):
                status._restoration.match()
        return status

    def read(self, save_path: Any, options: Any = None) -> Any:
        """``restore`` without the number of saves."""
        del options
        if save_path is None:
            return InitializationOnlyStatus(self._object)
        path = local_path(save_path)
        graph = saved_graph(path)
        if graph is None:
            return NameBasedSaverStatus(self._object, path)
        return CheckpointLoadStatus(Restoration(self._object, path, graph))


def _exported(nodes: list[ObjectNode], session: BaseSession | None) -> list[tuple[ObjectNode, Any]]:
    """The keys and the values of tables."""
    pairs = [n.value.export() for n in nodes]
    if executing_eagerly():
        return [(n, [t.numpy() for t in pair]) for n, pair in zip(nodes, pairs)]
    session = get_default_session() if session is None else session
    return list(zip(nodes, session.run(pairs))) if session is not None else []


def _values(variables: list[Any], session: BaseSession | None) -> list[Any]:
    if executing_eagerly():
        return [v.numpy() for v in variables]
    session = get_default_session() if session is None else session
    if session is None:
        raise RuntimeError(
            "Checkpoint.write in a graph needs a session: pass session= or use `with session:`"
        )
    return list(session.run(variables))


class CheckpointManager:
    """Keeps the newest checkpoints of a folder and deletes older ones.

    Args:
      checkpoint: the :class:`Checkpoint` to save.
      directory: the folder.
      max_to_keep: how many are kept; None keeps all.
      keep_checkpoint_every_n_hours: one in so many hours is kept for good.
      checkpoint_name: the files' name before the number.
      step_counter: a variable; with ``checkpoint_interval``, ``save`` does nothing before so many
        steps have passed since the last one.
      checkpoint_interval: see ``step_counter``.
      init_fn: called by ``restore_or_initialize`` where there is no checkpoint.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: Any,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Any = None,
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(
                f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}."
            )
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError(
                "`step_counter` should be passed if `checkpoint_interval` is not None."
            )
        self._checkpoint = checkpoint
        self._directory: str = os.fspath(directory)
        self._max_to_keep, self._keep_hours = max_to_keep, keep_checkpoint_every_n_hours
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._step_counter, self._interval, self._init_fn = (
            step_counter,
            checkpoint_interval,
            init_fn,
        )
        self._last_step: int | None = None
        self._kept: dict[str, float] = {}
        self._latest: str | None = None
        self._preserved = time.time() - 1.0
        self._recover()

    def _recover(self) -> None:
        state = get_checkpoint_state(self._directory)
        if state is None:
            return
        now = time.time()
        self._latest = state.model_checkpoint_path
        self._preserved = min(state.last_preserved_timestamp, now)
        paths = list(state.all_model_checkpoint_paths)
        stamps = list(state.all_model_checkpoint_timestamps) or [self._preserved] * len(paths)
        for path, stamp in zip(paths, stamps):
            if min(stamp, now) > self._preserved:
                self._kept[path] = min(stamp, now)

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoint(self) -> Checkpoint:
        """What is saved."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """The least number of steps between saves."""
        return self._interval

    @property
    def latest_checkpoint(self) -> str | None:
        """The newest checkpoint, or None."""
        return self._latest

    @property
    def checkpoints(self) -> list[str]:
        """The checkpoints that are managed, from old to new."""
        return list(self._kept)

    def save(
        self, checkpoint_number: Any = None, check_interval: bool = True, options: Any = None
    ) -> str | None:
        """Write a checkpoint and delete old ones; None where the interval has not passed.

        Args:
          checkpoint_number: the number for its name; the number of saves without this.
          check_interval: whether ``checkpoint_interval`` holds for this save.
          options: taken for compatibility with other machines' devices; nothing here needs it.
        """
        if self._interval is not None and check_interval and not self._is_due():
            return None
        number = self._checkpoint._count(None)
        if checkpoint_number is not None:
            number = int(_number_of(checkpoint_number))
        path = self._checkpoint.write(f"{self._prefix}-{number}", options=options)
        self._kept.pop(path, None)
        self._kept[path] = time.time()
        self._latest = path
        self._record()
        self._sweep()
        self._record()
        return path

    def _is_due(self) -> bool:
        step = int(_number_of(self._step_counter))
        if self._last_step is not None and step - self._last_step < (self._interval or 0):
            return False
        self._last_step = step
        return True

    def _sweep(self) -> None:
        while self._max_to_keep and len(self._kept) > self._max_to_keep:
            path = next(iter(self._kept))
            stamp = self._kept.pop(path)
            if self._keep_hours and stamp - self._keep_hours * 3600.0 >= self._preserved:
                self._preserved = stamp
                continue
            sync_checkpoint(next(iter(self._kept)))
            remove_checkpoint(path)

    def _record(self) -> None:
        write_checkpoint_state(
            self._directory,
            self._latest,
            list(self._kept),
            save_relative_paths=True,
            all_model_checkpoint_timestamps=list(self._kept.values()),
            last_preserved_timestamp=self._preserved,
        )

    def restore_or_initialize(self) -> str | None:
        """Restore the newest checkpoint; without one call ``init_fn`` and return None."""
        path = latest_checkpoint(self._directory)
        if path is not None and checkpoint_exists(path):
            self._checkpoint.restore(path)
            if self._interval is not None:
                self._last_step = int(_number_of(self._step_counter))
            return path
        if self._init_fn is not None:
            self._init_fn()
        return None


def _number_of(value: Any) -> Any:
    if isinstance(value, (int, np.integer)):
        return value
    if executing_eagerly():
        return value.numpy()
    session = get_default_session()
    if session is None:
        raise RuntimeError("A number that is a variable needs a default session in a graph")
    return session.run(value)
