"""``tf.train.SyncReplicasOptimizer``: one step from the gradients of several replicas.

Replicas add their gradients to accumulators and wait for a token. A queue runner of the chief takes
the mean of ``replicas_to_aggregate`` gradients, applies it, and puts as many tokens into the queue
as there are replicas: they go on with the new step. Gradients of an older step are dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.graph_keys import GraphKeys
from headrace.core.indexed_slices import IndexedSlices
from headrace.core.scopes import control_dependencies, device, name_scope
from headrace.core.tensor import Operation, Tensor
from headrace.ops.array.basic import no_op
from headrace.ops.array.filling import fill
from headrace.ops.control.dependencies import group
from headrace.ops.queues.accumulators import ConditionalAccumulator, SparseConditionalAccumulator
from headrace.ops.queues.queues import FIFOQueue
from headrace.ops.state.ref_state import assign
from headrace.train.input_queues.queue_runner import QueueRunner
from headrace.train.monitored.session_run_hook import SessionRunHook
from headrace.train.optimizers.optimizer import Optimizer
from headrace.variables.variable import Variable
from headrace.variables.variable_lists import global_variables, report_uninitialized_variables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import TensorLike


__all__ = ["SyncReplicasOptimizer"]


class SyncReplicasOptimizer(Optimizer):
    """Wraps ``opt``: see the module's text.

    ``total_num_replicas``: how many replicas there are (default: ``replicas_to_aggregate``); with
    more, the slowest gradients are dropped, with fewer, a replica contributes several times.
    ``variable_averages`` (an ExponentialMovingAverage) is applied to ``variables_to_average`` after
    each step.
    """

    def __init__(
        self,
        opt: Optimizer,
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        variable_averages: Any = None,
        variables_to_average: Any = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
    ) -> None:
        total = replicas_to_aggregate if total_num_replicas is None else total_num_replicas
        super().__init__(use_locking, name)
        self._opt = opt
        self._replicas_to_aggregate = replicas_to_aggregate
        self._total_num_replicas = total
        self._tokens_per_step = max(total, replicas_to_aggregate)
        self._variable_averages = variable_averages
        self._variables_to_average = variables_to_average
        self._gradients_applied = False
        self._global_step: Any = None
        self._sync_token_queue: Any = None
        self._chief_queue_runner: QueueRunner | None = None
        self._accumulator_list: list[tuple[Any, str]] = []
        self.local_step_init_op: Any = None
        self.chief_init_op: Any = None
        self.ready_for_local_init_op: Any = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """As of the wrapped optimizer."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """The op that a replica runs: add the gradients, then wait for the next step's token."""
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        self._global_step = global_step
        no_op()  # TensorFlow's anchor for the device of the local step
        self._local_step = Variable(
            0,
            trainable=False,
            collections=[GraphKeys.LOCAL_VARIABLES],
            dtype=global_step.dtype.base_dtype,
            name="sync_rep_local_step",
        )
        self.local_step_init_op = assign(self._local_step, global_step)
        self.ready_for_local_init_op = report_uninitialized_variables(global_variables())
        with name_scope(None, self._name):
            added, means = self._aggregated(pairs)
            train_op = self._synchronized(added, means)
            steps = []
            for accumulator, place in self._accumulator_list:
                with device(place):
                    steps.append(accumulator.set_global_step(global_step, name="SetGlobalStep"))
            self.chief_init_op = group(self.local_step_init_op, *steps)
        self._gradients_applied = True
        return train_op

    def _aggregated(self, pairs: Sequence[Any]) -> tuple[list[Operation], list[tuple[Any, Any]]]:
        """Ops that add the gradients, and the means with their variables."""
        added: list[Operation] = []
        means: list[tuple[Any, Any]] = []
        for grad, var in pairs:
            with device(var.device):
                means.append((self._accumulated(grad, var, added), var))
        return added, means

    def _accumulated(
        self, grad: IndexedSlices | Tensor, var: Tensor | Variable, added: list[Operation]
    ) -> Any:
        shared = f"{var.name}/grad_accum"
        kept: Any
        result: Any
        if grad is None:
            return None
        if isinstance(grad, Tensor):
            kept = ConditionalAccumulator(grad.dtype, shape=var.shape, shared_name=shared)
            added.append(kept.apply_grad(grad, local_step=self._local_step))
            result = kept.take_grad(self._replicas_to_aggregate)
        elif isinstance(grad, IndexedSlices):
            kept = SparseConditionalAccumulator(grad.dtype, shape=(), shared_name=shared)
            added.append(kept.apply_indexed_slices_grad(grad, local_step=self._local_step))
            result = kept.take_indexed_slices_grad(self._replicas_to_aggregate)
        else:
            raise ValueError("Unknown grad type!")
        self._accumulator_list.append((kept, var.device))
        return result

    def _synchronized(self, added: list[Operation], means: list[tuple[Any, Any]]) -> Any:
        step = self._global_step
        with device(step.device), name_scope(""):
            update = self._opt.apply_gradients(means, step)
            tokens: Any = FIFOQueue(
                -1, step.dtype.base_dtype, (), name="sync_token_q", shared_name="sync_token_q"
            )
            self._sync_token_queue = tokens
            dummy = FIFOQueue(1, dtypes.int32, (), name="dummy_queue", shared_name="dummy_queue")
            with control_dependencies(added):
                token = tokens.dequeue()
            train_op = assign(self._local_step, token)
            with control_dependencies([update]):
                sync = tokens.enqueue_many((fill([self._tokens_per_step], step),))
            if self._variable_averages is not None:
                with control_dependencies([sync]), name_scope(""):
                    sync = self._variable_averages.apply(self._variables_to_average)
            self._chief_queue_runner = QueueRunner(dummy, [sync])
        return train_op

    def get_chief_queue_runner(self) -> QueueRunner:
        """The queue runner with which the chief applies means and gives out tokens."""
        if self._chief_queue_runner is None:
            raise ValueError("Should be called after apply_gradients().")
        return self._chief_queue_runner

    def get_init_tokens_op(self, num_tokens: int = -1) -> Any:
        """An op that puts ``num_tokens`` tokens into the queue.

        The default is ``replicas_to_aggregate``.
        """
        if not self._gradients_applied:
            raise ValueError("get_init_tokens_op() should be called after apply_gradients().")
        needed = self._replicas_to_aggregate - self._total_num_replicas
        if num_tokens == -1:
            num_tokens = self._replicas_to_aggregate
        elif num_tokens < needed:
            raise ValueError(
                f"Too few tokens to finish the first step: {num_tokens} (given) vs {needed} "
                "(needed)"
            )
        if num_tokens <= 0:
            return no_op(name="no_init_tokens")
        with device(self._global_step.device), name_scope(""):
            return self._sync_token_queue.enqueue_many((fill([num_tokens], self._global_step),))

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SessionRunHook:
        """A hook that initializes the steps and, for the chief, starts the queue runner."""
        return _SyncReplicasHook(self, is_chief, num_tokens)

    def get_slot(self, var: TensorLike, name: str) -> Any:
        """A slot of the wrapped optimizer."""
        return self._opt.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """The names of the wrapped optimizer's slots."""
        return self._opt.get_slot_names()

    def variables(self) -> list[Any]:
        """The wrapped optimizer's variables."""
        return self._opt.variables()


