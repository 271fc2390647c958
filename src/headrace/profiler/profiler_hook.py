"""``tf.train.ProfilerHook``: timelines of a training's steps.

hooks=[tf.train.ProfilerHook(save_steps=100, output_dir="/tmp/profile")]
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

from headrace.profiler.timeline import Timeline
from headrace.train.monitored import training_files
from headrace.train.monitored.hooks import SecondOrStepTimer, global_step_read
from headrace.train.monitored.session_run_hook import SessionRunArgs, SessionRunHook

if TYPE_CHECKING:
    from headrace.train.monitored.session_run_hook import SessionRunContext


__all__ = ["ProfilerHook"]

_log = logging.getLogger("tensorflow")


class ProfilerHook(SessionRunHook):
    """Writes ``timeline-<step>.json`` (for chrome://tracing) and the run's metadata every
    ``save_steps`` or ``save_secs``.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._output_file = os.path.join(output_dir, "timeline-{}.json")
        self._file_writer = training_files.summary_writer(output_dir)
        self._show_dataflow = show_dataflow
        self._show_memory = show_memory

    def begin(self) -> None:
        self._next_step: int | None = None
        self._global_step = global_step_read(self)

    def before_run(self, run_context: object) -> SessionRunArgs:
        self._request_summary = self._next_step is not None and self._timer.should_trigger_for_step(
            self._next_step
        )
        requests = {"global_step": self._global_step}
        return SessionRunArgs(requests, options=_full_trace() if self._request_summary else None)

    def after_run(self, run_context: SessionRunContext, run_values: Any) -> None:
        stale = run_values.results["global_step"]
        if self._next_step is None:  # the first trace comes after N steps or seconds
            self._timer.update_last_triggered_step(stale)
        step = stale + 1
        if self._request_summary:
            step = run_context.session.run(self._global_step)
            self._timer.update_last_triggered_step(step)
            self._save(step, run_values.run_metadata.step_stats)
            self._file_writer.add_run_metadata(run_values.run_metadata, f"step_{step}")
        self._next_step = step + 1

    def _save(self, step: int, step_stats: object) -> None:
        path = self._output_file.format(step)
        _log.info("Saving timeline for %d into '%s'.", step, path)
        with open(path, "w") as file:
            file.write(
                Timeline(step_stats).generate_chrome_trace_format(
                    show_dataflow=self._show_dataflow, show_memory=self._show_memory
                )
            )


def _full_trace() -> Any:
    from tensorboard.compat.proto.config_pb2 import RunOptions

    return RunOptions(trace_level=RunOptions.FULL_TRACE)
