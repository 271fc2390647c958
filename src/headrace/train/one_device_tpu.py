"""``tf.tpu`` on one device: what programs call around a model, without a TPU.

A computation runs where it is written, once; there is one shard, so sums over shards are the
values themselves. Infeed, topologies and TPUEstimator are not here.

    >>> train_op = CrossShardOptimizer(tf.train.AdamOptimizer()).minimize(loss)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes, nest
from headrace.core.convert import convert_to_tensor
from headrace.ops.array.basic import identity, no_op
from headrace.ops.array.casting import cast
from headrace.ops.nn.losses import Reduction
from headrace.train.optimizers.optimizer import Optimizer
from headrace.train.optimizers.optimizer_v2 import OptimizerV2
from headrace.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.core.annotations import TensorLike
    from headrace.core.tensor import Operation, Tensor
    from headrace.variables.variable import Variable

__all__ = [
    "CrossShardOptimizer", "batch_parallel", "bfloat16_scope", "cross_replica_sum",
    "initialize_system", "outside_compilation", "replicate", "rewrite", "shard",
    "shutdown_system",
]  # fmt: skip


class CrossShardOptimizer(Optimizer):
    """An optimizer whose gradients are summed over shards; here there is one.

    ``reduction`` (``SUM`` or ``MEAN``) makes no difference for one shard; ``group_assignment``
    must be ``[[0]]`` or None.
    """

    def __init__(
        self,
        opt: Any,
        reduction: str = Reduction.MEAN,
        name: str = "CrossShardOptimizer",
        group_assignment: Any = None,
    ) -> None:
        if reduction not in (Reduction.SUM, Reduction.MEAN):
            raise ValueError(f"Unsupported reduction: {reduction}.")
        if isinstance(opt, OptimizerV2):
            raise TypeError(
                "CrossShardOptimizer does not work with OptimizerV2. Use the optimizer itself: "
                "there is one shard."
            )
        super().__init__(False, name)
        self._opt = opt
        self._reduction = reduction
        _check_groups(group_assignment)

    def compute_gradients(  # type: ignore[override]
        self, loss: TensorLike, var_list: object = None, **kwargs: Any
    ) -> Any:
        """The optimizer's own gradients."""
        return self._opt.compute_gradients(loss, var_list=var_list, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Any,
        global_step: Tensor | Variable | None = None,
        name: str | None = None,
    ) -> Any:
        """The optimizer's own update."""
        summed = [(g if g is None else cross_replica_sum(g), v) for g, v in grads_and_vars]
        return self._opt.apply_gradients(summed, global_step, name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """A slot of the optimizer."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: object, **kwargs: object) -> Any:
        """Names of the optimizer's slots."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> Any:
        """Variables of the optimizer."""
        return self._opt.variables()


def _check_groups(groups: Any) -> None:
    if groups and [list(g) for g in groups] != [[0]]:
        raise ValueError(
            f"group_assignment must be a permutation of range(1). Got group_assignment={groups}"
        )


def cross_replica_sum(
    x: TensorLike, group_assignment: Sequence[TensorLike] | None = None, name: str | None = None
) -> Any:
    """The sum of ``x`` over shards: ``x``, as there is one."""
    _check_groups(group_assignment)
    return x if name is None else identity(x, name=name)


@contextlib.contextmanager
def bfloat16_scope() -> Iterator[Any]:
    """Variables that are asked for in bfloat16 are kept in float32 and cast."""

    def in_float32(getter: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        if kwargs.get("dtype") != dtypes.bfloat16:
            return getter(*args, **kwargs)
        return cast(getter(*args, **{**kwargs, "dtype": dtypes.float32}), dtypes.bfloat16)

    with variable_scope("", custom_getter=in_float32) as scope:
        yield scope


def initialize_system(embedding_config: object = None, job: str | None = None) -> Tensor:
    """A topology as TF gives it, serialized: empty, as there is no TPU."""
    if embedding_config is not None:
        raise ValueError("Headrace has no TPU embeddings: leave embedding_config out.")
    return convert_to_tensor(b"", name=f"initialize_{job}" if job else "initialize_system")


def shutdown_system(job: str | None = None) -> Operation:
    """An op that does nothing: without a TPU there is nothing to shut down."""
    return no_op(name=f"shutdown_{job}" if job else "shutdown_system")


def rewrite(
    computation: Callable[..., Any],
    inputs: Any = None,
    infeed_queue: object = None,
    device_assignment: object = None,
    name: str | None = None,
) -> Any:
    """``computation(*inputs)``: its tensors as a list; None gives an operation.

    Programs for a TPU run on the CPU this way. ``infeed_queue`` and ``device_assignment`` must be
    None. A result that is a dict or another structure stays as it is.
    """
    _check_no_infeed(infeed_queue, device_assignment)
    given = [convert_to_tensor(x) for x in inputs or []]
    result = computation(*given)
    if result is None:
        return no_op(name=name)
    if nest.is_nested(result) and not isinstance(result, (list, tuple)):
        return result
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _check_no_infeed(infeed_queue: object, device_assignment: object = None) -> None:
    if infeed_queue is not None or device_assignment is not None:
        raise ValueError("Headrace has no TPU: there are no infeed queues and device assignments.")


def replicate(
    computation: Callable[..., Any],
    inputs: Sequence[TensorLike] | None = None,
    infeed_queue: object = None,
    device_assignment: object = None,
    name: str | None = None,
    maximum_shapes: object = None,
) -> list[list[Tensor]]:
    """``rewrite`` for one replica: ``inputs`` is a list of one list, and so is the result.

    ``maximum_shapes``, ``infeed_queue`` and ``device_assignment`` must be None: there is no TPU
    whose replicas they would concern.
    """
    if maximum_shapes is not None:
        raise ValueError("maximum_shapes pads inputs for a TPU, which Headrace does not have.")
    if inputs is not None and len(inputs) != 1:
        raise ValueError(f"Headrace has one replica, but inputs are for {len(inputs)}.")
    given = inputs[0] if inputs else None
    return [rewrite(computation, given, infeed_queue, device_assignment, name)]


def shard(
    computation: Callable[..., Any],
    inputs: Sequence[TensorLike] | None = None,
    num_shards: int = 1,
    input_shard_axes: Any = None,
    outputs_from_all_shards: bool = True,
    output_shard_axes: Any = None,
    infeed_queue: object = None,
    device_assignment: object = None,
    name: str | None = None,
) -> Any:
    """``rewrite`` for one shard; the axes say how more would be split and make no difference.

    ``num_shards`` must be 1. ``input_shard_axes`` and ``output_shard_axes`` must have as many axes
    as there are inputs and outputs. ``infeed_queue`` and ``device_assignment`` must be None.
    """
    if num_shards <= 0:
        raise ValueError("num_shards must be a positive integer.")
    if num_shards != 1:
        raise ValueError(f"Headrace has one device, but num_shards is {num_shards}.")
    count = len(inputs or [])
    if input_shard_axes is not None and len(input_shard_axes) != count:
        raise ValueError("Length of input_shard_axes must match the number of inputs.")
    found = rewrite(computation, inputs, infeed_queue, device_assignment, name)
    if output_shard_axes is not None and len(output_shard_axes) != len(nest.flatten(found)):
        raise ValueError("Length of output_shard_axes must match the number of outputs.")
    if not isinstance(outputs_from_all_shards, bool) and not nest.is_nested(
        outputs_from_all_shards
    ):
        raise TypeError("outputs_from_all_shards must be a bool or a list of bools.")
    return found


def batch_parallel(
    computation: Callable[..., Any],
    inputs: Sequence[TensorLike] | None = None,
    num_shards: int = 1,
    infeed_queue: object = None,
    device_assignment: object = None,
    name: str | None = None,
) -> Any:
    """As ``shard``, with every input and output split along its first axis.

    Headrace has one device, so ``num_shards`` must be 1 and nothing is split. ``infeed_queue`` and
    ``device_assignment`` must be None.
    """
    return shard(
        computation,
        inputs,
        num_shards=num_shards,
        infeed_queue=infeed_queue,
        device_assignment=device_assignment,
        name=name,
    )


def outside_compilation(
    computation: Callable[..., Any], *args: TensorLike, **kwargs: object
) -> Any:
    """``computation(*args)``: nothing is compiled for a TPU.

    In TensorFlow it marks what the host computes inside of a ``tpu.rewrite``; here the host
    computes everything.
    """
    return computation(*args, **kwargs)
