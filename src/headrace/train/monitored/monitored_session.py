"""``tf.train.MonitoredTrainingSession``: a session with hooks, checkpoints and queue runners.

>>> with tf.train.MonitoredTrainingSession(hooks=[tf.train.StopAtStepHook(1000)]) as sess:
...     while not sess.should_stop():
...         sess.run(train_op)
"""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any

from headrace import errors
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import get_collection
from headrace.train.input_queues.coordinator import Coordinator
from headrace.train.input_queues.queue_runner import start_queue_runners
from headrace.train.monitored.saving_hooks import (
    CheckpointSaverHook,
    StepCounterHook,
    SummarySaverHook,
)
from headrace.train.monitored.scaffold import Scaffold
from headrace.train.monitored.session_manager import SessionManager
from headrace.train.monitored.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorboard.compat.proto.config_pb2 import ConfigProto, RunMetadata, RunOptions

    from headrace.core.annotations import FeedDict, Fetches
    from headrace.errors import OutOfRangeError
    from headrace.train.monitored.hooks import NanLossDuringTrainingError

__all__ = [
    "ChiefSessionCreator",
    "MonitoredSession",
    "MonitoredTrainingSession",
    "SessionCreator",
    "SingularMonitoredSession",
    "WorkerSessionCreator",
]

#: Errors after which MonitoredSession makes a new session and runs again.
_PREEMPTION_ERRORS = (errors.AbortedError, errors.UnavailableError)
USE_DEFAULT: Any = object()


class SessionCreator:
    """Makes the session that a MonitoredSession wraps."""

    def create_session(self) -> Any:
        raise NotImplementedError(f"create_session is not implemented for {self}.")


class _ScaffoldSessionCreator(SessionCreator):
    def __init__(self, scaffold: Scaffold | None, master: str, config: ConfigProto) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config

    def _session_manager(self) -> SessionManager:
        scaffold = self._scaffold.finalize()
        return SessionManager(
            local_init_op=scaffold.local_init_op,
            ready_op=scaffold.ready_op,
            ready_for_local_init_op=scaffold.ready_for_local_init_op,
            graph=get_default_graph(),
        )


class ChiefSessionCreator(_ScaffoldSessionCreator):
    """Makes the session of the process that initializes or restores the model.

    ``scaffold`` has the init ops and the saver; ``checkpoint_dir`` or
    ``checkpoint_filename_with_path`` says what to restore, if it is there.

    ``master`` is the session's target ("": this process), ``config`` its ``tf.ConfigProto``.
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: ConfigProto | None = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        super().__init__(scaffold, master, config)
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_filename_with_path = checkpoint_filename_with_path

    def create_session(self) -> Any:
        manager, scaffold = self._session_manager(), self._scaffold
        return manager.prepare_session(
            self._master,
            saver=scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path,
            config=self._config,
            init_op=scaffold.init_op,
            init_feed_dict=scaffold.init_feed_dict,
            init_fn=scaffold.init_fn,
        )


class WorkerSessionCreator(_ScaffoldSessionCreator):
    """Makes the session of a worker: waits until another process has initialized the model.

    After ``max_wait_secs`` it gives up. ``master`` is the session's target ("": this process),
    ``config`` its ``tf.ConfigProto``, ``scaffold`` has the operations that say whether the model is
    ready.
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: ConfigProto | None = None,
        max_wait_secs: float = 30 * 60,
    ) -> None:
        super().__init__(scaffold, master, config)
        self._max_wait_secs = max_wait_secs

    def create_session(self) -> Any:
        return self._session_manager().wait_for_session(
            self._master, config=self._config, max_wait_secs=self._max_wait_secs
        )


class StepContext:
    """What a step function is given: the session, a run with hooks, and a way to stop."""

    def __init__(self, monitored: _MonitoredSession) -> None:
        self._monitored = monitored

    @property
    def session(self) -> Any:
        return self._monitored._tf_sess()

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        return self._monitored._run_hooked(*args, **kwargs)

    def request_stop(self) -> None:
        raise StopIteration("step_fn has requested the iterations to stop.")


