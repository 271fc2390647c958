"""``tf.config.threading``: over how many threads large operations are spread."""

from __future__ import annotations

from headrace.kernels import accel
from headrace.runtime import thread_pool as pool

__all__ = [
    "get_inter_op_parallelism_threads", "get_intra_op_parallelism_threads",
    "set_inter_op_parallelism_threads", "set_intra_op_parallelism_threads",
]  # fmt: skip

_settings = {"inter": 0, "intra": 0}


def get_intra_op_parallelism_threads() -> int:
    """What was set; 0 means all cores."""
    return _settings["intra"]


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """How many threads one operation may use; 0 means as many as there are cores.

    It holds from the next run on, for the whole process.
    """
    _settings["intra"] = num_threads
    pool.set_threads(num_threads, "tf.config.threading")
    accel.tell_threads()


def get_inter_op_parallelism_threads() -> int:
    """The number given to ``set_inter_op_parallelism_threads``, 0 if none was."""
    return _settings["inter"]


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Remembered: the operations of one run come one after the other, each on all of its
    threads.
    """
    _settings["inter"] = num_threads
