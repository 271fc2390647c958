"""``tf.train.Supervisor``: initializes or restores a model, saves it and its summaries from
threads, and stops them.

>>> sv = tf.train.Supervisor(logdir="/tmp/model")
>>> with sv.managed_session() as sess:
...     while not sv.should_stop():
...         sess.run(train_op)
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from headrace.core.graph import Graph, get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.ops.control.dependencies import group
from headrace.train.global_step import global_step as read_global_step
from headrace.train.input_queues.coordinator import Coordinator, LooperThread
from headrace.train.monitored import training_files
from headrace.train.monitored.session_manager import SessionManager
from headrace.variables.variable_lists import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
    tables_initializer,
)

if TYPE_CHECKING:
    from tensorboard.compat.proto.config_pb2 import ConfigProto

    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Tensor
    from headrace.session.session import BaseSession
    from headrace.train.saver import Saver

__all__ = ["Supervisor"]

_log = logging.getLogger("tensorflow")
_DEFAULT: Any = 0


class Supervisor:
    """What is not given (``USE_DEFAULT``) is taken from the graph's collections, or made. None
    means: do without.

    The chief saves every ``save_model_secs`` and writes summaries every ``save_summaries_secs``
    into ``logdir``.
    """

    USE_DEFAULT = _DEFAULT

    def __init__(
        self,
        graph: Graph | None = None,
        ready_op: object = _DEFAULT,
        ready_for_local_init_op: object = _DEFAULT,
        is_chief: bool = True,
        init_op: object = _DEFAULT,
        init_feed_dict: Any = None,
        local_init_op: object = _DEFAULT,
        logdir: str | None = None,
        summary_op: object = _DEFAULT,
        saver: Any = _DEFAULT,
        global_step: TensorLike | None = _DEFAULT,
        save_summaries_secs: float | None = 120,
        save_model_secs: float | None = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: Any = None,
        summary_writer: object = _DEFAULT,
        init_fn: Any = None,
        local_init_run_options: Any = None,
    ) -> None:
        self._graph = graph or get_default_graph()
        if self._graph._is_eager:
            raise RuntimeError("Supervisors are not compatible with eager execution.")
        with self._graph.as_default():
            self._choose_init_ops(ready_op, ready_for_local_init_op, init_op, local_init_op)
            self.saver = self._choose(saver, GraphKeys.SAVERS, _saver_of_variables)
            self.summary_op = self._choose(
                summary_op, GraphKeys.SUMMARY_OP, training_files.merged_summaries
            )
            self.global_step = self._choose(global_step, GraphKeys.GLOBAL_STEP, self._named_step)
        self.init_feed_dict = init_feed_dict
        self.is_chief = is_chief
        self.coord = Coordinator()
        self._stop_grace_secs = stop_grace_secs
        self._init_fn = init_fn
        self._logdir = logdir if is_chief else None
        self.save_summaries_secs = save_summaries_secs if is_chief else None
        self.save_model_secs = save_model_secs if is_chief else None
        self.save_path = os.path.join(self._logdir, checkpoint_basename) if self._logdir else None
        self.summary_writer: Any = self._writer(summary_writer) if is_chief else None
        self._graph_added = False
        self.session_manager = session_manager or SessionManager(
            local_init_op=self._local_init_op,
            ready_op=self.ready_op,
            ready_for_local_init_op=self.ready_for_local_init_op,
            graph=self._graph,
            recovery_wait_secs=recovery_wait_secs,
            local_init_run_options=local_init_run_options,
        )
        self._check_devices()
        self._graph.finalize()

    def _choose_init_ops(
        self, ready_op: object, ready_for_local_init_op: object, init_op: object, local: object
    ) -> None:
        """What initialises the variables, and what tells that they are initialised."""
        keys = GraphKeys
        self.ready_op = self._choose(ready_op, keys.READY_OP, report_uninitialized_variables)
        self.ready_for_local_init_op = self._choose(
            ready_for_local_init_op, keys.READY_FOR_LOCAL_INIT_OP, lambda: None
        )
        self.init_op = self._choose(init_op, keys.INIT_OP, global_variables_initializer)
        self._local_init_op = self._choose(
            local,
            keys.LOCAL_INIT_OP,
            lambda: group(local_variables_initializer(), tables_initializer()),
        )

    def _choose(self, given: object, key: str, make: Callable[[], Any]) -> Any:
        if given is not _DEFAULT:
            return given
        found = self._graph.get_collection(key)
        if found:
            return found[0]
        made = make()
        if made is not None:
            self._graph.add_to_collection(key, made)
        return made

    def _named_step(self) -> Tensor | None:
        try:
            step = self._graph.get_tensor_by_name("global_step:0")
        except KeyError:
            return None
        if step.dtype.base_dtype.is_integer:
            return step
        _log.warning("Found 'global_step' is not an int type: %s", step.dtype)
        return None

    def _writer(self, given: object) -> Any:
        if given is not _DEFAULT:
            return given
        return training_files.summary_writer(self._logdir, shared=False) if self._logdir else None

    def _check_devices(self) -> None:
        if self.is_chief:
            return
        for op in self._graph.get_operations():
            if op.type in ("Variable", "VariableV2") and not op.device:
                raise ValueError(
                    f"When using replicas, all Variables must have their device set: {op}"
                )

    # sessions ------------------------------------------------------------------------------------
    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: ConfigProto | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Any:
        """A session that is ready.

        The chief initializes or restores, others wait. Services and queue runners are started.
        """
        self.coord.clear_stop()
        if self.summary_writer:
            self.summary_writer.reopen()
        session = self._open_session(master, config, wait_for_checkpoint, max_wait_secs)
        if start_standard_services and self.is_chief:
            self.start_standard_services(session)
        if start_standard_services:
            self.start_queue_runners(session)
        return session

    def _open_session(
        self, master: str, config: ConfigProto | None, wait_for_checkpoint: bool, seconds: float
    ) -> Any:
        """The chief's session is initialized or restored; the others wait for the chief."""
        manager = self.session_manager
        if not self.is_chief:
            return manager.wait_for_session(master, config=config, max_wait_secs=seconds)
        session = manager.prepare_session(
            master,
            self.init_op,
            self.saver,
            self._logdir,
            wait_for_checkpoint=wait_for_checkpoint,
            max_wait_secs=seconds,
            config=config,
            init_feed_dict=self.init_feed_dict,
            init_fn=self._init_fn,
        )
        self._write_graph()
        return session

    @contextlib.contextmanager
    def managed_session(
        self,
        master: str = "",
        config: object = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Any]:
        """A ready session; at the end everything is stopped, and an error of any thread is
        raised.
        """
        sess: Any = None
        try:
            sess = self.prepare_or_wait_for_session(
                master=master, config=config, start_standard_services=start_standard_services
            )
            yield sess
        except Exception as error:
            self.request_stop(error)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                if sess is not None:
                    sess.close()

    def _write_graph(self) -> None:
        if self._logdir:
            training_files.write_training_graph(self._graph, self._logdir)
        if self.summary_writer and not self._graph_added:
            self.summary_writer.add_graph(self._graph)
            self.summary_writer.add_meta_graph(
                training_files.meta_graph_of(self._graph, self.saver)
            )
            self._graph_added = True

    # services ------------------------------------------------------------------------------------
    def start_standard_services(self, sess: BaseSession) -> list[LooperThread] | None:
        """The threads that save, summarize and count steps; they need a ``logdir``."""
        if not self.is_chief:
            raise RuntimeError(
                "Only chief supervisor can start standard services. Because only chief "
                "supervisors can write events."
            )
        if not self._logdir:
            _log.warning("Standard services need a 'logdir' passed to the SessionManager")
            return None
        threads: list[LooperThread] = []
        if self.summary_writer and self.global_step is not None:
            step = read_global_step(sess, self.global_step)
            self.summary_writer.add_session_log(training_files.session_log("START"), step)
        if self.summary_writer and self.save_summaries_secs:
            if self.summary_op is not None:
                threads.append(self._looper(self.save_summaries_secs, self._summarize, sess))
            if self.global_step is not None:
                counter = _StepCounter(self, sess)
                threads.append(self._looper(self.save_summaries_secs, counter.count))
        if self.saver and self.save_model_secs:
            threads.append(self._looper(self.save_model_secs, self._save, sess))
        for thread in threads:
            thread.start()
        return threads

    def _looper(self, seconds: float, target: Callable[..., None], *args: object) -> LooperThread:
        return LooperThread(self.coord, seconds, target=target, args=args)

    def _summarize(self, sess: BaseSession) -> None:
        if self.global_step is None:
            self.summary_writer.add_summary(sess.run(self.summary_op), None)
        else:
            summary, step = sess.run([self.summary_op, self.global_step])
            self.summary_writer.add_summary(summary, step)

    def _save(self, sess: object) -> None:
        _log.info("Saving checkpoint to path %s", self.save_path)
        self.saver.save(sess, self.save_path, global_step=self.global_step)
        if self.summary_writer and self.global_step is not None:
            step = read_global_step(sess, self.global_step)
            log = training_files.session_log("CHECKPOINT", self.save_path)
            self.summary_writer.add_session_log(log, step)

    def start_queue_runners(self, sess: BaseSession, queue_runners: Any = None) -> list[Any]:
        """Start the threads of the given queue runners, or of the graph's."""
        if queue_runners is None:
            queue_runners = self._graph.get_collection(GraphKeys.QUEUE_RUNNERS)
        return [
            thread
            for runner in queue_runners
            for thread in runner.create_threads(sess, coord=self.coord, daemon=True, start=True)
        ]

    def loop(
        self,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: object = None,
        kwargs: object = None,
    ) -> LooperThread:
        """Start a thread that calls ``target`` again and again until the stop."""
        return LooperThread.loop(self.coord, timer_interval_secs, target, args, kwargs)

    # stopping ------------------------------------------------------------------------------------
    def stop(
        self,
        threads: Any = None,
        close_summary_writer: bool = True,
        ignore_live_threads: bool = False,
    ) -> None:
        """Stop the threads, wait for them, and close the writer."""
        self.coord.request_stop()
        try:
            self.coord.join(
                threads,
                stop_grace_period_secs=self._stop_grace_secs,
                ignore_live_threads=ignore_live_threads,
            )
        finally:
            if close_summary_writer and self.summary_writer:
                self.summary_writer.add_session_log(training_files.session_log("STOP"))
                self.summary_writer.close()
                self._graph_added = False

    def request_stop(self, ex: Any = None) -> None:
        self.coord.request_stop(ex=ex)

    def should_stop(self) -> bool:
        return self.coord.should_stop()

    def stop_on_exception(self) -> Any:
        return self.coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        self.coord.wait_for_stop()

    def summary_computed(
        self, sess: BaseSession, summary: object, global_step: int | None = None
    ) -> None:
        """Write a summary that the program computed itself."""
        if not self.summary_writer:
            raise RuntimeError("Writing a summary requires a summary writer.")
        if global_step is None and self.global_step is not None:
            global_step = read_global_step(sess, self.global_step)
        self.summary_writer.add_summary(summary, global_step)

    PrepareSession = prepare_or_wait_for_session
    StartQueueRunners = start_queue_runners
    StartStandardServices = start_standard_services
    Stop = stop
    RequestStop = request_stop
    Loop = loop
    ShouldStop = should_stop
    StopOnException = stop_on_exception
    WaitForStop = wait_for_stop
    SummaryComputed = summary_computed


def _saver_of_variables() -> Saver | None:
    return training_files.new_saver() if global_variables() else None


class _StepCounter:
    """Steps a second since the last count."""

    def __init__(self, supervisor: Supervisor, sess: Any) -> None:
        self._supervisor = supervisor
        self._sess = sess
        self._time = time.time()
        self._step = read_global_step(sess, supervisor.global_step)

    def count(self) -> None:
        supervisor = self._supervisor
        step, now = read_global_step(self._sess, supervisor.global_step), time.time()
        seconds = now - self._time
        rate = (step - self._step) / seconds if seconds > 0 else float("inf")
        self._step, self._time = step, now
        tag = f"{supervisor.global_step.op.name}/sec"
        supervisor.summary_writer.add_summary(training_files.step_summary(tag, rate), step)