class _MonitoredSession:
    """What the monitored sessions share.

    ``recover``: make a new session after errors of preemption.
    """

    StepContext = StepContext

    def __init__(
        self,
        session_creator: Any,
        hooks: Any,
        should_recover: bool,
        stop_grace_period_secs: float = 120,
    ) -> None:
        self._graph_was_finalized = get_default_graph().finalized
        self._hooks: list[SessionRunHook] = list(hooks or [])
        for hook in self._hooks:
            hook.begin()
        self._creator = session_creator or ChiefSessionCreator()
        self._recovers = should_recover
        self._stop_grace_period_secs = stop_grace_period_secs
        self._sess: Any = None
        self._coord: Coordinator | None = None
        self._stopped = False
        self._closed = False
        self._recovering(self._open)

    # sessions ------------------------------------------------------------------------------------
    def _open(self) -> None:
        if self._sess is not None:
            return
        self._sess = self._creator.create_session()
        self._coord = Coordinator(clean_stop_exception_types=[])
        self._stopped = False
        if get_collection(GraphKeys.QUEUE_RUNNERS):
            start_queue_runners(sess=self._sess, coord=self._coord)
        for hook in self._hooks:
            hook.after_create_session(self._sess, self._coord)

    def _shut(self) -> None:
        """Stop the threads and close the session; raises what a thread reported."""
        sess, coord = self._sess, self._coord
        self._sess = self._coord = None
        if sess is None or coord is None:
            return
        coord.request_stop()
        try:
            coord.join(
                stop_grace_period_secs=self._stop_grace_period_secs, ignore_live_threads=True
            )
        finally:
            sess.close()

    def _with_cause(self, call: Callable[..., Any]) -> Any:
        """The call; an error that followed from a preemption which a thread saw is the latter."""
        try:
            return call()
        except _PREEMPTION_ERRORS:
            raise
        except Exception:
            if self._coord is not None:
                try:
                    self._coord.raise_requested_exception()
                except _PREEMPTION_ERRORS:
                    raise
                except Exception:
                    pass
            raise

    def _recovering(self, call: Callable[..., Any]) -> Any:
        while True:
            try:
                return self._with_cause(call)
            except _PREEMPTION_ERRORS:
                if not self._recovers:
                    raise
                try:
                    self._shut()
                except _PREEMPTION_ERRORS:
                    continue  # reported by a thread too

    @property
    def graph(self) -> Any:
        return None if self._sess is None else self._sess.graph

    def _tf_sess(self) -> Any:
        return self._sess

    def _is_closed(self) -> bool:
        return self._closed

    # running -------------------------------------------------------------------------------------
    def run(
        self,
        fetches: Any,
        feed_dict: FeedDict | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Like ``Session.run``, with the hooks called around it."""
        self._check_open()

        def attempt() -> Any:
            self._open()
            return self._run_hooked(fetches, feed_dict, options, run_metadata)

        return self._recovering(attempt)

    def run_step_fn(self, step_fn: Any) -> Any:
        """Call ``step_fn(step_context)``, which may run parts without the hooks."""
        names = tuple(inspect.signature(step_fn).parameters)
        if names not in (("step_context",), ("self", "step_context")):
            raise ValueError(
                "`step_fn` may either have one `step_context` argument, or `self` and "
                "`step_context` arguments if "
                f"it's an instance method. Got {names} instead."
            )
        self._check_open()

        def attempt() -> Any:
            self._open()
            return step_fn(StepContext(self))

        return self._recovering(attempt)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Run called on a MonitoredSession that is closed.")

    def _run_hooked(
        self,
        fetches: Fetches,
        feed_dict: FeedDict | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        if self._stopped:
            raise RuntimeError("Run called even after should_stop requested.")
        sess = self._sess
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), sess)
        wanted: dict[Any, Any] = {"caller": fetches}
        requests = [(hook, hook.before_run(context)) for hook in self._hooks]
        for hook, request in requests:
            if request is not None and request.fetches is not None:
                wanted[hook] = request.fetches
        feeds = _merged_feeds([r.feed_dict for _, r in requests if r is not None], feed_dict)
        options = _merged_options(options, [r.options for _, r in requests if r is not None])
        if options is not None and run_metadata is None:
            run_metadata = _config("RunMetadata")()
        found = sess.run(wanted, feed_dict=feeds, options=options, run_metadata=run_metadata)
        for hook in self._hooks:
            hook.after_run(context, SessionRunValues(found.get(hook), options, run_metadata))
        self._stopped = self._stopped or context.stop_requested
        return found["caller"]

    def should_stop(self) -> bool:
        """Whether a hook or a thread asked for a stop, or the session is closed."""
        if self._closed:
            return True
        if self._coord is None:
            return False
        try:
            self._coord.raise_requested_exception()
        except _PREEMPTION_ERRORS:
            if not self._recovers:
                return True
            self._recovering(self._reopen)
            return False
        except Exception:
            return True
        return self._stopped or self._coord.should_stop()

    def _reopen(self) -> None:
        with contextlib.suppress(*_PREEMPTION_ERRORS):  # they are why a new session is made
            self._shut()
        self._open()

    # the end -------------------------------------------------------------------------------------
    def close(self) -> None:
        self._close()

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self,
        kind: type[Any] | None,
        error: OutOfRangeError | NanLossDuringTrainingError | None,
        traceback: object,
    ) -> bool:
        if kind in (errors.OutOfRangeError, StopIteration):  # the ordinary ends of input
            kind = None
        self._close(kind)
        return kind is None

    def _close(self, kind: type[Any] | None = None) -> None:
        if self._closed:
            raise RuntimeError("Session is already closed.")
        try:
            if not kind:
                for hook in self._hooks:
                    hook.end(self._sess)
        finally:
            self._closed = True
            try:
                self._shut()
            finally:
                if not self._graph_was_finalized:
                    get_default_graph()._unsafe_unfinalize()


def _config(name: str) -> Any:
    from tensorboard.compat.proto import config_pb2  # type: ignore[import-not-found,unused-ignore]

    return getattr(config_pb2, name)


def _merged_feeds(of_hooks: list[Any], of_user: Mapping[str, Any] | None) -> Any:
    merged: dict[Any, Any] = {}
    for feeds in of_hooks:
        _refuse_common(merged, feeds or {}, "Same tensor is fed by two hooks.")
        merged.update(feeds or {})
    if not merged:
        return of_user
    _refuse_common(of_user or {}, merged, "Same tensor is fed by a SessionRunHook and user.")
    return {**merged, **(of_user or {})}


def _refuse_common(first: Mapping[str, Any], second: Mapping[str, Any], message: str) -> None:
    common = [key for key in first if key in second]
    if common:
        raise RuntimeError(f"{message} Conflict(s): {common}")


def _merged_options(given: object, of_hooks: list[Any]) -> Any:
    """RunOptions with the highest trace level and the longest timeout that anybody asks for.

    None if nobody does.
    """
    asked = [o for o in of_hooks if o is not None]
    if not asked:
        return given
    merged = _config("RunOptions")()
    for options in [*([] if given is None else [given]), *asked]:
        merged.trace_level = max(merged.trace_level, options.trace_level)
        merged.timeout_in_ms = max(merged.timeout_in_ms, options.timeout_in_ms)
        merged.output_partition_graphs |= options.output_partition_graphs
        merged.report_tensor_allocations_upon_oom |= options.report_tensor_allocations_upon_oom
        merged.debug_options.debug_tensor_watch_opts.extend(
            options.debug_options.debug_tensor_watch_opts
        )
    return merged


class MonitoredSession(_MonitoredSession):
    """A session with hooks, which is made anew after AbortedError and UnavailableError.

    ``session_creator`` makes the session (None: a ChiefSessionCreator); threads of queue runners
    get ``stop_grace_period_secs`` to end. Use it as a context.

        with tf.train.MonitoredSession(hooks=[hook]) as sess:
            while not sess.should_stop():
                sess.run(train)
    """

    def __init__(
        self, session_creator: Any = None, hooks: Any = None, stop_grace_period_secs: float = 120
    ) -> None:
        super().__init__(session_creator, hooks, True, stop_grace_period_secs)


class SingularMonitoredSession(_MonitoredSession):
    """A session with hooks that is made once; ``raw_session()`` is the plain session.

    The arguments are those of ``tf.train.MonitoredTrainingSession``; errors are not recovered from.
    """

    def __init__(
        self,
        hooks: object = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: ConfigProto | None = None,
        checkpoint_dir: str | None = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        creator = ChiefSessionCreator(
            scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path
        )
        super().__init__(creator, hooks, False, stop_grace_period_secs)

    def raw_session(self) -> Any:
        return self._sess


def MonitoredTrainingSession(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: str | None = None,
    scaffold: Scaffold | None = None,
    hooks: Sequence[Any] | None = None,
    chief_only_hooks: Any = None,
    save_checkpoint_secs: object = USE_DEFAULT,
    save_summaries_steps: object = USE_DEFAULT,
    save_summaries_secs: object = USE_DEFAULT,
    config: object = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: object = USE_DEFAULT,
    summary_dir: str | None = None,
) -> MonitoredSession:
    """A MonitoredSession with the usual hooks: the whole frame of a training program.

    With ``checkpoint_dir`` the model is restored from there, and the chief (``is_chief``) saves it
    every ``save_checkpoint_secs`` (600) or ``save_checkpoint_steps``, writes summaries into
    ``summary_dir`` every ``save_summaries_steps`` (100) or ``save_summaries_secs``, and logs the
    speed every ``log_step_count_steps``. ``scaffold`` has the initial operations and the saver;
    ``chief_only_hooks`` are added on the chief; ``max_wait_secs`` is how long a worker waits for
    the chief. ``master`` is the session's target, ``config`` its ``tf.ConfigProto``.

        with tf.train.MonitoredTrainingSession(checkpoint_dir=folder) as sess:
            while not sess.should_stop():
                sess.run(train)
    """
    scaffold = scaffold or Scaffold()
    if not is_chief:
        worker = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
        return MonitoredSession(worker, hooks or [], stop_grace_period_secs)
    summary_steps, summary_secs = _interval(save_summaries_steps, save_summaries_secs, 100, None)
    saving_steps, saving_secs = _interval(save_checkpoint_steps, save_checkpoint_secs, None, 600)
    all_hooks: list[Any] = list(chief_only_hooks or [])
    summary_dir = summary_dir or checkpoint_dir
    if summary_dir and _positive(log_step_count_steps):
        all_hooks.append(
            StepCounterHook(output_dir=summary_dir, every_n_steps=log_step_count_steps)
        )
    if summary_dir and (_positive(summary_steps) or _positive(summary_secs)):
        all_hooks.append(
            SummarySaverHook(
                scaffold=scaffold,
                save_steps=summary_steps,
                save_secs=summary_secs,
                output_dir=summary_dir,
            )
        )
    if checkpoint_dir and (_positive(saving_steps) or _positive(saving_secs)):
        all_hooks.append(
            CheckpointSaverHook(
                checkpoint_dir, save_steps=saving_steps, save_secs=saving_secs, scaffold=scaffold
            )
        )
    chief = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    return MonitoredSession(chief, [*all_hooks, *(hooks or [])], stop_grace_period_secs)


def _interval(
    steps: object, secs: object, default_steps: int | None, default_secs: int | None
) -> tuple[Any, Any]:
    """Defaults only where neither is given."""
    if steps is USE_DEFAULT and secs is USE_DEFAULT:
        return default_steps, default_secs
    return None if steps is USE_DEFAULT else steps, None if secs is USE_DEFAULT else secs


def _positive(value: Any) -> bool:
    return bool(value and value > 0)
