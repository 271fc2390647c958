"""``tf.train.replica_device_setter``.

A device function that puts variables on parameter servers in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core.device_spec import DeviceSpec
from headrace.train.cluster import ClusterSpec

if TYPE_CHECKING:
    from headrace.core.tensor import Operation

__all__ = ["replica_device_setter"]

STANDARD_PS_OPS = (
    "Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "MutableHashTableV2",
    "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "MutableDenseHashTable",
    "MutableDenseHashTableV2", "VarHandleOp", "BoostedTreesEnsembleResourceHandleOp",
    "BoostedTreesQuantileStreamResourceHandleOp", "ResourceConditionalAccumulator",
)  # fmt: skip


class _RoundRobinStrategy:
    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self._next = 0

    def __call__(self, op: Any) -> int:
        task, self._next = self._next, (self._next + 1) % self._tasks
        return task


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: object = None,
    ps_ops: Any = None,
    ps_strategy: Callable[[Any], int] | None = None,
) -> Callable[[Any], str] | None:
    """A function for ``tf.device``; None without parameter servers.

    Operations of the types ``ps_ops`` go to ``ps_device``, to the task that ``ps_strategy``
    chooses; all others to ``worker_device``. The devices are recorded; everything runs in this
    process.
    """
    if cluster is not None:
        tasks = ClusterSpec(cluster).as_dict().get(DeviceSpec.from_string(ps_device).job or "")
        if tasks is None:
            return None
        ps_tasks = len(tasks)
    if ps_tasks == 0:
        return None
    strategy = _RoundRobinStrategy(ps_tasks) if ps_strategy is None else ps_strategy
    if not callable(strategy):
        raise TypeError("ps_strategy must be callable")
    types = STANDARD_PS_OPS if ps_ops is None else ps_ops

    def device(op: Operation) -> str:
        if not merge_devices and op.device:
            return op.device
        current = DeviceSpec.from_string(op.device or "")
        if not (ps_device and op.type in types):
            return DeviceSpec.from_string(worker_device or "").make_merged_spec(current).to_string()
        server = DeviceSpec.from_string(ps_device)
        if server.job and (not current.job or current.job == server.job):
            server = server.replace(task=strategy(op))
        return server.make_merged_spec(current).to_string()

    return device
