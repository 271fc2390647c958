"""Evaluating a checkpoint: a counter of evaluations, a hook that stops after so many, one pass.

`tf.contrib.training` and `tf.contrib.slim` build their loops on these.

    hooks = [StopAfterNEvalsHook(10)]
    accuracy = evaluate_once(path, eval_ops=update_op, final_ops=value_op, hooks=hooks)
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.scopes import control_dependencies
from headrace.ops.array.basic import identity
from headrace.ops.state.ref_state import assign_add
from headrace.train.monitored.hooks import FinalOpsHook
from headrace.train.monitored.monitored_session import ChiefSessionCreator, MonitoredSession
from headrace.train.monitored.session_run_hook import SessionRunArgs, SessionRunHook
from headrace.variables.initializers import zeros_initializer
from headrace.variables.variable_scope import get_variable

if TYPE_CHECKING:
    from headrace.core.annotations import FeedDict
    from headrace.core.tensor import Tensor
    from headrace.train.monitored.scaffold import Scaffold
    from headrace.train.monitored.session_run_hook import SessionRunContext

__all__ = [
    "StopAfterNEvalsHook",
    "evaluate_once",
    "get_latest_eval_step_value",
    "get_or_create_eval_step",
]

_log = logging.getLogger("tensorflow")


def get_or_create_eval_step() -> Any:
    """The graph's counter of evaluations: a local variable, made at the first call."""
    found = get_default_graph().get_collection(GraphKeys.EVAL_STEP)
    if len(found) > 1:
        raise ValueError("Multiple tensors added to tf.GraphKeys.EVAL_STEP")
    if found:
        return found[0]
    return get_variable(
        "eval_step",
        shape=[],
        dtype=dtypes.int64,
        initializer=zeros_initializer(),
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.EVAL_STEP],
    )


def get_latest_eval_step_value(update_ops: object) -> Tensor:
    """The counter as it is after ``update_ops`` (a list, or a dictionary's values) have run."""
    if isinstance(update_ops, dict):
        update_ops = list(update_ops.values())
    with control_dependencies(update_ops):
        return identity(get_or_create_eval_step().read_value())


class StopAfterNEvalsHook(SessionRunHook):
    """Stops after ``num_evals`` evaluations; None: when the input ends."""

    def __init__(self, num_evals: int | None, log_progress: bool = True) -> None:
        self._num_evals = num_evals
        self._evals_completed: Tensor | None = None
        self._log_progress = log_progress
        many = num_evals is not None and num_evals >= 20
        self._log_frequency = math.floor(num_evals / 10.0) if many and num_evals else 1

    def _set_evals_completed_tensor(self, updated_eval_step: Tensor) -> None:
        self._evals_completed = updated_eval_step

    def before_run(self, run_context: object) -> SessionRunArgs:
        return SessionRunArgs({"evals_completed": self._evals_completed})

    def after_run(self, run_context: SessionRunContext, run_values: Any) -> None:
        completed = run_values.results["evals_completed"]
        if self._log_progress:
            self._log(completed)
        if self._num_evals is not None and completed >= self._num_evals:
            run_context.request_stop()

    def _log(self, completed: int) -> None:
        if self._num_evals is None:
            _log.info("Evaluation [%d]", completed)
        elif completed % self._log_frequency == 0 or completed == self._num_evals:
            _log.info("Evaluation [%d/%d]", completed, self._num_evals)


def evaluate_once(
    checkpoint_path: str | None,
    master: str = "",
    scaffold: Scaffold | None = None,
    eval_ops: Any = None,
    feed_dict: FeedDict | None = None,
    final_ops: object = None,
    final_ops_feed_dict: Any = None,
    hooks: Sequence[SessionRunHook] | None = None,
    config: object = None,
) -> Any:
    """Restore ``checkpoint_path``, run ``eval_ops`` until a hook stops, return ``final_ops``.

    ``eval_ops`` and ``final_ops`` are a tensor, a list or a dictionary. A dictionary given as
    ``eval_ops`` gets the entry ``update_eval_step``, as in TensorFlow.
    """
    eval_step = get_or_create_eval_step()
    run_hooks = list(hooks or [])
    if eval_ops is not None:
        eval_ops = _counted(eval_ops, assign_add(eval_step, 1, use_locking=True))
        value = get_latest_eval_step_value(eval_ops)
        for hook in run_hooks:
            if isinstance(hook, StopAfterNEvalsHook):
                hook._set_evals_completed_tensor(value)
    _log.info("Starting evaluation at %s", time.strftime("%Y-%m-%dT%H:%M:%SZ"))
    creator = ChiefSessionCreator(
        scaffold=scaffold,
        checkpoint_filename_with_path=checkpoint_path,
        master=master,
        config=config,
    )
    final = FinalOpsHook(final_ops, final_ops_feed_dict)
    with MonitoredSession(session_creator=creator, hooks=[*run_hooks, final]) as session:
        while eval_ops is not None and not session.should_stop():
            session.run(eval_ops, feed_dict)
    _log.info("Finished evaluation at %s", time.strftime("%Y-%m-%d-%H:%M:%S"))
    return final.final_ops_values


def _counted(
    eval_ops: Tensor | dict[str, Tensor], update: Tensor
) -> dict[str, Tensor] | list[Tensor]:
    """``eval_ops`` with the operation that counts them."""
    if isinstance(eval_ops, dict):
        eval_ops["update_eval_step"] = update
        return eval_ops
    if isinstance(eval_ops, (tuple, list)):
        return [*eval_ops, update]
    return [eval_ops, update]


#: TensorFlow's names for these in `tensorflow.python.training.evaluation`.
_get_or_create_eval_step = get_or_create_eval_step
_get_latest_eval_step_value = get_latest_eval_step_value
_StopAfterNEvalsHook = StopAfterNEvalsHook
_evaluate_once = evaluate_once
