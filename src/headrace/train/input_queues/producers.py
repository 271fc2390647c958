"""``tf.train.string_input_producer`` and its like.

Queues of names, numbers or slices, filled epoch after epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.core import dtypes
from headrace.core.build import apply_op
from headrace.core.convert import convert_to_tensor
from headrace.core.graph import get_default_graph
from headrace.core.graph_keys import GraphKeys
from headrace.core.opdef import lookup
from headrace.core.scopes import add_to_collection, control_dependencies, name_scope
from headrace.core.seeds import count_more
from headrace.core.tensor import Tensor
from headrace.ops.array.array_shape import shape, size
from headrace.ops.array.basic import constant, identity
from headrace.ops.array.casting import cast
from headrace.ops.array.gathering import gather
from headrace.ops.array.ranges import range as range_tensor
from headrace.ops.control.assertions import Assert
from headrace.ops.math.comparison import greater
from headrace.ops.queues.queues import FIFOQueue
from headrace.ops.random.random_ops import random_shuffle
from headrace.train.input_queues.queue_runner import QueueRunner, add_queue_runner
from headrace.variables.variable import Variable

if TYPE_CHECKING:
    from headrace.core.annotations import ShapeLike, TensorLike

__all__ = [
    "fullness_summary",
    "input_producer",
    "limit_epochs",
    "range_input_producer",
    "slice_input_producer",
    "string_input_producer",
]


def fullness_summary(name: str, value: Tensor) -> None:
    """The summary of how full a queue is, which TensorFlow makes beside it."""
    try:
        lookup("ScalarSummary")
    except (
        ValueError
    ):  # without summaries: TensorFlow's two operations count for the seeds of later ones
        count_more(get_default_graph(), 2)
        return
    with name_scope(name, values=[value]) as scope:
        made = apply_op("ScalarSummary", scope.rstrip("/"), value, name=scope)
    add_to_collection(GraphKeys.SUMMARIES, made)


def limit_epochs(tensor: TensorLike, num_epochs: int | None = None, name: str | None = None) -> Any:
    """``tensor``, ``num_epochs`` times; OutOfRangeError after that. The count is a local
    variable.
    """
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise ValueError(f"num_epochs must be > 0 not {num_epochs}.")
    with name_scope(name, "limit_epochs", [tensor]) as scope:
        make: Any = Variable
        epochs = make(
            constant(0, dtype=dtypes.int64),
            name="epochs",
            trainable=False,
            collections=[GraphKeys.LOCAL_VARIABLES],
        )
        with control_dependencies([epochs.count_up_to(num_epochs)]):
            return identity(tensor, name=scope)


def input_producer(
    input_tensor: TensorLike,
    element_shape: ShapeLike | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    summary_name: str | None = None,
    name: str | None = None,
    cancel_op: object = None,
) -> FIFOQueue:
    """A queue of the rows of ``input_tensor``.

    The rows come ``num_epochs`` times (None: without end; otherwise run
    ``tf.local_variables_initializer()`` first), in a new order each time unless ``shuffle=False``.
    The queue keeps ``capacity`` elements; start its thread with ``tf.train.start_queue_runners``.
    ``element_shape`` is the static shape of a row if it is not known.
    """
    if get_default_graph()._is_eager:
        raise RuntimeError(
            "Input pipelines based on Queues are not supported when eager execution is "
            "enabled. Please use tf.data "
            "to ingest data into your model instead."
        )
    with name_scope(name, "input_producer", [input_tensor]):
        rows = convert_to_tensor(input_tensor, name="input_tensor")
        known = rows.get_shape()[1:].merge_with(element_shape)
        if not known.is_fully_defined():
            raise ValueError(
                "Either `input_tensor` must have a fully defined shape or `element_shape` "
                "must be specified"
            )
        if shuffle:
            rows = random_shuffle(rows, seed=seed)
        rows = limit_epochs(rows, num_epochs)
        queue = FIFOQueue(
            capacity=capacity,
            dtypes=[rows.dtype.base_dtype],
            shapes=[known],
            shared_name=shared_name,
            name=name,
        )
        add_queue_runner(QueueRunner(queue, [queue.enqueue_many([rows])], cancel_op=cancel_op))
        if summary_name is not None:
            fullness_summary(summary_name, cast(queue.size(), dtypes.float32) * (1.0 / capacity))
        return queue


def string_input_producer(
    string_tensor: TensorLike,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: object = None,
) -> FIFOQueue:
    """A queue of the strings of a vector, names of files as a rule, for a pipeline of readers.

    The strings come ``num_epochs`` times (None: without end; otherwise run
    ``tf.local_variables_initializer()`` first), in a new order each time unless ``shuffle=False``.
    The queue keeps ``capacity`` elements; start its thread with ``tf.train.start_queue_runners``.

        files = tf.train.string_input_producer(["a.tfrecord", "b.tfrecord"], num_epochs=1)
        key, record = tf.TFRecordReader().read(files)
    """
    reason = "string_input_producer requires a non-null input tensor"
    if isinstance(string_tensor, (list, tuple, str, bytes)) and not string_tensor:
        raise ValueError(reason)
    with name_scope(name, "input_producer", [string_tensor]) as scope:
        strings = convert_to_tensor(string_tensor, dtype=dtypes.string)
        with control_dependencies([Assert(greater(size(strings), 0), [reason])]):
            strings = identity(strings)
        return input_producer(
            input_tensor=strings,
            element_shape=[],
            num_epochs=num_epochs,
            shuffle=shuffle,
            seed=seed,
            capacity=capacity,
            shared_name=shared_name,
            name=scope,
            summary_name=f"fraction_of_{capacity}_full",
            cancel_op=cancel_op,
        )


def range_input_producer(
    limit: TensorLike,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> FIFOQueue:
    """A queue of the numbers from 0 to ``limit`` - 1.

    The numbers come ``num_epochs`` times (None: without end; otherwise run
    ``tf.local_variables_initializer()`` first), in a new order each time unless ``shuffle=False``.
    The queue keeps ``capacity`` elements; start its thread with ``tf.train.start_queue_runners``.
    """
    with name_scope(name, "input_producer", [limit]) as scope:
        return input_producer(
            range_tensor(limit),
            [],
            num_epochs,
            shuffle,
            seed,
            capacity,
            shared_name,
            f"fraction_of_{capacity}_full",
            scope,
        )


def slice_input_producer(
    tensor_list: Sequence[Any],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """One row of each tensor of ``tensor_list``, the same row of all.

    The tensors have equal first dimensions. The rows come ``num_epochs`` times (None: without end;
    otherwise run ``tf.local_variables_initializer()`` first), in a new order each time unless
    ``shuffle=False``. The queue keeps ``capacity`` elements; start its thread with
    ``tf.train.start_queue_runners``.
    """
    with name_scope(name, "input_producer", list(tensor_list)):
        if not len(tensor_list):
            raise ValueError("Expected at least one tensor in slice_input_producer().")
        tensors = [convert_to_tensor(t) for t in tensor_list]
        queue = range_input_producer(
            shape(tensors[0])[0],
            num_epochs=num_epochs,
            shuffle=shuffle,
            seed=seed,
            capacity=capacity,
            shared_name=shared_name,
        )
        index = queue.dequeue()
        return [gather(t, index) for t in tensors]