class _SyncReplicasHook(SessionRunHook):
    def __init__(self, optimizer: SyncReplicasOptimizer, is_chief: bool, num_tokens: int) -> None:
        self._optimizer = optimizer
        self._is_chief = is_chief
        self._num_tokens = num_tokens

    def begin(self) -> None:
        optimizer = self._optimizer
        if not optimizer._gradients_applied:
            raise ValueError(
                "SyncReplicasOptimizer.apply_gradient should be called before using the hook."
            )
        if self._is_chief:
            self._local_init = optimizer.chief_init_op
            self._runner: QueueRunner | None = optimizer.get_chief_queue_runner()
            self._tokens = optimizer.get_init_tokens_op(self._num_tokens)
        else:
            self._local_init, self._runner, self._tokens = optimizer.local_step_init_op, None, None
        self._ready = optimizer.ready_for_local_init_op

    def after_create_session(self, session: Any, coord: Any) -> None:
        missing = session.run(self._ready)
        if len(missing):
            names = ", ".join(n.decode() for n in missing)
            raise RuntimeError(
                "Init operations did not make model ready for SyncReplicasOptimizer local_init. "
                f"Init op: {self._local_init.name}, error: Variables not initialized: {names}"
            )
        session.run(self._local_init)
        if self._tokens is not None:
            session.run(self._tokens)
        if self._runner is not None:
            self._runner.create_threads(session, coord=coord, daemon=True, start=True)
