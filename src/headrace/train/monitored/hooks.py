"""Hooks that stop, log, wait, feed and check."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import errors
from headrace.core.graph import get_default_graph
from headrace.train.global_step import _get_or_create_global_step_read
from headrace.train.monitored.session_run_hook import SessionRunArgs, SessionRunHook

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike
    from headrace.session.session import BaseSession
    from headrace.train.monitored.session_run_hook import SessionRunContext

__all__ = [
    "FeedFnHook",
    "FinalOpsHook",
    "GlobalStepWaiterHook",
    "LoggingTensorHook",
    "NanLossDuringTrainingError",
    "NanTensorHook",
    "NeverTriggerTimer",
    "SecondOrStepTimer",
    "StopAtStepHook",
    "global_step_read",
]

_log = logging.getLogger("tensorflow")


def global_step_read(hook: SessionRunHook) -> Any:
    """The tensor that reads the global step; RuntimeError if the graph has none."""
    found = _get_or_create_global_step_read()
    if found is None:
        raise RuntimeError(f"Global step should be created to use {type(hook).__name__}.")
    return found


class SecondOrStepTimer:
    """Says whether it is time again: after ``every_secs`` seconds or ``every_steps`` steps (one of
    the two)."""

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        if every_secs is None and every_steps is None:
            raise ValueError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise ValueError("Can not provide both every_secs and every_steps.")
        self._every_secs = every_secs
        self._every_steps = every_steps
        self.reset()

    def reset(self) -> None:
        self._last_triggered_step: int | None = None
        self._last_triggered_time = 0.0

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether to do it at ``step``.

        At the first one asked for, then when the interval is over.
        """
        last = self._last_triggered_step
        if last is None:
            return True
        if last == step:
            return False
        if self._every_secs is not None:
            return time.time() >= self._last_triggered_time + self._every_secs
        return self._every_steps is not None and step >= last + self._every_steps

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """It was done at ``step``; returns seconds and steps since the time before."""
        now, last = time.time(), self._last_triggered_step
        since = (None, None) if last is None else (now - self._last_triggered_time, step - last)
        self._last_triggered_time, self._last_triggered_step = now, step
        return since

    def last_triggered_step(self) -> int | None:
        return self._last_triggered_step


class NeverTriggerTimer:
    """Never time."""

    def reset(self) -> None:
        """Nothing to forget."""

    def should_trigger_for_step(self, step: int) -> bool:
        return False

    def update_last_triggered_step(self, step: int) -> tuple[None, None]:
        return None, None

    def last_triggered_step(self) -> None:
        return None


class StopAtStepHook(SessionRunHook):
    """Stops after ``num_steps`` further steps, or at ``last_step``."""

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps = num_steps
        self._last_step = last_step

    def begin(self) -> None:
        self._global_step = global_step_read(self)

    def after_create_session(self, session: BaseSession, coord: object) -> None:
        if self._last_step is None:
            self._last_step = session.run(self._global_step) + self._num_steps

    def before_run(self, run_context: object) -> SessionRunArgs:
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: Any) -> None:
        assert self._last_step is not None
        if run_values.results + 1 < self._last_step:
            return
        # the value that was fetched may be from before the step: look again
        if run_context.session.run(self._global_step) >= self._last_step:
            run_context.request_stop()


class LoggingTensorHook(SessionRunHook):
    """Logs the values of ``tensors``, a list or a dictionary of tags and tensors (or their names).

    It does so every ``every_n_iter`` steps or ``every_n_secs`` seconds, and at the end with
    ``at_end``; ``formatter(values by tag)`` makes the text.
    """

    def __init__(
        self,
        tensors: Any,
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Any = None,
    ) -> None:
        only_at_end = at_end and every_n_iter is None and every_n_secs is None
        if not only_at_end and (every_n_iter is None) == (every_n_secs is None):
            raise ValueError(
                "either at_end and/or exactly one of every_n_iter and every_n_secs must "
                "be provided."
            )
        if every_n_iter is not None and every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        if isinstance(tensors, dict):
            self._tag_order = sorted(tensors)
        else:
            self._tag_order = tensors
            tensors = {item: item for item in tensors}
        self._tensors = tensors
        self._formatter = formatter
        self._timer: Any = (
            NeverTriggerTimer()
            if only_at_end
            else SecondOrStepTimer(every_secs=every_n_secs, every_steps=every_n_iter)
        )
        self._log_at_end = at_end

    def begin(self) -> None:
        self._timer.reset()
        self._iter_count = 0
        self._current_tensors = {tag: _element(t) for tag, t in self._tensors.items()}

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        self._should_trigger = self._timer.should_trigger_for_step(self._iter_count)
        return SessionRunArgs(self._current_tensors) if self._should_trigger else None

    def after_run(self, run_context: object, run_values: Any) -> None:
        if self._should_trigger:
            self._log_tensors(run_values.results)
        self._iter_count += 1

    def end(self, session: Any) -> None:
        if self._log_at_end:
            self._log_tensors(session.run(self._current_tensors))

    def _log_tensors(self, values: dict[Any, Any]) -> None:
        elapsed, _ = self._timer.update_last_triggered_step(self._iter_count)
        with np.printoptions(suppress=True):
            if self._formatter:
                _log.info(self._formatter(values))
                return
            text = ", ".join(f"{tag} = {values[tag]}" for tag in self._tag_order)
        _log.info("%s", text if elapsed is None else f"{text} ({elapsed:.3f} sec)")


