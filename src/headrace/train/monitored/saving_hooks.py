"""Hooks that write: checkpoints, summaries, and how many steps a second there are."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

from headrace.core.graph import get_default_graph
from headrace.train.global_step import get_global_step
from headrace.train.monitored import training_files
from headrace.train.monitored.hooks import SecondOrStepTimer, global_step_read
from headrace.train.monitored.session_run_hook import SessionRunArgs, SessionRunHook
from headrace.train.tensor_helpers import op_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.tensor import Tensor
    from headrace.session.session import BaseSession
    from headrace.train.monitored.scaffold import Scaffold
    from headrace.train.monitored.session_run_hook import SessionRunContext

__all__ = ["CheckpointSaverHook", "CheckpointSaverListener", "StepCounterHook", "SummarySaverHook"]

_log = logging.getLogger("tensorflow")


class CheckpointSaverListener:
    """Is told by CheckpointSaverHook when it saves."""

    def begin(self) -> None:
        """Before the session is made."""

    def before_save(self, session: object, global_step_value: int) -> None:
        """Before a checkpoint is written."""

    def after_save(self, session: BaseSession | None, global_step_value: int) -> Any:
        """After a checkpoint was written; a true value asks for a stop."""

    def end(self, session: BaseSession | None, global_step_value: int) -> None:
        """At the end of the session."""


class CheckpointSaverHook(SessionRunHook):
    """Saves at the beginning, every ``save_steps`` or ``save_secs`` (one of the two), and at the
    end.

    Into ``checkpoint_dir`` as ``checkpoint_basename``, by ``saver`` or that of ``scaffold``.
    ``listeners`` are told before and after each save.
    """

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Scaffold | None = None,
        listeners: Sequence[Any] | None = None,
    ) -> None:
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        self._saver = saver
        self._checkpoint_dir = checkpoint_dir
        self._save_path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._scaffold = scaffold
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._listeners = listeners or []

    def begin(self) -> None:
        self._summary_writer = training_files.summary_writer(self._checkpoint_dir)
        self._global_step = global_step_read(self)
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: BaseSession, coord: object) -> None:
        step = session.run(self._global_step)
        graph = get_default_graph()
        training_files.write_training_graph(graph, self._checkpoint_dir)
        if self._summary_writer is not None:
            self._summary_writer.add_graph(graph)
            self._summary_writer.add_meta_graph(
                training_files.meta_graph_of(graph, self._get_saver())
            )
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def before_run(self, run_context: object) -> SessionRunArgs:
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: Any) -> None:
        if self._timer.should_trigger_for_step(run_values.results + 1):
            step = run_context.session.run(self._global_step)
            if self._timer.should_trigger_for_step(step):
                self._timer.update_last_triggered_step(step)
                if self._save(run_context.session, step):
                    run_context.request_stop()

    def end(self, session: Any) -> None:
        step = session.run(self._global_step)
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session: BaseSession | None, step: int) -> bool:
        """Write a checkpoint; whether a listener asks for a stop."""
        _log.info("Saving checkpoints for %d into %s.", step, self._save_path)
        for listener in self._listeners:
            listener.before_save(session, step)
        self._get_saver().save(session, self._save_path, global_step=step)
        if self._summary_writer is not None:
            log = training_files.session_log("CHECKPOINT", self._save_path)
            self._summary_writer.add_session_log(log, step)
        stops = [listener for listener in self._listeners if listener.after_save(session, step)]
        for listener in stops:
            _log.info(
                "A CheckpointSaverListener requested that training be stopped. listener: %s",
                listener,
            )
        return bool(stops)

    def _get_saver(self) -> Any:
        if self._saver is None:
            self._saver = (
                training_files.only_saver() if self._scaffold is None else self._scaffold.saver
            )
        return self._saver


class StepCounterHook(SessionRunHook):
    """Logs how many steps a second there are, every ``every_n_steps`` steps or ``every_n_secs``
    seconds.

    With an ``output_dir`` or a ``summary_writer`` the speed is written as a summary too.
    """

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
    ) -> None:
        if (every_n_steps is None) == (every_n_secs is None):
            raise ValueError("exactly one of every_n_steps and every_n_secs should be provided.")
        self._timer = SecondOrStepTimer(every_steps=every_n_steps, every_secs=every_n_secs)
        self._summary_writer = summary_writer
        self._output_dir = output_dir
        self._last_global_step: int | None = None
        self._warnings = 5

    def begin(self) -> None:
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = training_files.summary_writer(self._output_dir)
        self._global_step = global_step_read(self)
        self._summary_tag = f"{op_of(get_global_step()).name}/sec"

    def before_run(self, run_context: object) -> SessionRunArgs:
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: Any) -> None:
        stale = run_values.results
        if self._timer.should_trigger_for_step(stale + 1):
            step = run_context.session.run(self._global_step)
            if self._timer.should_trigger_for_step(step):
                seconds, steps = self._timer.update_last_triggered_step(step)
                if seconds is not None and steps is not None:
                    self._log_and_record(steps, seconds, step)
        if stale == self._last_global_step and self._warnings:
            self._warnings -= 1
            _log.warning(
                "It seems that global step (tf.train.get_global_step) has not been "
                "increased. Current value (could "
                "be stable): %s vs previous value: %s. You could increase the global step "
                "by passing "
                "tf.train.get_global_step() to Optimizer.apply_gradients or Optimizer.minimize.",
                stale,
                self._last_global_step,
            )
        self._last_global_step = stale

    def _log_and_record(self, elapsed_steps: int, elapsed_time: float, global_step: int) -> None:
        rate = elapsed_steps / elapsed_time
        if self._summary_writer is not None:
            self._summary_writer.add_summary(
                training_files.step_summary(self._summary_tag, rate), global_step
            )
        _log.info("%s: %g", self._summary_tag, rate)


class SummarySaverHook(SessionRunHook):
    """Writes summaries every ``save_steps`` or ``save_secs`` (one of the two).

    To ``summary_writer``, or to a new one for ``output_dir``. ``summary_op`` is what is run;
    ``scaffold`` may have it instead.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
        scaffold: Any = None,
        summary_op: Tensor | None = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise ValueError("Exactly one of scaffold or summary_op must be provided.")
        self._summary_op = summary_op
        self._summary_writer = summary_writer
        self._output_dir = output_dir
        self._scaffold = scaffold
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)

    def begin(self) -> None:
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = training_files.summary_writer(self._output_dir)
        self._next_step: int | None = None
        self._global_step = global_step_read(self)

    def before_run(self, run_context: Any) -> SessionRunArgs:
        self._request_summary = self._next_step is None or self._timer.should_trigger_for_step(
            self._next_step
        )
        requests = {"global_step": self._global_step}
        ops = self._summary_ops()
        if self._request_summary and ops:
            requests["summary"] = ops
        return SessionRunArgs(requests)

    def after_run(self, run_context: SessionRunContext, run_values: Any) -> None:
        if not self._summary_writer:
            return
        step = run_values.results["global_step"] + 1
        if self._next_step is None or self._request_summary:
            step = run_context.session.run(self._global_step)
        if self._next_step is None:
            self._summary_writer.add_session_log(training_files.session_log("START"), step)
        if self._request_summary:
            self._timer.update_last_triggered_step(step)
            for summary in run_values.results.get("summary", ()):
                self._summary_writer.add_summary(summary, step)
        self._next_step = step + 1

    def end(self, session: object = None) -> None:
        if self._summary_writer:
            self._summary_writer.flush()

    def _summary_ops(self) -> list[Any]:
        found = self._summary_op if self._scaffold is None else self._scaffold.summary_op
        if found is None:
            return []
        return found if isinstance(found, list) else [found]
