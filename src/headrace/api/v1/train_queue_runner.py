"""``tf.train.queue_runner``."""

from headrace.train.input_queues.queue_runner import (
    QueueRunner,
    add_queue_runner,
    start_queue_runners,
)

__all__ = ["QueueRunner", "add_queue_runner", "start_queue_runners"]
