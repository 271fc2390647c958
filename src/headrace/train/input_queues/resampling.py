"""``tf.contrib.training``: samples taken again, more often or less often than they come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.convert import convert_to_tensor
from headrace.core.scopes import name_scope
from headrace.layers import layer_ops as ops
from headrace.ops.control.assertions import (
    Assert,
    assert_equal,
    assert_integer,
    assert_less,
    assert_less_equal,
    assert_non_negative,
    assert_positive,
)
from headrace.ops.control.dependencies import with_dependencies
from headrace.ops.io.printing import Print
from headrace.ops.random.gamma_poisson import random_poisson
from headrace.train.input_queues.batches import batch, maybe_batch
from headrace.train.moving_averages import assign_moving_average
from headrace.variables.variable import Variable
from headrace.variables.variable_scope import (
    get_local_variable,
    variable_scope,
)

if TYPE_CHECKING:
    from headrace.core.annotations import TensorLike

__all__ = ["rejection_sample", "resample_at_rate", "stratified_sample", "weighted_resample"]


def _repeated(counts: Any) -> Any:
    """0 as often as the first count says, then 1, and so on."""
    with name_scope(None, "repeat_range", [counts]):
        ends = ops.cumsum(counts)
        total = ops.reduce_sum(counts)
        places = ops.range(total)
        reached = ops.cast(places[:, None] >= ends[None, :], dtypes.int32)
        return ops.reduce_sum(reached, 1)


def resample_at_rate(
    inputs: Sequence[TensorLike],
    rates: TensorLike,
    scope: str | None = None,
    seed: int | None = None,
    back_prop: bool = False,
) -> list[Any]:
    """Rows of the inputs, each as often as a Poisson number with its rate says.

    ``back_prop``: whether the numbers of rows are left differentiable.
    """
    with name_scope(scope, "resample_at_rate", [*inputs, rates]):
        given: Any = convert_to_tensor(rates, name="rates")
        counts = random_poisson(given, (), given.dtype, seed=seed)
        rows = _repeated(ops.cast(counts, dtypes.int32))
        if not back_prop:
            rows = ops.stop_gradient(rows)
        return [ops.gather(x, rows) for x in inputs]


def weighted_resample(
    inputs: Sequence[TensorLike],
    weights: Any,
    overall_rate: TensorLike,
    scope: str | None = None,
    mean_decay: float = 0.999,
    seed: int | None = None,
) -> tuple[list[Any], Any]:
    """Rows of the inputs, more often where their weight is greater, and the rates.

    ``overall_rate``: how many rows there are for each one, on the average.
    """
    with name_scope(scope, "weighted_resample", list(inputs)) as inner:
        with variable_scope(scope, "estimate_mean", list(inputs)):
            kept = get_local_variable(
                "estimated_mean", initializer=ops.cast(0, weights.dtype), dtype=weights.dtype
            )
            mean = assign_moving_average(kept, ops.reduce_mean(weights), mean_decay)
        rates = weights * overall_rate / mean
        found = resample_at_rate([rates, *inputs], rates, scope=inner, seed=seed)
        return found[1:], found[0]


def rejection_sample(
    tensors: Sequence[TensorLike],
    accept_prob_fn: Callable[[list[Any]], Any],
    batch_size: int,
    queue_threads: int = 1,
    enqueue_many: bool = False,
    prebatch_capacity: int = 16,
    prebatch_threads: int = 1,
    runtime_checks: bool = False,
    name: str | None = None,
) -> list[Any]:
    """Batches of examples of which each is taken with the probability ``accept_prob_fn`` of it.

    ``tensors`` is a list of tensors of one example, or of several with ``enqueue_many``;
    ``accept_prob_fn`` gets the list and returns a scalar in [0, 1], which ``runtime_checks``
    checks. ``queue_threads`` threads draw; ``prebatch_capacity`` and ``prebatch_threads`` are those
    of the queue that takes several examples apart. Queue runners have to be started.
    """
    with variable_scope(name, "rejection_sample", list(tensors)):
        given: Any = [convert_to_tensor(t) for t in tensors]
        if enqueue_many:
            for t in given:
                t.shape.with_rank_at_least(1)[:1].assert_is_compatible_with(given[0].shape[:1])
            single = batch(
                given,
                batch_size=1,
                num_threads=prebatch_threads,
                capacity=prebatch_capacity,
                enqueue_many=True,
            )
            flat = single if isinstance(single, (list, tuple)) else [single]
            given = [ops.squeeze(x, [0]) for x in flat]
        chance: Any = accept_prob_fn(given)
        if runtime_checks:
            checks = [assert_less_equal(0.0, chance), assert_less_equal(chance, 1.0)]
            chance = ops.identity(with_dependencies(checks, chance), name="prob_with_checks")
        found = maybe_batch(
            given,
            keep_input=ops.random_uniform([]) < chance,
            batch_size=batch_size,
            num_threads=queue_threads,
        )
        return list(found) if isinstance(found, (list, tuple)) else [found]


def stratified_sample(
    tensors: Sequence[TensorLike],
    labels: TensorLike,
    target_probs: TensorLike,
    batch_size: int,
    init_probs: TensorLike | None = None,
    enqueue_many: bool = False,
    queue_capacity: int = 16,
    threads_per_queue: int = 1,
    name: str | None = None,
) -> tuple[list[Any], Any]:
    """Batches in which the classes have the probabilities ``target_probs``.

    ``init_probs``: how often they come; counted if it is not given.
    """
    with name_scope(name, "stratified_sample", [*tensors, labels]):
        given: Any = [convert_to_tensor(t) for t in tensors]
        classes: Any = convert_to_tensor(labels)
        target: Any = convert_to_tensor(target_probs, dtypes.float32)
        if not enqueue_many:
            given = [ops.expand_dims(t, 0) for t in given]
            classes = ops.expand_dims(classes, 0)
        if init_probs is None:
            if not target.shape.is_fully_defined():
                raise ValueError(f"Shape {target.shape} is not fully defined")
            first = _counted(classes, target.shape.num_elements())
        else:
            first = convert_to_tensor(init_probs, dtypes.float32)
        given, classes, first, target = _verified(given, classes, first, target)
        accepted = _acceptance(first, target)
        queued: Any = batch(
            [*given, classes],
            batch_size=1,
            num_threads=threads_per_queue,
            capacity=queue_capacity,
            enqueue_many=True,
        )
        *values, label = (ops.squeeze(x, [0]) for x in queued)
        chance = ops.gather(accepted, label)
        found: Any = maybe_batch(
            [*values, label],
            keep_input=ops.random_uniform([]) < chance,
            batch_size=batch_size,
            num_threads=threads_per_queue,
        )
        return list(found[:-1]), found[-1]


def _counted(labels: TensorLike, classes: int) -> Any:
    """How often each class came so far (each counts as ten times seen before)."""
    seen: Any = Variable([10] * classes, trainable=False, name="class_count", dtype=dtypes.int64)
    new = ops.reduce_sum(ops.one_hot(labels, classes, dtype=dtypes.int64), 0)
    counts = seen.assign_add(new) + 0
    share = ops.cast(counts, dtypes.float64) / ops.cast(ops.reduce_sum(counts), dtypes.float64)
    return ops.cast(share, dtypes.float32)


def _verified(tensors: Any, labels: Any, *given: Any) -> tuple[Any, Any, Any, Any]:
    """The same, after checks of shapes, sums and labels."""
    checked = []
    for probabilities in given:
        probabilities.shape.assert_has_rank(1)
        total = ops.reduce_sum(probabilities)
        checks = [
            assert_non_negative(probabilities),
            assert_less(total, 1.0 + 1e-6),
            assert_less(1.0 - 1e-6, total),
        ]
        checked.append(with_dependencies(checks, probabilities))
    count = checked[0].shape.num_elements()
    if checked[1].shape.num_elements() != count:
        raise ValueError("Probability parameters must have the same length.")
    labels.shape.assert_has_rank(1)
    for t in tensors:
        t.shape.with_rank_at_least(1)[:1].assert_is_compatible_with(labels.shape[:1])
    size = ops.shape(labels)[0]
    some = assert_positive(size)
    labels = with_dependencies([some], labels)
    tensors = [with_dependencies([some, assert_equal(ops.shape(t)[0], size)], t) for t in tensors]
    checks = [
        assert_integer(labels),
        assert_non_negative(labels),
        assert_less(labels, ops.cast(count, labels.dtype)),
    ]
    return tensors, with_dependencies(checks, labels), checked[0], checked[1]


def _acceptance(first: Any, target: Any) -> Any:
    """How likely an example of each class is kept."""
    possible = ops.reduce_all(ops.logical_or(ops.not_equal(first, 0), ops.equal(target, 0)))
    text = "All classes with zero initial probability must also have zero target probability: "
    first = with_dependencies([Assert(possible, [text, first, target])], first)
    ratio = target / first
    ratio = ops.where_v2(ops.is_nan(ratio), ops.zeros_like(ratio), ratio)
    accepted = ratio / ops.reduce_max(ratio)
    rejected = ops.reduce_sum((1 - accepted) * first)
    message = "Proportion of examples rejected by sampler is high."
    return ops.cond(
        ops.less(rejected, 0.5),
        lambda: accepted,
        lambda: Print(accepted, [accepted], message=message, first_n=10),
    )
