"""``tf.train.SessionManager``: a session whose variables were initialized or restored."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.graph import Graph, get_default_graph
from headrace.session.session import Session
from headrace.train.monitored import training_files

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor
    from headrace.train.saver import Saver

__all__ = ["SessionManager"]

_log = logging.getLogger("tensorflow")


class SessionManager:
    """Makes sessions that are ready: ``ready_op`` gives the names of what is not initialized.

    ``local_init_op`` is run in every session, once ``ready_for_local_init_op`` gives no names.
    """

    def __init__(
        self,
        local_init_op: object = None,
        ready_op: Any = None,
        ready_for_local_init_op: Tensor | None = None,
        graph: Graph | None = None,
        recovery_wait_secs: float = 30,
        local_init_run_options: object = None,
    ) -> None:
        if ready_for_local_init_op is not None and local_init_op is None:
            raise ValueError(
                "If you pass a ready_for_local_init_op you must also pass a local_init_op "
                ", ready_for_local_init_op "
                f"[{ready_for_local_init_op}]"
            )
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = get_default_graph() if graph is None else graph
        self._recovery_wait_secs = recovery_wait_secs
        self._local_init_run_options = local_init_run_options

    def prepare_session(
        self,
        master: str,
        init_op: object = None,
        saver: Saver | None = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: object = None,
        init_feed_dict: Any = None,
        init_fn: Any = None,
    ) -> Session:
        """A session restored from a checkpoint if there is one, else initialized.

        RuntimeError if it is not ready then.
        """
        sess, restored = self._restored(
            master,
            saver,
            checkpoint_dir,
            checkpoint_filename_with_path,
            wait_for_checkpoint,
            max_wait_secs,
            config,
        )
        if not restored:
            if init_op is None and not init_fn and self._local_init_op is None:
                raise RuntimeError(
                    "Model is not initialized and no init_op or init_fn or local_init_op was given"
                )
            if init_op is not None:
                sess.run(init_op, feed_dict=init_feed_dict)
            if init_fn:
                init_fn(sess)
        given = f"Init op: {getattr(init_op, 'name', init_op)}, init fn: {init_fn}"
        reason = self._run_local_init_op(sess)
        if reason is not None:
            raise RuntimeError(
                f"Init operations did not make model ready for local_init.  {given}, "
                f"error: {reason}"
            )
        reason = _not_ready(self._ready_op, sess)
        if reason is not None:
            raise RuntimeError(
                f"Init operations did not make model ready.  {given}, local_init_op: "
                f"{self._local_init_op}, "
                f"error: {reason}"
            )
        return sess

    def recover_session(
        self,
        master: str,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: object = None,
    ) -> tuple[Session, bool]:
        """A session, and whether it was restored and is ready."""
        sess, restored = self._restored(
            master,
            saver,
            checkpoint_dir,
            checkpoint_filename_with_path,
            wait_for_checkpoint,
            max_wait_secs,
            config,
        )
        reason = self._run_local_init_op(sess)
        if not restored:
            return sess, False
        if reason is None:
            reason = _not_ready(self._ready_op, sess)
        if reason is not None:
            _log.info("Restoring the model did not make it ready: %s", reason)
        return sess, reason is None

    def wait_for_session(
        self, master: str, config: Any = None, max_wait_secs: float | None = float("inf")
    ) -> Session:
        """A session of a model that somebody else initializes.

        DeadlineExceededError after ``max_wait_secs``.
        """
        limit = float("inf") if max_wait_secs is None else max_wait_secs
        end = time.monotonic() + limit
        while True:
            sess = Session(master, graph=self._graph, config=config)
            reason = self._run_local_init_op(sess)
            if reason is None:
                reason = _not_ready(self._ready_op, sess)
            if reason is None:
                return sess
            sess.close()
            if time.monotonic() + self._recovery_wait_secs > end:
                raise errors.DeadlineExceededError(
                    None, None, f"Session was not ready after waiting {limit:g} secs."
                )
            _log.info("Waiting for model to be ready: %s", reason)
            time.sleep(self._recovery_wait_secs)

    def _restored(
        self,
        master: str,
        saver: Saver | None,
        folder: str | None,
        path: str | None,
        wait: bool,
        max_wait: float,
        config: object,
    ) -> tuple[Session, bool]:
        sess = Session(master, graph=self._graph, config=config)
        if folder and path:
            raise ValueError(
                "Can not provide both checkpoint_dir and checkpoint_filename_with_path."
            )
        if not saver or not (folder or path):
            return sess, False
        if path:
            saver.restore(sess, path)
            return sess, True
        waited = 0.0
        state = training_files.checkpoint_state(folder)  # type: ignore[arg-type]
        while not state or not state.model_checkpoint_path:
            if not wait or waited >= max_wait:
                return sess, False
            _log.info("Waiting for checkpoint to be available.")
            time.sleep(self._recovery_wait_secs)
            waited += self._recovery_wait_secs
            state = training_files.checkpoint_state(folder)  # type: ignore[arg-type]
        saver.restore(sess, state.model_checkpoint_path)
        saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        return sess, True

    def _run_local_init_op(self, sess: Session) -> str | None:
        """Why it could not be run, or None."""
        if self._local_init_op is None:
            return None
        reason = _not_ready(self._ready_for_local_init_op, sess)
        if reason is None:
            sess.run(self._local_init_op, options=self._local_init_run_options)
        return reason


def _not_ready(op: TensorLike | None, sess: Session) -> str | None:
    """What an op that reports uninitialized variables says; None if the model is ready."""
    if op is None:
        return None
    try:
        value = sess.run(op)
    except errors.FailedPreconditionError as error:
        if "uninitialized" not in str(error):
            raise
        return str(error)
    if value is None or value.dtype == np.int32 or value.size == 0:
        return None
    return "Variables not initialized: " + ", ".join(name.decode() for name in value)
