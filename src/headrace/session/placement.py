"""Where a session's operations may be: the target, the device names of operations, and
``log_device_placement``.

Everything runs on the CPU. A name that TensorFlow would refuse on a machine without a GPU is
refused all the same, unless the session allows soft placement.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace import errors
from headrace.core import trace
from headrace.core.device_spec import DeviceSpec
from headrace.core.graph import Graph
from headrace.core.schedule import needed_ops
from headrace.core.tensor import Operation, Tensor
from headrace.session.devices import CPU

if TYPE_CHECKING:
    from tensorboard.compat.proto.config_pb2 import ConfigProto

__all__ = ["LOCAL_TARGETS", "LocalServer", "Placement", "check_cluster", "check_target"]


class LocalServer(NamedTuple):
    """What sessions need to know of a ``tf.train.Server``."""

    config: ConfigProto  # the ConfigProto of sessions that bring none
    tasks: dict[tuple[str, int], str]  # the cluster's addresses by job and number


#: The servers of this process that have started, by target.
LOCAL_TARGETS: dict[str, LocalServer] = {}


def check_target(target: str) -> LocalServer | None:
    """The server of this process that a session's target names; None for no target."""
    if not isinstance(target, (str, bytes)):
        raise TypeError(f"target must be a string, but got {type(target)}")
    if target:
        text = target if isinstance(target, str) else target.decode()
        if text in LOCAL_TARGETS:
            check_cluster(text)
            return LOCAL_TARGETS[text]
        raise errors.NotFoundError(
            None,
            None,
            f"No session factory registered for the given session options: {{target: "
            f'"{text}"}} Registered factories are '
            "{DIRECT_SESSION}. Headrace runs in this process only: leave the target out, or give "
            "the target of a tf.train.Server of this process that has started.",
        )
    return None


def check_cluster(target: str) -> None:
    """Refuse a cluster with tasks in other processes, which TensorFlow would wait for."""
    protocol = target.partition("://")[0]
    tasks = LOCAL_TARGETS[target].tasks
    missing = [k for k, a in tasks.items() if f"{protocol}://{a}" not in LOCAL_TARGETS]
    if missing:
        names = ", ".join(f"/job:{job}/task:{number}" for job, number in missing)
        raise errors.UnimplementedError(
            None,
            None,
            f"{names} of the cluster are not servers of this process, and Headrace runs in one "
            "process. Make a tf.train.Server for each task here, use "
            "tf.train.Server.create_local_server(), or leave the server out and give Session no "
            "target.",
        )


class Placement:
    """What a session's ConfigProto says of devices.

    ``server``: the one at the session's target; its cluster's tasks are places here.
    ``whole_graph``: every operation of the graph must have a place, not only those that a run needs
    (interactive sessions place what they run).
    """

    __slots__ = ("_accepted", "_logged", "_tasks", "cpus", "log", "soft", "whole_graph")

    def __init__(
        self, config: ConfigProto, whole_graph: bool = True, server: LocalServer | None = None
    ) -> None:
        self._tasks = {("localhost", 0)} if server is None else set(server.tasks)
        self.cpus, self.soft, self.log, self.whole_graph = 1, False, False, whole_graph
        if config is not None:
            self.cpus = config.device_count.get("CPU", 1)
            self.soft = bool(config.allow_soft_placement)
            self.log = bool(config.log_device_placement)
            if config.graph_options.place_pruned_graph:
                self.whole_graph = False
        if self.cpus < 1:
            raise errors.NotFoundError(None, None, "No CPU devices are available in this process")
        self._accepted: set[str] = {""}
        self._logged: set[Operation] = set()
        if self.log:
            sys.stderr.write("Device mapping: no known devices.\n")

    def check(self, graph: Graph, elements: Sequence[Any], feeds: Sequence[Tensor]) -> None:
        """Refuse operations on devices that are not there.

        Print where the others are if that is wanted.
        """
        if not graph._devices <= self._accepted and self.whole_graph:
            for op in graph.get_operations():
                if op._device not in self._accepted:
                    self._accept(op)
        if not self.log and graph._devices <= self._accepted:
            return
        fed = set(feeds)
        roots = [e._op if isinstance(e, Tensor) else getattr(e, "op", e) for e in elements]
        kept = [op for op, e in zip(roots, elements) if e not in fed]
        for op in sorted(needed_ops(kept, fed), key=lambda op: op._id):
            if op._device not in self._accepted:
                self._accept(op)
            if self.log and op not in self._logged:
                self._logged.add(op)
                sys.stderr.write(f"{op.name}: ({op.type}): {self._place(op._device)}\n")

    def _accept(self, op: Operation) -> None:
        spec = DeviceSpec.from_string(op._device)
        jobs = {job for job, _ in self._tasks} if spec.job is None else {spec.job}
        here = not spec.replica and any((job, spec.task or 0) in self._tasks for job in jobs)
        if not here or not (self.soft or self._is_there(spec)):
            where = trace.user_line(op._frames)
            names = ", ".join(f"{CPU[:-1]}{i}" for i in range(self.cpus))
            raise errors.InvalidArgumentError(
                None,
                op,
                f"Cannot assign a device for operation {op.name}: node {op.name} was "
                f"explicitly assigned to {op._device} but "
                f"available devices are [ {names} ]. Make sure the device specification "
                "refers to a valid device, or allow "
                "others with tf.ConfigProto(allow_soft_placement=True)."
                f"\n\t [[node {op.name}]] ({op.type})" + (f"\n\t made at {where}" if where else ""),
            )
        self._accepted.add(op._device)

    def _is_there(self, spec: DeviceSpec) -> bool:
        index = spec.device_index or 0
        if spec.device_type == "XLA_CPU":
            return index == 0
        return spec.device_type in (None, "CPU") and index < self.cpus

    def _place(self, device: str) -> str:
        spec = DeviceSpec.from_string(device)
        index = spec.device_index if spec.device_type == "CPU" else 0
        return f"{CPU[:-1]}{index if index is not None and index < self.cpus else 0}"