def _element(obj: TensorLike) -> Any:
    """A tensor by itself or by its name.

    ``name`` without a number is the only output of that operation.
    """
    graph = get_default_graph()
    if not isinstance(obj, str):
        if getattr(obj, "graph", None) is not graph:
            raise ValueError(
                f"Passed {obj} should have graph attribute that is equal to current graph {graph}."
            )
        return obj
    if ":" in obj:
        return graph.as_graph_element(obj)
    found = graph.as_graph_element(f"{obj}:0")
    if len(found.op.outputs) > 1:
        raise ValueError(
            f"Name {obj} is ambiguous, as this `Operation` has multiple outputs (at least 2)."
        )
    return found


class NanLossDuringTrainingError(RuntimeError):
    """Raised by ``NanTensorHook`` when the loss is NaN."""

    def __str__(self) -> str:
        return "NaN loss during training."


class NanTensorHook(SessionRunHook):
    """Ends the training when ``loss_tensor`` is NaN.

    With ``fail_on_nan_loss`` (the default) that is a NanLossDuringTrainingError, otherwise a
    request to stop.
    """

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss_tensor = loss_tensor
        self._fail_on_nan_loss = fail_on_nan_loss

    def before_run(self, run_context: object) -> SessionRunArgs:
        return SessionRunArgs(self._loss_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: Any) -> None:
        if np.isnan(run_values.results):
            reason = "Model diverged with loss = NaN."
            if self._fail_on_nan_loss:
                _log.error(reason)
                raise NanLossDuringTrainingError
            _log.warning(reason)
            run_context.request_stop()


class GlobalStepWaiterHook(SessionRunHook):
    """Waits before the first run until the global step has come to ``wait_until_step``."""

    def __init__(self, wait_until_step: int) -> None:
        self._wait_until_step = wait_until_step

    def begin(self) -> None:
        self._started = self._wait_until_step <= 0
        self._global_step = global_step_read(self)

    def before_run(self, run_context: Any) -> None:
        if self._started:
            return
        _log.info("Waiting for global step %d before starting training.", self._wait_until_step)
        while run_context.session.run(self._global_step) < self._wait_until_step:
            time.sleep(0.5)
        self._started = True


class FinalOpsHook(SessionRunHook):
    """Runs ``final_ops`` at the end; their values are in ``final_ops_values``."""

    def __init__(self, final_ops: Any, final_ops_feed_dict: Any = None) -> None:
        self._final_ops = final_ops
        self._final_ops_feed_dict = final_ops_feed_dict
        self._final_ops_values: Any = None

    @property
    def final_ops_values(self) -> Any:
        return self._final_ops_values

    def end(self, session: Any) -> None:
        if self._final_ops is None:
            return
        try:
            self._final_ops_values = session.run(
                self._final_ops, feed_dict=self._final_ops_feed_dict
            )
        except (errors.OutOfRangeError, StopIteration):
            _log.warning(
                "An OutOfRangeError or StopIteration exception is raised by the code in "
                "FinalOpsHook. This typically means the Ops running by the FinalOpsHook have a "
                "dependency back to some input source, which should not happen. For example, for "
                "metrics in tf.estimator.Estimator, all metrics functions return two Ops: "
                "`value_op` and `update_op`. Estimator.evaluate calls the `update_op` for each "
                "batch of the data in input source and, once it is exhausted, it call the "
                "`value_op` to get the metric values. The `value_op` here should have dependency "
                "back to variables reading only, rather than reading another batch from input."
            )
            raise


class FeedFnHook(SessionRunHook):
    """A hook that adds the dictionary ``feed_fn()`` to the feeds of each run."""

    def __init__(self, feed_fn: Any) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: object) -> SessionRunArgs:
        return SessionRunArgs(fetches=None, feed_dict=self.feed_fn())
